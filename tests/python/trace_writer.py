"""Writes trace files from the description in src/trace/trace.hpp, independently of the reader under test.

A `Process` takes calls in true seconds since the job began, scalars or numpy arrays, and writes them as its own clock would have
seen them; `make_example` writes the folder of a small training job on two nodes that shows something in every table.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAGE = 4096
STARTED = 1_800_000_000  # when the job did, in seconds since 1970
NONE16, NONE8 = 0xFFFF, 0xFF
PART, WIDE, IN_PLACE, ANY_SOURCE, ANY_TAG, FAILED, CANCELLED, INCOMPLETE = (1 << bit for bit in range(8))
SECTIONS = {
    name: number
    for number, name in enumerate(
        "function_names reason_names algorithm_names datatypes operations communicators members threads clock queues cells"
        " partners events notes marks tail".split(),
        1,
    )
}
FUNCTIONS = tuple(
    "MPI_Init MPI_Finalize MPI_Allreduce MPI_Bcast MPI_Barrier MPI_Reduce MPI_Allgather MPI_Gather MPI_Send MPI_Recv MPI_Sendrecv"
    " MPI_Isend MPI_Irecv MPI_Startall MPI_Send_init MPI_Wait MPI_Waitall MPI_Test MPI_Put MPI_Get MPI_Iallreduce MPI_Comm_split"
    " MPI_Allreduce_c MPI_Iprobe ncclAllReduce ncclBroadcast".split()
)
REASONS = ("none", "not joined", "several nodes", "unsupported op", "MPI preferred")
ALGORITHMS = ("flat", "gather", "slices")
DATATYPES = (("MPI_FLOAT", 4), ("MPI_DOUBLE", 8), ("MPI_LONG_LONG", 8), ("MPI_BYTE", 1))
OPERATIONS = ("MPI_SUM", "MPI_BAND", "MPI_MAX")
HOST, DEVICE0, MANAGED, NOWHERE = 0, 1, 14, 15

HEADER = struct.Struct("<8sIIIIiiii14Q128s64s64s64s128sQ")
EVENT = np.dtype(
    {
        "names": "begin spent function communicator sequence peer tag request sent received datatype op outcome location flags"
        " partitions".split(),
        "formats": "<u8 <u4 <u2 <u2 <u4 <i4 <i4 <u4 <u4 <u4 <u2 u1 u1 u1 u1 <u2".split(),
        "offsets": [0, 8, 12, 14, 16, 20, 24, 28, 32, 36, 40, 42, 43, 44, 45, 46],
        "itemsize": 48,
    }
)
CALL = np.dtype(  # an event before its halves are taken apart
    [
        ("begin", "i8"),
        ("end", "i8"),
        ("sent", "i8"),
        ("received", "i8"),
        ("thread", "i4"),
        ("direction", "i4"),
        ("partner", "i4"),
        *((name, EVENT[name]) for name in ("function", "communicator", "sequence", "peer", "tag", "request", "datatype", "op")),
        *((name, EVENT[name]) for name in ("outcome", "location", "flags", "partitions")),
    ]
)
DIRECTIONS = {"": 0, "sent": 1, "received": 2, "put": 3, "got": 4}


def text(value: str, size: int) -> bytes:
    return value.encode()[: size - 1].ljust(size, b"\0")


def section(kind: int, entries: bytes, entry_bytes: int, thread: int = NONE16, spare: int = 0, first: int = 0) -> bytes:
    """One section; `spare`: bytes allocated beyond the entries; `first`: of a tail, the entries in front of it."""
    used = len(entries) // entry_bytes
    total = -(-(64 + len(entries) + spare) // PAGE) * PAGE
    head = struct.pack("<IHHIIQQ4Q", 0x54434553, kind, thread, entry_bytes, 0, total, used, first, 0, 0, 0)
    return (head + entries).ljust(total, b"\0")


def size_bin(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """0 for no bytes, else n for (2^(n-2), 2^(n-1)]."""
    bins = np.zeros(len(sizes), np.int64)
    for bit in range(63):
        bins += sizes > (0 if bit == 0 else 1 << (bit - 1))
    return bins


@dataclass
class Clock:
    """A process's clock: its ticks at true time t (s) are `offset + t * rate`."""

    offset: int = 1_000_000_000
    rate: float = 1e9

    def ticks(self, seconds: Any) -> Any:
        return np.rint(np.asarray(seconds, np.float64) * self.rate).astype(np.int64) + self.offset


