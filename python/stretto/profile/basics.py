"""The tables that the sums alone fill: ranks, functions, partners, communicators, queue variables; and Stretto's own cost."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from stretto.profile.job import Job, Process
from stretto.profile.sums import LIFE, is_kernel
from stretto.profile_model import TABLES, Overhead
from stretto.trace import Trace, text
from stretto.trace_layout import STAGES


def in_life(column: str = "function") -> pl.Expr:
    """Calls that last as long as starting and ending a job does: outside the run time."""
    return pl.col(column).str.contains(f"^{LIFE.pattern}$")


def ranks(job: Job, cells: pl.DataFrame) -> pl.DataFrame:
    """`cells`: with the calls that did not return, as of the other tables of time here."""
    sums = cells.group_by("rank", "library").agg(
        pl.col("time").filter(~in_life()).sum(), pl.col("calls").sum(), (pl.col("function") == "MPI_Abort").any().alias("aborted")
    )
    found = {(rank, library): (time, calls, aborted) for rank, library, time, calls, aborted in sums.iter_rows()}
    rows = []
    for process in job.processes:
        header = process.trace.header
        time, calls, aborted = found.get((process.rank, process.library), (0.0, 0, False))
        rows.append(
            {
                "rank": process.rank,
                "library": process.library,
                "host": header.host,
                "node": header.node,
                "pid": header.pid,
                "version": header.library,
                "state": _state(process, aborted, job.runs),
                "run_time": process.run_time,
                "library_time": min(time, process.run_time) if _one_thread(process) and process.run_time else time,
                "calls": calls,
                "events": process.trace.event_count(),
                "lost": min(header.dropped_events, 1 << 62),
                "threads": len(process.trace.threads),
                "clock_error": None if math.isinf(process.line.error) else process.line.error,
            }
        )
    return pl.DataFrame(rows, schema=TABLES["ranks"])


def _one_thread(process: Process) -> bool:
    return len(process.trace.threads) <= 1


def _state(process: Process, aborted: bool, runs: bool) -> str:
    """How far the process came, and which call it is in where it has not come out of one."""
    header, inside = process.trace.header, process.inside()
    if aborted:
        return "aborted"
    if header.stage == STAGES.index("finalized"):
        return "finished"
    where = "no MPI_Finalize" if header.stage == STAGES.index("initialised") else "no MPI_Init"
    if not len(inside):
        if process.now:
            return f"running, in no call of {process.library}"
        return where if runs else f"{where}: ended outside {process.library}"
    oldest = inside[int(inside["begin_ticks"].argmin())]
    function = process.trace.functions[int(oldest["function"])]
    since = ((process.now or process.until) - int(oldest["begin_ticks"])) * process.line.tick
    return f"in {function} since {max(since, 0.0):.1f} s" if process.now else f"{where}: ended in {function}"


def functions(job: Job, cells: pl.DataFrame) -> pl.DataFrame:
    """`cells`: with the calls that did not return, and the kernels, which have rows of their own outside the run time.
    Shares are of the rank's run time, the longest of its libraries: NCCL's begins with its first call."""
    run_times = pl.DataFrame(
        [(process.rank, process.run_time) for process in job.processes],
        schema={"rank": pl.Int32, "run_time": pl.Float64},
        orient="row",
    )
    run_times = run_times.group_by("rank").agg(pl.col("run_time").max())
    share = pl.when(in_life() | is_kernel() | (pl.col("run_time") <= 0)).then(0.0).otherwise(pl.col("time") / pl.col("run_time"))
    sums = cells.group_by("rank", "library", "function").agg(pl.col("calls", "time", "sent", "received").sum())
    return (
        sums.join(run_times, on="rank", how="left")
        .with_columns(share=share)
        .select(list(TABLES["functions"]))
        .sort("rank", "library", "time", "function", descending=[False, False, True, False])
    )


def partners(job: Job) -> pl.DataFrame:
    """From the sender's side; what a rank without a trace sent is told by those who received it."""
    there = {process.rank for process in job.mpi}
    parts = [_partners(process, there, job.problems) for process in job.mpi if len(process.trace.partners)]
    if not parts:
        return pl.DataFrame(schema=TABLES["partners"])
    keys = ["source", "target", "how"]
    return pl.concat(parts).group_by(keys).agg(pl.col("calls", "bytes").sum()).sort(keys)


