"""The speed goals of the project inside a node, judged on merged cells. What the data cannot judge is counted.

Over the best of three peers at its best settings, for Stretto on each MPI, without and with an arena.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runs import Json
from tables import SMALL, VARIANTS, Cell, Variant, geometric_mean, size_text

FIRST = ("allreduce", "reduce", "bcast", "barrier")
# What a rank obtains is what it must load and store at least: a copy of so many bytes on all ranks at once is the floor.
FLOORED = ("allreduce", "bcast", "allgather", "alltoall", "gather", "scatter")
_LISTED = 8


@dataclass
class Verdict:
    goal: str
    measured: str
    met: bool | None  # None: no data

    def as_json(self) -> Json:
        return {"goal": self.goal, "measured": self.measured, "met": self.met}


def at_each(goal: str, points: Sequence[tuple[float, str]], most: float) -> Verdict:
    """Every ratio is at most so much. `points`: ratios, and where."""
    if not points:
        return Verdict(goal, "not measured", None)
    above = sorted((point for point in points if point[0] > most), reverse=True)
    names = ", ".join(f"{where} {ratio:.2f}" for ratio, where in above[:_LISTED]) + (" ..." if len(above) > _LISTED else "")
    mean = geometric_mean(ratio for ratio, _ in points)
    text = f"{len(points) - len(above)} of {len(points)} points, {mean:.2f} in the geometric mean"
    return Verdict(goal, text + (f"; above: {names}" if above else ""), not above)


def at_least(goal: str, points: Sequence[tuple[float, str]], least: float) -> Verdict:
    """Every share is at least so much."""
    if not points:
        return Verdict(goal, "not measured", None)
    below = sorted(point for point in points if point[0] < least)
    names = ", ".join(f"{where} {share:.2f}" for share, where in below[:_LISTED]) + (" ..." if len(below) > _LISTED else "")
    text = f"{len(points) - len(below)} of {len(points)} points"
    return Verdict(goal, text + (f"; below: {names}" if below else ""), not below)


def _where(cell: Cell) -> str:
    return f"{cell.collective} {size_text(cell.bytes)}" if cell.bytes else cell.collective


def _ratios(cells: Iterable[Cell], variant: Variant) -> list[tuple[float, str]]:
    return [(ratio, _where(cell)) for cell in cells if (ratio := cell.ratio(variant)) is not None]


def _mean(goal: str, cells: Sequence[Cell], variant: Variant, most: float) -> Verdict:
    points = _ratios(cells, variant)
    mean = geometric_mean(ratio for ratio, _ in points)
    if mean is None:
        return Verdict(goal, "not measured", None)
    worst, where = max(points)
    stores = geometric_mean(
        ratio for cell in cells if cell.ratio(variant) is not None and (ratio := cell.bare_ratio()) is not None
    )
    bare = f"; bare calls, without any library: {stores:.2f}" if stores is not None else ""
    return Verdict(goal, f"{mean:.2f} (worst {worst:.2f}: {where}){bare}", mean <= most)


def _mean_of_each(goal: str, cells: Iterable[Cell], variant: Variant, most: float) -> Verdict:
    """Of every collective the geometric mean over its sizes."""
    found: dict[str, list[float]] = defaultdict(list)
    for cell in cells:
        if (ratio := cell.ratio(variant)) is not None:
            found[cell.collective].append(ratio)
    means = [(mean, name) for name, ratios in found.items() if (mean := geometric_mean(ratios)) is not None]
    verdict = at_each(goal, means, most)
    return Verdict(goal, verdict.measured.replace("points", "collectives"), verdict.met)


def _first(where: str, cells: list[Cell], variant: Variant) -> list[Verdict]:
    """Of the four collectives that came first."""
    here = [c for c in cells if c.collective in FIRST]
    small = [c for c in here if c.collective == "allreduce" and c.bytes <= SMALL]
    large = [c for c in here if c.collective == "allreduce" and c.bytes > SMALL]
    return [
        at_each(f"{where}: {', '.join(FIRST)} no slower than the best peer at any size", _ratios(here, variant), 1.005),
        _mean(f"{where}: allreduce to 1 KiB at most 0.4 of the best peer's time (geometric mean)", small, variant, 0.4),
        _mean(f"{where}: allreduce above 1 KiB at most 0.8 (geometric mean)", large, variant, 0.8),
    ]


def _floor(goal: str, cells: Iterable[Cell], variant: Variant, least: float) -> Verdict:
    large = [cell for cell in cells if cell.collective in FLOORED and cell.bytes >= 1 << 20]
    return at_least(goal, [(cell.of_floor[variant], _where(cell)) for cell in large if variant in cell.of_floor], least)


def _two_ranks(where: str, cells: list[Cell], variant: Variant) -> list[Verdict]:
    slower = f"{where}: no collective slower than the best peer by more than 5 % at any size"
    if variant.way == "arena":
        large = [c for c in cells if c.bytes >= 64 << 10]
        return [
            at_each(f"{slower} from 64 KiB", _ratios(large, variant), 1.05),
            _mean_of_each(f"{where}: every collective from 64 KiB at most 0.45 (geometric mean)", large, variant, 0.45),
            _floor(f"{where}: 80 % of the floor from 1 MiB ({', '.join(FLOORED)})", cells, variant, 0.8),
        ]
    return [
        *_first(where, cells, variant),
        at_each(slower, _ratios(cells, variant), 1.05),
        _mean_of_each(f"{where}: every collective at most 0.6 (geometric mean)", cells, variant, 0.6),
        _floor(f"{where}: 60 % of the floor from 1 MiB ({', '.join(FLOORED)})", cells, variant, 0.6),
    ]


def _many_ranks(where: str, cells: list[Cell], variant: Variant) -> list[Verdict]:
    if variant.way == "arena":
        large = [c for c in cells if c.bytes >= 64 << 10]
        return [_mean_of_each(f"{where}: every collective from 64 KiB at most 0.6 (geometric mean)", large, variant, 0.6)]
    small = [c for c in cells if c.collective in FIRST and c.mode == "batch" and c.bytes <= SMALL]
    return [
        _mean(f"{where}: small messages ({', '.join(FIRST)}) at most 0.6 (geometric mean)", small, variant, 0.6),
        _mean_of_each(f"{where}: every collective at most 0.6 (geometric mean)", cells, variant, 0.6),
    ]


def _loaded(declining: list[Json]) -> list[Verdict]:
    local = [line for line in declining if line["local"]]
    if not local:
        return []
    worst = max(local, key=lambda line: line["extra_ns"])
    text = f"at most {worst['extra_ns']:.0f} ns ({worst['call']}, {worst['host']})"
    goal = "loaded but declining: at most 50 ns a call (calls that meet no other rank)"
    return [Verdict(goal, text, worst["extra_ns"] <= 50)]


def judge(cells: list[Cell], declining: list[Json]) -> list[Verdict]:
    """Verdicts for Stretto as it was measured. `declining`: the decline lines of collective_bench."""
    verdicts = []
    for variant in VARIANTS:
        mine = [cell for cell in cells if variant in cell.stretto]
        way = ", with an arena" if variant.way == "arena" else ""
        for ranks in sorted({cell.ranks for cell in mine}):
            for apart in sorted({cell.key.apart_ns for cell in mine if cell.ranks == ranks}):
                here = [c for c in mine if c.ranks == ranks and c.key.apart_ns == apart]
                where = f"on {variant.host}{way}, {ranks} ranks" + (f", cores {apart} ns apart" if apart else "")
                if here[0].key.crowded:
                    verdicts += _many_ranks(where, here, variant)
                else:
                    verdicts += _two_ranks(where, [c for c in here if c.mode == "balanced"], variant)
    return verdicts + _loaded(declining)


def markdown(verdicts: list[Verdict]) -> str:
    judged = [v for v in verdicts if v.met is not None]
    left = len(verdicts) - len(judged)
    head = f"{sum(v.met is True for v in judged)} of {len(judged)} are met."
    if left:
        head += f" {left} more could not be judged: something that they compare was not measured."
    rows = [f"| {v.goal} | {v.measured} | {'met' if v.met else '**not met**'} |" for v in judged]
    return "\n".join([head, "", "| goal | measured | |", "|---|---|---|", *rows]) + "\n"
