"""Runs of collective_bench, and the moods of a virtual machine: how far apart its cores were during each."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
_SAME = 2.5  # core-to-core times within this factor are one placement of the cores; placements differ by four or more


@dataclass
class Run:
    """One run of collective_bench: its JSON lines, and what was run."""

    peer: str
    config: str
    stretto: bool
    lines: list[Json]

    def points(self) -> Iterator[Json]:
        return (line for line in self.lines if line["kind"] == "point")

    def pinned(self) -> bool:
        """Whether each rank had a core, and their distance was measured."""
        return bool(self.hops())

    def hops(self) -> list[float]:
        """Nanoseconds for a cache line from core to core, before the points and after."""
        return [line["ns"] for line in self.lines if line["kind"] == "hop"]

    def settled_hop(self) -> float | None:
        """None when the cores moved during the run."""
        hops = self.hops()
        return min(hops) if hops and max(hops) < _SAME * min(hops) else None


def distances(runs: list[Run]) -> dict[int, int]:
    """Index of each settled pinned run -> how far apart its cores were, in ns, the same number for the same placement.

    A hypervisor may run two virtual cores on one physical core, in one L3 or in two, and change that at any time; times
    of small messages differ severalfold between these. Only runs of one placement may be compared.
    """
    hops = sorted((hop, index) for index, run in enumerate(runs) if (hop := run.settled_hop()) is not None)
    groups: list[list[tuple[float, int]]] = []
    for hop, index in hops:
        if groups and hop < _SAME * groups[-1][0][0]:
            groups[-1].append((hop, index))
        else:
            groups.append([(hop, index)])
    return {index: round(statistics.median(hop for hop, _ in group)) for group in groups for _, index in group}
