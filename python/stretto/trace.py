"""Reads the trace of one process: its communication, call by call and in sums, alive after a kill.

The layout is specified in docs/trace_format.md and src/trace/trace.hpp: a header page, then sections; everything is little
endian. A file that cannot be a trace raises TraceError. Whatever else is wrong with one costs only what cannot be read, and
stands in `problems`. Files are read, never mapped: a trace that shrinks under the reader cannot kill it. Memory stays below the
file's size, and events come in blocks.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.trace_layout import (
    BOUNDED,
    CELL,
    CLOCK,
    COMMUNICATOR,
    DATATYPE,
    EVENT,
    HEADER,
    HEADER_FIELDS,
    MAGIC,
    MARK,
    MEMBER,
    MOST_BYTES,
    MOST_NAMES,
    MOST_SHARED,
    NAME,
    NOTE,
    PAGE,
    PARTNER,
    QUEUE,
    SECTIONS,
    STAGES,
    THREAD,
    VERSION,
    WIDE,
)
from stretto.trace_sections import Section, TraceError, entries_of, first_of, open_file, walk

Array = NDArray[Any]
_COUNTS = ("identity", "parent", "size", "rank", "remote_size", "nodes", "collectives")  # of a communicator
_BEGINNING = struct.Struct("<8sIIIIi")  # of HEADER, up to world_rank


@dataclass(frozen=True, slots=True)
class Communicator:
    identity: int
    parent: int
    name: str
    size: int
    rank: int
    remote_size: int
    nodes: int
    members: Array  # world ranks, of both groups where there are two; empty where unknown
    created_ticks: int
    freed_ticks: int
    collectives: int  # that the process has begun on it; 0: also where they were not counted


@dataclass(frozen=True, slots=True)
class Header:
    version: int
    header_bytes: int
    mode: int
    stage: int
    world_rank: int
    world_size: int
    pid: int
    node: int
    start_ticks: int
    start_ns: int
    last_ticks: int
    last_ns: int
    start_realtime_ns: int
    init_ticks: int
    finalize_ticks: int
    limit_bytes: int
    dropped_events: int
    dropped_cells: int
    unnamed: int
    untracked_requests: int
    event_cost_ticks: int
    file_bytes: int
    library: str
    host: str
    job: str
    clock: str
    cpus: int  # bit i: CPU i may be used; 0: unknown
    clock_cost_ticks: int  # of event_cost_ticks

    def seconds_per_tick(self) -> float:
        """From the two clock pairs; 0 where the process left only one."""
        ticks, ns = self.last_ticks - self.start_ticks, self.last_ns - self.start_ns
        return ns / ticks * 1e-9 if ticks > 0 and ns > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive events of one thread, wide ones put together: `spent`, `sent`, `received` are 64 bits wide."""

    thread: int
    rows: Array  # EVENT
    spent: Array  # int64 ticks
    sent: Array  # int64 bytes
    received: Array


@dataclass(slots=True)
class Trace:
    """One process's trace. Tables are read at once, events when they are asked for."""

    path: Path
    header: Header
    problems: list[str] = field(default_factory=list)
    damaged: bool = False  # some of the problems are that parts of the file are lost
    functions: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    algorithms: list[str] = field(default_factory=list)
    datatypes: Array = field(default_factory=lambda: np.zeros(0, DATATYPE))
    datatype_names: list[str] = field(default_factory=list)
    operations: list[str] = field(default_factory=list)
    communicators: list[Communicator] = field(default_factory=list)
    threads: Array = field(default_factory=lambda: np.zeros(0, THREAD))
    thread_names: list[str] = field(default_factory=list)
    clock: Array = field(default_factory=lambda: np.zeros(0, CLOCK))
    queues: Array = field(default_factory=lambda: np.zeros(0, QUEUE))
    cells: Array = field(default_factory=lambda: np.zeros(0, CELL))
    partners: Array = field(default_factory=lambda: np.zeros(0, PARTNER))
    notes: list[str] = field(default_factory=list)
    marks: Array = field(default_factory=lambda: np.zeros(0, MARK))
    events: list[Section] = field(default_factory=list)

    def lacks(self, what: str) -> None:
        """Notes damage."""
        self.problems.append(what)
        self.damaged = True

    def event_count(self) -> int:
        """Entries, halves of wide events counted."""
        return sum(section.used for section in self.events)

    def event_threads(self) -> list[int]:
        return sorted({section.thread for section in self.events if section.used})

    def batches(self, thread: int, most: int = 1 << 16) -> Iterator[Batch]:
        """The events of one thread in blocks of at most `most`. Ends where the file does. OSError: it cannot be read any more.

        The file is open only while a block is read: jobs have more threads than a process may have open files."""
        carried = np.zeros(0, EVENT)
        for section in self.events:
            if section.thread != thread:
                continue
            for at in range(0, section.used, most):
                count = min(most, section.used - at)
                rows = self._rows(section, at, count)
                if rows is None:
                    return
                batch, carried = _widen(thread, np.concatenate([carried, rows]) if len(carried) else rows)
                if len(batch.rows):
                    yield batch
                if len(rows) < count:
                    return

    def _rows(self, section: Section, at: int, count: int) -> Array | None:
        """None: the process lives, and has just put these elsewhere and others in their place."""
        with open_file(self.path) as file:
            rows = entries_of(file.fileno(), section, at, count, EVENT)
            moved = section.head >= 0 and first_of(file.fileno(), section.head) != section.first
            return None if moved else rows


