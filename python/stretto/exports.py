"""A profile's calls as tables, and as Parquet files. timeline.py and otf2_archive.py write them for viewers."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from stretto.errors import StrettoError
from stretto.profile.job import Job, Process, open_job
from stretto.profile.sums import is_kernel
from stretto.receives import Receives, calls_of_parts
from stretto.trace import Batch
from stretto.trace_layout import PART

Progress = Callable[[float], None]  # is told the share that is done
Window = tuple[float, float]  # seconds of the job, the second one excluded
_BLOCK = 1 << 20
_ITERATION = 3  # MarkEntry.what
_DECLINED = 128
_COLUMNS = ("rows", "spent", "sent", "received")  # of a Batch
_LOCATIONS = {0: "host", 14: "managed", 15: "none"}

SCHEMA: dict[str, Any] = {
    "rank": pl.Int32,
    "library": pl.Categorical,
    "function": pl.Categorical,
    "comm": pl.Categorical,
    "comm_id": pl.UInt64,
    "seq": pl.UInt32,
    "bytes_sent": pl.Int64,
    "bytes_received": pl.Int64,
    "count": pl.Int64,
    "datatype": pl.Categorical,
    "op": pl.Categorical,
    "peer": pl.Int32,
    "tag": pl.Int32,
    "request": pl.UInt32,
    "t_entry_ns": pl.Int64,
    "t_exit_ns": pl.Int64,
    "thread": pl.Int32,
    "location": pl.Categorical,
    "received_in": pl.Categorical,
    "algorithm": pl.Categorical,
    "decline": pl.Categorical,
    "part": pl.Boolean,
    "flags": pl.UInt8,
}


def to_parquet(folder: Path, target: Path, iterations: tuple[int, int] | None = None, progress: Progress | None = None) -> int:
    """One file where `target` ends in .parquet and is no folder, else one per rank, library and million events in the folder
    `target`; the calls written. StrettoError: nothing to write, or nowhere."""
    if any("\udc80" <= letter <= "\udcff" for letter in str(target)):
        raise StrettoError(f"cannot write {target}: its name is not UTF-8")
    job = job_with_events(folder)
    tables = _Tables(job, iterations, progress)
    try:
        if target.suffix == ".parquet" and not target.is_dir():
            _write_one(tables, target)
        else:
            target.mkdir(parents=True, exist_ok=True)
            for earlier in target.glob("rank-*-*-*.parquet"):
                earlier.unlink()
            for name, frame in tables:
                path = target / f"{name}.parquet"
                with _wholly(path):
                    frame.write_parquet(path, compression="zstd", statistics=True)
    except OSError as error:
        raise StrettoError(f"cannot write {target}: {error.strerror or error}") from None
    return tables.calls


class _Tables:
    """All calls of a job, table by table, each with a name of its own; counts them and tells how far it is."""

    def __init__(self, job: Job, iterations: tuple[int, int] | None, progress: Progress | None) -> None:
        self._job, self._windows, self._progress = job, windows(job, iterations), progress
        self.calls = 0

    def __iter__(self) -> Iterator[tuple[str, pl.DataFrame]]:
        there, rows = event_count(self._job), 0
        for process, window in zip(self._job.processes, self._windows, strict=True):
            for number, frame in enumerate(frames(process, window)):
                yield f"rank-{process.rank:05}-{process.library.lower()}-{number:04}", frame
                rows += frame.height
                self.calls += int(frame.select((~pl.col("part") & ~is_kernel()).sum()).item())
                if self._progress:
                    self._progress(min(1.0, rows / there))


def _write_one(tables: _Tables, target: Path) -> None:
    """Streams: no more than a few tables are in memory."""

    def source(*_: Any) -> Iterator[pl.DataFrame]:
        return (frame for _name, frame in tables)

    target.parent.mkdir(parents=True, exist_ok=True)
    with _wholly(target):
        register_io_source(source, schema=SCHEMA).sink_parquet(target, compression="zstd", statistics=True)


@contextlib.contextmanager
def _wholly(target: Path) -> Iterator[None]:
    """A file that could not be written wholly is removed; OSError says why."""
    try:
        yield
    except pl.exceptions.PolarsError as error:
        target.unlink(missing_ok=True)
        raise OSError(str(error)) from None
    except OSError:
        target.unlink(missing_ok=True)
        raise


def job_with_events(folder: Path) -> Job:
    job = open_job(folder)
    if not any(process.trace.event_count() for process in job.processes):
        raise StrettoError(f"{folder} holds sums, no single calls: record them with stretto profile --trace")
    return job


def event_count(job: Job) -> int:
    return max(1, sum(process.trace.event_count() for process in job.processes))


def frames(process: Process, window: Window | None = None) -> Iterator[pl.DataFrame]:
    """The process's calls, about a million rows in each table, a call and its parts in the same one; times are ns of the job
    (0: the first rank left MPI_Init). Calls that began a receive say whom it was from and how much came."""
    receives = Receives(process.trace)
    for thread in process.trace.event_threads():
        for batch in _gathered(process.trace.batches(thread, _BLOCK)):
            frame = _frame(process, receives.fill(batch), window)
            if frame.height:
                yield frame


def _gathered(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Batches put together until they are large (a trace's sections may be small), and cut in front of a call, not of a part."""
    parts: list[Batch] = []
    waiting = 0
    for batch in batches:
        parts.append(batch)
        waiting += len(batch.rows)
        if waiting >= _BLOCK:
            whole = _joined(parts)
            newest = int(calls_of_parts(whole.rows)[-1])
            cut = newest or len(whole.rows)  # parts alone are damage
            yield _rows(whole, slice(0, cut))
            parts = [_rows(whole, slice(cut, None))] if newest else []
            waiting = len(whole.rows) - cut
    if parts:
        yield _joined(parts)


