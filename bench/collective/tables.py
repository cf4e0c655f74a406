"""From runs to the side-by-side table: merging repeats, choosing each peer's best settings, ratios, goals, Markdown."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from runs import Json, Place, Run, pinned

HOSTS = ("openmpi", "mpich")  # the MPIs under which Stretto is measured
SMALL = 1024  # bytes: goals speak of messages up to 1 KiB and above
_ORDER = (
    *("allreduce", "reduce", "bcast", "barrier", "gather", "scatter", "allgather", "alltoall"),
    *("reduce_scatter_block", "scan", "exscan"),
)


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
    apart_ns: int = 0  # how far apart the cores were (runs.distances); 0: ranks share cores

    def reading_order(self) -> tuple[int, int, bool, int, int]:
        batch_apart = self.apart_ns > 0 and self.mode == "batch"
        return self.ranks, self.apart_ns, batch_apart, _ORDER.index(self.collective), self.bytes


@dataclass
class Cell:
    """One point of the table."""

    key: Key
    peers: dict[str, Timing] = field(default_factory=dict)  # at each peer's best settings
    stretto: dict[str, Timing] = field(default_factory=dict)  # host MPI -> time
    in_run: dict[str, float] = field(default_factory=dict)  # host MPI -> MPI_X / PMPI_X within one run
    wrong: int = 0
    missing: tuple[str, ...] = ()  # peers of the series without a time here: the best one is then not known

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
        """Stretto's time under that host against the best peer's; None unless all peers were measured."""
        known = host in self.stretto and self.peers and not self.missing
        return self.stretto[host].us / self.best() if known else None

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


def merge(runs: list[Run], apart: dict[Place, int]) -> list[Cell]:
    """Cells in reading order. A peer's time at a point is that of its best settings there.

    `apart`: runs.distances. Points on pinned cores that are not in it are left out.
    """
    times: dict[Key, dict[Series, list[Json]]] = defaultdict(lambda: defaultdict(list))
    ratios: dict[tuple[Key, str], list[float]] = defaultdict(list)
    wrong: dict[Key, int] = defaultdict(int)
    for index, run in enumerate(runs):
        for number, point in enumerate(run.points()):
            if pinned(point) and (index, number) not in apart:
                continue
            key = Key(point["collective"], point["bytes"], point["ranks"], point["mode"], apart.get((index, number), 0))
            side = "mpi" if run.stretto else "pmpi"
            times[key][run.peer, run.config, run.stretto].append(point[side])
            wrong[key] += point["wrong"]
            if run.stretto:
                ratios[key, run.peer].append(point["ratio"])
    cells = [_cell(key, times[key], ratios, wrong[key]) for key in sorted(times, key=Key.reading_order)]
    peers = {run.peer for run in runs if not run.stretto}
    for cell in cells:
        cell.missing = tuple(sorted(peers - set(cell.peers)))
    return cells


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
    """One table for each rank count, mode and distance of the cores. `peers`: key -> title."""
    parts = []
    groups: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[_group(cell, cells)].append(cell)
    for title, members in groups.items():
        head = ["collective", "size", *peers.values()]
        if any(map(any_stretto, members)):
            for host in HOSTS:
                head += [f"Stretto on {peers.get(host, host)}", "/ best peer", "/ PMPI in run"]
        rule = ["---", "---:"] + ["---:"] * (len(head) - 2)
        lines = [f"### {title}", "", "| " + " | ".join(head) + " |", "|" + "|".join(rule) + "|"]
        parts.append("\n".join(lines + [_row(cell, peers) for cell in members]))
    return "\n\n".join(parts) + "\n"


def _group(cell: Cell, cells: list[Cell]) -> str:
    """The title of the cell's table. Where ranks share cores, one table holds both modes, chosen by size."""
    if cell.key.apart_ns == 0 and any(other.mode == "batch" and other.ranks == cell.ranks for other in cells):
        return f"{cell.ranks} ranks on fewer cores, batches up to 16 KiB, single calls above"
    how = "calls from a common start" if cell.mode == "balanced" else "calls back to back"
    apart = f", cores {cell.key.apart_ns} ns apart" if cell.key.apart_ns else ""
    return f"{cell.ranks} ranks{apart}, {how}"