def text(raw: bytes) -> str:
    """Zero-padded text as it may be shown: what is not printable becomes '?'."""
    decoded = raw.split(b"\0", 1)[0].decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "?" for letter in decoded)


def read(path: Path) -> Trace:
    """The trace in a file. TraceError: it cannot be read, or is none."""
    try:
        with open_file(path) as file:
            return _parse(path, file.fileno())
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from None


def rank_of(path: Path) -> int:
    """The world rank that the beginning of a header names, also in a file that is too short to be read; -1: it tells none."""
    try:
        with open_file(path) as file:
            data = os.pread(file.fileno(), _BEGINNING.size, 0)
    except (OSError, TraceError):
        return -1
    if len(data) < _BEGINNING.size:
        return -1
    magic, version, *_, rank = _BEGINNING.unpack(data)
    return max(rank, -1) if (magic, version) == (MAGIC, VERSION) else -1


def _parse(path: Path, file: int) -> Trace:
    data = os.pread(file, HEADER.size, 0)
    trace = Trace(path, _header(path, data))
    length = os.fstat(file).st_size
    if PAGE <= trace.header.file_bytes < length:
        length = trace.header.file_bytes
    elif length < trace.header.file_bytes:
        trace.lacks(f"cut off: {length} of {trace.header.file_bytes} bytes are there")
    tables: dict[str, list[Array]] = {}
    counts: dict[str, int] = {}
    tails: list[Section] = []
    ended = trace.header.stage == STAGES.index("finalized")
    for section in walk(file, length, ended, trace.lacks):
        if section.kind == "events":
            trace.events.append(section)
        elif section.kind == "tail":
            tails.append(section)
        else:
            _load(file, section, tables, counts, trace)
    _append_tails(trace, tails)
    _fill(trace, {name: np.concatenate(parts) for name, parts in tables.items()})
    return trace


def _header(path: Path, data: bytes) -> Header:
    if len(data) < HEADER.size and data[: len(MAGIC)] == MAGIC:
        raise TraceError(f"{path}: cut off: {len(data)} bytes are there, the header alone has {PAGE}")
    if len(data) < HEADER.size:
        raise TraceError(f"{path}: no Stretto trace: {len(data)} bytes, the header alone has {PAGE}")
    fields = HEADER.unpack(data)
    if fields[0] != MAGIC:
        raise TraceError(f"{path}: no Stretto trace: it does not begin with STRETTOT")
    if fields[1] != VERSION:
        raise TraceError(f"{path}: trace version {fields[1]}; this command reads version {VERSION}")
    if fields[2] != PAGE:
        raise TraceError(f"{path}: damaged trace: header of {fields[2]} bytes, not {PAGE}")
    numbers = dict(zip(HEADER_FIELDS, fields[1:23], strict=True))
    library, host, job, clock = (text(raw) for raw in fields[23:27])
    cpus = int.from_bytes(fields[27], "little")
    return Header(**numbers, library=library, host=host, job=job, clock=clock, cpus=cpus, clock_cost_ticks=fields[28])


