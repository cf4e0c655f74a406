"""The figures of single invocations (Alizadeh et al. 2022, section 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Figures:
    """Of a block of invocations, one value each; seconds."""

    first: Array  # arrival
    last: Array  # arrival
    last_member: Array
    omega: Array
    delta: Array
    waiting: Array  # of all members together
    transfer: Array  # of all members together
    done: Array  # last exit - last arrival


def figures(arrival: Array, exit_: Array) -> Figures:
    """From matrices [member, invocation] in seconds. Who leaves before the last one arrives waits until then at most."""
    first, last = arrival.min(axis=0), arrival.max(axis=0)
    mean = arrival.mean(axis=0)
    delta = np.abs(arrival - mean).mean(axis=0)
    waiting = np.maximum(np.minimum(exit_, last) - arrival, 0.0).sum(axis=0)
    transfer = np.maximum(exit_ - last, 0.0).sum(axis=0)
    done = np.maximum(exit_.max(axis=0) - last, 0.0)
    return Figures(first, last, arrival.argmax(axis=0), last - first, delta, waiting, transfer, done)


def quantile(values: Array, weights: Array, share: float) -> float:
    """Of values each of which stands for as many as its weight, a whole number, says."""
    order = np.argsort(values)
    upto = np.cumsum(weights[order])
    at = share * (float(upto[-1]) - 1)
    low, high = values[order][np.searchsorted(upto, [np.floor(at), np.ceil(at)], side="right")].tolist()
    return float(low + (high - low) * (at - np.floor(at)))


def present(numbers: Array) -> list[int]:
    """The distinct values of small numbers, none below 0, in increasing order."""
    return [int(one) for one in np.flatnonzero(np.bincount(numbers))]
