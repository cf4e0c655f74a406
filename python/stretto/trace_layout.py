"""The layout of a trace file: src/trace/trace.hpp in numpy's terms."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

MAGIC = b"STRETTOT"
VERSION = 2
PAGE = 4096
SECTION_MAGIC = 0x54434553
NONE16, NONE8 = 0xFFFF, 0xFF
NO_PEER, ANY_PEER = -1, -2
MODES = ("off", "aggregate", "full")
STAGES = ("loaded", "initialised", "finalized")
PART, WIDE, IN_PLACE, ANY_SOURCE, ANY_TAG, FAILED, CANCELLED, INCOMPLETE = (1 << bit for bit in range(8))
BETWEEN_NODES = 5  # direction of partner cells: what was given to MPI for other nodes, by function and algorithm
REASON = 128  # outcomes from here on are reasons
KERNEL = "GPU "  # what the names of NCCL's kernels begin with: they are no calls (docs/nccl.md)

HEADER = struct.Struct("<8sIIIIiiii14Q128s64s64s64s128sQ")
SECTION_HEADER = struct.Struct("<IHHIIQQ4Q")
MOST_BYTES = 1 << 29  # of all entries of one type, events apart
MOST_SHARED = 1 << 22  # members that communicators have in common
MOST_NAMES = 65536  # of a table whose entries become Python objects; more is taken for damage

NAME = np.dtype("S40")
DATATYPE = np.dtype([("name", "S48"), ("size", "<u8"), ("extent", "<u8")])
OPERATION = np.dtype("S64")
COMMUNICATOR = np.dtype(
    [
        ("identity", "<u8"),
        ("parent", "<u8"),
        ("created_ticks", "<u8"),
        ("freed_ticks", "<u8"),
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
        ("begin_ticks", "<u8"),
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
        ("thread", "<u2"),  # reserved in the file; filled in from the section
        ("reserved", "<u4"),
        ("calls", "<u8"),
        ("sent", "<u8"),
        ("received", "<u8"),
        ("ticks", "<u8"),
        ("first_ticks", "<u8"),
        ("last_ticks", "<u8"),
    ]
)
PARTNER = np.dtype(
    [
        ("communicator", "<u2"),
        ("direction", "<u2"),
        ("partner", "<i4"),
        ("calls", "<u8"),
        ("bytes", "<u8"),
        ("reserved", "<u8"),
    ]
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
MEMBER = np.dtype("<i4")

# Section type -> its name and the layout of its entries.
SECTIONS: dict[int, tuple[str, np.dtype[Any]]] = {
    1: ("function_names", NAME),
    2: ("reason_names", NAME),
    3: ("algorithm_names", NAME),
    4: ("datatypes", DATATYPE),
    5: ("operations", OPERATION),
    6: ("communicators", COMMUNICATOR),
    7: ("members", MEMBER),
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
# Those whose entries become Python objects.
BOUNDED = frozenset(
    "function_names reason_names algorithm_names datatypes operations communicators threads clock queues notes".split()
)
HEADER_FIELDS = (
    "version header_bytes mode stage world_rank world_size pid node start_ticks start_ns last_ticks last_ns start_realtime_ns"
    " init_ticks finalize_ticks limit_bytes dropped_events dropped_cells unnamed untracked_requests event_cost_ticks file_bytes"
).split()
