"""The sums of all processes as one table: what both modes hold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stretto.profile.job import Job, Process
from stretto.trace import Trace
from stretto.trace_layout import KERNEL, NONE8, NONE16, REASON

Array = NDArray[Any]

MOST_CALLS, MOST_SUM = 1 << 48, 1 << 62  # of one cell; more is damage
LIFE = re.compile(r"MPI_(Init|Init_thread|Finalize|Abort|Session_init|Session_finalize)")  # outside the run time

COLUMNS: dict[str, Any] = {
    "rank": pl.Int32,
    "library": pl.String,
    "function": pl.String,
    "identity": pl.UInt64,
    "communicator": pl.String,
    "datatype": pl.String,
    "op": pl.String,
    "location": pl.String,
    "upper": pl.Int64,
    "stretto": pl.String,
    "thread": pl.Int32,
    "calls": pl.Int64,
    "sent": pl.Int64,
    "received": pl.Int64,
    "time": pl.Float64,
    "first": pl.Float64,
    "last": pl.Float64,
}


@dataclass(frozen=True, slots=True)
class Names:
    """A process's tables of names, each with one row more for indices beyond it."""

    functions: list[str]
    reasons: list[str]
    algorithms: list[str]
    datatypes: list[str]
    operations: list[str]
    communicators: list[str]
    identities: Array


def names(process: Process) -> Names:
    trace = process.trace
    identities = np.array([one.identity for one in trace.communicators] + [0], np.uint64)
    return Names(
        functions=[*trace.functions, "?"],
        reasons=[*trace.reasons, "?"],
        algorithms=[*trace.algorithms, "?"],
        datatypes=[*trace.datatype_names, ""],
        operations=[*trace.operations, ""],
        communicators=[*process.labels, ""],
        identities=identities,
    )


def pick(table: list[str], index: Array) -> pl.Series:
    """table[index]; the last entry for indices beyond."""
    return pl.Series(table, dtype=pl.String).gather(np.minimum(index.astype(np.int64), len(table) - 1))


def location(code: Array) -> pl.Series:
    """ "device" where either buffer is on one, else "managed", else "host", else "none"."""
    low, high = code & 15, code >> 4
    kinds = np.array([2, *[0] * 13, 1, 3])  # of 0 host, 1..13 devices, 14 managed, 15 none
    best = np.minimum(kinds[low], kinds[high])
    return pl.Series(["device", "managed", "host", "none"], dtype=pl.String).gather(best)


def outcome(code: Array, table: Names) -> pl.Series:
    """What Stretto did: the algorithm that ran, "MPI: <reason>", or "" where it was not asked."""
    reasons = [f"MPI: {reason}" for reason in table.reasons]
    texts = [table.algorithms[min(n, len(table.algorithms) - 1)] for n in range(REASON)]
    texts += [reasons[min(n, len(reasons) - 1)] for n in range(NONE8 - REASON)] + [""]
    return pl.Series(texts, dtype=pl.String).gather(code.astype(np.int64))


def upper_bound(bins: Array) -> Array:
    """Largest size of a bin of the trace format, in bytes; 0 for bin 0."""
    shift = np.clip(bins.astype(np.int64) - 1, 0, 62)
    return np.where(bins == 0, 0, np.left_shift(np.int64(1), shift))


def cells(job: Job) -> pl.DataFrame:
    """One row per cell of any process, in words and seconds, without kernels; damaged ones are left out and told in the job's
    problems."""
    parts = [_cells(process, job.problems) for process in job.processes if len(process.trace.cells)]
    return pl.concat(parts).filter(~is_kernel()) if parts else pl.DataFrame(schema=COLUMNS)


def kernels(job: Job) -> pl.DataFrame:
    """The cells that count kernels: what NCCL's calls, which other cells count, do on the GPU."""
    parts = [_cells(process, []) for process in job.processes if process.library == "NCCL" and len(process.trace.cells)]
    return pl.concat(parts).filter(is_kernel()) if parts else pl.DataFrame(schema=COLUMNS)


def is_kernel() -> pl.Expr:
    return pl.col("function").cast(pl.String).str.starts_with(KERNEL)


def open_calls(job: Job) -> pl.DataFrame:
    """Calls that had not returned when the last was known of their process, with their time until then; they count as 0 calls."""
    rows = []
    for process in job.processes:
        table = names(process)
        for thread, entry in enumerate(process.inside()):
            until = min(process.until, process.trace.header.finalize_ticks or process.until)  # as the run time
            since = max(0.0, (until - int(entry["begin_ticks"])) * process.line.tick)
            function, communicator = int(entry["function"]), min(int(entry["communicator"]), len(table.identities) - 1)
            rows.append(
                {
                    "rank": process.rank,
                    "library": process.library,
                    "function": table.functions[function],
                    "identity": int(table.identities[communicator]),
                    "communicator": table.communicators[communicator],
                    "datatype": "",
                    "op": "",
                    "location": "none",
                    "upper": 0,
                    "stretto": "",
                    "thread": thread,
                    "calls": 0,
                    "sent": 0,
                    "received": 0,
                    "time": min(since, process.run_time),
                    "first": process.end - since,
                    "last": process.end - since,
                }
            )
    return pl.DataFrame(rows, schema=COLUMNS)


def _cells(process: Process, problems: list[str]) -> pl.DataFrame:
    rows = _sane(process.trace, problems)
    table, rate = names(process), process.line.tick
    communicator = np.minimum(rows["communicator"].astype(np.int64), len(table.identities) - 1)
    columns = {
        "rank": np.full(len(rows), process.rank, np.int32),
        "library": pl.Series([process.library], dtype=pl.String).gather(np.zeros(len(rows), np.int64)),
        "function": pick(table.functions, rows["function"]),
        "identity": table.identities[communicator],
        "communicator": pick(table.communicators, rows["communicator"]),
        "datatype": pick(table.datatypes, rows["datatype"]),
        "op": pick(table.operations, rows["op"]),
        "location": location(rows["location"]),
        "upper": upper_bound(rows["bin"]),
        "stretto": outcome(rows["outcome"], table),
        "thread": np.where(rows["thread"] == NONE16, -1, rows["thread"].astype(np.int32)),
        "calls": rows["calls"].astype(np.int64),
        "sent": rows["sent"].astype(np.int64),
        "received": rows["received"].astype(np.int64),
        "time": rows["ticks"].astype(np.float64) * rate,
        "first": process.line.at(rows["first_ticks"]),
        "last": process.line.at(rows["last_ticks"]),
    }
    return pl.DataFrame(columns, schema=COLUMNS)


def _sane(trace: Trace, problems: list[str]) -> Array:
    rows = trace.cells
    rows = rows[rows["calls"] > 0]
    good = rows["calls"] < MOST_CALLS
    for name in ("sent", "received", "ticks"):
        good &= rows[name] < MOST_SUM
    if not good.all():
        problems.append(f"{trace.path.name}: {int((~good).sum())} damaged sums were left out")
    return rows[good]
