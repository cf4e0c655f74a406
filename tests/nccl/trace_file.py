"""A small reader of trace files for these tests alone, written from src/trace/trace.hpp."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_HEADER = struct.Struct("<8s4I4i14Q128s64s64s64s")
_SECTION = struct.Struct("<IHHIIQQ32x")
_EVENT = struct.Struct("<QIHHIiiIIIHBBBBH")
_CELL = struct.Struct("<HHHBBBB6xQQQQQQ")
_COMMUNICATOR = struct.Struct("<4QIiIIII72s")
_PARTNER = struct.Struct("<HHiQQ8x")
_EVENTS, _TAIL = 13, 16
_NAMES = {1: "functions", 3: "algorithms"}
NONE16, NONE8 = 0xFFFF, 0xFF
PART, WIDE, IN_PLACE, FAILED = 1, 2, 4, 32


@dataclass
class Event:
    function: str
    begin: int  # ns of CLOCK_MONOTONIC
    spent: int  # ns
    communicator: int | None
    sequence: int
    peer: int
    sent: int
    received: int
    datatype: str
    op: str
    algorithm: str
    location: int
    flags: int
    thread: int


@dataclass
class Trace:
    header: dict[str, Any]
    functions: list[str] = field(default_factory=list)
    algorithms: list[str] = field(default_factory=list)
    datatypes: list[str] = field(default_factory=list)
    operations: list[str] = field(default_factory=list)
    communicators: list[dict[str, Any]] = field(default_factory=list)
    members: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    cells: list[dict[str, Any]] = field(default_factory=list)
    partners: list[tuple[int, int, int, int, int]] = field(default_factory=list)


def text(raw: bytes) -> str:
    return raw.split(b"\0")[0].decode()


def read(path: Path) -> Trace:
    data = path.read_bytes()
    names = (
        "magic version header_bytes mode stage world_rank world_size pid node start_ticks start_ns last_ticks last_ns realtime "
        "init finalize limit dropped_events dropped_cells unnamed untracked cost bytes library host job clock"
    ).split()
    header = dict(zip(names, _HEADER.unpack_from(data), strict=True))
    assert header["magic"] == b"STRETTOT", path
    header["library"] = text(header["library"])
    trace = Trace(header)
    raw: list[tuple[int, tuple[int, ...]]] = []
    tails: list[tuple[int, tuple[int, ...]]] = []  # each thread's newest
    place = header["header_bytes"]
    while place + _SECTION.size <= min(len(data), header["bytes"]):
        magic, kind, thread, entry_bytes, _, length, used = _SECTION.unpack_from(data, place)
        assert magic == 0x54434553 and length, (path, place)
        first = place + _SECTION.size
        for i in range(used):
            entry = data[first + i * entry_bytes : first + (i + 1) * entry_bytes]
            take(trace, tails if kind == _TAIL else raw, kind, thread, entry)
        place += length
    span = header["last_ticks"] - header["start_ticks"]
    rate = (header["last_ns"] - header["start_ns"]) / span if span else 1.0
    trace.events = [named(trace, thread, event, rate) for thread, event in raw + tails]
    return trace


def take(trace: Trace, raw: list[tuple[int, tuple[int, ...]]], kind: int, thread: int, entry: bytes) -> None:
    if kind in _NAMES:
        getattr(trace, _NAMES[kind]).append(text(entry))
    elif kind == 4:
        trace.datatypes.append(text(entry[:48]))
    elif kind == 5:
        trace.operations.append(text(entry))
    elif kind == 6:
        keys = "identity parent created freed size rank remote nodes first_member collectives name".split()
        trace.communicators.append(dict(zip(keys, _COMMUNICATOR.unpack(entry), strict=True)))
        trace.communicators[-1]["name"] = text(trace.communicators[-1]["name"])
    elif kind == 7:
        trace.members.append(struct.unpack("<i", entry)[0])
    elif kind == 11:
        keys = "function communicator datatype op location bin outcome calls sent received ticks first last".split()
        cell = dict(zip(keys, _CELL.unpack(entry), strict=True))
        if cell["calls"]:
            trace.cells.append(cell)
    elif kind == 12:
        partner = _PARTNER.unpack(entry)
        if partner[3]:
            trace.partners.append(partner)
    elif kind in (_EVENTS, _TAIL):
        raw.append((thread, _EVENT.unpack(entry)))


def named(trace: Trace, thread: int, event: tuple[int, ...], rate: float) -> Event:
    begin, spent, function, comm, sequence, peer, _, _, sent, received, datatype, op, outcome, location, flags, _ = event
    assert not flags & WIDE, "none of these tests is so large"
    return Event(
        trace.functions[function],
        trace.header["start_ns"] + round((begin - trace.header["start_ticks"]) * rate),
        round(spent * rate),
        None if comm == NONE16 else comm,
        sequence,
        peer,
        sent,
        received,
        "" if datatype == NONE16 else trace.datatypes[datatype],
        "" if op == NONE8 else trace.operations[op],
        trace.algorithms[outcome] if outcome < 128 else "",
        location,
        flags,
        thread,
    )
