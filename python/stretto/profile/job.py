"""A profile folder opened: the ranks' traces on one time line, with what the folder says about the job."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto import running
from stretto import trace as traces
from stretto.errors import StrettoError
from stretto.files import read_bytes
from stretto.profile.clocks import Timeline, timelines
from stretto.trace import Trace
from stretto.trace_layout import KERNEL, MODES, NONE16, PART, STAGES
from stretto.trace_sections import TraceError

LONGEST_CALL = 30 * 86400.0  # seconds; a live job's file that is older is none
WRONG_CLOCK = 60.0  # seconds that the wall clocks of two hosts may be apart
MOST_ALIKE = 8  # communicators of one name that are told apart; more share one label
_RESET = 2  # of marks
_JOB_BYTES = 1 << 20  # of job.json that are read
_NESTED = re.compile(r"(duplicate of ){2,}")  # frameworks copy copies: their numbers tell them apart


@dataclass(slots=True)
class Process:
    """One process and library; what is recorded of it is from `begin` to `end`, seconds of the job (0: the first rank left
    MPI_Init)."""

    trace: Trace
    library: str  # "MPI" or "NCCL"
    rank: int
    line: Timeline
    began: float = 0.0  # where nothing was reset, `begin`
    begin: float = 0.0
    end: float = 0.0
    reset: int = 0  # ticks of the last MPI_Pcontrol(2); 0: none
    now: int | None = None  # ticks, where it still runs here
    until: int = 0  # ticks: the last moment of which something is known
    labels: list[str] = field(default_factory=list)  # of its communicators, by index

    @property
    def run_time(self) -> float:
        return max(0.0, self.end - self.begin)

    @property
    def node(self) -> int:
        return self.trace.header.node

    def calls(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of its events are calls: neither parts of one nor kernels."""
        kernels = [index for index, name in enumerate(self.trace.functions) if name.startswith(KERNEL)]
        called: NDArray[np.bool_] = (rows["flags"] & PART == 0) & ~np.isin(rows["function"], kernels)
        return called

    def inside(self) -> NDArray[Any]:
        """Entries of the threads that are in a call, or were in one when the process was killed."""
        threads, ended = self.trace.threads, self.trace.header.stage == STAGES.index("finalized")
        return threads[threads["function"] < (0 if ended else len(self.trace.functions))]


@dataclass(frozen=True, slots=True)
class Group:
    """A communicator of the job, as its members see it together."""

    library: str
    identity: int
    label: str
    name: str
    parent: int
    size: int  # of both groups where there are two
    nodes: int  # 0: unknown
    inter: bool  # an intercommunicator
    members: tuple[int, ...]  # world ranks in increasing order; () where unknown


@dataclass(frozen=True, slots=True)
class Damage:
    """A trace that is there and cannot be read, or not wholly."""

    rank: int  # -1: the file does not tell
    why: str
    whole: bool  # nothing of it could be read


@dataclass(slots=True)
class Job:
    folder: Path
    facts: dict[str, Any]  # job.json
    processes: list[Process]
    problems: list[str]
    groups: dict[tuple[str, int], Group]  # by library and identity
    mode: str
    world_size: int
    damage: list[Damage]
    facts_lost: str  # why job.json could not be read; "" where it could, or is not there
    runs: bool  # it has not ended, as far as can be told here

    def text(self, key: str) -> str:
        value = self.facts.get(key)
        return value if isinstance(value, str) else " ".join(map(str, value)) if isinstance(value, list) else ""

    def number(self, key: str) -> float:
        value = self.facts.get(key)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0

    @property
    def end_unknown(self) -> bool:
        """Whether ranks are without an end, and nothing tells of the job's: `stretto profile` was killed, or runs elsewhere."""
        unfinished = any(process.trace.header.stage != STAGES.index("finalized") for process in self.processes)
        return bool(self.facts) and unfinished and not self.runs and self.facts.get("exit_code") is None

    @property
    def mpi(self) -> list[Process]:
        return [process for process in self.processes if process.library == "MPI"]

    @property
    def run_time(self) -> float:
        """All ranks' run time together, in seconds."""
        return sum(process.run_time for process in (self.mpi or self.processes))

    @property
    def missing(self) -> list[int]:
        """World ranks whose trace is not there."""
        unread = set(self.unread)
        return [rank for rank in self._unseen() if rank not in unread]

    @property
    def unread(self) -> list[int]:
        """World ranks of whose trace nothing could be read; where a file does not tell its rank, all that it may be of."""
        lost = {one.rank for one in self.damage if one.whole}
        return [rank for rank in self._unseen() if rank in lost or -1 in lost]

    def _unseen(self) -> list[int]:
        there = {process.rank for process in self.processes}
        return [rank for rank in range(min(self.world_size, 1 << 20)) if rank not in there]

    def clock_error(self, members: Iterable[int]) -> float:
        """Bound of the error of a difference between two of these ranks' times: the two largest of different nodes together."""
        worst: dict[int, float] = {}
        wanted = set(members)
        for process in self.processes:
            if process.rank in wanted or not wanted:
                worst[process.node] = max(worst.get(process.node, 0.0), process.line.error)
        return sum(sorted(worst.values())[-2:]) if len(worst) > 1 else 0.0


