"""Finds the events of all members that belong to one collective: by the communicator's identity and the sequence number.

Each member's events come in blocks; what is complete up to the slowest member is handed on, as matrices of arrivals and exits.
An invocation of which a member's event is missing (dropped, not sampled, its rank killed) is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stretto.profile.figures import Figures, figures, present
from stretto.profile.job import Group, Job
from stretto.profile.scan import Block
from stretto.trace_layout import PART

Array = NDArray[Any]

COLLECTIVE = re.compile(
    r"(?i)MPI_(I?neighbor_|I)?(barrier|bcast|reduce|allreduce|gatherv?|scatterv?|allgatherv?|alltoall[vw]?"
    r"|reduce_scatter(_block)?|scan|exscan)(_c)?"
    r"|nccl(AllReduce|Broadcast|Bcast|Reduce|AllGather|ReduceScatter|AllToAll|Gather|Scatter)"
)
CREATION = re.compile(  # what draws a number too, as it is collective over its communicator (makes_collectively)
    r"(?i)MPI_(Comm_(i?dup(_with_info)?|split(_type)?|create)|Cart_(create|sub)|Graph_create|Dist_graph_create(_adjacent)?"
    r"|Intercomm_(create|merge)|Win_(create(_dynamic)?|allocate(_shared)?))(_c)?"
)
PERSISTENT = re.compile(r"(MPI_\w+)_init(_c)?")  # a part of MPI_Start or MPI_Startall
MOST_PENDING = 1 << 23  # events of one communicator that wait for those of other members

# Mode aggregate keeps the first 2^base collectives of a communicator and about 2^(base-1) of each further octave of their
# numbers, chosen by a hash, with a base that depends on the communicator's index in its process (docs/trace_format.md).
SAMPLING = ((8, 12), (64, 8), (1 << 16, 4))
PENDING = np.dtype([("sequence", "i8"), ("begin", "f8"), ("end", "f8"), ("bytes", "i8"), ("function", "i4")])


@dataclass(frozen=True, slots=True)
class Matched:
    """Invocations on one communicator, in order; matrices are [member, invocation], members as in `group.members`."""

    group: Group
    sequence: Array
    function: Array  # number in the matcher's `functions`
    sizes: Array  # the larger of what a member sends and receives, in bytes; a matrix too
    bytes: Array  # the most of any member
    arrival: Array  # seconds of the job
    exit: Array
    weight: Array  # how many invocations each stands for: 1 where all are recorded
    figures: Figures


class Sink(Protocol):
    def matched(self, some: Matched) -> None: ...


@dataclass(slots=True)
class _Waiting:
    """One communicator's events that are not matched yet."""

    group: Group
    processes: list[int]  # of the members, in their order
    parts: dict[int, list[Array]] = field(default_factory=dict)  # by process
    held: int = 0
    safe: dict[int, int] = field(default_factory=dict)  # by process: nothing below this number is still to come
    done: int = 0  # numbers below it were handed on


