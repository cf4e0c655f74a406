"""Drawings as inline SVG: few marks, classes for the style sheet, every text escaped, a tooltip where asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from stretto.wording import clean

LETTER = 6.6  # mean width of a letter at the drawings' 12 px


def safe(text: object) -> str:
    """Text for an element or a quoted attribute."""
    return escape(clean(text), quote=True)


def short(text: object, letters: int) -> str:
    """At most so many letters; what is left out is in the middle, since names differ in their ends."""
    shown = clean(text)
    tail = letters // 3
    return shown if len(shown) <= letters else f"{shown[: letters - 1 - tail]}…{shown[len(shown) - tail :]}"


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


class Drawing:
    """Coordinates are pixels at natural size; the page scales drawings down where it is narrower."""

    def __init__(self, width: float, height: float, title: str, description: str = "") -> None:
        self.width, self.height = width, height
        self.title, self.description = title, description
        self._parts: list[str] = []

    def _add(self, element: str, attributes: str, style: str, tip: str, content: str = "") -> None:
        inner = content + (f"<title>{safe(tip)}</title>" if tip else "")
        named = f' class="{style}"' if style else ""
        self._parts.append(f"<{element}{named} {attributes}" + (f">{inner}</{element}>" if inner else "/>"))

    def rect(self, x: float, y: float, width: float, height: float, style: str, tip: str = "") -> None:
        if width > 0 and height > 0:
            self._add("rect", f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"', style, tip)

    def text(self, x: float, y: float, text: object, style: str = "", anchor: str = "start", tip: str = "") -> None:
        self._add("text", f'x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}"', style, tip, safe(text))

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str = "axis") -> None:
        self._add("line", f'x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"', style, "")

    def dots(self, points: Sequence[tuple[float, float]], style: str, tip: str = "") -> None:
        """Many small round marks as one path."""
        if points:
            self._add("path", 'd="' + "".join(f"M{_n(x)} {_n(y)}h0" for x, y in points) + '"', style, tip)

    def curve(self, points: Sequence[tuple[float, float]], style: str, tip: str = "") -> None:
        """Straight lines from point to point; a lone point is a dash, as it would not be seen."""
        if len(points) == 1:
            points = [(points[0][0] - 4, points[0][1]), (points[0][0] + 4, points[0][1])]
        if points:
            self._add("path", 'd="M' + "L".join(f"{_n(x)} {_n(y)}" for x, y in points) + '"', style, tip)

    def image(self, x: float, y: float, width: float, height: float, data: str) -> None:
        place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
        self._add("image", f'{place} preserveAspectRatio="none" href="{data}"', "pixels", "")

    def fill(self, x: float, y: float, width: float, height: float, color: str, tip: str = "") -> None:
        """A cell of a heat map, whose colour is data."""
        self._add("rect", f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" fill="{color}"', "", tip)

    def render(self) -> str:
        size = f'viewBox="0 0 {_n(self.width)} {_n(self.height)}" width="{_n(self.width)}" height="{_n(self.height)}"'
        said = f"<title>{safe(self.title)}</title>" + (f"<desc>{safe(self.description)}</desc>" if self.description else "")
        return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>{said}{"".join(self._parts)}</svg>'


def stacked(drawings: Sequence[Drawing], said: str, style: str) -> str:
    """Drawings of one width, one below the other under a line of text, as a file of its own that looks the same everywhere."""
    width, height = max(one.width for one in drawings) + 40, sum(one.height + 26 for one in drawings) + 40
    parts, at = [], 40.0
    for one in drawings:
        parts.append(f'<g transform="translate(20 {at:.0f})">{one.render()}</g>')
        at += one.height + 26
    box = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    page = f'<rect class="page" width="{width:.0f}" height="{height:.0f}"/><text x="20" y="24" class="note">{safe(said)}</text>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}><style>{style}</style>{page}{"".join(parts)}</svg>\n'


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to pixels; `ticks` lie inside the range."""

    least: float
    most: float
    start: float
    end: float
    ticks: tuple[float, ...]
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = self.least, self.most, value
        if self.log:
            low, high, at = math.log10(low), math.log10(high), math.log10(max(value, self.least))
        share = (at - low) / (high - low) if high > low else 0.0
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)


def exact(most: float, start: float, end: float, wanted: int = 8) -> Scale:
    """From 0 to `most`, with ticks at round numbers, about `wanted` of them."""
    if not most > 0 or not math.isfinite(most):
        most = 1.0
    raw = most / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * nice for nice in (1, 2, 2.5, 5, 10) if power * nice >= raw * 0.999999)
    return Scale(0.0, most, start, end, tuple(step * number for number in range(int(most / step * 1.000001) + 1)))


def roomy(most: float) -> float:
    """A little more than `most`, for an axis that ends beyond its longest bar."""
    return most * 1.02 if most > 0 else 1.0


def logarithmic(least: float, most: float, start: float, end: float) -> Scale:
    """From a power of ten to a power of ten, at least one decade."""
    low = math.floor(math.log10(least) + 1e-9)
    high = max(math.ceil(math.log10(most) - 1e-9), low + 1)
    step = max(1, math.ceil((high - low) / 6))
    ticks = tuple(10.0**power for power in range(low, high + 1, step))
    return Scale(10.0**low, 10.0**high, start, end, ticks, True)


def bottom_axis(drawing: Drawing, scale: Scale, y: float, label: str, show: Callable[[float], str]) -> None:
    drawing.line(scale.start, y, scale.end, y)
    for tick in scale.ticks:
        drawing.line(scale(tick), y, scale(tick), y + 4)
        drawing.text(scale(tick), y + 17, show(tick), "tick", "middle")
    drawing.text(scale.end, y + 34, label, "label", "end")


def left_axis(drawing: Drawing, scale: Scale, x: float, right: float, show: Callable[[float], str]) -> None:
    """Light grid lines with their values; no line of its own."""
    for tick in scale.ticks:
        drawing.line(x, scale(tick), right, scale(tick), "grid")
        drawing.text(x - 8, scale(tick) + 4, show(tick), "tick", "end")


def legend(drawing: Drawing, x: float, y: float, entries: Sequence[tuple[str, str]]) -> None:
    """`entries`: (style, name), one after the other on a line."""
    for style, name in entries:
        drawing.rect(x, y - 10, 16, 11, style)
        drawing.text(x + 22, y, name, "label")
        x += 22 + LETTER * len(clean(name)) + 22