def cpus_of_hosts(job: Job) -> dict[str, int]:
    """On how many CPUs a host's ranks may run together; of hosts whose ranks do not tell, what job.json says."""
    said = job.facts.get("cpus")
    found = {host: number for host, number in said.items() if isinstance(number, int)} if isinstance(said, dict) else {}
    masks: dict[str, int] = {}
    for process in job.mpi:
        masks[process.trace.header.host] = masks.get(process.trace.header.host, 0) | process.trace.header.cpus
    return found | {host: mask.bit_count() for host, mask in masks.items() if mask}


def open_job(folder: Path) -> Job:
    """StrettoError: the folder cannot be read or holds no trace at all."""
    problems: list[str] = []
    found, damage = _read_all(folder, problems)
    ranks = _ranks(found, problems)
    lines = timelines([trace for trace, _, _ in ranks], problems)
    processes = [Process(trace, library, rank, line) for (trace, library, rank), line in zip(ranks, lines, strict=True)]
    facts, facts_lost = _facts(folder)
    problems += [f"job.json cannot be read: {facts_lost}"] if facts_lost else []
    runs = _place(processes, facts)
    groups = _groups(processes)
    sizes = [process.trace.header.world_size for process in processes]
    modes = {process.trace.header.mode for process in processes}
    mode = MODES[min(max(modes, default=0), 2)]
    job = Job(folder, facts, processes, problems, groups, mode, max(sizes, default=0), damage, facts_lost, runs)
    if job.missing:
        missing = job.missing
        named = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
        problems.append(f"{len(missing)} of {job.world_size} ranks left no trace that can be read: {named}")
    return job


def _read_all(folder: Path, problems: list[str]) -> tuple[list[Trace], list[Damage]]:
    try:
        paths = sorted(path for path in folder.iterdir() if path.name.startswith("rank-") and path.suffix == ".trace")
    except OSError as error:
        raise StrettoError(f"{folder}: {error.strerror}") from None
    if not paths:
        raise StrettoError(f"{folder}: no traces here (rank-*.trace); `stretto profile -o DIR -- ...` makes them")
    found: list[Trace] = []
    damage = []
    for path in paths:
        try:
            found.append(traces.read(path))
        except TraceError as error:
            problems.append(str(error))
            damage.append(Damage(traces.rank_of(path), str(error).replace(f"{path}:", f"{path.name}:"), True))
            continue
        if found[-1].damaged:
            damage.append(Damage(found[-1].header.world_rank, f"{path.name}: {found[-1].problems[0]}", False))
        problems += [f"{path.name}: {problem}" for problem in found[-1].problems[:10]]
        if len(found[-1].problems) > 10:
            problems.append(f"{path.name}: and {len(found[-1].problems) - 10} more of that kind")
    if not found:
        raise StrettoError(f"{folder}: none of its {len(paths)} traces can be read: {problems[0]}")
    return found, damage


def _facts(folder: Path) -> tuple[dict[str, Any], str]:
    """What job.json says, and why nothing could be read of it."""
    try:
        facts = json.loads(read_bytes(folder / "job.json", _JOB_BYTES))
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError, RecursionError) as error:
        return {}, str(error)
    return (facts, "") if isinstance(facts, dict) else ({}, "it holds no names with values")


