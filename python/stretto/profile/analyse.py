"""Runs the analyses over a profile folder."""

from __future__ import annotations

from pathlib import Path

from stretto.profile import basics, sums
from stretto.profile.job import Job, open_job
from stretto.profile.sizes import sizes
from stretto.profile_model import TABLES, Profile, empty_table
from stretto.trace_layout import STAGES


def analyse(folder: Path) -> Profile:
    """The profile of the traces in `folder`. StrettoError: it holds none that can be read."""
    job = open_job(folder)
    cells = sums.cells(job)
    profile = _frame(job)
    profile.tables["ranks"] = basics.ranks(job, cells)
    profile.tables["functions"] = basics.functions(job, cells)
    profile.tables["sizes"] = sizes(job, cells)
    profile.tables["partners"] = basics.partners(job)
    profile.tables["communicators"] = basics.communicators(job, cells)
    profile.tables["queues"], why = basics.queues(job)
    if why:
        profile.unavailable["queues"] = why
    profile.overhead = basics.overhead(job, cells)
    return profile


def _frame(job: Job) -> Profile:
    finished = all(process.trace.header.stage == STAGES.index("finalized") for process in job.mpi)
    return Profile(
        folder=str(job.folder),
        job=job.text("job_id") or job.text("job") or job.processes[0].trace.header.job if job.processes else "",
        command=job.text("command"),
        mode=job.mode,
        started=job.text("started"),
        wall_seconds=job.number("wall_seconds"),
        world_size=job.world_size,
        complete=finished and not job.missing and bool(job.mpi),
        tables={name: empty_table(name) for name in TABLES},
        problems=job.problems,
    )