@dataclass
class Process:
    rank: int = 0
    size: int = 1
    node: int = 0
    pid: int = 0
    host: str = ""
    mode: int = 2
    stage: int = 2
    library: str = "Open MPI v5.0.11"
    clock_source: str = "tsc"
    job: str = "example"
    clock: Clock = field(default_factory=Clock)
    start: float = -0.1  # true seconds, as all times here: when the file was opened
    reference_start: float = -0.1  # the same of world rank 0
    init: float = 0.0
    finalize: float = 10.0
    dropped_events: int = 0
    dropped_cells: int = 0
    unnamed: int = 0
    untracked_requests: int = 0
    event_cost_ns: float = 50.0
    clock_cost_ns: float = 20.0
    untimed: float = 0.0  # share of the calls
    functions: tuple[str, ...] = FUNCTIONS
    reasons: tuple[str, ...] = REASONS
    algorithms: tuple[str, ...] = ALGORITHMS
    datatypes: tuple[tuple[str, int], ...] = DATATYPES
    operations: tuple[str, ...] = OPERATIONS
    spare: int = 0  # bytes kept free in each section
    block: int = 1 << 30  # events per section
    cpus: int = 0  # a bit for each that the process may use
    tail: bool = False  # the last of these sections is a thread's tail
    copied: bool = False  # its process was killed after it had copied the tail into a section, and before it emptied it
    communicators: list[bytes] = field(default_factory=list)
    members: list[int] = field(default_factory=list)
    batches: list[NDArray[Any]] = field(default_factory=list)
    kept: Any = None  # which calls stay as events (a function of the calls' array); the sums have them all
    clocks: list[tuple[float, float, int, int]] = field(default_factory=list)  # true s, error s, via, at
    queues: list[tuple[str, str, str, int, float, float, float]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    marks: list[tuple[float, int, int]] = field(default_factory=list)
    inside: dict[int, tuple[int, float]] = field(default_factory=dict)  # thread -> function, since
    extra: list[bytes] = field(default_factory=list)

    def communicator(
        self,
        identity: int,
        members: Iterable[int],
        name: str = "",
        *,
        parent: int = 0,
        nodes: int = 1,
        remote: Iterable[int] = (),
        created: float = 0.0,
        freed: float | None = None,
        begun: int = 0,
    ) -> int:
        group, other = list(members), list(remote)
        own = group.index(self.rank) if self.rank in group else 0
        times = (int(self.clock.ticks(created)), 0 if freed is None else int(self.clock.ticks(freed)))
        numbers = (identity, parent, *times, len(group), own, len(other), nodes, len(self.members), begun)
        self.communicators.append(struct.pack("<4QIiIIII", *numbers) + text(name, 72))
        self.members += group + other
        return len(self.communicators) - 1

    def call(self, function: str, begin: Any, end: Any, **columns: Any) -> None:
        """Adds one call, or one per element of `begin` (true seconds). `direction`: "sent", "received", "put", "got"."""
        starts, ends = np.atleast_1d(self.clock.ticks(begin)), np.atleast_1d(self.clock.ticks(end))
        batch = np.zeros(len(starts), CALL)
        for name, default in (("communicator", 0), ("peer", -1), ("partner", -1), ("datatype", NONE16), ("op", NONE8)):
            batch[name] = default
        batch["outcome"], batch["location"] = NONE8, NOWHERE << 4 | NOWHERE
        batch["begin"], batch["end"], batch["function"] = starts, ends, self.functions.index(function)
        columns["direction"] = DIRECTIONS[columns.get("direction", "")]
        for name, value in columns.items():
            batch[name] = value
        self.batches.append(batch)

    def calls(self) -> NDArray[Any]:
        """All calls in the order of their ends; parts follow their calls."""
        rows = np.concatenate(self.batches) if self.batches else np.zeros(0, CALL)
        return rows[np.argsort(rows["end"], kind="stable")]

    def header(self, file_bytes: int) -> bytes:
        ends = (self.start, self.finalize)
        ticks = [int(self.clock.ticks(end)) for end in ends]
        ns = [round(end * 1e9) + 5_000_000_000 for end in ends]
        reached = (int(self.clock.ticks(self.init)) if self.stage else 0, ticks[1] if self.stage == 2 else 0)
        cost, clock_cost = (round(ns * 1e-9 * self.clock.rate * 1024) for ns in (self.event_cost_ns, self.clock_cost_ns))
        counts = (self.dropped_events, self.dropped_cells, self.unnamed, self.untracked_requests, cost, file_bytes)
        texts = (
            text(self.library, 128),
            text(self.host or f"node{self.node}", 64),
            text(self.job, 64),
            text(self.clock_source, 64),
        )
        start = (b"STRETTOT", 2, PAGE, self.mode, self.stage, self.rank, self.size, self.pid or 1000 + self.rank, self.node)
        clocks = (ticks[0], ns[0], ticks[1], ns[1], STARTED * 10**9)
        cpus = self.cpus.to_bytes(128, "little")
        return HEADER.pack(*start, *clocks, *reached, 512 << 20, *counts, *texts, cpus, clock_cost).ljust(PAGE, b"\0")

    def sections(self) -> list[bytes]:
        rows = self.calls()
        reset = max((int(self.clock.ticks(at)) for at, what, _ in self.marks if what == 2), default=0)
        parts = [
            section(SECTIONS[name], b"".join(text(one, 40) for one in names), 40, spare=self.spare)
            for name, names in (
                ("function_names", self.functions),
                ("reason_names", self.reasons),
                ("algorithm_names", self.algorithms),
            )
        ]
        types = b"".join(text(name, 48) + struct.pack("<QQ", size, size) for name, size in self.datatypes)
        parts.append(section(SECTIONS["datatypes"], types, 64, spare=self.spare))
        parts.append(section(SECTIONS["operations"], b"".join(text(one, 64) for one in self.operations), 64))
        parts.append(section(SECTIONS["communicators"], b"".join(self.communicators), 128, spare=self.spare))
        parts.append(section(SECTIONS["members"], np.array(self.members, "<i4").tobytes(), 4, spare=self.spare))
        parts.append(section(SECTIONS["threads"], self._threads(rows), 64))
        parts.append(section(SECTIONS["clock"], b"".join(self._clock_entry(*one) for one in self.clocks), 32))
        parts.append(section(SECTIONS["queues"], b"".join(_queue(*one) for one in self.queues), 256))
        for thread in np.unique(rows["thread"]):
            mine = rows[rows["thread"] == thread]
            summed = mine[mine["begin"] >= reset]
            parts.append(section(SECTIONS["cells"], cells(summed), 64, int(thread), self.spare))
            parts.append(section(SECTIONS["partners"], partners(summed), 32, int(thread), self.spare))
            parts += self._event_sections(mine, int(thread))
        parts.append(section(SECTIONS["notes"], b"".join(text(note, 256) for note in self.notes), 256))
        marks = b"".join(struct.pack("<QII", int(self.clock.ticks(at)), what, number) for at, what, number in self.marks)
        parts.append(section(SECTIONS["marks"], marks, 16))
        return parts + self.extra

    def _event_sections(self, rows: NDArray[Any], thread: int) -> list[bytes]:
        if self.kept is not None:
            rows = rows[self.kept(rows)]
        entries = events(rows)
        blocks = range(0, len(entries), self.block)
        parts = [section(SECTIONS["events"], entries[at : at + self.block].tobytes(), 48, thread, self.spare) for at in blocks]
        if self.tail and parts:  # of these the last block was not yet moved out of the tail
            first = blocks[-1]
            parts[0:0] = [section(SECTIONS["tail"], entries[first:].tobytes(), 48, thread, first=first)]
            if not self.copied:
                parts.pop()
        return parts

    def _threads(self, rows: NDArray[Any]) -> bytes:
        entries = []
        for thread in sorted({*np.unique(rows["thread"]).tolist(), *self.inside}):
            function, since = self.inside.get(thread, (NONE16, 0.0))
            begin = int(self.clock.ticks(since)) if function != NONE16 else 0
            calls = int(((rows["thread"] == thread) & (rows["flags"] & PART == 0)).sum())
            name = "main" if thread == 0 else f"worker {thread}"
            entries.append(
                struct.pack(
                    "<IHHQIiQ16s2Q",
                    *(5000 + thread, function, NONE16, begin, 0, -1, calls, text(name, 16)),
                    *(round(self.untimed * calls), 0),
                )
            )
        return b"".join(entries)

    def _clock_entry(self, at_seconds: float, error: float, via: int, at: int) -> bytes:
        reference = round((at_seconds - self.reference_start) * 1e9)
        return struct.pack("<QQQiI", int(self.clock.ticks(at_seconds)), reference, round(error * 1e9), via, at)

    def bytes(self) -> bytes:
        body = b"".join(self.sections())
        return self.header(PAGE + len(body)) + body

    def write(self, folder: Path) -> Path:
        middle = ".nccl" if self.library.startswith("NCCL") else ""
        path = folder / f"rank-{self.pid or 1000 + self.rank}{middle}.trace"
        path.write_bytes(self.bytes())
        return path


def _queue(name: str, unit: str, unavailable: str, samples: int, total: float, least: float, most: float) -> bytes:
    return text(name, 64) + struct.pack("<Qddd", samples, total, least, most) + text(unit, 32) + text(unavailable, 128)


def events(rows: NDArray[Any]) -> NDArray[Any]:
    """Events of calls, a wide one before each that does not fit in 32 bits."""
    spent = rows["end"] - rows["begin"]
    low = np.zeros(len(rows), EVENT)
    for name in EVENT.names or ():
        if name not in ("spent", "sent", "received"):
            low[name] = rows[name]
    high = low.copy()
    high["flags"] |= WIDE
    for name, value in (("spent", spent), ("sent", rows["sent"]), ("received", rows["received"])):
        low[name], high[name] = value & 0xFFFFFFFF, value >> 32
    wide = (spent | rows["sent"] | rows["received"]) >> 32 != 0
    both: NDArray[Any] = np.stack([high, low], axis=1).reshape(-1)
    return both[np.stack([wide, np.ones(len(rows), bool)], axis=1).reshape(-1)]


def cells(rows: NDArray[Any]) -> bytes:
    """The sums of one thread's calls; parts are no calls."""
    rows = rows[rows["flags"] & PART == 0]
    bins = size_bin(np.maximum(rows["sent"], rows["received"]))
    keys = np.stack(
        [rows[name].astype(np.int64) for name in "function communicator datatype op location outcome".split()] + [bins]
    )
    unique, inverse = np.unique(keys, axis=1, return_inverse=True)
    entries = []
    for number, key in enumerate(unique.T.tolist()):
        mine = rows[inverse.reshape(-1) == number]
        function, communicator, datatype, op, location, outcome, size = key
        sums = (len(mine), int(mine["sent"].sum()), int(mine["received"].sum()), int((mine["end"] - mine["begin"]).sum()))
        limits = (int(mine["begin"].min()), int(mine["begin"].max()))
        entries.append(
            struct.pack("<HHHBBBB6x6Q", function, communicator, datatype, op, location, size, outcome, *sums, *limits),
        )
    return b"".join(entries)


def partners(rows: NDArray[Any]) -> bytes:
    rows = rows[rows["direction"] != 0]
    entries = []
    keys = np.stack([rows[name].astype(np.int64) for name in ("communicator", "direction", "partner")], axis=1)
    for communicator, direction, partner in np.unique(keys, axis=0).tolist():
        same = (rows["communicator"] == communicator) & (rows["direction"] == direction) & (rows["partner"] == partner)
        mine = rows[same]
        size = int(mine["sent" if direction in (1, 3) else "received"].sum())
        entries.append(struct.pack("<HHiQQQ", communicator, direction, partner, len(mine), size, 0))
    return b"".join(entries)


def sampled(sequence: NDArray[Any], base: int = 12) -> NDArray[Any]:
    """What mode aggregate keeps: the first 2^base, then about 2^(base-1) of each further octave (docs/trace_format.md)."""
    octave = np.maximum([int(number).bit_length() - base for number in sequence], 0)
    hash_ = sequence.astype(np.uint64) * np.uint64(0x9E3779B1) & np.uint64(0xFFFFFFFF)
    hash_ = (hash_ ^ hash_ >> np.uint64(15)) * np.uint64(0x85EBCA77) & np.uint64(0xFFFFFFFF)
    hash_ ^= hash_ >> np.uint64(13)
    return (octave == 0) | (hash_ >> (32 - octave).astype(np.uint64) == 0)


def write_job(folder: Path, **changes: Any) -> None:
    job = {
        "schema": 1,
        "job_id": "example",
        "command": "mpirun -n 4 python train.py",
        "mpi": "openmpi",
        "launcher": "mpirun",
        "started": "2026-11-22T10:00:00",
        "wall_seconds": 11.5,
        "exit_code": 0,
        "mode": "full",
    }
    (folder / "job.json").write_text(json.dumps(job | changes))


def collective(
    processes: list[Process],
    function: str,
    arrivals: NDArray[Any],
    last_takes: float,
    **columns: Any,
) -> None:
    """One collective per row of `arrivals` (true s, [invocation, process]); all leave `last_takes` after the last one."""
    exits = arrivals.max(axis=1) + last_takes
    for column, process in enumerate(processes):
        process.call(function, arrivals[:, column], exits, **columns)


BUCKETS = (15_600_000, 64 << 20, 27 << 20, 2_100_000)  # bytes of the example's gradients


def make_example(folder: Path, *, ranks: int = 4, iterations: int = 300, mode: int = 2, seed: int = 1) -> list[Process]:
    """A training job of `ranks` on two nodes, some 50 ms per iteration; since the middle the last rank computes 8 ms longer."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    work = 4e-3 + random.random((iterations, ranks)) * 4e-4
    work[iterations // 2 :, -1] += 8e-3
    steps, end = _train(work, random)
    processes = [_example_process(rank, ranks, end, mode) for rank in range(ranks)]
    start = np.array([0.2, 0.3])[:, None] + random.random((2, ranks)) * 2e-3
    parameters = {"datatype": 0, "sent": 64 << 20, "received": 64 << 20, "location": 0, "peer": 0}
    collective(processes, "MPI_Bcast", start, 5e-3, sequence=[0, 1], **parameters)
    sequence = 2 + np.arange(iterations) * 6
    for number, (size, last) in enumerate(_messages()):
        control = {"datatype": 2, "op": 1} if size == 8 else {"datatype": 0, "op": 0}
        columns = control | {"sent": size, "received": size, "location": 0, "outcome": 128 + 2}
        collective(processes, "MPI_Allreduce", steps[number], last, sequence=sequence + number, **columns)
    for process in processes:
        _example_extras(process, ranks, steps[0][:, process.rank], end)
        process.write(folder)
    write_job(folder, mode="full" if mode == 2 else "aggregate", wall_seconds=end + 1.5, cpus={"node0": 2, "node1": 1})
    return processes


def _messages() -> list[tuple[int, float]]:
    """Bytes of an iteration's allreduces, and what each takes once everyone has come."""
    return [(8, 2e-5), (8, 2e-5)] + [(size, 1e-4 + size * 2e-10) for size in BUCKETS]


def _train(work: NDArray[Any], random: np.random.Generator) -> tuple[NDArray[Any], float]:
    """Arrivals [message, iteration, rank] of ranks that compute `work` seconds before the gradients, and the job's end."""
    iterations, ranks = work.shape
    arrivals = np.zeros((len(_messages()), iterations, ranks))
    free = np.full(ranks, 1.0)
    for step in range(iterations):
        for number, (_, last) in enumerate(_messages()):
            pause = 1e-4 + random.random(ranks) * 1e-4
            arrivals[number, step] = free + (6e-3 + pause if number == 0 else work[step] if number == 2 else pause)
            free = np.full(ranks, arrivals[number, step].max() + last)
        free = free + 1e-3
    return arrivals, float(free.max()) + 0.1


def _example_process(rank: int, ranks: int, end: float, mode: int) -> Process:
    node = 0 if rank < (ranks + 1) // 2 else 1
    clock = Clock() if node == 0 else Clock(offset=777_000_000, rate=2.0e9 * (1 + 2e-6))
    process = Process(rank=rank, size=ranks, node=node, clock=clock, finalize=end, mode=mode)
    leader = (ranks + 1) // 2
    via, error = (
        (rank, 0.0) if rank == 0 else (0, 2e-6) if rank == leader else (0 if node == 0 else leader, 0.0 if node == 0 else 2e-6)
    )
    process.clocks = [(0.05, error, via, 0), (end - 0.01, error * 1.5, via, 1)]
    process.communicator(0xC0FFEE, range(ranks), "MPI_COMM_WORLD", nodes=2 if ranks > 1 else 1)
    here = [one for one in range(ranks) if (one < leader) == (node == 0)]
    process.communicator(0xBEEF + node, here, f"split of MPI_COMM_WORLD ({node})", parent=0xC0FFEE)
    if mode == 1:
        collectives = [FUNCTIONS.index(name) for name in ("MPI_Allreduce", "MPI_Bcast", "MPI_Barrier")]
        process.kept = lambda rows: np.isin(rows["function"], collectives) & sampled(rows["sequence"])
    return process


def _example_extras(process: Process, ranks: int, steps: NDArray[Any], end: float) -> None:
    """Point-to-point between neighbours, a second thread, requests, queues, and a collective of the node."""
    right, left = (process.rank + 1) % ranks, (process.rank - 1) % ranks
    numbers = np.arange(len(steps)) + 1
    bytes_ = {"datatype": 3, "location": 0, "tag": 7, "thread": 1}
    start = steps - 5.5e-3
    process.call("MPI_Irecv", start, start + 1e-6, peer=left, request=2 * numbers - 1, received=4096, **bytes_)
    process.call(
        "MPI_Isend",
        start + 2e-6,
        start + 5e-6,
        peer=right,
        request=2 * numbers,
        sent=4096,
        direction="sent",
        partner=right,
        **bytes_,
    )
    process.call("MPI_Waitall", start + 5e-3, start + 5.7e-3, thread=1, communicator=NONE16)
    done = {"flags": PART, "thread": 1, "direction": "received", "partner": left}
    process.call("MPI_Irecv", start + 5e-3, start + 5.7e-3, peer=left, request=2 * numbers - 1, received=4096, **done)
    process.call("MPI_Isend", start + 5e-3, start + 5.7e-3, peer=right, request=2 * numbers, flags=PART, thread=1)
    numbers = np.arange(len(steps))
    process.call("MPI_Barrier", steps - 2e-3, steps - 2e-3 + 1e-5, communicator=1, sequence=numbers, outcome=0)
    process.call("MPI_Init", -0.05, 0.0, communicator=NONE16)
    process.call("MPI_Finalize", end, end + 0.01, communicator=NONE16)
    process.queues = [
        ("pml_ob1_unexpected_msgq_length", "messages", "", 1000, 400.0 + 100 * process.rank, 0.0, 5.0 + process.rank),
        ("time_matching_unexpectedq", "s", "this build of MPICH has no such variable", 0, 0.0, 0.0, 0.0),
    ]
    process.marks = [(float(step), 3, number) for number, step in enumerate(steps)]
