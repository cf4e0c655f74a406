"""Runs the analyses over a profile folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stretto.profile import basics, sums
from stretto.profile.arrival import Arrivals, arrival, by_size, invocations
from stretto.profile.buckets import LARGE, Buckets, buckets
from stretto.profile.job import Job, open_job
from stretto.profile.late import Late, late, raster
from stretto.profile.matching import Matcher
from stretto.profile.overlap import Overlap, overlap
from stretto.profile.requests import Requests, requests
from stretto.profile.scan import Consumer, scan
from stretto.profile.sizes import sizes
from stretto.profile.takeover import takeover
from stretto.profile.verdict import verdict
from stretto.profile_model import TABLES, Profile, empty_table
from stretto.trace_layout import STAGES


def analyse(folder: Path, progress: Callable[[float], None] | None = None) -> Profile:
    """The profile of the traces in `folder`. StrettoError: it holds none that can be read. `progress`: told the share done."""
    job = open_job(folder)
    profile = _frame(job)
    cells = sums.cells(job)
    profile.tables["ranks"] = basics.ranks(job, cells)
    profile.tables["functions"] = basics.functions(job, cells)
    profile.tables["sizes"] = sizes(job, cells)
    profile.tables["partners"] = basics.partners(job)
    profile.tables["communicators"] = basics.communicators(job, cells)
    profile.tables["queues"], why = basics.queues(job)
    if why:
        profile.unavailable["queues"] = why
    profile.overhead = basics.overhead(job, cells)
    arrivals, latest = Arrivals(job), Late()
    matcher = Matcher(job, [arrivals, latest])
    overlaps, open_requests, bucket = Overlap(job), Requests(job), Buckets(job)
    every_call: list[Consumer] = [overlaps, open_requests, bucket] if job.mode == "full" else []
    scan(job, [matcher, *every_call], progress)
    profile.tables["arrival"] = arrival(arrivals, matcher, cells)
    profile.tables["invocations"] = invocations(arrivals, matcher)
    profile.tables["late"] = late(latest, matcher.functions)
    profile.tables["raster"] = raster(latest, matcher.functions, profile.tables["arrival"])
    if every_call:
        profile.tables["overlap"] = overlap(overlaps)
        profile.tables["requests"] = requests(open_requests)
        profile.tables["buckets"] = buckets(bucket)
    sized = by_size(arrivals, matcher)
    profile.tables["takeover"] = takeover(job, cells, sized)
    _tell_what_is_missing(job, profile, matcher)
    profile.verdict = verdict(job, profile, sized)
    return profile


def _tell_what_is_missing(job: Job, profile: Profile, matcher: Matcher) -> None:
    """Why tables have no rows, and what was left out of those that have."""
    if matcher.different:
        job.problems.append(f"{matcher.different} collectives in which ranks called different functions were left out")
    events = sum(process.trace.event_count() for process in job.processes)
    partial = "" if job.mode == "full" else "single calls are recorded with --trace alone"
    matched = "no collective with several members was recorded on all of them" if events else "the traces hold sums alone"
    reasons = {
        "ranks": "no process got as far as the end of MPI_Init",
        "partners": "no point-to-point or one-sided message was counted",
        "arrival": matched,
        "late": matched,
        "invocations": matched,
        "raster": matched,
        "requests": partial or "no nonblocking call was recorded",
        "overlap": partial or "the traces hold no single calls",
        "buckets": partial or f"no sums of floating-point numbers of {LARGE >> 10} KiB or more were recorded",
        "takeover": "no Barrier, Bcast, Reduce or Allreduce was called",
        "communicators": "no communicator was recorded",
        "sizes": "no call was counted",
        "functions": "no call was counted",
    }
    for name, why in reasons.items():
        if not profile.tables[name].height:
            profile.unavailable.setdefault(name, why)


def _frame(job: Job) -> Profile:
    finished = all(process.trace.header.stage == STAGES.index("finalized") for process in job.mpi)
    return Profile(
        folder=str(job.folder),
        job=job.text("job_id") or job.text("job") or (job.processes[0].trace.header.job if job.processes else ""),
        command=job.text("command"),
        mode=job.mode,
        started=job.text("started"),
        wall_seconds=job.number("wall_seconds"),
        world_size=job.world_size,
        complete=finished and not job.missing and bool(job.mpi),
        tables={name: empty_table(name) for name in TABLES},
        problems=job.problems,
    )
