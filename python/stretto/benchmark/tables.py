"""The results as rows of text, one as soon as it is measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto.benchmark.model import LIBRARY, PROGRAM, Point
from stretto.wording import clean, digits

NONE = "-"
_WIDTH = 11  # of a column at least


def setup_line(setup: dict[str, Any]) -> str:
    library = clean(setup.get("library", "")).split(",")[0]
    nodes = f" of {setup['nodes']} nodes" if setup.get("nodes", 1) > 1 else ""
    cores = f"{_counted(setup.get('ranks'), 'rank')} on {_counted(setup.get('cores'), 'core')}{nodes}"
    pinned = ", one each" if setup.get("pinned") else ", taking turns" if setup.get("crowded") else ""
    stretto = setup.get("stretto")
    why = clean(setup.get("why", ""))
    part = f" {why}" if setup.get("accelerating") else f" takes no part: {why}"
    state = f"Stretto {stretto}{part}" if stretto else "without Stretto"
    return f"# {library}, {cores}{pinned}, {setup.get('clock')}; {state}"


def _counted(number: Any, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def number(value: float | None) -> str:
    return NONE if value is None else digits(value)


def names(point: Point) -> tuple[str, ...]:
    """Of the sides, as the header has them."""
    shown = {PROGRAM: "Stretto", LIBRARY: "MPI"} if LIBRARY in point.sides else {PROGRAM: "MPI"}
    return tuple(shown.get(side, side) for side in point.sides)


def header(point: Point) -> str:
    cells = _header(point)
    return _row(cells, _widths(cells))


def _header(point: Point) -> list[str]:
    both = LIBRARY in point.sides and PROGRAM in point.sides
    cells = [point.collective, "bytes"]
    if point.shape:
        cells += ["delay", "waiting"]
        for name in names(point):
            cells += [f"{name} us", "x bound"]
    else:
        for name in names(point):
            cells += [f"{name} us", "p10"]
    cells += ["ratio"] if both else []
    return [*cells, "bound us" if point.shape else "floor us", "samples"]


def _widths(cells: Sequence[str]) -> list[int]:
    """Of the columns but the first: they follow the names of algorithms, which are of any length."""
    return [max(_WIDTH, len(cell) + 2) for cell in cells[1:]]


def row(point: Point) -> str:
    both = LIBRARY in point.sides and PROGRAM in point.sides
    cells = [pattern(point) if point.shape else "", str(point.bytes)]
    if point.shape:
        cells += [number(point.spread * point.unit) if point.unit else NONE, number(point.waiting)]
    for side in point.sides:
        cells += [number(point.median(side)), _over(point.median(side), point.bound) if point.shape else _p10(point, side)]
    cells += [number(point.ratio)] if both else []
    cells += [number((point.bound if point.shape else point.floor) or None), str(point.samples)]
    return _row(cells, _widths(_header(point))) + ("  WRONG RESULTS" if point.wrong else "")


def pattern(point: Point) -> str:
    return point.shape if not point.spread or not point.unit else f"{point.shape} x{point.spread:g}"


def _over(value: float | None, bound: float) -> str:
    """Nothing where it would be in the thousands: the bound knows nothing of ranks that take turns on a core."""
    return digits(value / bound) if value is not None and value < 1000 * bound else NONE


def _p10(point: Point, side: str) -> str:
    return number(point.sides[side].get("p10_us"))


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"{cells[0]:<20}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells[1:], widths, strict=True))
