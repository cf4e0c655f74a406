"""The results as pictures (simulated.svg) and tables (simulated.md)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from simulator import FACTOR, PER_NODE, Measured, read

from stretto.benchmark.pictures import STYLE
from stretto.profile_report.svg import LETTER, Drawing, Scale, bottom_axis, exact, left_axis, stacked
from stretto.wording import count, duration, short_count, short_size, tick

WIDE, TALL = 860.0, 330.0
DIRECT_FROM = 16 << 10  # bytes; smaller vectors go through cells in any case (node.cpp)
_OVER = "Allreduce, time over alpha,"
_LEFT, _RIGHT = 76.0, WIDE - 14
_PLACEMENT = {"block": "in blocks", "in turn": "dealt out in turn"}
# The MPI's own choices are dashed.
CURVES = {
    ("flat", "ompi"): "flat0",
    ("flat", "mpich"): "flat1",
    ("flat", "impi"): "flat2",
    ("leader", ""): "shade0",
    ("rsa", ""): "shade1",
    ("leaders", ""): "shade3",
    ("streamed", ""): "shade4",
    ("pipelined", ""): "shade5",
}
_STYLE = STYLE + (
    "path.flat0,path.flat1,path.flat2{stroke:var(--c)}path.flat0{stroke-dasharray:7 3}path.flat1{stroke-dasharray:2 3}"
    "path.flat2{stroke-dasharray:9 3 2 3}"
)
Key = tuple[str, str]


@dataclass(frozen=True)
class Group:
    """What one picture shows: `at` of a measurement is its place on the lower axis."""

    title: str
    points: list[Measured]
    at: Callable[[Measured], int]
    axis: str
    show: Callable[[float], str]
    value: Callable[[Measured], float] = lambda one: one.after_last
    unit: Callable[[float], str] = duration


def key_of(one: Measured) -> Key:
    return (one.row, one.selector if one.row == "flat" else "")


def name_of(key: Key) -> str:
    return f"MPI ({key[1]})" if key[0] == "flat" else key[0]


def median(points: Iterable[Measured]) -> float:
    return statistics.median(one.after_last for one in points)


def over_alpha(one: Measured) -> float:
    return one.after_last / one.alpha


def pattern(factor: float) -> str:
    return "all at once" if not factor else f"arrival within {factor:g} alpha"


def groups(size: Sequence[Measured], ranks: Sequence[Measured]) -> list[Group]:
    found = []
    for topology in dict.fromkeys(one.topology for one in size):
        for factor in sorted({one.factor for one in size}):
            for inside in ("staged", "direct"):
                mine = [one for one in size if one.topology == topology and one.factor == factor and one.in_node in ("", inside)]
                where = f"{topology} of {mine[0].ranks // PER_NODE} nodes x {PER_NODE} ranks, {inside} in the nodes"
                title = f"{_OVER} {where}, {pattern(factor)}"
                found.append(Group(title, mine, lambda one: one.bytes, "bytes", short_size, over_alpha, tick))
    for bytes_ in sorted({one.bytes for one in ranks}):
        for factor in sorted({one.factor for one in ranks}):
            for inside in ("staged", "direct") if bytes_ > DIRECT_FROM else ("staged",):
                mine = [one for one in ranks if one.bytes == bytes_ and one.factor == factor and one.in_node in ("", inside)]
                title = f"Allreduce of {short_size(bytes_)}, {mine[0].topology}, {inside} in the nodes, {pattern(factor)}"
                found.append(Group(title, mine, lambda one: one.ranks, "ranks", lambda value: short_count(value)))
    return found


def picture(group: Group) -> Drawing:
    drawing = Drawing(WIDE, TALL, group.title)
    drawing.text(0, 16, group.title, "heading")
    places = sorted({group.at(one) for one in group.points})
    across = Scale(places[0], places[-1], _LEFT + 10, _RIGHT - 10, tuple(map(float, places)), True)
    curves: dict[Key, list[tuple[int, float]]] = {}
    for key in CURVES:
        mine = [one for one in group.points if key_of(one) == key]
        at = sorted({group.at(one) for one in mine})
        curves[key] = [(place, statistics.median(group.value(one) for one in mine if group.at(one) == place)) for place in at]
    most = max(value for curve in curves.values() for _, value in curve)
    up = replace(exact(most * 1.05, 0, 1, 6), start=270, end=56)
    left_axis(drawing, up, _LEFT, _RIGHT, group.unit)
    shown = [key for key, curve in curves.items() if curve]
    names(drawing, shown)
    for key in shown:
        drawing.curve([(across(place), up(value)) for place, value in curves[key]], CURVES[key], name_of(key))
    bottom_axis(drawing, across, 280, group.axis, group.show)
    return drawing


def names(drawing: Drawing, shown: Sequence[Key]) -> None:
    """A legend with lines, as some are dashed."""
    x = 0.0
    for key in shown:
        drawing.curve([(x, 34.0), (x + 24, 34.0)], CURVES[key])
        drawing.text(x + 30, 38, name_of(key), "label")
        x += 30 + LETTER * len(name_of(key)) + 18


def improvements(points: Sequence[Measured], row: str, in_node: str, inside: bool) -> dict[tuple[int, int], float]:
    """By (ranks, bytes): by which share the row takes less time than flat reduce-scatter and allgather; arrivals are the same."""
    found = {}
    for place in sorted({(one.ranks, one.bytes) for one in points}):
        here = [one for one in points if (one.ranks, one.bytes) == place]
        flat = [one for one in here if one.row == "flat"]
        mine = [one for one in here if one.row == row and one.in_node == in_node]
        if flat and mine:
            found[place] = 1 - sum(one.inside_mean if inside else one.after_last for one in mine) / sum(
                one.inside_mean if inside else one.after_last for one in flat
            )
    return found


def table3(points: Sequence[Measured]) -> list[str]:
    """After Alizadeh et al. 2022, Table 3."""
    lines = []
    for link, placement in dict.fromkeys((one.link, one.placement) for one in points):
        here = [one for one in points if (one.link, one.placement) == (link, placement)]
        for inside in (False, True):
            what = "a rank's mean time in the call (the paper's metric)" if inside else "last exit - last arrival"
            lines += ["", f"**{link * 8e-9:.0f} Gb/s, ranks {_PLACEMENT[placement]}: {what}**", ""]
            lines += [
                "| row | in the node | ranks | average | min | bytes | max | bytes |",
                "|---|---|---:|---:|---:|---:|---:|---:|",
            ]
            for row in ("leader", "rsa", "leaders"):
                for in_node in ("staged", "direct"):
                    mine = improvements(here, row, in_node, inside)
                    lines += [f"| {row} | {in_node} | {line} |" for line in _table3_lines(mine)]
    return lines


def _table3_lines(found: dict[tuple[int, int], float]) -> Iterable[str]:
    for ranks in sorted({ranks for ranks, _ in found}):
        mine = {size: value for (here, size), value in found.items() if here == ranks}
        least, most = min(mine, key=lambda size: mine[size]), max(mine, key=lambda size: mine[size])
        mean = statistics.mean(mine.values())
        ends = " | ".join(f"{_signed(mine[at])} | {short_size(at)}" for at in (least, most))
        yield f"{ranks} | {_signed(mean)} | {ends}"


def _signed(share: float) -> str:
    return f"{share * 100:.1f} %".replace("-", "−")


def times(group: Group) -> list[str]:
    keys = [key for key in CURVES if any(key_of(one) == key for one in group.points)]
    lines = [
        "",
        f"**{group.title.replace(_OVER, 'Allreduce,')}**",
        "",
        f"| {group.axis} | " + " | ".join(name_of(key) for key in keys) + " |",
    ]
    lines.append("|---:|" + "---:|" * len(keys))
    for place in sorted({group.at(one) for one in group.points}):
        cells = []
        for key in keys:
            mine = [one for one in group.points if key_of(one) == key and group.at(one) == place]
            cells.append(f"{median(mine) * 1e6:.1f}" if mine else "")
        shown = count(place) if group.axis == "ranks" else short_size(place)
        lines.append(f"| {shown} | " + " | ".join(cells) + " |")
    return lines


def all_of(folder: Path) -> None:
    """Of what is there in `folder`: a grid that was not measured is left out."""
    size, ranks, third = (
        read(path) if (path := folder / f"{name}.json").exists() else [] for name in ("size", "ranks", "table3")
    )
    found = groups(size, ranks)
    said = "Simulated by SimGrid, not measured: last exit - last arrival. What is modelled: bench/scale/README.md"
    if found:
        (folder / "simulated.svg").write_text(stacked([picture(one) for one in found], said, _STYLE))
    lines = [
        "# Allreduce over simulated nodes",
        "",
        f"{said.replace('bench/scale/README.md', '`bench/scale/README.md`')}. Microseconds; empty: not simulated.",
    ]
    lines += ["Made by `bench/scale/run`; pictures: `simulated.svg`.", "", "## After Table 3 of Alizadeh et al. 2022", ""]
    lines += [
        f"By how much less time a row takes than flat reduce-scatter and allgather, random arrival within {FACTOR:g} alpha;",
        "three draws, the same for all. Over sizes from 64 KiB on; min and max: of the sizes beside them. Negative: the row",
        "takes longer.",
    ]
    lines += table3(third) if third else []
    lines += ["", "## Times"]
    for group in found:
        lines += times(group)
    (folder / "simulated.md").write_text("\n".join(lines) + "\n")
