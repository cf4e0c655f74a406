"""From runs to the side-by-side table: merging repeats, choosing each peer's best settings, ratios, goals, Markdown."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

HOSTS = ("openmpi", "mpich")  # the MPIs under which Stretto is measured
SMALL = 1024  # bytes: goals speak of messages up to 1 KiB and above
_ORDER = ("allreduce", "reduce", "bcast", "barrier")


@dataclass
class Run:
    """One run of collective_bench: its JSON lines, and what was run."""

    peer: str
    config: str
    stretto: bool
    lines: list[dict]

    def points(self) -> Iterator[dict]:
        return (line for line in self.lines if line["kind"] == "point")

    def hops(self) -> list[float]:
        return [line["ns"] for line in self.lines if line["kind"] == "hop"]


@dataclass
class Cell:
    """One point of the table. Times in microseconds, medians over repeats of each run's median."""

    collective: str
    bytes: int
    ranks: int
    mode: str
    peers: dict[str, tuple[float, str]] = field(default_factory=dict)  # peer -> (time, its best settings)
    stretto: dict[str, float] = field(default_factory=dict)  # host MPI -> time
    in_run: dict[str, float] = field(default_factory=dict)  # host MPI -> MPI_X / PMPI_X within one run
    wrong: int = 0

    def best(self) -> float:
        return min(time for time, _ in self.peers.values())

    def ratio(self, host: str) -> float | None:
        """Stretto's time under that host against the best peer's."""
        return self.stretto[host] / self.best() if host in self.stretto and self.peers else None

    def as_json(self) -> dict:
        return {
            "collective": self.collective, "bytes": self.bytes, "ranks": self.ranks, "mode": self.mode,
            "peers": {peer: {"us": round(us, 4), "settings": name} for peer, (us, name) in self.peers.items()},
            "stretto": {host: {"us": round(us, 4), "over_best_peer": round(us / self.best(), 4) if self.peers else None,
                               "in_run_ratio": round(self.in_run[host], 4)} for host, us in self.stretto.items()},
            "wrong": self.wrong,
        }


def merge(runs: Iterable[Run]) -> list[Cell]:
    """Cells in reading order. A peer's time at a point is that of its best settings there."""
    times: dict[tuple, dict[tuple, list[float]]] = defaultdict(lambda: defaultdict(list))
    ratios: dict[tuple, list[float]] = defaultdict(list)
    wrong: dict[tuple, int] = defaultdict(int)
    for run in runs:
        for point in run.points():
            key = (point["collective"], point["bytes"], point["ranks"], point["mode"])
            side = "mpi" if run.stretto else "pmpi"
            times[key][run.peer, run.config, run.stretto].append(point[side]["median_us"])
            wrong[key] += point["wrong"]
            if run.stretto:
                ratios[(*key, run.peer)].append(point["ratio"])
    return [_cell(key, times[key], ratios, wrong[key]) for key in sorted(times, key=_reading_order)]


def _reading_order(key: tuple) -> tuple:
    collective, size, ranks, mode = key
    return ranks, mode != "balanced" and ranks == 2, _ORDER.index(collective), size


def _cell(key: tuple, times: dict[tuple, list[float]], ratios: dict[tuple, list[float]], wrong: int) -> Cell:
    cell = Cell(*key, wrong=wrong)
    for (peer, config, stretto), values in times.items():
        middle = statistics.median_low(values)  # of two runs, the quieter one
        if stretto:
            cell.stretto[peer] = middle
            cell.in_run[peer] = statistics.median(ratios[(*key, peer)])
        elif peer not in cell.peers or middle < cell.peers[peer][0]:
            cell.peers[peer] = (middle, config)
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
        time = cell.peers.get(peer, (None, ""))[0]
        columns.append(f"**{_number(time)}**" if time is not None and time == best else _number(time))
    for host in HOSTS:
        if host in cell.stretto:
            columns += [_number(cell.stretto[host]), _number(cell.ratio(host)), _number(cell.in_run[host])]
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