def _ranks(found: list[Trace], problems: list[str]) -> list[tuple[Trace, str, int]]:
    """One trace per library and rank, in that order."""
    by_pid = {(one.header.host, one.header.pid): one.header.world_rank for one in found if _library(one) == "MPI"}
    chosen: dict[tuple[str, int], Trace] = {}
    outside = spawned = 0
    for one in sorted(found, key=_calls, reverse=True):
        rank, library = one.header.world_rank, _library(one)
        if rank < 0:
            rank = by_pid.get((one.header.host, one.header.pid), -1)
        if rank < 0 and one.header.init_ticks:
            spawned += 1
        elif rank < 0:
            outside += 1
        elif (library, rank) in chosen:
            problems.append(f"{one.path.name}: a second trace of rank {rank}, left out")
        else:
            chosen[library, rank] = one
    if spawned:
        problems.append(f"{spawned} processes of worlds that the program made (MPI_Comm_spawn), left out")
    if outside:
        problems.append(f"{outside} processes that never got as far as the end of MPI_Init")
    return [(one, library, rank) for (library, rank), one in sorted(chosen.items(), key=lambda item: item[0])]


def _library(one: Trace) -> str:
    return "NCCL" if one.header.library.startswith("NCCL") else "MPI"


def _calls(one: Trace) -> int:
    return int(one.cells["calls"].astype(np.float64).sum()) + one.event_count()


def _place(processes: list[Process], facts: dict[str, Any]) -> bool:
    """Sets the origin of the line, and each process's run time on it; of processes that may still run, up to now. Whether the
    job runs: a folder that was left behind or copied looks as if it did, so `stretto` or a rank must live here."""
    end, open_ended = _times_of_job(facts), facts.get("exit_code") is None
    for process in processes:
        process.now = now_ticks(process) if open_ended else None
    live = open_ended and (running.is_alive(facts) or any(process.now for process in processes))
    finished = [process.trace.header.stage == STAGES.index("finalized") for process in processes]
    failed = bool(facts.get("exit_code")) and not any(finished)
    for process, ended in zip(processes, finished, strict=True):
        header = process.trace.header
        process.began = process.line.at(header.init_ticks or header.start_ticks)
        process.reset = _newest_reset(process.trace)
        process.begin = max(process.began, process.line.at(process.reset)) if process.reset else process.began
        process.until = header.finalize_ticks if ended else process.now or _last_seen(process, end, live, failed)
        process.end = max(process.begin, process.line.at(header.finalize_ticks or process.until))
    origin = min((process.began for process in processes), default=0.0)
    for process in processes:
        process.line = process.line.moved(-origin)
        process.begin, process.end = process.begin - origin, process.end - origin
    return live


def _newest_reset(trace: Trace) -> int:
    """Ticks of the last MPI_Pcontrol(2), from which on the sums are; 0: there was none."""
    resets = trace.marks["ticks"][trace.marks["what"] == _RESET]
    return int(resets.max()) if len(resets) else 0


def _times_of_job(facts: dict[str, Any]) -> tuple[float, float] | None:
    """When the job began and ended, in seconds since 1970; None: job.json does not say."""
    wall = facts.get("wall_seconds")
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        if wall and 0 < float(wall) < 1e9:
            began = datetime.datetime.fromisoformat(str(facts.get("started"))).timestamp()
            return began, began + float(wall)
    return None


def _ticks_at(process: Process, seconds: float) -> int:
    """A moment in seconds since 1970 on the process's clock: no earlier than what is known of it."""
    header, newest = process.trace.header, newest_ticks(process.trace)
    if not process.line.tick:
        return newest
    since = min(max(seconds - header.start_realtime_ns * 1e-9, 0.0), 1e9)
    return max(newest, header.start_ticks + round(since / process.line.tick))


