"""The verdict: what the tables say, in words with numbers, ordered by the seconds that are lost.

A rule is one function in findings.py and one row in its table: it looks at the tables and returns what it has to say, each with
the seconds that it costs all ranks together. A rule with nothing to say is silent.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stretto.profile.job import Job
from stretto.profile.sums import LIFE, open_calls
from stretto.profile_model import Finding, Profile, Severity

BAD, NOTABLE = 0.10, 0.01  # shares of the run time


@dataclass(frozen=True, slots=True)
class Said:
    """A finding, and the seconds that it costs all ranks together: its place in the verdict."""

    seconds: float
    finding: Finding


@dataclass(frozen=True, slots=True)
class Split:
    """Seconds of all ranks in collectives of one function and communicator."""

    library: str
    communicator: str
    function: str
    waiting: float
    transfer: float


@dataclass(frozen=True, slots=True)
class View:
    """What rules look at."""

    job: Job
    profile: Profile
    run_time: float  # of all ranks, seconds
    library_time: float  # in calls of any library, without starting and ending
    splits: list[Split]
    sized: pl.DataFrame  # arrival.by_size
    open: list[tuple[str, int, float]]  # calls that did not return: function, rank, seconds

    def table(self, name: str) -> pl.DataFrame:
        return self.profile.tables[name]

    def share(self, seconds: float) -> float:
        return seconds / self.run_time if self.run_time > 0 else 0.0

    def severity(self, seconds: float) -> Severity:
        share = self.share(seconds)
        return Severity.bad if share >= BAD else Severity.notable if share >= NOTABLE else Severity.fine

    @property
    def waiting(self) -> float:
        return sum(one.waiting for one in self.splits)

    @property
    def transfer(self) -> float:
        return sum(one.transfer for one in self.splits)


def view(job: Job, profile: Profile, sized: pl.DataFrame) -> View:
    functions = profile.tables["functions"]
    life = pl.col("function").str.contains(f"^{LIFE.pattern}$")
    ranks = profile.tables["ranks"]
    time = float(ranks["library_time"].sum() or 0.0) if ranks.height else float(functions.filter(~life)["time"].sum() or 0.0)
    rows = open_calls(job).filter(~pl.col("function").str.contains(f"^{LIFE.pattern}$")).select("function", "rank", "time")
    return View(job, profile, job.run_time, time, _splits(profile), sized, list(rows.iter_rows()))


def _splits(profile: Profile) -> list[Split]:
    rows = profile.tables["arrival"].filter(pl.col("scope") == "cluster")
    sums = rows.group_by("library", "communicator", "function", maintain_order=True).agg(pl.col("waiting", "transfer").sum())
    return [Split(*row) for row in sums.iter_rows()]


def verdict(job: Job, profile: Profile, sized: pl.DataFrame) -> list[Finding]:
    """All findings, the costliest first; of equal ones the more severe first."""
    from stretto.profile.findings import RULES

    seen = view(job, profile, sized)
    said = [one for rule in RULES for one in rule(seen)]
    order = [Severity.bad, Severity.notable, Severity.fine]
    return [one.finding for one in sorted(said, key=lambda one: (-one.seconds, order.index(one.finding.severity)))]
