"""Builds records byte by byte from the description in src/trace/record.hpp, independently of the reader under test."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

KIND_SLOTS = 32


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 64)


@dataclass
class Block:
    functions: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    kinds: dict[int, tuple[int, int, int, int, int, int]] = field(default_factory=dict)
    declines: dict[tuple[int, int], int] = field(default_factory=dict)  # (kind, reason) -> calls
    ran: dict[tuple[int, int], int] = field(default_factory=dict)  # (kind, algorithm) -> calls


Arrival = tuple[int, int, int, int, int, int, int, int, int]  # the words of a cell
ARRIVAL_CELLS = 32
KEPT_TURNS = 512


@dataclass
class Builder:
    functions: tuple[str, ...] = ("MPI_Init", "MPI_Allreduce", "MPI_Send")
    reasons: tuple[str, ...] = ("user op", "too large")
    algorithms: tuple[str, ...] = ("flat", "slices")
    blocks: list[Block] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    turn_calls: int = 0
    turns: list[tuple[int, int, int]] = field(default_factory=list)  # all there were
    magic: bytes = b"STRETTOR"
    version: int = 4
    header_bytes: int = 488
    stage: int = 2
    rank: int = 0
    size: int = 1
    pid: int = 42
    start: tuple[int, int] = (1000, 500)
    last: tuple[int, int] = (3000, 1500)  # two ticks per ns
    init_ns: int = 600
    finalize_ns: int = 1400
    block_count: int = 64
    used: int | None = None
    accelerating: int = 1
    verdict: bytes = b"accelerating"

    def header(self) -> bytes:
        used = len(self.blocks) if self.used is None else self.used
        lengths = (len(self.functions), len(self.reasons), len(self.algorithms), self.block_count, used, self.accelerating)
        start = struct.pack("<8s3I3i", self.magic, self.version, self.header_bytes, self.stage, self.rank, self.size, self.pid)
        clocks = struct.pack("<6Q", *self.start, *self.last, self.init_ns, self.finalize_ns)
        texts = struct.pack("<128s64s192s", b"Some MPI 1.0", b"node1", self.verdict)
        return start + clocks + struct.pack("<6I", *lengths) + texts

    def block(self, block: Block) -> bytes:
        cells = [struct.pack("<3Q", *block.functions.get(i, (0, 0, 0))) for i in range(len(self.functions))]
        cells += [struct.pack("<6Q", *block.kinds.get(i, (0,) * 6)) for i in range(KIND_SLOTS)]
        for names, table in ((self.reasons, block.declines), (self.algorithms, block.ran)):
            for kind in range(KIND_SLOTS):
                cells += [struct.pack("<Q", table.get((kind, i), 0)) for i in range(len(names))]
        return padded(b"".join(cells))

    def bytes(self) -> bytes:
        names = [name.encode().ljust(40, b"\0") for name in (*self.functions, *self.reasons, *self.algorithms)]
        blocks = self.blocks + [Block()] * (self.block_count - len(self.blocks))
        data = padded(self.header() + b"".join(names)) + b"".join(self.block(block) for block in blocks)
        if self.version < 2:
            return data
        cells = b"".join(struct.pack("<Q2I6Q", *cell) for cell in self.arrivals)
        data += cells.ljust(64 * ARRIVAL_CELLS, b"\0")
        return data + (self.turns_cell() if self.version > 2 else b"")

    def turns_cell(self) -> bytes:
        ring = [(0, 0, 0)] * KEPT_TURNS
        for number, turn in enumerate(self.turns):
            ring[number % KEPT_TURNS] = turn
        head = struct.pack("<2IQ", self.turn_calls, self.size, len(self.turns))
        return head + b"".join(struct.pack("<2IQ", *turn) if self.version > 3 else struct.pack("<2I", *turn[:2]) for turn in ring)


def example(rank: int = 0, size: int = 1, **changes: object) -> Builder:
    """A rank with 10 allreduces, 8 of them accelerated, and 3 sends, counted by two threads."""
    first = Block(
        functions={0: (1, 400, 0), 1: (10, 2000, 800), 2: (1, 10, 8)},
        kinds={3: (8, 640, 1000, 2, 160, 600)},
        declines={(3, 0): 2},
        ran={(3, 0): 5, (3, 1): 3},
    )
    second = Block(functions={2: (2, 30, 16)})
    builder = Builder(rank=rank, size=size, pid=100 + rank, blocks=[first, second])
    for name, value in changes.items():
        setattr(builder, name, value)
    return builder
