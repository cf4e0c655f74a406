"""Where the ranks of a running, hung or killed job are: which call each thread is in, and who has not come to a collective."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stretto.profile.job import Job, Process, open_job
from stretto.profile.matching import COLLECTIVE, CREATION
from stretto.trace_layout import STAGES
from stretto.wording import duration

if TYPE_CHECKING:
    from collections.abc import Iterable

_NCCL = re.compile(r"nccl(AllReduce|AllGather|ReduceScatter|Broadcast|Bcast|Reduce)")
_POINT_TO_POINT = re.compile(r"MPI_(I?[SBR]?send|I?[SBR]?send_init|Isendrecv|Sendrecv|I?m?recv|I?m?probe)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """A thread of a rank inside a call."""

    library: str
    rank: int
    thread: str
    function: str
    communicator: str  # its label; "" where there is none
    key: tuple[str, int]  # library and identity of the communicator; identity 0: none
    sequence: int
    peer: int  # rank in the communicator; -1: none, -2: any
    since: float  # seconds
    process: int = 0  # index in the job's processes

    @property
    def collective(self) -> bool:
        return self.key[1] != 0 and is_collective(self.function)


@dataclass(frozen=True, slots=True)
class Gathering:
    """A collective that some ranks are in."""

    function: str
    communicator: str
    sequence: int
    size: int
    inside: tuple[int, ...]  # world ranks
    absent: tuple[int, ...]  # members that have not come; () where the members are not known
    since: float  # seconds since the first of those inside came


@dataclass(frozen=True, slots=True)
class Live:
    running: bool  # the job has not ended, as far as can be told here
    places: list[Place]
    gatherings: list[Gathering]
    elsewhere: dict[int, str]  # what absent ranks do instead
    unseen: tuple[int, ...]  # ranks without a trace
    end_unknown: bool = False  # it may run elsewhere


def look(folder: Path) -> Live:
    """StrettoError: the folder cannot be read or holds no trace."""
    job = open_job(folder)
    places = [place for number, process in enumerate(job.processes) for place in _places(number, process)]
    gatherings = _gatherings(job, places)
    absent = {rank for one in gatherings for rank in one.absent}
    return Live(job.runs, places, gatherings, _elsewhere(job, places, absent), tuple(job.missing), job.end_unknown)


def _places(number: int, process: Process) -> Iterable[Place]:
    trace = process.trace
    if trace.header.stage == STAGES.index("finalized"):
        return
    for entry, name in zip(trace.threads, trace.thread_names, strict=True):
        function, communicator = int(entry["function"]), int(entry["communicator"])
        if function >= len(trace.functions):
            continue
        known = communicator < len(trace.communicators)
        yield Place(
            library=process.library,
            rank=process.rank,
            thread=name,
            function=trace.functions[function],
            communicator=process.labels[communicator] if known else "",
            key=(process.library, trace.communicators[communicator].identity if known else 0),
            sequence=int(entry["sequence"]),
            peer=int(entry["peer"]),
            since=max(0.0, (process.until - int(entry["begin_ticks"])) * process.line.tick),
            process=number,
        )


def is_collective(function: str) -> bool:
    return bool(COLLECTIVE.fullmatch(function) or CREATION.fullmatch(function) or _NCCL.fullmatch(function))


def _gatherings(job: Job, places: list[Place]) -> list[Gathering]:
    """The collectives with somebody inside, those that somebody is missing from first, the longest waiting first."""
    met: dict[tuple[tuple[str, int], int], list[Place]] = {}
    for place in places:
        if place.collective:
            met.setdefault((place.key, place.sequence), []).append(place)
    found = []
    for (key, sequence), inside in met.items():
        group = job.groups.get(key)
        ranks = {place.rank for place in inside}
        candidates = set(group.members if group else ()) - ranks
        absent = tuple(sorted(rank for rank in candidates if not _has_come(job, key, sequence, rank)))
        longest = max(place.since for place in inside)
        functions = " / ".join(sorted({place.function for place in inside}))
        size = group.size if group else 0
        found.append(Gathering(functions, inside[0].communicator, sequence, size, tuple(sorted(ranks)), absent, longest))
    return sorted(found, key=lambda one: (not one.absent, -one.since, one.communicator))


def _has_come(job: Job, key: tuple[str, int], sequence: int, rank: int) -> bool:
    """Whether a rank that is not in the collective has been in it; one without a trace has not, as far as is known."""
    mine = [one for one in job.processes if (one.library, one.rank) == (key[0], rank)]
    return any(_last_begun(one, key[1]) >= sequence for one in mine)


def _last_begun(process: Process, identity: int) -> int:
    """The highest number of a collective on the communicator that the process has begun, as far as is known; -1: none.

    MPI's processes count them; of NCCL's it is known from where their threads are, and from the number of calls in the sums.
    """
    trace = process.trace
    indices = [place for place, one in enumerate(trace.communicators) if one.identity == identity]
    collective = np.flatnonzero([is_collective(name) for name in trace.functions])
    threads, cells = trace.threads, trace.cells
    in_it = threads[np.isin(threads["communicator"], indices) & np.isin(threads["function"], collective)]
    summed = cells[np.isin(cells["communicator"], indices) & np.isin(cells["function"], collective)]
    begun = max((trace.communicators[one].collectives for one in indices), default=0) or int(summed["calls"].sum())
    return max(begun - 1, int(in_it["sequence"].max()) if len(in_it) else -1)


def _elsewhere(job: Job, places: list[Place], absent: set[int]) -> dict[int, str]:
    """What the ranks do that others wait for."""
    found = {}
    for rank in sorted(absent)[:256]:
        mine = [place for place in places if place.rank == rank]
        if mine:
            found[rank] = "; ".join(describe(place) for place in mine[:4])
        elif rank in job.missing:
            found[rank] = "left no trace"
        elif rank in job.unread:
            found[rank] = "left a trace that cannot be read"
        else:
            stages = [one.trace.header.stage for one in job.processes if one.rank == rank]
            ended = STAGES.index("finalized") in stages
            found[rank] = "has called MPI_Finalize" if ended else "in no call: in the program's own code, or gone"
    return found


def describe(place: Place) -> str:
    """ "in MPI_Recv from 3 on MPI_COMM_WORLD for 12.5 s"."""
    where = f" on {place.communicator}" if place.communicator else ""
    if is_collective(place.function) and place.key[1]:
        where = f" number {place.sequence}{where}"
    elif place.peer == -2:
        where = f" from any rank{where}"
    elif place.peer >= 0 and _POINT_TO_POINT.match(place.function):
        receives = re.search("recv|probe", place.function, re.IGNORECASE)
        where = f" {'from' if receives and 'Send' not in place.function else 'with'} {place.peer}{where}"
    return f"in {place.function}{where} for {duration(place.since)}"
