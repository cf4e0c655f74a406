"""Pictures of the results: time and bandwidth against size; under an arrival pattern gain against size, and one call's raster."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from stretto.benchmark.model import LIBRARY, PROGRAM, Point, Results
from stretto.benchmark.tables import pattern, setup_line
from stretto.profile_report.svg import Drawing, Scale, bottom_axis, exact, left_axis, legend, logarithmic, safe, stacked
from stretto.wording import digits, duration, percent, short_size, size, tick

WIDE = 860.0
_LEFT, _RIGHT = 76.0, WIDE - 14
_SIDES = {PROGRAM: ("stretto", "Stretto"), LIBRARY: ("mpi", "MPI library")}
_SHADES = ("shade0", "shade1", "shade2", "shade3", "shade4", "shade5")
STYLE = """
svg{--ink:#16202b;--soft:#55626f;--rule:#d9dfe5;--paper:#fff;--a:#12325a;--b:#b4470f;--c:#8894a0;--d:#3f7cb8;--e:#9cc3e6;--f:#6b5b3e}
@media (prefers-color-scheme:dark){svg{--ink:#e4e9ee;--soft:#a3afba;--rule:#2c353e;--paper:#12171d;--a:#86b9ea;--b:#f0955c;
--c:#76828e;--d:#3f74a8;--e:#d6e6f7;--f:#c9b48b}}
.page{fill:var(--paper)}
text{font:12px system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:var(--ink)}
.heading{font-weight:600;font-size:14px}.tick,.label,.note{fill:var(--soft)}
.axis{stroke:var(--c)}.grid{stroke:var(--rule)}.last{stroke:var(--b);stroke-dasharray:4 3}
path{fill:none;stroke-width:2;stroke-linejoin:round}
path.stretto,path.shade0{stroke:var(--a)}path.mpi,path.shade1{stroke:var(--b)}path.floor,path.shade2{stroke:var(--c)}
path.floor{stroke-dasharray:5 4}path.shade3{stroke:var(--d)}path.shade4{stroke:var(--e)}path.shade5{stroke:var(--f)}
rect.stretto,rect.shade0,rect.after{fill:var(--a)}rect.mpi,rect.shade1{fill:var(--b)}rect.floor,rect.shade2{fill:var(--c)}
rect.shade3{fill:var(--d)}rect.shade4,rect.waits{fill:var(--e)}rect.shade5{fill:var(--f)}
"""


_PAGE = """body{max-width:1100px;margin:2em auto;padding:0 1em}figure{margin:1em 0}svg{max-width:100%;height:auto}
pre{overflow-x:auto;font-size:12px}
"""


def drawings(results: Results) -> list[Drawing]:
    """In the order of the collectives measured; those that nothing can be drawn of are left out."""
    found: list[Drawing] = []
    for name in dict.fromkeys(point.collective for point in results.points):
        points = [point.as_run(results.accelerating) for point in results.points if point.collective == name]
        patterns = [point for point in points if point.shape]
        if patterns:
            found += [*gains(name, patterns), *raster(name, patterns)]
        else:
            found += [*against_size(name, points)]
    return found


def _sizes(points: Sequence[Point]) -> Scale:
    """Sizes side by side as powers of two."""
    sizes = sorted({point.bytes for point in points if point.bytes})
    few = sizes[:: -(-len(sizes) // 12)] if sizes else []
    return Scale(min(sizes, default=1), max(sizes, default=2), _LEFT + 10, _RIGHT - 10, tuple(map(float, few)), True)


def against_size(name: str, points: Sequence[Point]) -> list[Drawing]:
    """Time and bandwidth of the sides and of the floor."""
    sized = sorted((point for point in points if point.bytes), key=lambda point: point.bytes)
    if len(sized) < 2:
        return []
    time: list[Callable[[Point], float | None]] = [lambda point, side=side: point.median(side) for side in _SIDES]  # type: ignore[misc]
    time.append(lambda point: point.floor or None)

    def bandwidth(of: Callable[[Point], float | None]) -> Callable[[Point], float | None]:
        return lambda point: point.bytes / value / 1e3 if (value := of(point)) else None

    latency = _curves(f"{name}: time of a call", sized, time, lambda value: duration(value * 1e-6))
    through = _curves(f"{name}: bytes of a block per time, GB/s", sized, [bandwidth(one) for one in time], tick)
    return [one for one in (latency, through) if one]


def _curves(
    title: str,
    points: Sequence[Point],
    values: Sequence[Callable[[Point], float | None]],
    show: Callable[[float], str],
) -> Drawing | None:
    """Logarithmic, since the machine's floor, in its caches, is far from what a call reaches."""
    shown = [[(point.bytes, value) for point in points if (value := of(point)) is not None and value > 0] for of in values]
    most = max((value for one in shown for _, value in one), default=0.0)
    if not most:
        return None
    drawing = Drawing(WIDE, 330, title)
    drawing.text(0, 16, title, "heading")
    styles = [*_SIDES.values(), ("floor", "floor of this machine")]
    across = _sizes(points)
    least = min(value for one in shown for _, value in one)
    up = logarithmic(least, most, 270, 44)
    left_axis(drawing, up, _LEFT, _RIGHT, show)
    present = [number for number, one in enumerate(shown) if one]
    legend(drawing, _LEFT + 330, 16, [styles[number] for number in present])
    for number in present:
        drawing.curve([(across(at), up(value)) for at, value in shown[number]], styles[number][0])
    bottom_axis(drawing, across, 280, "bytes of a block", short_size)
    return drawing


def gains(name: str, points: Sequence[Point]) -> list[Drawing]:
    """After the paper's Figures 7 and 8: by how much the time after the last arrival is shorter than the MPI library's."""
    if not any(point.ratio is not None for point in points):
        return []
    kinds = list(dict.fromkeys(pattern(point) for point in points))
    if len({point.bytes for point in points}) < 2:
        return []
    title = f"{name}: gain over the MPI library after the last arrival"
    drawing = Drawing(WIDE, 340, title)
    drawing.text(0, 16, title, "heading")
    across = _sizes(points)
    values = [1 - point.ratio for point in points if point.ratio is not None]
    low = min(0.0, max(-1.0, min(values)))
    ticks = tuple(step / 4 for step in range(int(low * 4) - (low < 0), 5))
    up = Scale(ticks[0], 1.0, 280, 60, ticks)
    left_axis(drawing, up, _LEFT, _RIGHT, lambda value: percent(value) if value >= 0 else f"−{percent(-value)}")
    legend(drawing, 0, 38, [(_SHADES[number % len(_SHADES)], kind) for number, kind in enumerate(kinds)])
    for number, kind in enumerate(kinds):
        mine = sorted(
            (point for point in points if pattern(point) == kind and point.ratio is not None), key=lambda point: point.bytes
        )
        curve = [(across(point.bytes), up(1 - (point.ratio or 1))) for point in mine if point.bytes]
        drawing.curve(curve, _SHADES[number % len(_SHADES)])
    bottom_axis(drawing, across, 290, "bytes of a block", short_size)
    return [drawing]


def raster(name: str, points: Sequence[Point]) -> list[Drawing]:
    """One typical call, of the widest spread at the largest size: when each rank came and went."""
    late = [point for point in points if any(side.get("raster") for side in point.sides.values())]
    if not late:
        return []
    chosen = max(late, key=lambda point: (point.shape != "balanced", point.bytes, point.spread))
    sides = [(side, values["raster"]) for side, values in chosen.sides.items() if values.get("raster")]
    ranks = len(sides[0][1])
    height = min(max(220 / ranks, 6), 22)
    block = ranks * height + 36
    title = f"One {name} of {size(chosen.bytes)}, {pattern(chosen)}: when each rank came and went"
    drawing = Drawing(WIDE, 52 + block * len(sides) + 46, title)
    drawing.text(0, 16, title, "heading")
    legend(drawing, _LEFT, 36, [("waits", "in the call, waiting for the last rank"), ("after", "after the last arrival")])
    end = max(seen[2] for _, rows in sides for seen in rows)
    across = exact(end * 1.02, _LEFT, _RIGHT, 8)
    for number, (side, rows) in enumerate(sides):
        _bars(drawing, across, 52 + block * number, height, rows, _SIDES.get(side, (side, side))[1])
    bottom_axis(drawing, across, 52 + block * len(sides) - 4, "µs after the start", lambda value: digits(value))
    return [drawing]


def _bars(drawing: Drawing, across: Scale, top: float, height: float, rows: Sequence[Sequence[float]], name: str) -> None:
    last = max(entry for _, entry, _ in rows)
    drawing.text(0, top + 14, name, "label")
    for rank, (_, entry, left) in enumerate(rows):
        y = top + 20 + rank * height
        if height >= 12 or rank % 4 == 0:
            drawing.text(_LEFT - 8, y + height / 2 + 4, rank, "tick", "end")
        drawing.rect(across(entry), y + 1, across(min(left, last)) - across(entry), height - 2, "waits")
        after = max(entry, last)
        drawing.rect(
            across(after), y + 1, across(left) - across(after), height - 2, "after", f"rank {rank}: out at {left:.1f} µs"
        )
    drawing.line(across(last), top + 14, across(last), top + 20 + len(rows) * height, "last")


def as_svg(results: Results) -> str:
    """All drawings, one below the other, as one file that looks the same everywhere."""
    parts = drawings(results)
    if not parts:
        return ""
    return stacked(parts, setup_line(results.setup).removeprefix("# "), STYLE)


def as_html(results: Results, lines: Sequence[str]) -> str:
    """The same with the table, as one page without scripts; where it is narrow drawings shrink and the table scrolls."""
    body = "".join(f"<figure>{one.render()}</figure>" for one in drawings(results))
    head = f'<meta charset="utf-8"><title>stretto bench</title><style>{STYLE}{_PAGE}</style>'
    return f"<!doctype html><html><head>{head}</head><body>{body}<pre>{safe_lines(lines)}</pre></body></html>\n"


def safe_lines(lines: Sequence[str]) -> str:
    """With the letter that terminals may lack."""
    return re.sub(r"\bus\b", "µs", "\n".join(safe(line) for line in lines))
