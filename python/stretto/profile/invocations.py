"""How many invocations of each size there were, where single calls were kept of some alone.

The sums count a member's calls under what that member had: of a Gather the root has all blocks, the others one each. What the
kept invocations show of their members tells which invocations such counts stand for, whoever was the root of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stretto.profile.matching import PERSISTENT

if TYPE_CHECKING:
    from stretto.profile.arrival import Sums

Array = NDArray[Any]
Name = tuple[str, str, str]  # library, function, label of the communicator

BINS = 66


class Counted(NamedTuple):
    number: int  # of invocations
    each: float  # how many of them one that was kept stands for, beside its weight


def size_bin(sizes: Array) -> Array:
    """Bins of the trace format: 0 for no bytes, else n for (2^(n-2), 2^(n-1)]."""
    exponent = np.frexp(np.maximum(sizes - 1, 0).astype(np.float64))[1]
    return np.where(sizes <= 0, 0, exponent + 1)


def bin_bound(number: int) -> int:
    """Largest size of a bin, in bytes; the last bin that fits in 63 bits stands for those beyond."""
    return 0 if number == 0 else 1 << min(number - 1, 62)


def members_by_bin(sizes: Array, weight: Array) -> Array:
    """In each bin, the share of the members that had so many bytes; over all invocations, as often as each weighs."""
    members = len(sizes)
    return np.bincount(size_bin(sizes).reshape(-1), np.tile(weight / members, members), BINS)


def invocations_by_bin(
    kept: dict[Name, dict[int, list[Sums]]], cells: pl.DataFrame, whole: bool
) -> dict[tuple[Name, int], Counted]:
    """By name and bin: as many as the sums count, of which `kept` are a part. `whole`: no call is missing in the sums. Those of
    persistent collectives are counted under another name, and the kept ones stand for all."""
    mean, most = _calls(cells)
    found = {}
    for name, bins in kept.items():
        left, rest = dict(mean.get(name, {})), most.get(name)
        for size in sorted(bins, reverse=True):
            seen, weight = (sum(getattr(one, what) for one in bins[size]) for what in ("invocations", "parts"))
            number = weight
            if rest is not None:
                share = np.asarray(sum(one.held for one in bins[size])) / weight
                number = max(0.0, left.get(bin_bound(size), 0.0)) / share[size]
                number = min(number if whole else max(number, weight), rest)
                rest -= number
                left = {bound: calls - number * float(share[size_bin(np.array(bound))]) for bound, calls in left.items()}
            of = max(seen, round(number))
            found[name, size] = Counted(of, of / weight)
    return found


def _calls(cells: pl.DataFrame) -> tuple[dict[Name, dict[int, float]], dict[Name, float]]:
    """By name: calls of each bin's bound, on an average over the members; and of all sizes, the most of any member. Communicators
    that share a label are added up."""
    keys = ["library", "function", "communicator"]
    cells = cells.filter(~pl.col("function").str.contains(PERSISTENT.pattern))
    share = pl.col("calls") / pl.col("rank").n_unique().over(*keys, "identity")
    mean: dict[Name, dict[int, float]] = {}
    for *name, bound, calls in cells.with_columns(calls=share).group_by(*keys, "upper").agg(pl.col("calls").sum()).iter_rows():
        mean.setdefault((name[0], name[1], name[2]), {})[bound] = calls
    own = cells.group_by(*keys, "identity", "rank").agg(pl.col("calls").sum())
    most = own.group_by(*keys, "identity").agg(pl.col("calls").max()).group_by(keys).agg(pl.col("calls").sum())
    return mean, {(a, b, c): n for a, b, c, n in most.iter_rows()}
