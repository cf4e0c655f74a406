"""Reads the record that one rank leaves: what it counted, alive after a kill.

The layout is specified in docs/record_format.md and src/trace/record.hpp: header, function names, reason names, algorithm
names, thread blocks, arrivals (from version 2 on), turns (from version 3 on). Everything is little endian.
A file that cannot be a record raises RecordError. A record that ends early gives what is there and says so in `problem`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stretto.errors import StrettoError
from stretto.files import read_bytes

MAGIC = b"STRETTOR"
VERSIONS = (1, 2, 3, 4)
NAME_BYTES = 40
KIND_SLOTS = 32
ALIGNMENT = 64  # the thread blocks begin, and are as long as, a multiple of this
KINDS = (  # by their number in src/collective/request.hpp
    *("Barrier", "Bcast", "Reduce", "Allreduce", "Gather", "Scatter", "Allgather", "Alltoall"),
    *("Gatherv", "Scatterv", "Allgatherv", "Alltoallv", "Alltoallw"),
    *("Reduce_scatter", "Reduce_scatter_block", "Scan", "Exscan"),
)
STAGES = ("loaded", "initialised", "finalized")

HEADER = struct.Struct("<8sIIIiii6Q6I128s64s192s")
FUNCTION_CELL = struct.Struct("<3Q")
KIND_CELL = struct.Struct("<6Q")
ARRIVAL_CELL = struct.Struct("<Q2I6Q")
ARRIVAL_CELLS = 32
TURNS_HEAD = struct.Struct("<2IQ")
KEPT_TURNS = 512
TURN = struct.Struct("<2IQ")
SHORT_TURN = struct.Struct("<2I")  # of version 3
TICKS_OF_TURNS = 1024  # their unit
MOST_NAMES = 65536  # in one table; more is taken for damage
MOST_BYTES = 1 << 30  # of one file that is read


class RecordError(StrettoError):
    """The file is no record that this version can read; the message says why."""


@dataclass(slots=True)
class FunctionCount:
    """One MPI function: calls, ticks spent inside, bytes contributed (where known)."""

    calls: int = 0
    ticks: int = 0
    bytes: int = 0


@dataclass(slots=True)
class KindCount:
    """One kind of collective: what ran in Stretto and what was left to MPI, with the reasons."""

    accelerated_calls: int = 0
    accelerated_bytes: int = 0
    accelerated_ticks: int = 0
    declined_calls: int = 0
    declined_bytes: int = 0
    declined_ticks: int = 0
    declines: dict[str, int] = field(default_factory=dict)  # reason -> calls
    algorithms: dict[str, int] = field(default_factory=dict)  # name -> calls


@dataclass(slots=True)
class ArrivalCount:
    """How one communicator's ranks came to the collectives that this rank compared."""

    identity: int  # equal on its ranks of one node; used again once it is freed
    rank: int  # of this process in it
    size: int
    calls: int  # collectives compared
    spread_ticks: int  # last arrival less first, summed
    most_ticks: int  # and its maximum
    behind_ticks: int  # this rank's arrival less the first, summed
    last: int  # times that this rank was the last one
    repeated: int  # times that the last one was the same as in the collective compared before


@dataclass(frozen=True, slots=True)
class Turn:
    """Where Stretto and MPI took turns, one of them, as this process saw it."""

    ticks: int
    in_mpi: int  # ticks in MPI calls
    bytes: int = 0  # contributed to collectives; 0 where the record does not tell (before version 4)


