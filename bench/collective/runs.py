"""Runs of a benchmark program, and the moods of a virtual machine: how far apart its cores were during each."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

Json = dict[str, Any]
_SAME = 2.5  # core-to-core times within this factor are one placement of the cores; placements differ by four or more


@dataclass
class Run:
    """One run: its JSON lines, and what was run. `way`: how Stretto was loaded; empty: not at all."""

    peer: str
    config: str
    way: str
    task: str  # which part of the series: what was asked of the program, in words
    lines: list[Json]

    @property
    def stretto(self) -> bool:
        return bool(self.way)

    @property
    def identity(self) -> tuple[str, str, str, str]:
        return self.peer, self.config, self.way, self.task

    def points(self) -> list[Json]:
        return [line for line in self.lines if line["kind"] == "point"]

    def cut_after(self) -> float | None:
        """Seconds after which the run was cut off; None: it came to its end."""
        return self.lines[-1]["seconds"] if self.lines[-1]["kind"] == "cut" else None

    def as_json(self) -> Json:
        return asdict(self)


def is_placed(point: Json) -> bool:
    """Whether the distance of the cores was measured."""
    return bool(max(point["hop_ns"]) > 0)


def has_many_cores(point: Json) -> bool:
    """Whether more than two ranks have a core each."""
    return bool(point["ranks"] > 2 and not point.get("crowded", False))


def settled_hop(point: Json) -> float | None:
    """Nanoseconds for a cache line from core to core; None when the cores moved while the point was measured."""
    least, most = sorted(point["hop_ns"])
    return least if least > 0 and most < _SAME * least else None


Place = tuple[int, int]  # of a point: index of its run, index in the run


def distances(runs: Sequence[Run]) -> dict[Place, int]:
    """Each settled point -> how far apart its cores were, in ns, the same number for the same placement.

    A hypervisor may run two virtual cores on one physical core, in one L3 or in two, and change that at any time; times
    of small messages differ severalfold between these. Only points of one placement may be compared. Placements seen
    at less than a tenth of the points are left out. Of more than two ranks on cores of their own the two that were measured
    say little about the others: those points all count as one placement.
    """
    places = [((r, p), point) for r, run in enumerate(runs) for p, point in enumerate(run.points())]
    many = {place: statistics.median(point["hop_ns"]) for place, point in places if is_placed(point) and has_many_cores(point)}
    settled = ((settled_hop(point), place) for place, point in places if place not in many)
    hops = sorted((hop, place) for hop, place in settled if hop is not None)
    groups: list[list[tuple[float, Place]]] = []
    for hop, place in hops:
        if groups and hop < _SAME * groups[-1][0][0]:
            groups[-1].append((hop, place))
        else:
            groups.append([(hop, place)])
    groups = [group for group in groups if 10 * len(group) >= len(hops)]
    apart = {place: round(statistics.median(hop for hop, _ in group)) for group in groups for _, place in group}
    return apart | dict.fromkeys(many, round(statistics.median(many.values())) if many else 0)
