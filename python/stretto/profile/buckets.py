"""Fused buckets: large sums of floating-point numbers that repeat with the same sizes in each iteration.

Frameworks pack gradients into buffers of bounded size (Horovod's fusion buffer, PyTorch's buckets), so that an iteration is a
short sequence of sizes that comes again. The period of that sequence is looked for; where timing decides what is packed together
and there is none, sizes that come often are given without one.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stretto.profile.job import Job
from stretto.profile.scan import Block
from stretto.profile.sizes import FLOATING, REDUCTION, SUM
from stretto.profile_model import TABLES
from stretto.trace_layout import PART

Array = NDArray[Any]

LARGE = 64 << 10  # bytes of the smallest bucket
MOST_KEPT = 1 << 16  # reductions of one communicator that are looked at
LONGEST_PERIOD = 1024  # reductions in an iteration
ALIKE = 0.9  # share of reductions that agree with those one period later
OFTEN = 5  # times that a size comes before it is listed without a period

KEPT = np.dtype([("function", "i4"), ("datatype", "i4"), ("bytes", "i8")])


class Buckets:
    """A consumer of blocks: the reductions of the lowest rank of each communicator."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.kept: dict[tuple[str, int], list[Array]] = {}
        self._speaker: dict[tuple[str, int], int] = {}  # the process that speaks for a communicator
        self._wanted: list[tuple[Array, Array, Array]] = []
        for number, process in enumerate(job.processes):
            for one in process.trace.communicators:
                self._speaker.setdefault((process.library, one.identity), number)
            trace = process.trace
            tables = ((trace.functions, REDUCTION), (trace.datatype_names, FLOATING), (trace.operations, SUM))
            functions, datatypes, operations = (_matching(names, pattern) for names, pattern in tables)
            self._wanted.append((functions, datatypes, operations))

    def take(self, block: Block) -> None:
        rows, size = block.rows, np.maximum(block.sent, block.received)
        wanted = (size >= LARGE) & (rows["flags"] & PART == 0)
        if not wanted.any():
            return
        for table, name in zip(self._wanted[block.process], ("function", "datatype", "op"), strict=True):
            wanted &= table[np.minimum(rows[name], len(table) - 1)]
        communicators = self.job.processes[block.process].trace.communicators
        library = self.job.processes[block.process].library
        for index in np.unique(rows["communicator"][wanted]).tolist():
            if index >= len(communicators):
                continue
            key = (library, communicators[index].identity)
            if self._speaker[key] == block.process:
                self._keep(key, rows, size, wanted & (rows["communicator"] == index))

    def _keep(self, key: tuple[str, int], rows: Array, size: Array, wanted: Array) -> None:
        parts = self.kept.setdefault(key, [])
        left = MOST_KEPT - sum(map(len, parts))
        kept = np.empty(min(int(wanted.sum()), left), KEPT)
        for name, column in (("function", rows["function"]), ("datatype", rows["datatype"]), ("bytes", size)):
            kept[name] = column[wanted][: len(kept)]
        parts.append(kept)

    def settle(self, process: int, reached: Array) -> None:
        """Nothing has to wait for others."""


def _matching(names: list[str], pattern: str) -> Array:
    return np.array([*(bool(re.search(pattern, name)) for name in names), False])


def buckets(found: Buckets) -> pl.DataFrame:
    """One row per communicator, function and size."""
    rows: list[tuple[Any, ...]] = []
    for key, parts in found.kept.items():
        trace = found.job.processes[found._speaker[key]].trace
        kept = np.concatenate(parts)
        for one, per_iteration, iterations in _repeated(kept, int((trace.marks["what"] == 3).sum())):
            datatype = trace.datatype_names[int(one["datatype"])]
            function = trace.functions[int(one["function"])]
            rows.append((found.job.groups[key].label, function, int(one["bytes"]), datatype, per_iteration, iterations))
    table = pl.DataFrame(rows, schema=TABLES["buckets"], orient="row")
    return table.sort("communicator", "function", "bytes", descending=[False, False, True])


def _repeated(kept: Array, marked: int) -> list[tuple[Any, int | None, int]]:
    """Distinct reductions with how often they come in an iteration, and the number of iterations."""
    distinct, which, counts = np.unique(kept, return_inverse=True, return_counts=True)
    length = period(which.reshape(-1))
    if not length:
        return [(one, None, int(count)) for one, count in zip(distinct, counts, strict=True) if count >= OFTEN]
    iterations = marked if marked > 1 and len(kept) < MOST_KEPT else len(kept) // length
    rounded = [(one, round(float(count) / iterations), iterations) for one, count in zip(distinct, counts, strict=True)]
    return [row for row in rounded if row[1] > 0]


def period(which: Array) -> int:
    """The length of the sequence that repeats, at least three times over; 0: none."""
    for length in range(1, min(len(which) // 3, LONGEST_PERIOD) + 1):
        if float((which[length:] == which[:-length]).mean()) >= ALIKE:
            return length
    return 0
