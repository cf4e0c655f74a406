"""From measurements to rules: the best algorithm for each range of sizes, with few changes between neighbours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stretto.benchmark.model import LIBRARY, Point
from stretto.wording import digits, size

SWITCH = math.log(1.05)  # another algorithm must win so much, in the geometric mean, to be worth a rule of its own
_NEVER = math.inf

# What a rule's `bytes` count where it is not one block (src/select/rules.hpp): the blocks for all ranks together, or nothing.
_ALL_BLOCKS = frozenset(("scatter", "alltoall", "reduce_scatter", "reduce_scatter_block"))
_UNKNOWN = frozenset(("gatherv", "scatterv", "alltoallv", "alltoallw"))


@dataclass(frozen=True, slots=True)
class Range:
    """Sizes up to `until` (None: all that are left), and what was measured for them."""

    algorithm: str  # or "mpi"
    until: int | None
    points: tuple[Point, ...]


def name_in_rules(side: str) -> str:
    return "mpi" if side == LIBRARY else side


def choose(points: Sequence[Point], ranks: int) -> list[Range]:
    """Of one collective. The ranges with the least product of times over the sizes, each change of algorithm counted as SWITCH.

    Where rules cannot tell sizes apart there is one range.
    """
    ordered = sorted(points, key=lambda point: point.bytes)
    names = list(dict.fromkeys(side for point in ordered for side in point.sides))
    collective = ordered[0].collective
    path = _cheapest(ordered, names, _NEVER if collective in _UNKNOWN else SWITCH)
    factor = ranks if collective in _ALL_BLOCKS else 1
    ranges: list[Range] = []
    start = 0
    for place in range(1, len(path) + 1):
        if place < len(path) and path[place] == path[start]:
            continue
        last = place == len(path)
        until = None if last else factor * math.isqrt(max(ordered[place - 1].bytes, 1) * ordered[place].bytes)
        ranges.append(Range(name_in_rules(path[start]), until, tuple(ordered[start:place])))
        start = place
    return ranges


def _cost(point: Point, side: str) -> float:
    taken = point.median(side)
    best = min(value for other in point.sides if (value := point.median(other)) is not None and value > 0)
    return math.log(taken / best) if taken else _NEVER


def _cheapest(points: Sequence[Point], names: Sequence[str], penalty: float) -> list[str]:
    """The side for each point: dynamic programming over the sizes."""
    total = dict.fromkeys(names, 0.0)
    came_from: list[dict[str, str]] = []
    for place, point in enumerate(points):
        cheapest = min(total, key=lambda name: total[name])
        switch = penalty if place else 0.0
        came_from.append({name: name if total[name] <= total[cheapest] + switch else cheapest for name in names})
        reached = {name: min(total[name], total[cheapest] + switch) for name in names}
        total = {name: reached[name] + _cost(point, name) for name in names}
    path: list[str] = []
    now = min(total, key=lambda name: total[name])
    for sources in reversed(came_from):
        path.append(now)
        now = sources[now]
    return path[::-1]


def measured(point: Point) -> str:
    """ "64 KiB: slices 14.1 us, direct 15.5, mpi 23.3": the fastest first."""
    times = sorted((value, name_in_rules(side)) for side in point.sides if (value := point.median(side)) is not None)
    words = [f"{name} {digits(value)}" + ("" if place else " us") for place, (value, name) in enumerate(times)]
    return f"{size(point.bytes)}: {', '.join(words)}"


def as_lines(collective: str, condition: str, ranges: Sequence[Range]) -> list[str]:
    """Rules, each below what was measured for it."""
    lines: list[str] = []
    for one in ranges:
        lines += [f"#   {measured(point)}" for point in one.points]
        bytes_ = "" if one.until is None else f" bytes=..{one.until}"
        lines.append(f"{collective} {condition}{bytes_}  {one.algorithm}")
    return lines
