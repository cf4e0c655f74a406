"""Drawings of arrival: imbalance over time, who came last, the raster, waiting apart from transfer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from stretto.profile_model import Profile
from stretto.profile_report import heat, views
from stretto.profile_report.svg import Drawing, bottom_axis, exact, left_axis, legend, logarithmic, roomy, short
from stretto.wording import count, duration, percent, tick

WIDE = 1040.0
_MOST_DOTS = 2500


def over_time(profile: Profile, library: str, communicator: str, function: str) -> str:
    """After paper Fig. 4: worst-case and average imbalance of each invocation, and below which rank came last."""
    same = (pl.col("library") == library) & (pl.col("communicator") == communicator) & (pl.col("function") == function)
    rows = _thin(profile.table("invocations").filter(same & pl.col("omega").is_finite()))
    relative = bool(rows["omega_factor"].is_not_null().any())
    worst, mean = ("omega_factor", "delta_factor") if relative else ("omega", "delta")
    values = [value for value in rows[worst].to_list() + rows[mean].to_list() if value and value > 0]
    if not values:
        return ""
    drawing = Drawing(WIDE, 368, f"Arrival imbalance of {function} over the run")
    drawing.text(0, 14, f"{function} on {short(communicator, 48)}", "heading")
    names = ("worst: Ω/α", "mean: Δ/α") if relative else ("worst: Ω", "mean: Δ")
    legend(drawing, WIDE - 222, 14, list(zip(("dotmax", "dotmean"), names, strict=True)))
    mean_run = views.run_time(profile) / max(len(views.rank_numbers(profile)), 1)
    time = exact(max(mean_run, *rows["at"].to_list()), 70, WIDE - 10)
    high = logarithmic(min(values), max(values), 190, 40)
    left_axis(drawing, high, 70, WIDE - 10, tick if relative else duration)
    for column, style in ((mean, "means"), (worst, "maxima")):
        shown = rows.filter(pl.col(column) > 0)
        drawing.dots([(time(at), high(value)) for at, value in shown.select("at", column).iter_rows()], style)
    ranks = max(len(views.rank_numbers(profile)), int(str(rows["last_rank"].max() or 0)) + 1)
    drawing.text(0, 218, "last to arrive, by rank", "label")
    _last_strip(drawing, rows, time, ranks)
    bottom_axis(drawing, time, 330, "seconds since MPI_Init", tick)
    return drawing.render()


def _last_strip(drawing: Drawing, rows: pl.DataFrame, time: Any, ranks: int) -> None:
    top, bottom = 236.0, 320.0
    step = (bottom - top) / max(ranks - 1, 1)
    every = 1 << max(0, math.ceil(math.log2(13 / step)))
    for rank in range(0, ranks, every):
        drawing.text(62, top + rank * step + 4, rank, "tick", "end")
        drawing.line(70, top + rank * step, WIDE - 10, top + rank * step, "grid")
    drawing.dots([(time(at), top + rank * step) for at, rank in rows.select("at", "last_rank").drop_nulls().iter_rows()], "lasts")


def _thin(rows: pl.DataFrame) -> pl.DataFrame:
    """At most _MOST_DOTS invocations: evenly taken ones, and the worst of each stretch."""
    if rows.height <= _MOST_DOTS:
        return rows
    stretch = -(-rows.height * 2 // _MOST_DOTS)
    numbered = rows.sort("sequence").with_row_index("place").with_columns(part=pl.col("place") // stretch)
    worst = numbered.sort("omega", descending=True).unique("part", keep="first", maintain_order=True)
    return pl.concat([numbered.unique("part", keep="first"), worst]).unique("place").sort("place")


def raster(profile: Profile, communicator: str) -> str:
    """Ranks x invocations: how long after the first one each arrived; darker is later."""
    table = profile.table("raster").filter((pl.col("communicator") == communicator) & pl.col("after_first").is_not_null())
    if not table.height:
        return ""
    ranks, sequences = table["rank"].unique().sort(), table["sequence"].unique().sort()
    values = np.full((len(ranks), len(sequences)), np.nan)
    rows, columns = ranks.search_sorted(table["rank"]).to_numpy(), sequences.search_sorted(table["sequence"]).to_numpy()
    values[rows, columns] = np.maximum(table["after_first"].to_numpy(), 0.0)
    picture = heat.png(heat.colors(heat.shades(values, log=True)))
    row_height = min(max(300.0 / len(ranks), 5.0), 24.0)
    height = row_height * len(ranks)
    drawing = Drawing(WIDE, height + 96, "Arrival raster: when each rank came to each invocation")
    functions = table["function"].value_counts(sort=True)["function"].to_list()
    name = f"{', '.join(functions[:3])}{', …' if len(functions) > 3 else ''} on {short(communicator, 40)}"
    drawing.text(0, 14, name, "heading")
    heat.shade_scale(drawing, WIDE - 330, 4, values)
    drawing.image(70, 36, WIDE - 80, height, picture)
    every = max(1, round(18 / row_height + 0.49))
    for number in range(0, len(ranks), every):
        drawing.text(62, 36 + (number + 0.5) * row_height + 4, ranks[number], "tick", "end")
    drawing.text(0, 36 + 12, "rank", "label")
    for place in range(5):
        at = place * (len(sequences) - 1) // 4
        anchor = "start" if place == 0 else "end" if place == 4 else "middle"
        drawing.text(70 + (WIDE - 80) * place / 4, height + 54, count(sequences[at]), "tick", anchor)
    drawing.text(WIDE - 10, height + 74, "number of the invocation on the communicator", "label", "end")
    return drawing.render()


def waiting(rows: Sequence[views.Row], run_time: float) -> str:
    """Waiting apart from transfer, per collective and communicator, as shares of the ranks' run time."""
    whole = run_time or 1.0
    scale = exact(roomy(max((row["waiting"] + row["transfer"]) / whole for row in rows)), 300, WIDE - 190)
    drawing = Drawing(WIDE, 34 + 26 * len(rows) + 46, "Waiting for the last rank, and transfer after it came")
    legend(drawing, 300, 14, [("waits", "waiting for the last rank"), ("moves", "transfer, after the last rank came")])
    for number, row in enumerate(rows):
        y = 30 + 26 * number
        label = short(f"{row['function']} on {row['communicator']}", 42)
        drawing.text(292, y + 16, label, "tick", "end", f"{row['function']} on {row['communicator']}")
        first, second = row["waiting"] / whole, row["transfer"] / whole
        drawing.rect(scale(0), y + 3, scale(first) - scale(0), 19, "waits", f"waiting {duration(row['waiting'])}")
        drawing.rect(
            scale(first), y + 3, scale(first + second) - scale(first), 19, "moves", f"transfer {duration(row['transfer'])}"
        )
        drawing.text(scale(first + second) + 8, y + 17, f"{percent(first)} waiting, {percent(second)} transfer", "value")
    bottom_axis(drawing, scale, 34 + 26 * len(rows), "share of all ranks' run time", lambda at: f"{tick(at * 100)} %")
    return drawing.render()