class Matcher:
    """A consumer of blocks that hands matched invocations to `sinks`."""

    def __init__(self, job: Job, sinks: list[Sink]) -> None:
        self.sinks = sinks
        self.job = job
        self.functions: list[str] = []
        self.lost = 0  # events given up because another member's never came
        self.different = 0  # invocations in which members called different functions
        self._numbers: dict[str, int] = {}
        self._function_of = [self._function_table(process.trace.functions) for process in job.processes]
        self._persistent = [self._persistent_table(process.trace.functions) for process in job.processes]
        self._waiting: list[_Waiting] = []
        self._base: dict[tuple[str, int], int] = {}  # of communicators of which a sample was recorded
        if job.mode == "aggregate":
            self._find_bases()
        self._group_of = self._group_tables()
        self._of_process: list[set[int]] = [set() for _ in job.processes]

    def _function_table(self, names: list[str]) -> Array:
        """A process's function index -> number of the collective; -1: no collective."""
        table = np.full(len(names) + 1, -1, np.int32)
        for index, name in enumerate(names):
            persistent = PERSISTENT.fullmatch(name)
            if COLLECTIVE.fullmatch(persistent[1] if persistent else name):
                table[index] = self._numbers.setdefault(name, len(self._numbers))
        self.functions = list(self._numbers)
        return table

    def _persistent_table(self, names: list[str]) -> Array:
        return np.array([PERSISTENT.fullmatch(name) is not None for name in names] + [False])

    def _group_tables(self) -> list[Array]:
        """Each process's communicator index -> number in `_waiting`; -1: its members cannot all be had."""
        place = {(process.library, process.rank): number for number, process in enumerate(self.job.processes)}
        numbers: dict[tuple[str, int], int] = {}
        for key, group in self.job.groups.items():
            if len(group.members) > 1 and all((group.library, rank) in place for rank in group.members):
                numbers[key] = len(self._waiting)
                self._waiting.append(_Waiting(group, [place[group.library, rank] for rank in group.members]))
        return [
            np.array([numbers.get((process.library, one.identity), -1) for one in process.trace.communicators] + [-1], np.int32)
            for process in self.job.processes
        ]

    def _find_bases(self) -> None:
        """The least base of any member: what all have recorded."""
        for process in self.job.processes:
            for index, one in enumerate(process.trace.communicators):
                base = next(base for below, base in SAMPLING if index < below)
                key = (process.library, one.identity)
                self._base[key] = min(base, self._base.get(key, base))

    def _weights(self, group: Group, sequence: Array) -> Array:
        base = self._base.get((group.library, group.identity))
        if base is None:
            return np.ones(len(sequence))
        octave = np.frexp(sequence.astype(np.float64))[1] - base  # frexp: the number of binary digits
        return np.asarray(np.ldexp(1.0, np.maximum(octave, 0)))

    def take(self, block: Block) -> None:
        functions, groups = self._function_of[block.process], self._group_of[block.process]
        function = functions[np.minimum(block.rows["function"], len(functions) - 1)]
        group = groups[np.minimum(block.rows["communicator"], len(groups) - 1)]
        started = (block.rows["flags"] & PART != 0) & (block.rows["partitions"] == 1)
        called = block.rows["flags"] & PART == 0
        persistent = self._persistent[block.process][np.minimum(block.rows["function"], len(functions) - 1)]
        wanted = (function >= 0) & (group >= 0) & np.where(persistent, started, called)
        if not wanted.any():
            return
        chosen = slice(None) if wanted.all() else wanted
        rows = np.empty(int(wanted.sum()), PENDING)
        rows["sequence"], rows["function"] = block.rows["sequence"][chosen], function[chosen]
        rows["begin"], rows["end"] = block.begin[chosen], block.end[chosen]
        rows["bytes"] = np.maximum(block.sent[chosen], block.received[chosen])
        group = group[chosen]
        for number in present(group):
            mine = rows if (group == number).all() else rows[group == number]
            waiting = self._waiting[number]
            waiting.parts.setdefault(block.process, []).append(mine)
            waiting.held += len(mine)
            for process in waiting.processes:
                self._of_process[process].add(number)

    def settle(self, process: int, reached: Array) -> None:
        for number in list(self._of_process[process]):
            waiting = self._waiting[number]
            self._advance(waiting, process, float(reached[process]))
            self._match(waiting, reached)
            if waiting.held > MOST_PENDING:
                self._give_up(waiting)

    def _advance(self, waiting: _Waiting, process: int, reached: float) -> None:
        """What began before `reached` is complete."""
        for part in waiting.parts.get(process, [])[-8:]:
            complete = part["sequence"][part["begin"] <= reached]
            if len(complete):
                waiting.safe[process] = max(waiting.safe.get(process, 0), int(complete.max()) + 1)

    def _match(self, waiting: _Waiting, reached: Array) -> None:
        ended = reached == np.inf
        below = min(1 << 62 if ended[process] else waiting.safe.get(process, 0) for process in waiting.processes)
        if below <= waiting.done or not waiting.held:
            return
        waiting.done = below if below < 1 << 62 else waiting.done
        columns = [self._below(waiting, process, below) for process in waiting.processes]
        if any(not len(rows) for rows in columns):
            self.lost += sum(map(len, columns))
            return
        first = columns[0]["sequence"]
        if not all(len(rows) == len(first) and (rows["sequence"] == first).all() for rows in columns[1:]):
            columns = self._common(columns)
        if len(columns[0]):
            self._hand_on(waiting.group, columns)

    def _below(self, waiting: _Waiting, process: int, below: int) -> Array:
        """Takes a process's rows with smaller sequence numbers out, sorted, without repetitions."""
        parts = waiting.parts.pop(process, [])
        rows = np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else np.zeros(0, PENDING)
        complete = rows["sequence"] < below
        if not complete.all():
            waiting.parts[process] = [rows[~complete]]
            rows = rows[complete]
        waiting.held -= len(rows)
        steps = np.diff(rows["sequence"])
        if len(steps) and steps.min() <= 0:
            _, index, counts = np.unique(rows["sequence"], return_index=True, return_counts=True)
            self.lost += int(counts[counts > 1].sum())
            rows = rows[index[counts == 1]]
        return rows

    def _common(self, columns: list[Array]) -> list[Array]:
        """The rows whose sequence numbers all members have."""
        numbers, counts = np.unique(np.concatenate([rows["sequence"] for rows in columns]), return_counts=True)
        everywhere = numbers[counts == len(columns)]
        kept = [rows[np.searchsorted(rows["sequence"], everywhere)] for rows in columns]
        self.lost += sum(map(len, columns)) - sum(map(len, kept))
        return kept

    def _hand_on(self, group: Group, columns: list[Array]) -> None:
        function = columns[0]["function"]
        same = np.ones(len(function), bool)
        for rows in columns[1:]:
            same &= rows["function"] == function
        if not same.all():
            self.different += int((~same).sum())
            columns = [rows[same] for rows in columns]
        arrival, exit_, sizes = (np.stack([rows[name] for rows in columns]) for name in ("begin", "end", "bytes"))
        sequence, function = columns[0]["sequence"], columns[0]["function"]
        weight = self._weights(group, sequence)
        some = Matched(group, sequence, function, sizes, sizes.max(axis=0), arrival, exit_, weight, figures(arrival, exit_))
        if len(some.sequence):
            for sink in self.sinks:
                sink.matched(some)

    def _give_up(self, waiting: _Waiting) -> None:
        """A member's events do not come: the older half of the others' is given up, so that memory stays bounded."""
        for process, parts in waiting.parts.items():
            rows = np.concatenate(parts)
            kept = rows[len(rows) // 2 :]
            self.lost += len(rows) - len(kept)
            waiting.held -= len(rows) - len(kept)
            waiting.parts[process] = [kept]
