"""Runs the analyses over a profile folder: one row of `ANALYSES` per table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from stretto.profile import basics, sums
from stretto.profile.arrival import Arrivals, arrival, by_size, invocations
from stretto.profile.buckets import LARGE, Buckets, buckets
from stretto.profile.crossing import crossing
from stretto.profile.job import Job, open_job
from stretto.profile.late import Late, late, raster
from stretto.profile.matching import Matcher
from stretto.profile.overlap import Overlap, overlap
from stretto.profile.requests import Requests, requests
from stretto.profile.scan import Block, Consumer, scan
from stretto.profile.sizes import sizes
from stretto.profile.takeover import takeover
from stretto.profile.verdict import verdict
from stretto.profile_model import TABLES, Profile, empty_table
from stretto.trace_layout import STAGES


@dataclass(slots=True)
class Found:
    """What the analyses draw on: the sums, and what was gathered while the events went by."""

    job: Job
    cells: pl.DataFrame  # sums.cells
    times: pl.DataFrame  # these, and sums.open_calls
    kernels: pl.DataFrame  # sums.kernels
    arrivals: Arrivals
    late: Late
    matcher: Matcher
    overlap: Overlap
    requests: Requests
    buckets: Buckets
    sized: pl.DataFrame  # arrival.by_size
    tables: dict[str, pl.DataFrame]  # those filled so far


@dataclass(frozen=True, slots=True)
class Analysis:
    table: str
    fill: Callable[[Found], pl.DataFrame]
    none: str  # why the table has no rows
    every_call: bool = False  # needs every call as an event: mode full


UNMATCHED = "no collective with several members was recorded on all of them"
ANALYSES = (
    Analysis("ranks", lambda f: basics.ranks(f.job, f.times), "no process got as far as the end of MPI_Init"),
    Analysis("functions", lambda f: basics.functions(f.job, pl.concat([f.times, f.kernels])), "no call was counted"),
    Analysis("sizes", lambda f: sizes(f.job, f.cells), "no call was counted"),
    Analysis("partners", lambda f: basics.partners(f.job), "no point-to-point or one-sided message was counted"),
    Analysis(
        "crossing", lambda f: crossing(f.job, f.cells, f.tables["partners"]), "nothing crossed; all ranks may be on one node"
    ),
    Analysis("communicators", lambda f: basics.communicators(f.job, f.times), "no communicator was recorded"),
    Analysis("queues", lambda f: basics.queues(f.job)[0], "no queue variables were offered by this MPI library"),
    Analysis("arrival", lambda f: arrival(f.arrivals, f.matcher, f.cells), UNMATCHED),
    Analysis("late", lambda f: late(f.late, f.matcher.functions, f.tables["arrival"]), UNMATCHED),
    Analysis("invocations", lambda f: invocations(f.arrivals, f.matcher), UNMATCHED),
    Analysis("raster", lambda f: raster(f.late, f.matcher.functions, f.tables["arrival"]), UNMATCHED),
    Analysis("overlap", lambda f: overlap(f.overlap), "the traces hold no single calls", True),
    Analysis("requests", lambda f: requests(f.requests), "no nonblocking call was recorded", True),
    Analysis("buckets", lambda f: buckets(f.buckets), f"no floating-point sums of {LARGE >> 10} KiB or more were recorded", True),
    Analysis("takeover", lambda f: takeover(f.job, f.cells, f.sized), "no collective that Stretto takes over was called"),
)


def analyse(folder: Path, progress: Callable[[float], None] | None = None) -> Profile:
    """The profile of the traces in `folder`. StrettoError: it holds none that can be read. `progress`: told the share done."""
    job = open_job(folder)
    profile = _frame(job)
    found = _gather(job, profile, progress)
    for one in ANALYSES:
        if job.mode == "full" or not one.every_call:
            profile.tables[one.table] = one.fill(found)
    _tell_what_is_missing(found, profile)
    profile.overhead = basics.overhead(job, found.cells)
    profile.verdict = verdict(job, profile, found.sized)
    return profile


class _Kept:
    """A consumer that counts the calls of which there is an event."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.calls = 0

    def take(self, block: Block) -> None:
        self.calls += int(np.count_nonzero(self.job.processes[block.process].calls(block.rows)))

    def settle(self, process: int, reached: object) -> None:
        """Nothing waits."""


def _gather(job: Job, profile: Profile, progress: Callable[[float], None] | None) -> Found:
    arrivals, latest = Arrivals(job), Late()
    matcher = Matcher(job, [arrivals, latest])
    overlaps, started, reductions = Overlap(job), Requests(job), Buckets(job)
    kept = _Kept(job)
    consumers: list[Consumer] = [matcher, kept]
    if job.mode == "full":
        consumers += [overlaps, started, reductions]
    scan(job, consumers, progress)
    parts = (arrivals, latest, matcher, overlaps, started, reductions)
    cells = sums.cells(job)
    profile.calls, profile.single_calls = int(cells["calls"].sum()), kept.calls
    times = pl.concat([cells, sums.open_calls(job)])
    return Found(job, cells, times, sums.kernels(job), *parts, by_size(arrivals, matcher), profile.tables)


def _tell_what_is_missing(found: Found, profile: Profile) -> None:
    """Why tables have no rows, and what was left out of those that have."""
    job = found.job
    if found.matcher.different:
        job.problems.append(f"{found.matcher.different} collectives in which ranks called different functions were left out")
    events = any(process.trace.event_count() for process in job.processes)
    for one in ANALYSES:
        if not profile.tables[one.table].height:
            why = "the traces hold sums alone" if one.none == UNMATCHED and not events else one.none
            partial = one.every_call and job.mode != "full"
            profile.unavailable[one.table] = "single calls are recorded with --trace alone" if partial else why
    why = basics.queues(job)[1]
    if why:
        profile.unavailable["queues"] = why


def _frame(job: Job) -> Profile:
    finished = all(process.trace.header.stage == STAGES.index("finalized") for process in job.mpi)
    return Profile(
        folder=str(job.folder),
        job=job.text("job_id") or (job.processes[0].trace.header.job if job.processes else ""),
        command=job.text("command"),
        mode=job.mode,
        started=job.text("started"),
        wall_seconds=job.number("wall_seconds"),
        world_size=job.world_size,
        complete=finished and not job.missing and not job.damage and bool(job.mpi),
        tables={name: empty_table(name) for name in TABLES},
        problems=job.problems,
    )
