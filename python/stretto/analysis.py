"""From the records of a job's ranks to its summary: totals per collective and per function, and who is missing."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from stretto import record

SCHEMA = 1  # of the JSON forms; docs/commands.md describes them
_COLLECTIVE = re.compile(
    r"MPI_(Ineighbor_|Neighbor_|I)?"
    r"(barrier|bcast|reduce|allreduce|gatherv?|scatterv?|allgatherv?|alltoall[vw]?|reduce_scatter(_block)?|scan|exscan)"
    r"(_init)?(_c)?",
    re.IGNORECASE,
)
# Calls that last as long as starting and ending a job does: no communication of the program.
LIFE = re.compile(r"MPI_(Init|Init_thread|Finalize|Abort|Session_init|Session_finalize)")


@dataclass(slots=True)
class Rank:
    """One rank: how far it came, and its time in MPI between MPI_Init and MPI_Finalize."""

    rank: int
    pid: int
    state: str
    accelerating: bool
    verdict: str
    host: str
    mpi_library: str
    mpi_seconds: float
    collective_seconds: float
    running_seconds: float  # from the end of MPI_Init to the begin of MPI_Finalize, or to the rank's end; 0: not known

    @property
    def finished(self) -> bool:
        return self.state == "finalized"


@dataclass(slots=True)
class Collective:
    """One kind of collective, added up over the ranks."""

    calls: int = 0
    accelerated_calls: int = 0
    bytes: int = 0
    seconds: float = 0.0
    algorithms: dict[str, int] = field(default_factory=dict)
    declines: dict[str, int] = field(default_factory=dict)

    @property
    def accelerated_share(self) -> float:
        return self.accelerated_calls / self.calls if self.calls else 0.0


@dataclass(slots=True)
class Function:
    calls: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Arrival:
    """How the ranks of one communicator on one node came to the collectives that were compared. Times in seconds."""

    host: str
    ranks: list[int]  # of the world, by their rank in the communicator, as far as they left a record
    calls: int  # collectives compared, by the rank that compared most
    mean_spread: float  # last arrival less first
    most_spread: float
    repeated: float  # share in which the last one was the same as in the one compared before
    last: dict[int, float]  # rank of the world -> share in which it was the last
    behind: dict[int, float]  # rank of the world -> how long it came after the first, on average

    @property
    def usual_last(self) -> int:
        return max(self.last, key=lambda rank: self.last[rank])


@dataclass(frozen=True, slots=True)
class Turn:
    """Of STRETTO_TURNS, as one rank saw it."""

    seconds: float
    mpi_seconds: float  # of them, in MPI calls
    bytes: int  # that it contributed to collectives meanwhile


@dataclass(slots=True)
class Summary:
    """A job's summary; the totals are sums over its ranks."""

    ranks: list[Rank] = field(default_factory=list)
    collectives: dict[str, Collective] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    arrivals: list[Arrival] = field(default_factory=list)  # the largest spread in all first
    turn_calls: int = 0  # collectives in a turn of STRETTO_TURNS; 0: no turns were taken
    turns: list[list[Turn]] = field(default_factory=list)  # per rank that took any
    processes: int = 0  # that left a record, ranks or not
    refusals: list[str] = field(default_factory=list)  # why processes that are no ranks went on without Stretto, in words
    world_size: int = 0  # 0 where no rank came as far as MPI_Init, or where several jobs' ranks are mixed
    missing: list[int] = field(default_factory=list)  # ranks of the world without a record
    problems: list[str] = field(default_factory=list)  # records that could not be read, or not wholly

    @property
    def calls(self) -> int:
        return sum(function.calls for function in self.functions.values())

    @property
    def mpi_seconds(self) -> float:
        return sum(rank.mpi_seconds for rank in self.ranks)

    @property
    def collective_seconds(self) -> float:
        return sum(rank.collective_seconds for rank in self.ranks)

    @property
    def mpi_share(self) -> float:
        """Of the ranks' time between MPI_Init and MPI_Finalize, the part spent in MPI calls; 0 where it is not known.

        Threads may be in MPI at the same time, so that their sum is more than their rank's time: that is all of it, no more.
        """
        known = [rank for rank in self.ranks if rank.running_seconds > 0]
        running = sum(rank.running_seconds for rank in known)
        return sum(min(rank.mpi_seconds, rank.running_seconds) for rank in known) / running if running > 0 else 0.0


