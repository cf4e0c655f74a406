"""What a running job does at present: the difference of two looks at its sums."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from stretto.profile import sums
from stretto.profile.job import Job, open_job

_KEYS = ("rank", "library", "function", "communicator", "upper")
_NOBODY = pl.DataFrame(schema={"rank": pl.Int32, "inside": pl.Float64})
_VALUES = ("calls", "sent", "received", "time")


@dataclass(frozen=True, slots=True)
class Look:
    at: float  # seconds of this machine's monotonic clock
    job: Job
    cells: pl.DataFrame  # _KEYS and _VALUES, summed since the job began
    inside: pl.DataFrame = field(default_factory=lambda: _NOBODY)  # rank, and how long it has been in the calls that it is in


@dataclass(frozen=True, slots=True)
class Rates:
    """Between two looks. `calls` and `bytes` per second, `share`: of the ranks' time. Of functions it is that of calls that
    ended, which may have begun before the first look; of ranks that of calls that they are in as well."""

    seconds: float
    functions: pl.DataFrame  # library, function, upper, calls, bytes, share, each (seconds of one call)
    ranks: pl.DataFrame  # rank, calls, share


def look(folder: Path) -> Look:
    """StrettoError: the folder holds no trace."""
    job = open_job(folder)
    counts = ~pl.col("function").str.contains(f"^{sums.LIFE.pattern}$")
    grouped = sums.cells(job).filter(counts).group_by(*_KEYS).agg(pl.col(*_VALUES).sum())
    inside = sums.open_calls(job).filter(counts).group_by("rank").agg(pl.col("time").sum().alias("inside"))
    return Look(time.monotonic(), job, grouped, inside)


def between(before: Look, after: Look) -> Rates:
    """Sums that were reset meanwhile count from their reset on."""
    seconds = max(after.at - before.at, 1e-3)
    joined = after.cells.join(before.cells, on=list(_KEYS), how="left", suffix="_before")
    fresh = pl.col("calls") < pl.col("calls_before").fill_null(0)
    passed = joined.select(
        *_KEYS,
        *(
            pl.when(fresh).then(pl.col(name)).otherwise(pl.col(name) - pl.col(f"{name}_before").fill_null(0)).alias(name)
            for name in _VALUES
        ),
    ).filter(pl.col("calls") > 0)
    ranks = max(1, after.job.world_size)
    functions = passed.group_by("library", "function", "upper").agg(pl.col(*_VALUES).sum())
    return Rates(
        seconds,
        functions.select(
            "library",
            "function",
            "upper",
            (pl.col("calls") / seconds).alias("calls"),
            (pl.max_horizontal("sent", "received") / seconds).alias("bytes"),
            (pl.col("time") / (seconds * ranks)).clip(0.0, 1.0).alias("share"),
            (pl.col("time") / pl.col("calls")).alias("each"),
        ).sort("share", descending=True),
        _ranks(before, after, passed, seconds),
    )


def _ranks(before: Look, after: Look, passed: pl.DataFrame, seconds: float) -> pl.DataFrame:
    """Time in calls that ended meanwhile counts from the first look on, and in those that have not, up to the second."""
    ended = passed.group_by("rank").agg(pl.col("calls").sum() / seconds, pl.col("time").sum())
    inside = after.inside.join(before.inside, on="rank", how="full", coalesce=True, suffix="_before")
    time = sum((pl.col(name).fill_null(0.0) for name in ("time", "inside")), -pl.col("inside_before").fill_null(0.0))
    both = ended.join(inside, on="rank", how="full", coalesce=True)
    return both.select("rank", pl.col("calls").fill_null(0.0), (time / seconds).clip(0.0, 1.0).alias("share")).sort("rank")
