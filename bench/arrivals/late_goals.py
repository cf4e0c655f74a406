"""The speed goals for ranks that come apart, judged on merged cells: after-last-arrival times at every point."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from goals import Verdict, at_each
from lateness import ALONE, BALANCED, BY_ARRIVAL, PAPER, Cell, Variant
from tables import size_text

_LARGE = 64 << 10
_BOUND = 1 << 20

Ratio = Callable[[Cell], "float | None"]


def variants(cells: Iterable[Cell]) -> list[Variant]:
    """As it is measured without settings, in the order of the tables."""
    present = {variant for cell in cells for variant in cell.stretto if not variant.way.endswith((ALONE, BY_ARRIVAL))}
    return sorted(present, key=lambda variant: (variant.way != "stretto", variant.host != "openmpi", variant))


def name(variant: Variant) -> str:
    return f"on {variant.host}" + (", with an arena" if variant.way == "arena" else "")


def places(cells: Iterable[Cell], variant: Variant) -> dict[str, list[Cell]]:
    """Where the ranks stood -> the cells in which this variant was measured there."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        if variant in cell.stretto:
            found.setdefault(cell.key.where(), []).append(cell)
    return found


def place(cell: Cell) -> str:
    return f"{cell.key.collective} {size_text(cell.key.bytes)} {cell.key.pattern()}"


def measures(variant: Variant) -> list[tuple[str, float, Callable[[Cell], bool], Ratio]]:
    """Goal, what a ratio may be at most, which cells it is about, the ratio."""
    return [
        (
            "at most 0.5 of the best peer's time",
            0.5,
            lambda cell: cell.key.late(),
            lambda cell: cell.over_peers(variant),
        ),
        (
            "from 64 KiB at most 0.7 of the paper's algorithms'",
            0.7,
            lambda cell: cell.key.late() and cell.key.bytes >= _LARGE,
            lambda cell: cell.over_sides(variant, PAPER),
        ),
        (
            "below 64 KiB at most 0.8 of the paper's algorithms'",
            0.8,
            lambda cell: cell.key.late() and cell.key.bytes < _LARGE,
            lambda cell: cell.over_sides(variant, PAPER),
        ),
        (
            "from 1 MiB at most 1.5 times the bound",
            1.5,
            lambda cell: cell.key.late() and cell.key.bytes >= _BOUND,
            lambda cell: cell.over_bound(variant),
        ),
        (
            "balanced: within 5 % of the best balanced algorithm",
            1.05,
            lambda cell: not cell.key.late(),
            lambda cell: cell.over_sides(variant, BALANCED),
        ),
        (
            "at most 15 % more than in the order of arrival",
            1.15,
            lambda cell: cell.key.late(),
            lambda cell: cell.over_arrival_order(variant),
        ),
    ]


def judge(cells: list[Cell]) -> list[Verdict]:
    verdicts = []
    for variant in variants(cells):
        for where, here in places(cells, variant).items():
            for goal, most, about, ratio in measures(variant):
                points = [(found, place(cell)) for cell in here if about(cell) and (found := ratio(cell)) is not None]
                verdicts.append(at_each(f"{name(variant)}, {where}: {goal}", points, most))
    return verdicts


def missed(cells: list[Cell]) -> list[tuple[float, str]]:
    """By how much each goal is missed at each point, and where; the worst first."""
    found = []
    for variant in variants(cells):
        for goal, most, about, ratio in measures(variant):
            for cell in filter(about, cells):
                value = ratio(cell)
                if value is not None and value > most:
                    found.append((value / most, f"{place(cell)} | {cell.key.where()} | {name(variant)} | {goal} | {value:.2f}"))
    return sorted(found, reverse=True)
