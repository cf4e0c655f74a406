"""From runs to the side-by-side table: merging repeats, choosing each peer's best settings, ratios, goals, Markdown."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

HOSTS = ("openmpi", "mpich")  # the MPIs under which Stretto is measured
SMALL = 1024  # bytes: goals speak of messages up to 1 KiB and above
Json = dict[str, Any]
_ORDER = ("allreduce", "reduce", "bcast", "barrier")


@dataclass
class Run:
    """One run of collective_bench: its JSON lines, and what was run."""

    peer: str
    config: str
    stretto: bool
    lines: list[Json]

    def points(self) -> Iterator[Json]:
        return (line for line in self.lines if line["kind"] == "point")

    def hops(self) -> list[float]:
        return [line["ns"] for line in self.lines if line["kind"] == "hop"]


@dataclass
class Timing:
    """Microseconds; `us` and `p10` are medians over repeats of a run's median and 10th percentile."""

    us: float
    p10: float
    settings: str

    def as_json(self) -> Json:
        return {"us": round(self.us, 4), "p10_us": round(self.p10, 4), "settings": self.settings}


class Key(NamedTuple):
    """What is measured at a point."""

    collective: str
    bytes: int
    ranks: int
    mode: str

    def reading_order(self) -> tuple[int, bool, int, int]:
        return self.ranks, self.mode != "balanced" and self.ranks == 2, _ORDER.index(self.collective), self.bytes


@dataclass
class Cell:
    """One point of the table."""

    key: Key
    peers: dict[str, Timing] = field(default_factory=dict)  # at each peer's best settings
    stretto: dict[str, Timing] = field(default_factory=dict)  # host MPI -> time
    in_run: dict[str, float] = field(default_factory=dict)  # host MPI -> MPI_X / PMPI_X within one run
    wrong: int = 0

    @property
    def collective(self) -> str:
        return self.key.collective

    @property
    def bytes(self) -> int:
        return self.key.bytes

    @property
    def ranks(self) -> int:
        return self.key.ranks

    @property
    def mode(self) -> str:
        return self.key.mode

    def best(self) -> float:
        return min(timing.us for timing in self.peers.values())

    def ratio(self, host: str) -> float | None:
        """Stretto's time under that host against the best peer's."""
        return self.stretto[host].us / self.best() if host in self.stretto and self.peers else None

    def as_json(self) -> Json:
        return {
            **self.key._asdict(),
            "peers": {peer: timing.as_json() for peer, timing in self.peers.items()},
            "stretto": {
                host: {
                    **timing.as_json(),
                    "over_best_peer": _rounded(self.ratio(host)),
                    "in_run_ratio": _rounded(self.in_run[host]),
                }
                for host, timing in self.stretto.items()
            },
            "wrong": self.wrong,
        }


Series = tuple[str, str, bool]  # peer, settings, with Stretto


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def merge(runs: Iterable[Run]) -> list[Cell]:
    """Cells in reading order. A peer's time at a point is that of its best settings there."""
    times: dict[Key, dict[Series, list[Json]]] = defaultdict(lambda: defaultdict(list))
    ratios: dict[tuple[Key, str], list[float]] = defaultdict(list)
    wrong: dict[Key, int] = defaultdict(int)
    for run in runs:
        for point in run.points():
            key = Key(point["collective"], point["bytes"], point["ranks"], point["mode"])
            side = "mpi" if run.stretto else "pmpi"
            times[key][run.peer, run.config, run.stretto].append(point[side])
            wrong[key] += point["wrong"]
            if run.stretto:
                ratios[key, run.peer].append(point["ratio"])
    return [_cell(key, times[key], ratios, wrong[key]) for key in sorted(times, key=Key.reading_order)]


def _cell(key: Key, times: dict[Series, list[Json]], ratios: dict[tuple[Key, str], list[float]], wrong: int) -> Cell:
    cell = Cell(key, wrong=wrong)
    for (peer, config, stretto), values in times.items():
        # The lower median: of two runs, the quieter one.
        us, p10 = (statistics.median_low(value[name] for value in values) for name in ("median_us", "p10_us"))
        timing = Timing(us, p10, config)
        if stretto:
            cell.stretto[peer] = timing
            cell.in_run[peer] = statistics.median(ratios[key, peer])
        elif peer not in cell.peers or timing.us < cell.peers[peer].us:
            cell.peers[peer] = timing
    return cell


def geometric_mean(values: Iterable[float]) -> float | None:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else None


def size_text(size: int) -> str:
    if size == 0:
        return "-"
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _row(cell: Cell, peers: dict[str, str]) -> str:
    best = cell.best() if cell.peers else None
    columns = [cell.collective, size_text(cell.bytes)]
    for peer in peers:
        time = cell.peers[peer].us if peer in cell.peers else None
        columns.append(f"**{_number(time)}**" if time is not None and time == best else _number(time))
    for host in HOSTS:
        if host in cell.stretto:
            columns += [_number(cell.stretto[host].us), _number(cell.ratio(host)), _number(cell.in_run[host])]
        elif any_stretto(cell):
            columns += ["-"] * 3
    return "| " + " | ".join(columns) + " |"


def any_stretto(cell: Cell) -> bool:
    return bool(cell.stretto)


def markdown(cells: list[Cell], peers: dict[str, str]) -> str:
    """One table for each rank count and mode. `peers`: key -> title."""
    parts = []
    groups: dict[tuple[int, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[_group(cell, cells)].append(cell)
    for (ranks, how), members in groups.items():
        head = ["collective", "size", *peers.values()]
        if any(map(any_stretto, members)):
            for host in HOSTS:
                head += [f"Stretto on {peers.get(host, host)}", "/ best peer", "/ PMPI in run"]
        rule = ["---", "---:"] + ["---:"] * (len(head) - 2)
        lines = [f"### {ranks} ranks, {how}", "", "| " + " | ".join(head) + " |", "|" + "|".join(rule) + "|"]
        parts.append("\n".join(lines + [_row(cell, peers) for cell in members]))
    return "\n\n".join(parts) + "\n"


def _group(cell: Cell, cells: list[Cell]) -> tuple[int, str]:
    """At a rank count that mixes modes by size (more ranks than cores), one table holds both."""
    modes: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for other in cells:
        if other.ranks == cell.ranks:
            modes[other.mode].add((other.collective, other.bytes))
    if len(modes) == 2 and not modes["batch"] & modes["balanced"]:
        return cell.ranks, "batches up to 16 KiB, single calls above"
    return cell.ranks, "calls from a common start" if cell.mode == "balanced" else "calls back to back"