def _last_seen(process: Process, job: tuple[float, float] | None, live: bool, failed: bool) -> int:
    """Of a process without an end that is not on this machine, or is no more: what is in a call is taken to be in it up to now,
    or to have been in it up to the job's end; up to which all have lived where the job failed with none that finished."""
    header = process.trace.header
    if not (failed or len(process.inside())) or (live and header.host == socket.gethostname()):
        return newest_ticks(process.trace)
    began, now = header.start_realtime_ns * 1e-9, time.time()
    if live and now - LONGEST_CALL <= began <= now + WRONG_CLOCK:
        return _ticks_at(process, now)
    if not live and job and job[0] - WRONG_CLOCK <= began <= job[1]:
        return _ticks_at(process, job[1])
    return newest_ticks(process.trace)


def newest_ticks(trace: Trace) -> int:
    """The last moment that a trace without an end knows of."""
    cells, threads = trace.cells, trace.threads[trace.threads["function"] != NONE16]
    known = [trace.header.last_ticks, trace.header.start_ticks]
    known += [int(one.max()) for one in (cells["last_ticks"], threads["begin_ticks"], trace.marks["ticks"]) if len(one)]
    sane = [ticks for ticks in known if ticks - trace.header.start_ticks < 1 << 60]
    return max(sane)


def now_ticks(process: Process) -> int | None:
    """This moment on the clock of a process that lives on this machine; None where it does not."""
    header = process.trace.header
    if header.host != socket.gethostname() or header.stage == STAGES.index("finalized"):
        return None
    rate = header.seconds_per_tick()
    if not rate or header.pid == os.getpid() or not running.began_by(header.pid, header.start_realtime_ns * 1e-9 + WRONG_CLOCK):
        return None
    return header.start_ticks + round((time.monotonic_ns() - header.start_ns) * 1e-9 / rate)


def _groups(processes: list[Process]) -> dict[tuple[str, int], Group]:
    """The job's communicators, and each process's labels for its own."""
    seen: dict[tuple[str, int], traces.Communicator] = {}
    for process in processes:
        for one in process.trace.communicators:
            seen.setdefault((process.library, one.identity), one)
    alike: dict[tuple[str, str], list[int]] = {}
    for (library, identity), one in seen.items():
        alike.setdefault((library, _NESTED.sub("duplicate of ", one.name) or "unnamed"), []).append(identity)
    labels = {}
    for (library, name), identities in alike.items():
        for number, identity in enumerate(identities, 1):
            labels[library, identity] = _label(name, number, len(identities))
    for process in processes:
        process.labels = [labels[process.library, one.identity] for one in process.trace.communicators]
    told = _members_of_nccl(processes)
    members = {key: told[key[1]] if key[0] == "NCCL" else one.members for key, one in seen.items()}
    return {key: _group(key, labels[key], one, members[key]) for key, one in seen.items()}


def _label(name: str, number: int, of: int) -> str:
    if of == 1:
        return name
    return f"{name} #{number}" if of <= MOST_ALIKE else f"{name} ({of} of them)"


def _members_of_nccl(processes: list[Process]) -> dict[int, NDArray[Any]]:
    """World ranks by identity, as all members tell together: NCCL knows none, and each may name itself alone. What one says of
    others may be a guess. Where two claim the same place, two communicators have one identity, and nothing is known."""
    first: dict[int, NDArray[Any]] = {}
    own: dict[int, NDArray[Any]] = {}
    for process in processes:
        for one in process.trace.communicators if process.library == "NCCL" else ():
            guess = first.setdefault(one.identity, one.members)
            places = own.setdefault(one.identity, np.full(len(guess), -1))
            if not 0 <= one.rank < len(places) or places[one.rank] not in (-1, process.rank):
                first[one.identity] = own[one.identity] = guess[:0]
            else:
                places[one.rank] = process.rank
    return {identity: np.where(places < 0, first[identity], places) for identity, places in own.items()}


def _group(key: tuple[str, int], label: str, one: traces.Communicator, told: NDArray[Any]) -> Group:
    members = np.unique(told)
    whole = len(members) == one.size + one.remote_size and (not len(members) or members[0] >= 0)
    named = tuple(members.tolist()) if whole else ()
    inter = one.remote_size > 0
    return Group(key[0], key[1], label, one.name or "unnamed", one.parent, one.size + one.remote_size, one.nodes, inter, named)
