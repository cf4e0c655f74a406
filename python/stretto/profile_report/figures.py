"""The page's drawings. Lightness, hatching and labels tell things apart; hue never does it alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto.profile_model import Profile
from stretto.profile_report import heat, views
from stretto.profile_report.svg import LETTER, Drawing, bottom_axis, exact, legend, roomy, short
from stretto.wording import bin_name, count, duration, percent, short_count, short_size, size, tick

WIDE, HALF = 1040.0, 508.0
_SERIES = ("s0", "s1", "s2", "s3", "s4")  # styles of the longest functions; the rest is "other"
LOCATIONS = {"host": "host", "device": "device", "managed": "managed", "none": "nodata"}  # style of each
_MOST_DOTS = 2500


def rank_shares(profile: Profile, functions: Sequence[views.Row]) -> str:
    """After thesis Fig. 3.6: share of the run time that each rank spends in each function."""
    functions = [row for row in functions if row["spent"] > 0]
    top = sorted(functions, key=lambda row: -row["spent"])[: len(_SERIES)]
    parts, shares = views.shares_by_rank(profile, [(row["library"], row["function"]) for row in top])
    if not parts:
        return ""
    names = [row["function"] for row in top] + (["other"] if len(functions) > len(top) else [])
    row_height = 22.0 if len(parts) <= 16 else 12.0 if len(parts) <= 32 else 9.0
    left, over = 70.0, 34.0
    drawing = Drawing(WIDE, over + row_height * len(parts) + 46, "Share of run time in communication, by rank and function")
    legend(drawing, left, 14, list(zip([*_SERIES[: len(top)], "other"], names, strict=False)))
    scale = exact(roomy(float(shares.sum(axis=1).max())), left, WIDE - 60)
    every = 1 if row_height > 14 else 4
    for number, part in enumerate(parts):
        y = over + number * row_height
        _stack(drawing, scale, y, row_height, shares[number], [*names, "other"], part.label)
        if number % every == 0:
            drawing.text(left - 8, y + row_height / 2 + 4, part.label, "tick", "end")
        if row_height > 14:
            drawing.text(scale(float(shares[number].sum())) + 6, y + row_height / 2 + 4, percent(shares[number].sum()), "value")
    bottom = over + row_height * len(parts)
    bottom_axis(drawing, scale, bottom + 2, "share of the rank's run time", lambda at: f"{tick(at * 100)} %")
    drawing.text(left - 8, over - 12, "rank" if parts[0].first == parts[0].last else "ranks", "label", "end")
    return drawing.render()


def _stack(
    drawing: Drawing, scale: Any, y: float, height: float, shares: np.ndarray[Any, Any], names: Sequence[str], rank: str
) -> None:
    x = 0.0
    styles = [*_SERIES[: len(shares) - 1], "other"]
    for share, name, style in zip(shares, names, styles, strict=False):
        begin, end = scale(x), scale(x + float(share))
        gap = min(height / 6, 2.0)
        drawing.rect(begin, y + gap, end - begin, height - 2 * gap, style, f"rank {rank}: {name} {percent(float(share))}")
        x += float(share)


def histogram(library: str, function: str, rows: Sequence[views.Row], bins: Sequence[int]) -> str:
    """After thesis Fig. 3.7-3.10: calls (above) and time (below) by bin of message size, split by where the buffers lie."""
    drawing = Drawing(HALF, 264, f"Message sizes of {function}", f"{library}: calls and time by message size")
    drawing.text(0, 14, short(function, 30), "heading")
    places = [name for name in LOCATIONS if any(row["location"] == name for row in rows)]
    legend(
        drawing,
        HALF - sum(44 + LETTER * len(_place(name)) for name in places) + 22,
        14,
        [(LOCATIONS[n], _place(n)) for n in places],
    )
    width = HALF / len(bins)
    for key, bottom, title, show in (
        ("calls", 118.0, "calls", short_count),
        ("time", 224.0, "time, summed over ranks", duration),
    ):
        drawing.text(0, bottom - 78, title, "label")
        _bars(drawing, rows, bins, key, bottom, width, show)
    for number, upper in enumerate(bins):
        if upper == 0:
            drawing.text((number + 0.5) * width - 8, 241, "none", "tick", "start")
        elif len(bins) <= 9 or (upper.bit_length() % 4 == 1 and (bins[0] or (number + 0.5) * width > 48)):
            half = LETTER * len(size(upper)) / 2
            drawing.text(min((number + 0.5) * width, HALF - half), 241, size(upper), "tick", "middle")
    drawing.text(HALF, 259, "bytes per call, up to", "label", "end")
    return drawing.render()


def _place(name: str) -> str:
    return "no data" if name == "none" else name


def size_bins(uppers: Sequence[int]) -> list[int]:
    """Every power of two from the least to the most, so that distances are true; 0 first where there are calls without data."""
    sized = [upper for upper in uppers if upper > 0]
    found = [0] if 0 in uppers else []
    if sized:
        least, most = min(sized), max(sized)
        while least <= most:
            found.append(least)
            least *= 2
    while found and len(found) < 8:
        found.append(max(found[-1] * 2, 1))
    return found or [0]


def _bars(
    drawing: Drawing, rows: Sequence[views.Row], bins: Sequence[int], key: str, bottom: float, width: float, show: Any
) -> None:
    sums = {upper: sum(row[key] or 0 for row in rows if row["upper"] == upper) for upper in bins}
    scale = exact(max(sums.values()), bottom, bottom - 56)
    drawing.line(0, bottom, HALF, bottom)
    tops = {}
    for number, upper in enumerate(bins):
        x, y = number * width, bottom
        for row in (row for row in rows if row["upper"] == upper and row[key]):
            height = max(bottom - scale(row[key]), 1.5)
            tip = f"{bin_name(upper)}, {_place(row['location'])}: {count(row['calls'])} calls, {duration(row['time'])}"
            y -= height
            drawing.rect(x + width * 0.08, y, width * 0.84, height, LOCATIONS.get(row["location"], "nodata"), tip)
        tops[upper] = y
    taken: list[tuple[float, float]] = []
    for upper in sorted((upper for upper in bins if sums[upper]), key=lambda upper: -sums[upper])[:6]:
        label = show(sums[upper])
        half = LETTER * len(label) / 2 + 3
        middle = min(max((bins.index(upper) + 0.5) * width, half), HALF - half)
        if all(abs(middle - other) > half + reach for other, reach in taken):
            taken.append((middle, half))
            drawing.text(middle, tops[upper] - 4, label, "value", "middle")


def partner_matrix(found: views.Matrix, of_bytes: bool) -> str:
    """After thesis Fig. 3.11: from which rank to which; darker is more."""
    values = (found.bytes if of_bytes else found.calls).astype(float)
    ranks, left, top = len(found.parts), 64.0, 62.0
    cell = min((HALF - left - 4) / ranks, 44.0)
    side = cell * ranks
    title = "Point-to-point bytes" if of_bytes else "Point-to-point calls"
    drawing = Drawing(HALF, top + side + 30, f"{title} from rank to rank")
    drawing.text(0, 14, title, "heading")
    show = size if of_bytes else short_count
    heat.shade_scale(drawing, HALF - 330, 4, values, show)
    places = heat.shades(values, log=True)
    places[values == 0] = np.nan
    rgba = heat.colors(places)
    drawing.rect(left, top, side, side, "ground")
    if ranks <= 16:
        _cells(drawing, found, values, rgba, places, (left, top, cell), short_size if of_bytes else short_count)
    else:
        drawing.image(left, top, side, side, heat.png(rgba))
    every = max(1, -(-ranks // 16))
    for number in range(0, ranks, every):
        middle = (number + 0.5) * cell
        first = str(found.parts[number].first)
        drawing.text(left - 6, top + middle + 4, first, "tick", "end")
        if number % (every * 2 if cell * every < 26 else every) == 0:
            drawing.text(left + middle, top - 6, first, "tick", "middle")
    drawing.text(left, top - 24, "to rank →", "label")
    drawing.text(0, top + 12, "from ↓", "label")
    return drawing.render()


def _cells(
    drawing: Drawing, found: views.Matrix, values: Any, rgba: Any, places: Any, at: tuple[float, float, float], show: Any
) -> None:
    left, top, cell = at
    for source in range(len(values)):
        for target in range(len(values)):
            value = float(values[source, target])
            if not value:
                continue
            x, y = left + target * cell, top + source * cell
            traffic = f"{count(int(found.calls[source, target]))} calls, {size(float(found.bytes[source, target]))}"
            drawing.fill(
                x + 0.5, y + 0.5, cell - 1, cell - 1, heat.css_color(rgba[source, target]), f"{source} to {target}: {traffic}"
            )
            if cell >= 34:
                style = "oncell dark" if places[source, target] > 0.5 else "oncell"
                drawing.text(x + cell / 2, y + cell / 2 + 4, show(value), style, "middle")
