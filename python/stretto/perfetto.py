"""Packets of a Perfetto trace, encoded by hand: protobuf's wire format needs no more than this.

A file is a sequence of packets, each a field 1 of the message Trace. The field numbers are those of
protos/perfetto/trace/trace_packet.proto and track_event.proto of the Perfetto project.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

_SLICE_BEGIN, _SLICE_END = 1, 2
_SEQUENCE = 1  # all packets are of one writer
_LATEST = (1 << 64) - 1


class Flow(NamedTuple):
    """An arrow through all slices of one id, in the order of time."""

    id: int
    ends: bool


def flow_id(identity: int, sequence: int) -> int:
    """Of a collective: never 0."""
    return ((identity ^ (sequence + 1) * 0x9E3779B97F4A7C15) & _LATEST) or 1


def _varint(value: int) -> bytes:
    value &= _LATEST
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode("utf-8", "replace"))


def _fixed64(field: int, value: int) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<Q", value)


def _packet(body: bytes) -> bytes:
    return _bytes(1, body + _number(10, _SEQUENCE))


def process_track(uuid: int, pid: int, name: str) -> bytes:
    process = _number(1, pid) + _text(6, name)
    return _packet(_bytes(60, _number(1, uuid) + _bytes(3, process)))


def thread_track(uuid: int, parent: int, thread: tuple[int, int, str]) -> bytes:
    """`thread`: the process's pid, a number and a name."""
    pid, number, name = thread
    described = _number(1, pid) + _number(2, pid << 16 | number) + _text(5, name)
    return _packet(_bytes(60, _number(1, uuid) + _number(5, parent) + _bytes(4, described)))


def _annotation(name: str, value: Any) -> bytes:
    told = _number(4, value) if isinstance(value, int) else _text(6, str(value))
    return _bytes(4, _text(10, name) + told)


def begin(at: int, track: int, name: str, told: dict[str, Any], flow: Flow | None) -> bytes:
    """A slice begins; `at` in ns."""
    event = _number(9, _SLICE_BEGIN) + _number(11, track) + _text(23, name)
    if flow:
        event += _fixed64(48 if flow.ends else 47, flow.id)
    event += b"".join(_annotation(key, value) for key, value in told.items())
    return _packet(_number(8, at) + _bytes(11, event))


def end(at: int, track: int) -> bytes:
    return _packet(_number(8, at) + _bytes(11, _number(9, _SLICE_END) + _number(11, track)))
