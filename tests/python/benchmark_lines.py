"""What ranks of the benchmark would have written: made-up measurements for tests."""

from __future__ import annotations

import json
import math
from typing import Any

from stretto.benchmark.model import Point, Results

SETUP = {
    "kind": "setup",
    "library": "Open MPI v5.0.11, package: x",
    "ranks": 4,
    "cores": 2,
    "crowded": True,
    "pinned": False,
    "clock": "TSC",
    "stretto": "0.1.0",
    "accelerating": True,
    "why": "accelerating: 4 ranks",
    "tuning": {"path": "", "header": "tuned build=01 machine=02 mpi=03", "about": "A CPU; Open MPI v5.0.11"},
}


def side(us: float, **more: Any) -> dict[str, Any]:
    return {"median_us": us, "p10_us": us * 0.9, "p90_us": us * 1.2, "samples": 100, **more}


def line(collective: str, size: int, **sides: Any) -> str:
    times = {name: us if isinstance(us, dict) else side(us) for name, us in sides.items()}
    value = {"kind": "point", "collective": collective, "bytes": size, "ranks": 4, "mode": "single", "calls": 1}
    return json.dumps({**value, "floor_us": 0.5, "hop_ns": [100, 100], "wrong": 0, "sides": times})


def late(size: int, spread: float, mpi: float, pmpi: float) -> str:
    raster = [[0.0, 0.1, 12.0], [10.0, 10.1, 12.5]]
    sides = {name: side(us, exit_us=[us, us], raster=raster) for name, us in (("mpi", mpi), ("pmpi", pmpi))}
    value = json.loads(line("allreduce", size, **sides))
    shape = "last-delayed" if spread else "balanced"
    return json.dumps({**value, "shape": shape, "spread": spread, "unit_us": 5.0, "waiting_us": 2.5, "bound_us": 0.7})


def results(*lines: str) -> Results:
    found = Results(["mpirun", "-n", "4"])
    for one in (json.dumps(SETUP), *lines):
        found.take(one)
    return found


def points(**sides: list[float]) -> list[Point]:
    """At 8, 64, 512, ... bytes; NaN: that side cannot do the size."""
    count = len(next(iter(sides.values())))
    made = []
    for place in range(count):
        there = {name: values[place] for name, values in sides.items() if not math.isnan(values[place])}
        made.append(line("allreduce", 8 ** (place + 1), **there))
    return results(*made).points