def _rows(batch: Batch, some: slice) -> Batch:
    return Batch(batch.thread, *(getattr(batch, name)[some] for name in _COLUMNS))


def _joined(parts: list[Batch]) -> Batch:
    columns = (np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS)
    return Batch(parts[0].thread, *columns)


def windows(job: Job, iterations: tuple[int, int] | None) -> list[Window | None]:
    """Of each process, from the begin of the first wanted iteration to the end of the last one; None: all. Where it marked none,
    those of its rank's other library hold, else those of the first rank that did. StrettoError: nobody did."""
    if iterations is None:
        return [None] * len(job.processes)
    marked = [_window(process, *iterations) for process in job.processes]
    of_rank: dict[int, Window] = {}
    for process, window in zip(job.processes, marked, strict=True):
        if window:
            of_rank.setdefault(process.rank, window)
    if not of_rank:
        raise StrettoError(
            "no iterations were marked in this run: MPI_Pcontrol(3) in the program, or stretto profile --iteration-calls"
        )
    first = of_rank[min(of_rank)]
    return [window or of_rank.get(process.rank, first) for process, window in zip(job.processes, marked, strict=True)]


def _window(process: Process, first: int, last: int) -> Window | None:
    """As this process marked it; None: it marked no iterations."""
    marks = process.trace.marks
    begins = marks[marks["what"] == _ITERATION]
    if not len(begins):
        return None
    wanted = begins[(begins["number"] >= first) & (begins["number"] <= last)]["ticks"]
    after = begins[begins["number"] > last]["ticks"]
    if not len(wanted):
        return math.inf, math.inf
    return process.line.at(wanted.min()), process.line.at(after.min()) if len(after) else math.inf


def _frame(process: Process, batch: Batch, window: Window | None) -> pl.DataFrame:
    rows, spent, sent, received = batch.rows, batch.spent, batch.sent, batch.received
    if window:
        begin = process.line.at(rows["begin"])
        keep = (begin >= window[0]) & (begin < window[1])
        rows, spent, sent, received = rows[keep], spent[keep], sent[keep], received[keep]
    trace, outcome = process.trace, rows["outcome"].astype(np.int16)
    sizes = np.append(trace.datatypes["size"].astype(np.int64), 0)
    size = sizes[np.minimum(rows["datatype"], len(sizes) - 1)]
    entry = np.rint(process.line.at(rows["begin"]) * 1e9).astype(np.int64)
    # The length of a call is exact on its own clock; only where it begins depends on the common one.
    length = np.rint(spent * process.line.tick * 1e9).astype(np.int64)
    identities = np.array([*(one.identity for one in trace.communicators), 0], dtype=np.uint64)
    columns = {
        "rank": np.full(len(rows), process.rank, np.int32),
        "library": _named(np.zeros(len(rows), np.int64), [process.library]),
        "function": _named(rows["function"], trace.functions).fill_null("?"),
        "comm": _named(rows["communicator"], process.labels),
        "comm_id": identities[np.minimum(rows["communicator"], len(identities) - 1)],
        "seq": rows["sequence"],
        "bytes_sent": sent,
        "bytes_received": received,
        "count": np.where(size > 0, np.maximum(sent, received) // np.maximum(size, 1), 0),
        "datatype": _named(rows["datatype"], trace.datatype_names),
        "op": _named(rows["op"], trace.operations),
        "peer": rows["peer"],
        "tag": rows["tag"],
        "request": rows["request"],
        "t_entry_ns": entry,
        "t_exit_ns": entry + length,
        "thread": np.full(len(rows), batch.thread, np.int32),
        "location": _named(rows["location"] & 15, _PLACES),
        "received_in": _named(rows["location"] >> 4, _PLACES),
        "algorithm": _named(np.where(outcome < _DECLINED, outcome, 1 << 14), trace.algorithms),
        "decline": _named(np.where((outcome >= _DECLINED) & (outcome < 255), outcome - _DECLINED, 1 << 14), trace.reasons),
        "part": (rows["flags"] & PART) != 0,
        "flags": rows["flags"],
    }
    return pl.DataFrame({name: pl.Series(name, values).cast(SCHEMA[name]) for name, values in columns.items()})


_PLACES = [_LOCATIONS.get(place, f"device {place - 1}") for place in range(16)]


def _named(indices: Any, names: list[str]) -> pl.Series:
    """Names of indices; null where an index has none."""
    table = pl.Series([*names, None], dtype=pl.String)
    return table.gather(np.minimum(np.asarray(indices, dtype=np.int64), len(names)))
