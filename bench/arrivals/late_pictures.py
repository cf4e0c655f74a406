#!/usr/bin/env python3
"""The pictures of docs/arrival.md: the shapes, and by how much large Allreduces end sooner than the best MPI library's.

Usage: late_pictures.py SERIES.json FOLDER     SERIES: what bench/arrival.py has written
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench" / "collective")]

from late_page import gains_of  # noqa: E402
from lateness import Cell, Variant, cells_of  # noqa: E402
from runs import Json  # noqa: E402
from stretto.benchmark.model import Results  # noqa: E402
from stretto.benchmark.pictures import STYLE, WIDE, drawings  # noqa: E402
from stretto.profile_report.svg import Drawing, legend, stacked  # noqa: E402

LARGE = 64 << 10  # bytes
SHAPES = {  # rank by rank, as shares of the spread (src/bench/arrival.cpp)
    "balanced": (0, 0, 0, 0),
    "ascending": (0, 1 / 3, 2 / 3, 1),
    "descending": (1, 2 / 3, 1 / 3, 0),
    "first-delayed": (1, 0, 0, 0),
    "last-delayed": (0, 0, 0, 1),
    "2-late, half-late": (0, 0, 1, 1),
    "random (one call)": (0.31, 0.84, 0.08, 0.62),
}


def shapes() -> Drawing:
    """A bar per rank, from the common start to its arrival; the call costs what lies between the dashed line and its end."""
    across, rows = 4, -(-len(SHAPES) // 4)
    wide, tall, bar = WIDE / across, 116.0, 14.0
    drawing = Drawing(WIDE, 50 + tall * rows, "Arrival shapes of 4 ranks")
    drawing.text(0, 16, drawing.title, "heading")
    legend(drawing, 0, 38, [("floor", "not there yet"), ("waits", "there, waiting for the last rank")])
    for number, (name, shares) in enumerate(SHAPES.items()):
        left, top = number % across * wide, 56 + number // across * tall
        drawing.text(left, top + 12, name, "label")
        start, long = left + 22, wide - 50
        last = start + max(shares) * long
        for rank, share in enumerate(shares):
            y = top + 20 + rank * (bar + 3)
            drawing.text(start - 8, y + bar - 3, rank, "tick", "end")
            drawing.rect(start, y, share * long, bar, "floor")
            drawing.rect(start + share * long, y, last - start - share * long, bar, "waits")
        drawing.line(last, top + 16, last, top + 20 + len(shares) * (bar + 3), "last")
    return drawing


def large(cells: list[Cell]) -> list[Drawing]:
    """After Figure 8 of Alizadeh et al. 2022: the paper's algorithms, Stretto, and Stretto with an arena."""
    near = min(cell.key.apart_ns for cell in cells)
    mine = [cell for cell in cells if (cell.key.collective, cell.key.apart_ns) == ("allreduce", near) and cell.key.bytes >= LARGE]
    results = Results(setup={"accelerating": True})
    results.points = gains_of(mine, [Variant("openmpi", "stretto"), Variant("openmpi", "arena")])
    return drawings(results)


def main(words: list[str]) -> int:
    if len(words) != 2:
        sys.exit(__doc__)
    series: Json = json.loads(Path(words[0]).read_text())
    folder = Path(words[1])
    said = "Dashed: the last arrival. The time of a call is what lies between it and the last exit"
    (folder / "arrival_shapes.svg").write_text(stacked([shapes()], said, STYLE))
    said = f"{series['machine']['cpu']}, {series['machine']['cores']} cores; the MPI library: the best of "
    said += ", ".join(series["versions"].values())
    (folder / "arrival_large.svg").write_text(stacked(large(cells_of(series)), said, STYLE))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
