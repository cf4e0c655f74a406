"""Reads a trace file as docs/trace_format.md describes it: an independent reader for the tests, simple rather than fast."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

PAGE = 4096
HEADER_WORDS = (
    "start_ticks start_ns last_ticks last_ns start_realtime_ns init_ticks finalize_ticks limit_bytes dropped_events "
    "dropped_cells unnamed untracked_requests event_cost_ticks file_bytes"
).split()
PART, WIDE, IN_PLACE, ANY_SOURCE, ANY_TAG, FAILED, CANCELLED, INCOMPLETE = (1 << bit for bit in range(8))
NONE16 = 0xFFFF
DIRECTIONS = ("none", "sent", "received", "put", "got")

NAME = np.dtype("S40")
DATATYPE = np.dtype([("name", "S48"), ("size", "<u8"), ("extent", "<u8")])
OPERATION = np.dtype("S64")
COMMUNICATOR = np.dtype(
    [
        ("identity", "<u8"),
        ("parent", "<u8"),
        ("created", "<u8"),
        ("freed", "<u8"),
        ("size", "<u4"),
        ("rank", "<i4"),
        ("remote_size", "<u4"),
        ("nodes", "<u4"),
        ("first_member", "<u4"),
        ("collectives", "<u4"),
        ("name", "S72"),
    ]
)
THREAD = np.dtype(
    [
        ("tid", "<u4"),
        ("function", "<u2"),
        ("communicator", "<u2"),
        ("begin", "<u8"),
        ("sequence", "<u4"),
        ("peer", "<i4"),
        ("events", "<u8"),
        ("name", "S16"),
        ("untimed", "<u8"),
        ("padding", "<u8"),
    ]
)
CLOCK = np.dtype([("ticks", "<u8"), ("reference_ns", "<u8"), ("error_ns", "<u8"), ("via", "<i4"), ("at", "<u4")])
QUEUE = np.dtype(
    [
        ("name", "S64"),
        ("samples", "<u8"),
        ("sum", "<f8"),
        ("least", "<f8"),
        ("most", "<f8"),
        ("unit", "S32"),
        ("unavailable", "S128"),
    ]
)
CELL = np.dtype(
    [
        ("function", "<u2"),
        ("communicator", "<u2"),
        ("datatype", "<u2"),
        ("op", "u1"),
        ("location", "u1"),
        ("bin", "u1"),
        ("outcome", "u1"),
        ("reserved", "u1", 6),
        ("calls", "<u8"),
        ("sent", "<u8"),
        ("received", "<u8"),
        ("ticks", "<u8"),
        ("first", "<u8"),
        ("last", "<u8"),
    ]
)
PARTNER = np.dtype(
    [("communicator", "<u2"), ("direction", "<u2"), ("partner", "<i4"), ("calls", "<u8"), ("bytes", "<u8"), ("reserved", "<u8")]
)
EVENT = np.dtype(
    [
        ("begin", "<u8"),
        ("spent", "<u4"),
        ("function", "<u2"),
        ("communicator", "<u2"),
        ("sequence", "<u4"),
        ("peer", "<i4"),
        ("tag", "<i4"),
        ("request", "<u4"),
        ("sent", "<u4"),
        ("received", "<u4"),
        ("datatype", "<u2"),
        ("op", "u1"),
        ("outcome", "u1"),
        ("location", "u1"),
        ("flags", "u1"),
        ("partitions", "<u2"),
    ]
)
NOTE = np.dtype("S256")
MARK = np.dtype([("ticks", "<u8"), ("what", "<u4"), ("number", "<u4")])
SECTIONS: dict[int, tuple[str, np.dtype[Any]]] = {
    1: ("functions", NAME),
    2: ("reasons", NAME),
    3: ("algorithms", NAME),
    4: ("datatypes", DATATYPE),
    5: ("operations", OPERATION),
    6: ("communicators", COMMUNICATOR),
    7: ("members", np.dtype("<i4")),
    8: ("threads", THREAD),
    9: ("clock", CLOCK),
    10: ("queues", QUEUE),
    11: ("cells", CELL),
    12: ("partners", PARTNER),
    13: ("events", EVENT),
    14: ("notes", NOTE),
    15: ("marks", MARK),
    16: ("tail", EVENT),
}


def text(value: bytes) -> str:
    return value.split(b"\0")[0].decode(errors="replace")


@dataclass(frozen=True)
class Call:
    """One event in words. `communicator` is the index in the table; `begin` and `end` are ticks."""

    thread: int
    function: str
    communicator: int
    sequence: int
    peer: int
    tag: int
    request: int
    sent: int
    received: int
    datatype: str
    op: str
    outcome: int
    location: int
    flags: int
    partitions: int
    begin: int
    end: int
    parts: list[Call] = field(default_factory=list, compare=False)

    def has(self, flag: int) -> bool:
        return bool(self.flags & flag)


@dataclass
class Trace:
    header: dict[str, Any]
    tables: dict[str, Any]  # of the process
    cells: list[tuple[int, Any]]  # (thread, entry)
    partners: list[tuple[int, Any]]
    calls: list[Call]  # of all threads, each thread's in order; parts within their call

    def function(self, name: str) -> list[Call]:
        return [call for call in self.calls if call.function == name]

    def communicator_named(self, name: str) -> int:
        names = [text(one["name"]) for one in self.tables["communicators"]]
        return names.index(name)

    def identity(self, index: int) -> int:
        return 0 if index == NONE16 else int(self.tables["communicators"][index]["identity"])

    def members(self, index: int) -> list[int]:
        one = self.tables["communicators"][index]
        first = int(one["first_member"])
        return [int(rank) for rank in self.tables["members"][first : first + int(one["size"]) + int(one["remote_size"])]]

    def partner_sums(self) -> dict[tuple[str, int], tuple[int, int]]:
        """(direction, world rank) -> (calls, bytes)."""
        sums: dict[tuple[str, int], tuple[int, int]] = {}
        for _, one in self.partners:
            key = (DIRECTIONS[one["direction"]], int(one["partner"]))
            calls, total = sums.get(key, (0, 0))
            sums[key] = (calls + int(one["calls"]), total + int(one["bytes"]))
        return sums

    def function_sums(self) -> dict[str, tuple[int, int, int]]:
        """function -> (calls, sent, received)."""
        sums: dict[str, tuple[int, int, int]] = {}
        for _, one in self.cells:
            name = text(self.tables["functions"][one["function"]])
            calls, sent, received = sums.get(name, (0, 0, 0))
            sums[name] = (calls + int(one["calls"]), sent + int(one["sent"]), received + int(one["received"]))
        return {name: sum_ for name, sum_ in sums.items() if sum_[0]}


def read_header(data: bytes) -> dict[str, Any]:
    magic, version, header_bytes, mode, stage, rank, size, pid, node = struct.unpack_from("<8sIIIIiiii", data)
    if magic != b"STRETTOT" or version != 2 or header_bytes != PAGE:
        raise ValueError(f"not a trace file: {magic!r}, version {version}")
    header: dict[str, Any] = {"mode": mode, "stage": stage, "world_rank": rank, "world_size": size, "pid": pid, "node": node}
    header |= dict(zip(HEADER_WORDS, struct.unpack_from("<14Q", data, 40), strict=True))
    for name, (offset, length) in {"library": (152, 128), "host": (280, 64), "job": (344, 64), "clock": (408, 64)}.items():
        header[name] = text(data[offset : offset + length])
    return header


def sections(data: bytes) -> Any:
    """(name, thread, entries) of each section."""
    at = PAGE
    while at + 64 <= len(data):
        magic, kind, thread, entry_bytes, _, length, used = struct.unpack_from("<IHHIIQQ", data, at)
        if magic != 0x54434553 or length == 0:
            return
        if kind in SECTIONS:
            name, dtype = SECTIONS[kind]
            if entry_bytes != dtype.itemsize:
                raise ValueError(f"entries of {name} have {entry_bytes} bytes")
            yield name, thread, np.frombuffer(data, dtype, used, at + 64)
        at += length


def in_words(tables: dict[str, Any], thread: int, event: Any, high: Any) -> Call:
    def wide(name: str) -> int:
        return int(event[name]) | (int(high[name]) << 32 if high is not None else 0)

    datatypes, operations = tables["datatypes"], tables["operations"]
    return Call(
        thread=thread,
        function=text(tables["functions"][event["function"]]),
        communicator=int(event["communicator"]),
        sequence=int(event["sequence"]),
        peer=int(event["peer"]),
        tag=int(event["tag"]),
        request=int(event["request"]),
        sent=wide("sent"),
        received=wide("received"),
        datatype=text(datatypes[event["datatype"]]["name"]) if event["datatype"] != NONE16 else "",
        op=text(operations[event["op"]]) if event["op"] != 0xFF else "",
        outcome=int(event["outcome"]),
        location=int(event["location"]),
        flags=int(event["flags"]),
        partitions=int(event["partitions"]),
        begin=int(event["begin"]),
        end=int(event["begin"]) + wide("spent"),
    )


def calls_of(tables: dict[str, Any], events: dict[int, list[Any]]) -> list[Call]:
    calls: list[Call] = []
    for thread, rows in sorted(events.items()):
        high = None
        for event in rows:
            if event["flags"] == WIDE:
                high = event
                continue
            call = in_words(tables, thread, event, high)
            high = None
            if call.flags & PART:
                calls[-1].parts.append(call)
            else:
                calls.append(call)
    return calls


def read(path: Path) -> Trace:
    data = path.read_bytes()
    tables: dict[str, Any] = {name: np.empty(0, dtype) for name, dtype in SECTIONS.values()}
    by_thread: dict[str, list[tuple[int, Any]]] = {"cells": [], "partners": []}
    events: dict[int, list[Any]] = {}
    tails: list[tuple[int, Any]] = []
    for name, thread, entries in sections(data):
        if name == "tail":
            tails.append((thread, entries))
        elif name == "events":
            events.setdefault(thread, []).extend(entries)
        elif name in by_thread:
            by_thread[name] += [(thread, entry) for entry in entries]
        else:
            tables[name] = np.concatenate([tables[name], entries])
    for thread, entries in tails:  # no process was killed while it moved its tail
        events.setdefault(thread, []).extend(entries)
    return Trace(read_header(data), tables, by_thread["cells"], by_thread["partners"], calls_of(tables, events))