def read_folder(folder: Path) -> tuple[list[record.Record], list[str]]:
    """All records in a folder, and one line for each that could not be read wholly."""
    records, problems = [], []
    for path in sorted(folder.glob("*.record")):
        try:
            found = record.read(path)
        except record.RecordError as error:
            problems.append(str(error))
            continue
        records.append(found)
        if found.problem:
            problems.append(f"{path}: {found.problem}")
    return records, problems


def summarise(records: Iterable[record.Record], problems: Iterable[str] = (), end_ns: int = 0) -> Summary:
    """The job's summary. `end_ns`: when the job was over, on this machine's monotonic clock, for ranks that were killed.

    Processes that loaded Stretto but never came to MPI_Init (a shell between launcher and program, say) are no ranks.
    """
    all_records = list(records)
    ranks = sorted((r for r in all_records if r.world_rank >= 0), key=lambda r: (r.world_rank, r.pid))
    summary = Summary(processes=len(all_records), problems=list(problems))
    summary.refusals = list(dict.fromkeys(r.verdict for r in all_records if r.world_rank < 0 and r.verdict))
    if any("MPI_Session_init" in r.functions for r in all_records if r.world_rank < 0):
        summary.refusals.append("the program uses MPI sessions without MPI_Init, and its calls are left to MPI")
    # Clocks of one machine tick alike: a rank killed before its second clock reading borrows the others' rate.
    rates = [rate for rate in (r.seconds_per_tick() for r in all_records) if rate > 0]
    common_rate = median(rates) if rates else 0.0
    for one in ranks:
        _add(summary, one, one.seconds_per_tick() or common_rate, end_ns)
    with_rates = [(one, one.seconds_per_tick() or common_rate) for one in ranks]
    summary.arrivals = _arrivals(with_rates)
    summary.turn_calls = max((one.turn_calls for one in ranks), default=0)
    summary.turns = [
        [Turn(turn.ticks * rate, turn.in_mpi * rate, turn.bytes) for turn in one.turns] for one, rate in with_rates if one.turns
    ]
    sizes = {one.world_size for one in ranks}
    if len(sizes) == 1:
        summary.world_size = sizes.pop()
        present = {one.world_rank for one in ranks}
        summary.missing = [rank for rank in range(min(summary.world_size, 1 << 20)) if rank not in present]
    return summary


def _arrivals(ranks: list[tuple[record.Record, float]]) -> list[Arrival]:
    """The ranks' views of each communicator, put together, without those that mix several, as those of worlds apart may: two
    processes have the same rank in it, or one process has two."""
    views: dict[tuple[str, int, int], list[tuple[record.ArrivalCount, int, float]]] = {}
    for one, rate in ranks:
        for count in one.arrivals:
            views.setdefault((one.host, count.identity, count.size), []).append((count, one.world_rank, rate))
    of_one = [(key[0], seen) for key, seen in views.items() if not _mixed(seen)]
    found = [_arrival(host, sorted(seen, key=lambda view: view[0].rank)) for host, seen in of_one]
    return sorted(found, key=lambda one: -one.mean_spread * one.calls)


def _mixed(views: list[tuple[record.ArrivalCount, int, float]]) -> bool:
    return any(len(set(ranks)) < len(ranks) for ranks in zip(*((count.rank, rank) for count, rank, _ in views), strict=True))


