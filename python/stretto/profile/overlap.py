"""Threads of one process inside the library at once (thesis section 3.3.3): a sweep over the begins and ends of their calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stretto.profile.job import Job
from stretto.profile.scan import Block
from stretto.profile_model import TABLES

Array = NDArray[Any]


@dataclass(slots=True)
class _Sweep:
    """One process's calls: those not counted yet, and of those that go on whether they met another one."""

    begin: list[Array] = field(default_factory=list)
    end: list[Array] = field(default_factory=list)
    met: list[Array] = field(default_factory=list)
    most: int = 0
    overlapped: float = 0.0
    calls: int = 0

    def add(self, begin: Array, end: Array) -> None:
        self.begin.append(begin)
        self.end.append(end)
        self.met.append(np.zeros(len(begin), bool))

    def sweep(self, until: float) -> None:
        """Counts what happened before `until`; no call that begins before it comes later."""
        if not self.begin:
            return
        begin, end, met = (np.concatenate(parts) for parts in (self.begin, self.end, self.met))
        now = begin < until
        if not now.any():
            self.begin, self.end, self.met = [begin], [end], [met]
            return
        times, inside = _inside(begin[now], np.minimum(end[now], until))
        spans = np.diff(times) * (inside[:-1] >= 2)
        self.most = max(self.most, int(inside.max()))
        self.overlapped += float(spans.sum())
        shared = np.concatenate([[0.0], np.cumsum(spans)])
        low, high = np.searchsorted(times, begin[now]), np.searchsorted(times, np.minimum(end[now], until))
        met[now] |= shared[high] > shared[low]
        over = now & (end <= until)
        self.calls += int(met[over].sum())
        left = ~over
        self.begin, self.end, self.met = [np.where(now, until, begin)[left]], [end[left]], [met[left]]


def _inside(begin: Array, end: Array) -> tuple[Array, Array]:
    """The moments at which the number of calls inside changes, and that number from each on. Ends come before begins."""
    times = np.concatenate([end, begin])
    step = np.repeat(np.array([-1, 1]), [len(end), len(begin)])
    order = np.argsort(times, kind="stable")
    times, inside = times[order], np.cumsum(step[order])
    final = np.concatenate([times[1:] != times[:-1], [True]])
    return times[final], inside[final]


class Overlap:
    """A consumer of blocks; processes with one thread are not looked at."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.sweeps = {number: _Sweep() for number, process in enumerate(job.processes) if len(process.trace.event_threads()) > 1}

    def take(self, block: Block) -> None:
        sweep = self.sweeps.get(block.process)
        if sweep is not None:
            whole = self.job.processes[block.process].calls(block.rows)
            chosen: Any = slice(None) if whole.all() else whole
            sweep.add(block.begin[chosen], block.end[chosen])

    def settle(self, process: int, reached: Array) -> None:
        if process in self.sweeps:
            self.sweeps[process].sweep(float(reached[process]))


def overlap(found: Overlap) -> pl.DataFrame:
    """One row per process whose calls are there."""
    rows = []
    for number, process in enumerate(found.job.processes):
        sweep = found.sweeps.get(number, _Sweep(most=1))
        if process.trace.event_count():
            rows.append((process.rank, process.library, sweep.most, sweep.overlapped, sweep.calls))
    return pl.DataFrame(rows, schema=TABLES["overlap"], orient="row")