@dataclass(slots=True)
class Record:
    """What one process counted, its thread blocks added up."""

    stage: str
    world_rank: int  # -1 before MPI_Init
    world_size: int
    pid: int
    start_ticks: int
    start_ns: int
    last_ticks: int
    last_ns: int
    init_ns: int
    finalize_ns: int
    accelerating: bool
    mpi_library: str
    host: str
    verdict: str
    functions: dict[str, FunctionCount] = field(default_factory=dict)
    kinds: dict[str, KindCount] = field(default_factory=dict)
    arrivals: list[ArrivalCount] = field(default_factory=list)
    turn_calls: int = 0  # collectives in a turn; 0: nobody took turns
    turns: list[Turn] = field(default_factory=list)  # from the first of four on
    problem: str = ""

    def seconds_per_tick(self) -> float:
        """From the header's two clock pairs; 0 where the process ended before the second one."""
        ticks = self.last_ticks - self.start_ticks
        return (self.last_ns - self.start_ns) / ticks * 1e-9 if ticks > 0 and self.last_ns > self.start_ns else 0.0

    def calls(self) -> int:
        return sum(count.calls for count in self.functions.values())


_NUMBERS = (
    "world_rank",
    "world_size",
    "pid",
    "start_ticks",
    "start_ns",
    "last_ticks",
    "last_ns",
    "init_ns",
    "finalize_ns",
)


@dataclass(frozen=True, slots=True)
class _Tables:
    functions: list[str]
    reasons: list[str]
    algorithms: list[str]
    blocks: int  # that are used
    all_blocks: int
    end: int  # where the thread blocks begin

    def block_bytes(self) -> int:
        per_kind = KIND_CELL.size + 8 * (len(self.reasons) + len(self.algorithms))
        return _aligned(FUNCTION_CELL.size * len(self.functions) + KIND_SLOTS * per_kind)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def read(path: Path) -> Record:
    """The record in a file. RecordError: it cannot be read, or is none."""
    try:
        data = read_bytes(path, MOST_BYTES)
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from None
    try:
        return parse(data)
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from None


def parse(data: bytes) -> Record:
    """The record in `data`."""
    if len(data) < HEADER.size:
        raise RecordError(f"no Stretto record: {len(data)} bytes, the header alone has {HEADER.size}")
    fields = HEADER.unpack_from(data)
    magic, version, header_bytes = fields[0:3]
    if magic != MAGIC:
        raise RecordError("no Stretto record: it does not begin with STRETTOR")
    if version not in VERSIONS:
        raise RecordError(f"record version {version}; this command reads versions {VERSIONS[0]} to {VERSIONS[-1]}")
    if header_bytes != HEADER.size:
        raise RecordError(f"damaged record: header of {header_bytes} bytes, not {HEADER.size}")
    record = _header(fields)
    functions, reasons, algorithms, blocks, used = fields[13:18]
    if max(functions, reasons, algorithms, blocks) > MOST_NAMES:
        raise RecordError("damaged record: a table longer than any that Stretto writes")
    end = HEADER.size + NAME_BYTES * (functions + reasons + algorithms)
    if end > len(data):
        record.problem = "cut off before its tables end"
        return record
    tables = _read_tables(data, (functions, reasons, algorithms), min(used, blocks), blocks)
    _read_blocks(data, tables, record)
    arrivals_at = tables.end + tables.all_blocks * tables.block_bytes()
    if version > 1:
        _read_arrivals(data, arrivals_at, record)
    if version > 2:
        _read_turns(data, arrivals_at + ARRIVAL_CELLS * ARRIVAL_CELL.size, TURN if version > 3 else SHORT_TURN, record)
    return record


def _header(fields: tuple[Any, ...]) -> Record:
    stage = fields[3]
    library, host, verdict = (_text(raw) for raw in fields[19:22])
    return Record(
        stage=STAGES[stage] if stage < len(STAGES) else f"stage {stage}",
        **dict(zip(_NUMBERS, fields[4:13], strict=True)),
        accelerating=fields[18] == 1,
        mpi_library=library,
        host=host,
        verdict=verdict,
    )