def _arrival(host: str, views: list[tuple[record.ArrivalCount, int, float]]) -> Arrival:
    compared = sum(count.calls for count, _, _ in views)
    return Arrival(
        host=host,
        ranks=[rank for _, rank, _ in views],
        calls=max(count.calls for count, _, _ in views),
        mean_spread=sum(count.spread_ticks * rate for count, _, rate in views) / compared,
        most_spread=max(count.most_ticks * rate for count, _, rate in views),
        repeated=sum(count.repeated for count, _, _ in views) / compared,
        last={rank: count.last / count.calls for count, rank, _ in views},
        behind={rank: count.behind_ticks * rate / count.calls for count, rank, rate in views},
    )


def _add(summary: Summary, one: record.Record, rate: float, end_ns: int) -> None:
    mpi_ticks = collective_ticks = 0
    for name, count in one.functions.items():
        function = summary.functions.setdefault(name, Function())
        function.calls += count.calls
        function.seconds += count.ticks * rate
        mpi_ticks += 0 if LIFE.fullmatch(name) else count.ticks
        collective_ticks += count.ticks if _COLLECTIVE.fullmatch(name) else 0
    for name, kind in one.kinds.items():
        _add_kind(summary.collectives.setdefault(name, Collective()), kind, rate)
    end = _end_of(one, end_ns)
    running = (end - one.init_ns) * 1e-9 if 0 < one.init_ns < end else 0.0
    mpi, collective = mpi_ticks * rate, collective_ticks * rate
    names = (one.accelerating, one.verdict, one.host, one.mpi_library)
    summary.ranks.append(Rank(one.world_rank, one.pid, one.stage, *names, mpi, collective, running))


def _end_of(one: record.Record, end_ns: int) -> int:
    """When a rank ended, on its own clock; 0: not known. Killed on another host it left no time, and its clock is another one."""
    if one.finalize_ns or "MPI_Abort" in one.functions:
        return one.finalize_ns or one.last_ns
    return max(one.last_ns, end_ns) if one.host == socket.gethostname() else 0


def _add_kind(into: Collective, kind: record.KindCount, rate: float) -> None:
    into.calls += kind.accelerated_calls + kind.declined_calls
    into.accelerated_calls += kind.accelerated_calls
    into.bytes += kind.accelerated_bytes + kind.declined_bytes
    into.seconds += (kind.accelerated_ticks + kind.declined_ticks) * rate
    for name, calls in kind.algorithms.items():
        into.algorithms[name] = into.algorithms.get(name, 0) + calls
    for reason, calls in kind.declines.items():
        into.declines[reason] = into.declines.get(reason, 0) + calls


def as_json(summary: Summary) -> dict[str, Any]:
    """The parts of the JSON summary that come from the records."""
    return {
        "world_size": summary.world_size,
        "mpi_seconds": summary.mpi_seconds,
        "mpi_share": summary.mpi_share,
        "ranks": [
            {
                "rank": rank.rank,
                "pid": rank.pid,
                "host": rank.host,
                "state": rank.state,
                "accelerating": rank.accelerating,
                "verdict": rank.verdict,
                "mpi_library": rank.mpi_library,
                "mpi_seconds": rank.mpi_seconds,
                "running_seconds": rank.running_seconds,
            }
            for rank in summary.ranks
        ],
        "missing_ranks": summary.missing,
        "problems": summary.problems,
        "collectives": {
            name: {
                "calls": one.calls,
                "accelerated_calls": one.accelerated_calls,
                "accelerated_share": one.accelerated_share,
                "bytes": one.bytes,
                "seconds": one.seconds,
                "algorithms": one.algorithms,
                "declines": one.declines,
            }
            for name, one in summary.collectives.items()
        },
        "arrivals": [
            {
                "host": one.host,
                "ranks": one.ranks,
                "calls": one.calls,
                "mean_spread_seconds": one.mean_spread,
                "most_spread_seconds": one.most_spread,
                "repeated_share": one.repeated,
                "last_share": {str(rank): share for rank, share in one.last.items()},
                "behind_seconds": {str(rank): behind for rank, behind in one.behind.items()},
            }
            for one in summary.arrivals
        ],
        "functions": {name: {"calls": one.calls, "seconds": one.seconds} for name, one in sorted(summary.functions.items())},
    }
