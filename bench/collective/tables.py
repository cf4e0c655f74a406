"""From runs to the side-by-side table: merging repeats, choosing each peer's best settings, ratios, goals, Markdown."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from runs import Json, Place, Run, is_placed

HOSTS = ("openmpi", "mpich")  # the MPIs under which Stretto is measured
WAYS = ("stretto", "arena")  # how it is loaded (runs.Run.way)
BARE = "bare"  # the way of a run that calls no MPI, but plain stores in shared memory
SMALL = 1024  # bytes: goals speak of messages up to 1 KiB and above
# Measured together, in one run of the program.
GROUPS = (
    ("allreduce", "reduce", "bcast", "barrier"),
    ("gather", "scatter", "allgather", "alltoall"),
    ("reduce_scatter_block", "reduce_scatter", "scan", "exscan"),
    ("gatherv", "scatterv", "allgatherv", "alltoallv"),
)
COLLECTIVES = tuple(name for group in GROUPS for name in group)


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
    apart_ns: int = 0  # how far apart the cores were (runs.distances); 0: not known
    crowded: bool = False  # ranks share cores

    def reading_order(self) -> tuple[int, int, bool, int, int]:
        batch_apart = not self.crowded and self.mode == "batch"
        return self.ranks, self.apart_ns, batch_apart, COLLECTIVES.index(self.collective), self.bytes


class Variant(NamedTuple):
    """Stretto as it is measured."""

    host: str
    way: str = "stretto"

    def title(self, peers: Mapping[str, str]) -> str:
        return f"Stretto{', arena,' if self.way == 'arena' else ''} on {peers.get(self.host, self.host)}"


VARIANTS = tuple(Variant(host, way) for way in WAYS for host in HOSTS)


@dataclass
class Cell:
    """One point of the table."""

    key: Key
    peers: dict[str, Timing] = field(default_factory=dict)  # at each peer's best settings
    stretto: dict[Variant, Timing] = field(default_factory=dict)
    in_run: dict[Variant, float] = field(default_factory=dict)  # MPI_X / PMPI_X, called in turn within one run
    of_floor: dict[Variant, float] = field(default_factory=dict)  # the floor / MPI_X within one run
    bare: Timing | None = None  # plain stores in shared memory (bare.h)
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

    def bare_ratio(self) -> float | None:
        """Plain stores in shared memory against the best peer; None unless both are known."""
        return self.bare.us / self.best() if self.bare and self.peers and not self.missing else None

    def best(self) -> float:
        return min(timing.us for timing in self.peers.values())

    def best_peer(self) -> str:
        return min(self.peers, key=lambda peer: self.peers[peer].us)

    def ratio(self, variant: Variant) -> float | None:
        """Stretto's time against the best peer's; None unless all peers were measured."""
        known = variant in self.stretto and self.peers and not self.missing
        return self.stretto[variant].us / self.best() if known else None

    def quiet_ratio(self, variant: Variant) -> float:
        """The same of 10th percentiles, which a busy machine disturbs less."""
        return self.stretto[variant].p10 / min(timing.p10 for timing in self.peers.values())

    def as_json(self) -> Json:
        return {
            **self.key._asdict(),
            "peers": {peer: timing.as_json() for peer, timing in self.peers.items()},
            **{way: {v.host: self._variant_json(v) for v in self.stretto if v.way == way} for way in WAYS},
            **({BARE: self.bare.as_json()} if self.bare else {}),
            "wrong": self.wrong,
        }

    def _variant_json(self, variant: Variant) -> Json:
        return {
            **self.stretto[variant].as_json(),
            "over_best_peer": _rounded(self.ratio(variant)),
            "in_run_ratio": _rounded(self.in_run.get(variant)),
            "of_floor": _rounded(self.of_floor.get(variant)),
        }


Series = tuple[str, str, str]  # peer, settings, way of Stretto


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def merge(runs: list[Run], apart: dict[Place, int]) -> list[Cell]:
    """Cells in reading order. A peer's time at a point is that of its best settings there.

    `apart`: runs.distances. Points of which it was measured and that are not in it are left out: the cores moved.
    """
    times: dict[Key, dict[Series, list[Json]]] = defaultdict(lambda: defaultdict(list))
    wrong: dict[Key, int] = defaultdict(int)
    for index, run in enumerate(runs):
        for number, point in enumerate(run.points()):
            if is_placed(point) and (index, number) not in apart:
                continue
            what = point["collective"], point["bytes"], point["ranks"], point["mode"]
            key = Key(*what, apart.get((index, number), 0), point.get("crowded", not is_placed(point)))
            times[key][run.peer, run.config, run.way].append(point)
            wrong[key] += point["wrong"]
    cells = [_cell(key, times[key], wrong[key]) for key in sorted(times, key=Key.reading_order)]
    peers = {run.peer for run in runs if not run.stretto}
    for cell in cells:
        cell.missing = tuple(sorted(peers - set(cell.peers)))
    return cells


def _cell(key: Key, times: dict[Series, list[Json]], wrong: int) -> Cell:
    cell = Cell(key, wrong=wrong)
    for (peer, config, way), points in times.items():
        # What is compared with another MPI has the caches to itself, as that has. The lower median: of two runs, the quieter one.
        side = "mpi" if way else "pmpi"
        alone = [point for point in points if "ratio" not in point] or points
        us, p10 = (statistics.median_low(point[side][name] for point in alone) for name in ("median_us", "p10_us"))
        timing = Timing(us, p10, config)
        if way == BARE:
            cell.bare = timing
        elif way:
            variant = Variant(peer, way)
            cell.stretto[variant] = timing
            if ratios := [point["ratio"] for point in points if "ratio" in point]:
                cell.in_run[variant] = statistics.median(ratios)
            if floors := [point["floor_us"] / point[side]["median_us"] for point in alone if "floor_us" in point]:
                cell.of_floor[variant] = statistics.median(floors)
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


def _variants(cells: Iterable[Cell]) -> list[Variant]:
    present = {variant for cell in cells for variant in cell.stretto}
    return [variant for variant in VARIANTS if variant in present]


def _row(cell: Cell, peers: Mapping[str, str], variants: Iterable[Variant]) -> str:
    best = cell.best() if cell.peers else None
    columns = [cell.collective, size_text(cell.bytes)]
    for peer in peers:
        time = cell.peers[peer].us if peer in cell.peers else None
        columns.append(f"**{_number(time)}**" if time is not None and time == best else _number(time))
    for variant in variants:
        if variant in cell.stretto:
            columns += [_number(cell.stretto[variant].us), _number(cell.ratio(variant)), _number(cell.in_run.get(variant))]
        else:
            columns += ["-"] * 3
    return "| " + " | ".join(columns) + " |"


def _table(head: list[str], rows: list[str]) -> str:
    rule = ["---" if name in ("collective", "where") else "---:" for name in head]
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "|".join(rule) + "|", *rows])


def markdown(cells: list[Cell], peers: dict[str, str]) -> str:
    """One table for each rank count, mode and distance of the cores. `peers`: key -> title."""
    parts = []
    groups: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[_group(cell, cells)].append(cell)
    for title, members in groups.items():
        head, variants = ["collective", "size", *peers.values()], _variants(members)
        for variant in variants:
            head += [variant.title(peers), "/ best peer", "/ PMPI in run"]
        parts.append(f"### {title}\n\n" + _table(head, [_row(cell, peers, variants) for cell in members]))
    return "\n\n".join(parts) + "\n"


def means(cells: list[Cell], peers: dict[str, str]) -> str:
    """For each rank count and collective: the geometric mean over the sizes of Stretto's time over the best peer's."""
    groups: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.stretto:
            groups[_group(cell, cells), cell.collective].append(cell)
    variants = _variants(cells)
    rows = []
    for (where, collective), members in groups.items():
        found = [[r for c in members if (r := c.ratio(variant)) is not None] for variant in variants]
        texts = [f"{_number(geometric_mean(ratios))} ({_number(max(ratios))})" if ratios else "-" for ratios in found]
        rows.append(f"| {where} | {collective} | " + " | ".join(texts) + " |")
    return _table(["where", "collective", *(variant.title(peers) for variant in variants)], rows) + "\n"


def lost(cells: list[Cell], peers: dict[str, str], most: int = 80) -> str:
    """The points at which a peer is faster than Stretto, the worst first."""
    found = [(ratio, cell, v) for cell in cells for v in cell.stretto if (ratio := cell.ratio(v)) is not None and ratio > 1]
    found.sort(key=lambda entry: -entry[0])
    rows = [
        f"| {_group(cell, cells)} | {cell.collective} | {size_text(cell.bytes)} | {variant.title(peers)} | "
        f"{_number(cell.stretto[variant].us)} | {peers[cell.best_peer()]} | {_number(cell.best())} | {_number(ratio)} | "
        f"{_number(cell.quiet_ratio(variant))} |"
        for ratio, cell, variant in found[:most]
    ]
    if not rows:
        return "Nowhere.\n"
    more = f"\n{len(found) - most} more, by less.\n" if len(found) > most else ""
    return (
        _table(["where", "collective", "size", "Stretto", "us", "best peer", "us", "ratio", "of 10th percentiles"], rows)
        + "\n"
        + more
    )


def _group(cell: Cell, cells: list[Cell]) -> str:
    """The title of the cell's table. Where ranks share cores, one table holds both modes, chosen by size."""
    apart = f", cores {cell.key.apart_ns} ns apart" if cell.key.apart_ns else ""
    if cell.key.crowded and any(other.mode == "batch" and other.ranks == cell.ranks for other in cells):
        return f"{cell.ranks} ranks on fewer cores{apart}, batches up to 16 KiB, single calls above"
    how = "calls from a common start" if cell.mode == "balanced" else "calls back to back"
    return f"{cell.ranks} ranks{apart}, {how}"