def _text(raw: bytes) -> str:
    """Zero-padded text as it may be shown: what is not printable becomes '?'."""
    text = raw.split(b"\0", 1)[0].decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _read_tables(data: bytes, lengths: tuple[int, int, int], used: int, blocks: int) -> _Tables:
    functions, reasons, algorithms = lengths
    names = []
    for number in range(functions + reasons + algorithms):
        at = HEADER.size + NAME_BYTES * number
        names.append(_text(data[at : at + NAME_BYTES]) or f"unnamed {number}")
    middle = functions + reasons
    end = _aligned(HEADER.size + NAME_BYTES * len(names))
    return _Tables(names[:functions], names[functions:middle], names[middle:], used, blocks, end)


def _read_blocks(data: bytes, tables: _Tables, record: Record) -> None:
    size = tables.block_bytes()
    for block in range(tables.blocks):
        at = tables.end + block * size
        if at + size > len(data):
            record.problem = f"cut off in thread block {block + 1} of {tables.blocks}"
            return
        _add_functions(data, at, tables, record)
        _add_kinds(data, at + FUNCTION_CELL.size * len(tables.functions), tables, record)


def _read_arrivals(data: bytes, at: int, record: Record) -> None:
    if at + ARRIVAL_CELLS * ARRIVAL_CELL.size > len(data):
        record.problem = record.problem or "cut off before its arrivals end"
        return
    cells = ARRIVAL_CELL.iter_unpack(data[at : at + ARRIVAL_CELLS * ARRIVAL_CELL.size])
    record.arrivals = [count for count in (ArrivalCount(*cell) for cell in cells) if count.calls]


def _read_turns(data: bytes, at: int, cell: struct.Struct, record: Record) -> None:
    """Those that are kept, in their order, from one that is the first of four."""
    if at + TURNS_HEAD.size + KEPT_TURNS * cell.size > len(data):
        record.problem = record.problem or "cut off before its turns end"
        return
    record.turn_calls, _, count = TURNS_HEAD.unpack_from(data, at)
    first = -(-max(count - KEPT_TURNS, 0) // 4) * 4
    for number in range(first, count):
        spent, inside, *rest = cell.unpack_from(data, at + TURNS_HEAD.size + number % KEPT_TURNS * cell.size)
        record.turns.append(Turn(spent * TICKS_OF_TURNS, inside * TICKS_OF_TURNS, *rest))


def _add_functions(data: bytes, at: int, tables: _Tables, record: Record) -> None:
    cells = FUNCTION_CELL.iter_unpack(data[at : at + FUNCTION_CELL.size * len(tables.functions)])
    for name, (calls, ticks, size) in zip(tables.functions, cells, strict=True):
        if calls:
            count = record.functions.setdefault(name, FunctionCount())
            count.calls += calls
            count.ticks += ticks
            count.bytes += size


def _add_kinds(data: bytes, at: int, tables: _Tables, record: Record) -> None:
    declines_at = at + KIND_SLOTS * KIND_CELL.size
    algorithms_at = declines_at + 8 * KIND_SLOTS * len(tables.reasons)
    for kind in range(KIND_SLOTS):
        cell = KIND_CELL.unpack_from(data, at + kind * KIND_CELL.size)
        if not cell[0] and not cell[3]:
            continue
        count = record.kinds.setdefault(KINDS[kind] if kind < len(KINDS) else f"Collective {kind}", KindCount())
        count.accelerated_calls += cell[0]
        count.accelerated_bytes += cell[1]
        count.accelerated_ticks += cell[2]
        count.declined_calls += cell[3]
        count.declined_bytes += cell[4]
        count.declined_ticks += cell[5]
        _add_row(data, declines_at, kind, tables.reasons, count.declines)
        _add_row(data, algorithms_at, kind, tables.algorithms, count.algorithms)


def _add_row(data: bytes, table_at: int, row: int, names: list[str], into: dict[str, int]) -> None:
    values = struct.unpack_from(f"<{len(names)}Q", data, table_at + 8 * row * len(names))
    for name, calls in zip(names, values, strict=True):
        if calls:
            into[name] = into.get(name, 0) + calls
