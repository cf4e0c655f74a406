"""A profile's calls on a time line with a track per rank and thread: as Perfetto's protobuf, with arrows from
rank to rank through each collective in the order of arrival, or, where the file's name ends in .json, in the format of
chrome://tracing without arrows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from stretto import perfetto
from stretto.errors import StrettoError
from stretto.exports import Progress, event_count, frames, job_with_events, windows
from stretto.profile.job import Job, Process
from stretto.profile.matching import COLLECTIVE

MOST = 300_000  # calls: what a browser opens quickly
_SHOWN = ("comm", "seq", "bytes_sent", "bytes_received", "datatype", "op", "peer", "tag", "location", "algorithm", "decline")


def to_timeline(
    folder: Path, target: Path, iterations: tuple[int, int] | None = None, progress: Progress | None = None
) -> tuple[int, int]:
    """(calls written, calls that there are). At most MOST, the first in time. StrettoError: nothing to write, or nowhere."""
    job = job_with_events(folder)
    there, calls = _first_calls(job, iterations, progress)
    try:
        with target.open("wb") as file:
            (_write_json if target.suffix == ".json" else _write_perfetto)(file, job, calls)
    except OSError as error:
        raise StrettoError(f"cannot write {target}: {error.strerror}") from None
    return calls.height, there


def _first_calls(job: Job, iterations: tuple[int, int] | None, progress: Progress | None) -> tuple[int, pl.DataFrame]:
    """How many calls there are, and the first MOST of them in order."""
    there, seen, total, kept = 0, 0, event_count(job), pl.DataFrame()
    for process, window in zip(job.processes, windows(job, iterations), strict=True):
        for frame in frames(process, window):
            whole = frame.filter(~pl.col("part"))
            there += whole.height
            seen += frame.height
            # Names of different files as text: their categories differ.
            plain = whole.with_columns(pl.col(pl.Categorical).cast(pl.String))
            kept = pl.concat([kept, plain]).bottom_k(MOST, by="t_entry_ns") if kept.height else plain
            if progress:
                progress(min(1.0, seen / total))
    return there, kept.head(MOST).sort("t_entry_ns") if kept.height else kept


def _track(library: str, rank: int) -> int:
    """A number per rank and library."""
    return rank * 2 + (library == "NCCL") + 1


def _name_of(process: Process) -> str:
    return f"rank {process.rank}" + (" NCCL" if process.library == "NCCL" else "") + f" on {process.trace.header.host}"


def _told(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in _SHOWN if row[name] not in (None, "")}


def _write_json(file: BinaryIO, job: Job, calls: pl.DataFrame) -> None:
    file.write(b'{"displayTimeUnit":"ns","traceEvents":[\n')
    for process in job.processes:
        name = {
            "name": "process_name",
            "ph": "M",
            "pid": _track(process.library, process.rank),
            "args": {"name": _name_of(process)},
        }
        file.write(json.dumps(name).encode() + b",\n")
    for row in calls.iter_rows(named=True):
        file.write(_slice(row).encode() + b",\n")
    file.write(b'{"name":"end","ph":"M","pid":0,"args":{}}\n]}\n')


def _slice(row: dict[str, Any]) -> str:
    event = {
        "name": row["function"],
        "ph": "X",
        "pid": _track(row["library"], row["rank"]),
        "tid": row["thread"],
        "ts": row["t_entry_ns"] / 1000,
        "dur": (row["t_exit_ns"] - row["t_entry_ns"]) / 1000,
        "args": _told(row),
    }
    return json.dumps(event, separators=(",", ":"))


def _write_perfetto(file: BinaryIO, job: Job, calls: pl.DataFrame) -> None:
    threads = calls.select("library", "rank", "thread").unique().sort("rank", "library", "thread") if calls.height else calls
    for process in job.processes:
        own = [thread for library, rank, thread in threads.iter_rows() if (library, rank) == (process.library, process.rank)]
        for packet in _tracks(process, own):
            file.write(packet)
    origin = min(0, calls["t_entry_ns"].min() or 0) if calls.height else 0  # Perfetto knows no times below 0
    for row, last in zip(calls.iter_rows(named=True), _last_of_collective(calls), strict=True):
        uuid = _thread_uuid(row["library"], row["rank"], row["thread"])
        flow = perfetto.Flow(perfetto.flow_id(row["comm_id"], row["seq"]), last) if last is not None else None
        file.write(perfetto.begin(row["t_entry_ns"] - origin, uuid, row["function"], _told(row), flow))
        file.write(perfetto.end(row["t_exit_ns"] - origin, uuid))


def _thread_uuid(library: str, rank: int, thread: int) -> int:
    return _track(library, rank) << 20 | (thread + 1)


def _tracks(process: Process, threads: Iterable[int]) -> Iterator[bytes]:
    track, names = _track(process.library, process.rank), process.trace.thread_names
    yield perfetto.process_track(track << 20, track, _name_of(process))
    for thread in threads:
        name = names[thread] if thread < len(names) and names[thread] else f"thread {thread}"
        yield perfetto.thread_track(_thread_uuid(process.library, process.rank, thread), track << 20, (track, thread + 1, name))


def _last_of_collective(calls: pl.DataFrame) -> list[bool | None]:
    """Of each call: whether it is the last to come of its collective; None where it belongs to none of several calls."""
    if not calls.height:
        return []
    keys = ["library", "comm_id", "seq", "function"]
    names = [name for name in calls["function"].unique() if name and COLLECTIVE.fullmatch(name)]
    marked = calls.select(
        (pl.col("function").is_in(names) & (pl.col("comm_id") != 0) & (pl.len().over(keys) > 1)).alias("meets"),
        (pl.col("t_entry_ns").rank("ordinal").over(keys) == pl.len().over(keys)).alias("last"),
    )
    return [last if meets else None for meets, last in marked.iter_rows()]