def _partners(process: Process, there: set[int], problems: list[str]) -> pl.DataFrame:
    rows = process.trace.partners
    rows = rows[(rows["partner"] >= 0) & (rows["calls"] > 0) & (rows["direction"] >= 1) & (rows["direction"] <= 4)]
    good = (rows["calls"] < 1 << 48) & (rows["bytes"] < 1 << 62)
    if not good.all():
        problems.append(f"{process.trace.path.name}: {int((~good).sum())} damaged partner sums were left out")
    told = (rows["direction"] == 2) & np.isin(rows["partner"], np.array(sorted(there), np.int32))
    rows = rows[good & ~told]
    own, other = np.full(len(rows), process.rank, np.int32), rows["partner"].astype(np.int32)
    inward = (rows["direction"] == 2) | (rows["direction"] == 4)
    columns = {
        "source": np.where(inward, other, own),
        "target": np.where(inward, own, other),
        "how": pl.Series(["", "sent", "sent", "put", "got"]).gather(rows["direction"].astype(np.int64)),
        "calls": rows["calls"].astype(np.int64),
        "bytes": rows["bytes"].astype(np.int64),
    }
    return pl.DataFrame(columns, schema=TABLES["partners"])


def communicators(job: Job, cells: pl.DataFrame) -> pl.DataFrame:
    """Bytes of messages count once, where they were sent; where nothing was, as by ranks without a trace, where they came."""
    messages = pl.col("function").cast(pl.String).str.contains("(?i)send|recv|MPI_Start")
    sent, received = (pl.col(one).filter(messages).sum() for one in ("sent", "received"))
    of_messages = pl.when(sent > 0).then(sent).otherwise(received)
    of_collectives = pl.max_horizontal("sent", "received").filter(~messages).sum()
    sums = cells.group_by("library", "identity").agg(
        pl.col("calls").sum(), (of_collectives + of_messages).alias("bytes"), pl.col("time").sum()
    )
    found = {(library, identity): rest for library, identity, *rest in sums.iter_rows()}
    labels = {key: group.label for key, group in job.groups.items()}
    rows = [
        (key[1], group.label, labels.get((key[0], group.parent), ""), min(group.size, 1 << 30), min(group.nodes, 1 << 30))
        for key, group in job.groups.items()
    ]
    rows = [(*row, *found.get(key, (0, 0, 0.0))) for row, key in zip(rows, job.groups, strict=True)]
    return pl.DataFrame(rows, schema=TABLES["communicators"], orient="row").sort("time", "identity", descending=[True, False])


def queues(job: Job) -> tuple[pl.DataFrame, str]:
    """Over ranks; the second result says why variables are missing."""
    rows: dict[str, tuple[str, float, float, float, int]] = {}
    reasons: dict[str, None] = {}
    for process in job.mpi:
        for entry in process.trace.queues:
            name, unit, why = (text(bytes(entry[column])) for column in ("name", "unit", "unavailable"))
            samples = int(min(entry["samples"], 1 << 48))
            values = [float(entry[column]) for column in ("sum", "least", "most")]
            if not samples or not all(map(math.isfinite, values)):
                reasons.setdefault(f"{name}: {why}" if why else f"{name}: never sampled")
                continue
            unit, least, total, most, before = rows.get(name, (unit, math.inf, 0.0, -math.inf, 0))
            rows[name] = (unit, min(least, values[1]), total + values[0], max(most, values[2]), before + samples)
    table = [(name, unit, least, total / count, most, count) for name, (unit, least, total, most, count) in sorted(rows.items())]
    why = "; ".join(reasons) if reasons else "no queue variables were offered by this MPI library"
    return pl.DataFrame(table, schema=TABLES["queues"], orient="row"), "" if table and not reasons else why


def _call_cost(trace: Trace) -> float:
    """Ticks of a call on an average: of those that were not timed, less the readings of the clock."""
    calls, untimed = (float(trace.threads[column].astype(float).sum()) for column in ("events", "untimed"))
    share = min(untimed / calls, 1.0) if calls else 0.0
    cost = trace.header.event_cost_ticks
    return (cost - share * min(trace.header.clock_cost_ticks, cost)) / 1024


def overhead(job: Job, cells: pl.DataFrame) -> Overhead | None:
    """What tracing cost: each call at what one cost when it was measured, at the start of its process."""
    calls: dict[tuple[int, str], int] = {}
    for rank, library, count in cells.group_by("rank", "library").agg(pl.col("calls").sum()).iter_rows():
        calls[rank, library] = count
    total, seconds = 0, 0.0
    for process in job.processes:
        cost = _call_cost(process.trace) * process.line.tick
        if 0 < cost < 1e-3:
            count = calls.get((process.rank, process.library), 0)
            total, seconds = total + count, seconds + count * cost
    if not total or not job.run_time:
        return None
    return Overhead(total, seconds / total * 1e9, seconds, seconds / job.run_time)
