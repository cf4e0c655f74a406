"""From runs of stretto-bench under arrival patterns to cells: what remains of each call after the last arrival."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from runs import Json, Run, distances, is_placed

PAPER = ("paper_small", "paper_large")
BALANCED = ("gather", "pair", "slices", "direct")  # Stretto's own that do not go by arrival
ALONE = " alone"  # ends the name of a way in runs that call nothing else
BY_ARRIVAL = " by arrival"  # likewise, and combines in the order of arrival
SHAPES = ("balanced", "last-delayed", "random")


class Key(NamedTuple):
    """What is measured at a point. `spread`: the largest delay over the time of a balanced call."""

    collective: str
    bytes: int
    ranks: int
    shape: str = "balanced"
    spread: float = 0
    apart_ns: int = 0  # how far apart the cores were (runs.distances); 0: ranks share cores

    def reading_order(self) -> tuple[int, int, str, int, int, float]:
        return self.ranks, self.apart_ns, self.collective, self.bytes, SHAPES.index(self.shape), self.spread

    def where(self) -> str:
        return f"{self.ranks} ranks" + (f", cores {self.apart_ns} ns apart" if self.apart_ns else "")

    def late(self) -> bool:
        return self.shape != "balanced"

    def pattern(self) -> str:
        return f"{self.shape} x{self.spread:g}" if self.late() else self.shape


class Variant(NamedTuple):
    """Stretto as it is measured: on which MPI, and how it is loaded (runs.Run.way)."""

    host: str
    way: str

    def alone(self) -> Variant:
        return Variant(self.host, self.way + ALONE)

    def by_arrival(self) -> Variant:
        return Variant(self.host, self.way + BY_ARRIVAL)


@dataclass
class Cell:
    """Times in us after the last arrival. Stretto's own algorithms are compared within a run, in which they take turns; the
    peers, the bound and the order of arrival with runs that call nothing else, so that each has the caches to itself."""

    key: Key
    peers: dict[str, tuple[float, str]] = field(default_factory=dict)  # time at the peer's best settings, and these
    stretto: dict[Variant, list[Json]] = field(default_factory=dict)  # a point for each repeat
    missing: tuple[str, ...] = ()  # peers of the series without a time here
    of: str = "median_us"  # of a run's samples; or "p10_us", which a busy machine disturbs less

    def _us(self, point: Json, side: str) -> float:
        return float(point["sides"][side][self.of])

    def _fastest(self, point: Json, sides: Sequence[str]) -> float | None:
        """A time that is not positive: the call was over before the last rank had come. Nothing can be divided by it."""
        found = [self._us(point, side) for side in sides if side in point["sides"]]
        return min((time for time in found if time > 0), default=None)

    def time(self, variant: Variant, sides: Sequence[str] = ("mpi",)) -> float | None:
        """Of the fastest of the sides, in each repeat; the lower median of the repeats."""
        found = [time for point in self.stretto.get(variant, []) if (time := self._fastest(point, sides)) is not None]
        return statistics.median_low(found) if found else None

    def best(self) -> tuple[float, str] | None:
        """The fastest peer's time, and its name."""
        return min(((us, peer) for peer, (us, _) in self.peers.items()), default=None)

    def over_peers(self, variant: Variant) -> float | None:
        mine, best = self.time(variant.alone()), self.best()
        return mine / best[0] if mine is not None and best and not self.missing else None

    def over_sides(self, variant: Variant, sides: Sequence[str]) -> float | None:
        """Stretto's time over that of the fastest of these algorithms of its own in the same run."""
        points = self.stretto.get(variant, [])
        found = [self._us(point, "mpi") / time for point in points if (time := self._fastest(point, sides))]
        return statistics.median(found) if found else None

    def over_bound(self, variant: Variant) -> float | None:
        points = [point for point in self.stretto.get(variant.alone(), []) if point["bound_us"] > 0]
        found = [self._us(point, "mpi") / point["bound_us"] for point in points]
        return statistics.median(found) if found else None

    def over_arrival_order(self, variant: Variant) -> float | None:
        """What it costs that results do not depend on the order of arrival."""
        mine, other = self.time(variant.alone()), self.time(variant.by_arrival())
        return mine / other if mine is not None and other else None

    def as_json(self) -> Json:
        return {
            **self.key._asdict(),
            "peers": {peer: {"us": us, "settings": settings} for peer, (us, settings) in self.peers.items()},
            "stretto": [self._variant_json(variant) for variant in self.stretto],
            "wrong": sum(point["wrong"] for points in self.stretto.values() for point in points),
        }

    def _variant_json(self, variant: Variant) -> Json:
        names = dict.fromkeys(name for point in self.stretto[variant] for name in point["sides"])
        return {
            **variant._asdict(),
            "us": {name: self.time(variant, (name,)) for name in names},
            "over_best_peer": self.over_peers(variant),
            "over_paper": self.over_sides(variant, PAPER),
            "over_balanced": self.over_sides(variant, BALANCED),
            "over_bound": self.over_bound(variant),
            "over_arrival_order": self.over_arrival_order(variant),
        }


def merge(runs: Sequence[Run], of: str = "median_us") -> list[Cell]:
    """Cells in reading order. Points whose cores came to stand elsewhere meanwhile are left out. `of`: Cell.of."""
    apart = distances(runs)
    cells: dict[Key, Cell] = {}
    times: dict[tuple[Key, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    peers = set()
    for index, run in enumerate(runs):
        if not run.stretto:
            peers.add(run.peer)
        for number, point in enumerate(run.points()):
            place = (index, number)
            if is_placed(point) and place not in apart:
                continue
            where = (point["shape"], float(point["spread"]), apart.get(place, 0))
            key = Key(point["collective"], point["bytes"], point["ranks"], *where)
            cell = cells.setdefault(key, Cell(key, of=of))
            if run.stretto:
                cell.stretto.setdefault(Variant(run.peer, run.way), []).append(point)
            else:
                times[key, run.peer][run.config].append(point["sides"]["mpi"][of])
    for (key, peer), settings in times.items():
        cells[key].peers[peer] = min((statistics.median_low(found), config) for config, found in settings.items())
    for cell in cells.values():
        cell.missing = tuple(sorted(peers - set(cell.peers)))
    return [cells[key] for key in sorted(cells, key=Key.reading_order)]


def cells_of(series: Json) -> list[Cell]:
    """Again from what Cell.as_json wrote: of the repeats one time each is left, their median."""
    found = []
    for one in series["cells"]:
        cell = Cell(Key(*(one[name] for name in Key._fields)))
        cell.peers = {peer: (best["us"], best["settings"]) for peer, best in one["peers"].items()}
        for times in one["stretto"]:
            sides = {name: {cell.of: us} for name, us in times["us"].items() if us is not None}
            cell.stretto[Variant(times["host"], times["way"])] = [{"sides": sides}]
        cell.missing = tuple(sorted(set(series["versions"]) - set(cell.peers)))
        found.append(cell)
    return found
