"""Runs the analyses over a profile folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stretto.profile import basics, sums
from stretto.profile.arrival import Arrivals, arrival, invocations
from stretto.profile.buckets import Buckets, buckets
from stretto.profile.job import Job, open_job
from stretto.profile.late import Late, late, raster
from stretto.profile.matching import Matcher
from stretto.profile.overlap import Overlap, overlap
from stretto.profile.requests import Requests, requests
from stretto.profile.scan import scan
from stretto.profile.sizes import sizes
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
    scan(job, [matcher, overlaps, open_requests, bucket], progress)
    profile.tables["arrival"] = arrival(arrivals, matcher, cells)
    profile.tables["invocations"] = invocations(arrivals, matcher)
    profile.tables["late"] = late(latest, matcher.functions)
    profile.tables["raster"] = raster(latest, matcher.functions, profile.tables["arrival"])
    profile.tables["overlap"] = overlap(overlaps)
    profile.tables["requests"] = requests(open_requests)
    profile.tables["buckets"] = buckets(bucket)
    return profile


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