def _append_tails(trace: Trace, tails: list[Section]) -> None:
    """Each thread's newest events behind the others, less those that its process had already copied there when it ended."""
    before: dict[int, int] = {}
    for section in trace.events:
        before[section.thread] = before.get(section.thread, 0) + section.used
    for tail in tails:
        twice = min(max(0, before.get(tail.thread, 0) - tail.first), tail.used)
        moved = replace(tail, offset=tail.offset + twice * tail.entry_bytes, used=tail.used - twice)
        trace.events.append(moved)


def _load(file: int, section: Section, tables: dict[str, list[Array]], counts: dict[str, int], trace: Trace) -> None:
    used, before = section.used, counts.get(section.kind, 0)
    if section.kind in BOUNDED and before + used > MOST_NAMES:
        trace.problems.append(f"more {section.kind.replace('_', ' ')} than any that Stretto writes: {before + used}")
        used = MOST_NAMES - before
    layout = next(layout for name, layout in SECTIONS.values() if name == section.kind)
    if (before + used) * section.entry_bytes > MOST_BYTES:
        trace.problems.append(f"more {section.kind} than any that Stretto writes: {before + used}")
        used = max(0, MOST_BYTES // section.entry_bytes - before)
    counts[section.kind] = before + used
    entries = entries_of(file, section, 0, used, layout)
    if section.kind == "cells":
        entries["thread"] = section.thread
    tables.setdefault(section.kind, []).append(entries)


def _fill(trace: Trace, tables: dict[str, Array]) -> None:
    def names(kind: str) -> list[str]:
        return [text(raw) or f"unnamed {number}" for number, raw in enumerate(tables.get(kind, np.zeros(0, NAME)).tolist())]

    trace.functions, trace.reasons, trace.algorithms = (names(f"{kind}_names") for kind in ("function", "reason", "algorithm"))
    trace.operations = names("operations")
    for name in ("datatypes", "threads", "clock", "queues", "cells", "partners", "marks"):
        if name in tables:
            setattr(trace, name, tables[name])
    trace.datatype_names = [text(raw) or "derived" for raw in trace.datatypes["name"].tolist()]
    trace.thread_names = [text(raw) for raw in trace.threads["name"].tolist()]
    trace.notes = list(dict.fromkeys(text(raw) for raw in tables.get("notes", np.zeros(0, NOTE)).tolist()))
    members = tables.get("members", np.zeros(0, MEMBER))
    trace.communicators = _communicators(tables.get("communicators", np.zeros(0, COMMUNICATOR)), members, trace)


def _communicators(entries: Array, members: Array, trace: Trace) -> list[Communicator]:
    left = len(members) + MOST_SHARED  # a file cannot make its reader walk the same members again and again
    result, unknown = [], 0
    for entry in entries:
        first, size = int(entry["first_member"]), int(entry["size"]) + int(entry["remote_size"])
        known = size <= left and first + size <= len(members)
        left -= size if known else 0
        unknown += not known
        numbers = {name: int(entry[name]) for name in _COUNTS}
        times = {name: int(entry[name]) for name in ("created_ticks", "freed_ticks")}
        group = members[first : first + size] if known else members[:0]
        result.append(Communicator(name=text(bytes(entry["name"])), members=group, **numbers, **times))
    if unknown:
        trace.problems.append(f"{unknown} communicators whose members are not in the file")
    return result


def _widen(thread: int, rows: Array) -> tuple[Batch, Array]:
    """Puts the halves of wide events together; the second result is a half whose other one is in the next block."""
    wide = rows["flags"] & WIDE != 0
    if not wide.any():
        return Batch(thread, rows, *(rows[name].astype(np.int64) for name in ("spent", "sent", "received"))), rows[:0]
    carried = rows[-1:] if wide[-1] else rows[:0]
    low = np.flatnonzero(~wide)
    high = low[np.concatenate([[False], wide])[low]] - 1
    where = np.searchsorted(low, high + 1)
    columns = []
    for name in ("spent", "sent", "received"):
        column = rows[name][low].astype(np.int64)
        column[where] += (rows[name][high].astype(np.int64) & 0x7FFFFFFF) << 32
        columns.append(column)
    return Batch(thread, rows[low], *columns), carried
