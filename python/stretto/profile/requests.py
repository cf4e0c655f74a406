"""Requests: from the call that starts one to the call that completes it, and how much of that was spent waiting for it.

A request's number appears once where it is started and once where it is completed (persistent ones again and again). Parts of a
call bear the function that made the request: of a MPI_Waitall they complete, of a MPI_Startall they start. Thesis section 3.3.3
found requests hard to match from outside; the numbers make it exact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stretto.profile.job import Job
from stretto.profile.scan import Block
from stretto.profile_model import TABLES
from stretto.trace_layout import INCOMPLETE, PART

Array = NDArray[Any]

COMPLETES = re.compile(r"MPI_(Wait|Test)(all|any|some)?|MPI_Request_free")
NO_START = re.compile(r"MPI_\w+_init(_c)?|MPI_Cancel|MPI_Request_get_status|MPI_Test_cancelled|MPI_Pready\w*|MPI_Parrived")

MOST_OPEN = 1 << 21  # requests of one process that wait for their completion; more are taken as never completed
OPEN = np.dtype([("request", "u4"), ("function", "i4"), ("time", "f8"), ("spent", "f8"), ("start", "?")])


@dataclass(slots=True)
class _Sums:
    completed: int = 0
    open: int = 0
    in_flight: float = 0.0
    waited: float = 0.0


@dataclass(slots=True)
class _Process:
    kind: Array  # of each function: -2 neither, -1 completes, else starts and is this name's number
    parent: dict[int, int] = field(default_factory=dict)  # by thread: the kind of the newest call that is no part
    pending: list[Array] = field(default_factory=list)


class Requests:
    """A consumer of blocks."""

    def __init__(self, job: Job) -> None:
        self.functions: list[str] = []
        self.sums: dict[int, _Sums] = {}
        self._startall = -3
        self._processes = [_Process(self._kinds(process.trace.functions)) for process in job.processes]

    def _kinds(self, names: list[str]) -> Array:
        kinds = []
        for name in names:
            starts = not COMPLETES.fullmatch(name) and not NO_START.fullmatch(name)
            if starts and name not in self.functions:
                self.functions.append(name)
                if name == "MPI_Startall":
                    self._startall = len(self.functions) - 1
            kinds.append(self.functions.index(name) if starts else -1 if COMPLETES.fullmatch(name) else -2)
        return np.array([*kinds, -2], np.int32)

    def take(self, block: Block) -> None:
        process = self._processes[block.process]
        kind = self._kind_of(process, block)
        named = np.flatnonzero((block.rows["request"] != 0) & (block.rows["flags"] & INCOMPLETE == 0) & (kind > -2))
        if not len(named):
            return
        kind = kind[named]
        rows = np.empty(len(named), OPEN)
        rows["request"], rows["function"], rows["start"] = block.rows["request"][named], kind, kind >= 0
        rows["time"] = np.where(kind >= 0, block.begin[named], block.end[named])
        rows["spent"] = block.end[named] - block.begin[named]
        process.pending.append(rows)

    def _kind_of(self, process: _Process, block: Block) -> Array:
        """Of each event; of parts, what the call that they belong to does."""
        kind = process.kind[np.minimum(block.rows["function"], len(process.kind) - 1)]
        part = block.rows["flags"] & PART != 0
        carried = process.parent.get(block.thread, -2)
        if part.any():
            newest = np.maximum.accumulate(np.where(part, -1, np.arange(len(part))))
            parent = np.where(newest < 0, carried, kind[newest])
            carried = int(parent[-1])
            kind = np.where(part, np.where((parent == -1) | (parent == self._startall), parent, -2), kind)
        elif len(kind):
            carried = int(kind[-1])
        process.parent[block.thread] = carried
        return np.asarray(kind)

    def settle(self, process: int, reached: Array) -> None:
        one = self._processes[process]
        if one.pending:
            one.pending = [self._match(np.concatenate(one.pending), float(reached[process]))]
        if one.pending and (reached[process] == np.inf or len(one.pending[0]) > MOST_OPEN):
            rows = one.pending.pop()
            for function, count in zip(*np.unique(rows["function"][rows["start"]], return_counts=True), strict=True):
                self._of(int(function)).open += int(count)

    def _match(self, rows: Array, reached: float) -> Array:
        """Pairs each start with the completion of the same request that follows it; returns what is left to be paired."""
        rows = rows[np.lexsort((rows["time"], rows["request"]))]
        pair = np.flatnonzero(rows["start"][:-1] & ~rows["start"][1:] & (rows["request"][:-1] == rows["request"][1:]))
        starts, ends = rows[pair], rows[pair + 1]
        flight = ends["time"] - starts["time"]
        waited = np.minimum(ends["spent"], flight)
        for function in np.unique(starts["function"]).tolist():
            mine = starts["function"] == function
            sums = self._of(function)
            sums.completed += int(mine.sum())
            sums.in_flight += float(flight[mine].sum())
            sums.waited += float(waited[mine].sum())
        left = np.ones(len(rows), bool)
        left[pair] = left[pair + 1] = False
        left &= rows["start"] | (rows["time"] >= reached)  # a completion whose start was not recorded waits in vain
        return rows[left]

    def _of(self, function: int) -> _Sums:
        return self.sums.setdefault(function, _Sums())


def requests(found: Requests) -> pl.DataFrame:
    """One row per function that starts requests, over all ranks; times are seconds over all requests."""
    rows = [
        (found.functions[number], sums.completed, sums.open, sums.in_flight, sums.waited, _hidden(sums))
        for number, sums in found.sums.items()
    ]
    return pl.DataFrame(rows, schema=TABLES["requests"], orient="row").sort("in_flight", "function", descending=[True, False])


def _hidden(sums: _Sums) -> float | None:
    return 1.0 - sums.waited / sums.in_flight if sums.in_flight > 0 else None
