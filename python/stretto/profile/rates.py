"""What a running job does at present: the difference of two looks at its sums."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stretto.profile import sums
from stretto.profile.job import Job, open_job

_KEYS = ("rank", "library", "function", "communicator", "upper")
_VALUES = ("calls", "sent", "received", "time")


@dataclass(frozen=True, slots=True)
class Look:
    at: float  # seconds of this machine's monotonic clock
    job: Job
    cells: pl.DataFrame  # _KEYS and _VALUES, summed since the job began


@dataclass(frozen=True, slots=True)
class Rates:
    """Between two looks. `calls` and `bytes` per second, `share`: of the ranks' time."""

    seconds: float
    functions: pl.DataFrame  # library, function, upper, calls, bytes, share, each (seconds of one call)
    ranks: pl.DataFrame  # rank, calls, share


def look(folder: Path) -> Look:
    """StrettoError: the folder holds no trace."""
    job = open_job(folder)
    cells = sums.cells(job).filter(~pl.col("function").str.contains("^MPI_(Init(_thread)?|Finalize)$"))
    grouped = cells.group_by(*_KEYS).agg(pl.col(*_VALUES).sum())
    return Look(time.monotonic(), job, grouped)


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
            (pl.col("time") / (seconds * ranks)).alias("share"),
            (pl.col("time") / pl.col("calls")).alias("each"),
        ).sort("share", descending=True),
        passed.group_by("rank")
        .agg((pl.col("calls").sum() / seconds).alias("calls"), (pl.col("time").sum() / seconds).alias("share"))
        .sort("rank"),
    )
