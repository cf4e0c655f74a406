"""Samples of bounded length out of streams of any length."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # multiples of it spread evenly over 2^64 (Knuth, volume 3, section 6.4)


class Thinned:
    """Columns of at most `most` rows, evenly chosen by the rows' numbers. Which rows stay does not depend on how they came.

    Every second, fourth, ... row would favour one phase of what repeats; rows are chosen by a hash of their numbers instead.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.seen = 0
        self._limit = 1 << 32
        self._keys: list[Array] = []
        self._columns: list[tuple[Array, ...]] = []
        self._held = 0

    def add(self, numbers: Array, *columns: Array) -> None:
        """Rows with their numbers; a column's first axis is the rows."""
        self.seen += len(numbers)
        key = (numbers.astype(np.uint64) * _GOLDEN) >> np.uint64(32)
        if self._limit < 1 << 32:
            keep = key < self._limit
            key, columns = key[keep], tuple(column[keep] for column in columns)
        self._keys.append(key)
        self._columns.append(columns)
        self._held += len(key)
        while self._held > self.most:
            self._halve()

    def _halve(self) -> None:
        self._limit //= 2
        key, columns = np.concatenate(self._keys), self._joined()
        keep = key < self._limit
        if not self._limit:
            keep[:] = False
            keep[: self.most // 2] = True
            self._limit = 1
        self._keys, self._columns = [key[keep]], [tuple(column[keep] for column in columns)]
        self._held = int(keep.sum())

    def _joined(self) -> tuple[Array, ...]:
        return tuple(np.concatenate(parts) for parts in zip(*self._columns, strict=True))

    def columns(self) -> tuple[Array, ...]:
        """The rows that were kept, in the order in which they came. Empty where none came."""
        return self._joined()
