"""What Stretto took over, or would, and what that is worth.

A collective's waiting stays whoever runs it, and so does what disturbs its transfer: what can be gained is of the time that an
undisturbed transfer takes (alpha). Both are known from the arrivals. What remains of it under Stretto is a ratio measured against
the same MPI on another machine (stretto/data/takeover.json names its source); the larger one of the two neighbouring sizes is
used, and where no arrivals are known only the time that such a call took on that machine: so that the gain is rather said too
small.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from dataclasses import dataclass
from importlib import resources

import polars as pl

from stretto.profile.job import Job
from stretto.profile_model import TABLES
from stretto.record import KINDS

NOT_JOINED = "MPI: not joined"  # also the reason where a profile leaves everything to MPI on purpose
TAKEN = re.compile(rf"MPI_({'|'.join(KINDS)})(_c)?")  # the collectives that Stretto can take over


class Ratios:
    """Stretto's time over the MPI's, by collective and size, for one MPI or the worst of all."""

    def __init__(self, rows: list[dict[str, object]], mpi: str) -> None:
        known = [row for row in rows if row["mpi"] == mpi] or rows
        self._points: dict[str, dict[int, tuple[float, float]]] = {}
        for row in known:
            points = self._points.setdefault(str(row["collective"]), {})
            size, ratio, us = int(str(row["bytes"])), float(str(row["ratio"])), float(str(row["us"]))
            before = points.get(size, (0.0, us))
            points[size] = (max(before[0], ratio), min(before[1], us))

    def at(self, collective: str, size: int) -> tuple[float, float]:
        """The ratio, at most 1, and Stretto's seconds per call where that was measured; of no collective: 1 and 0."""
        points = self._points.get(collective)
        if not points:
            return 1.0, 0.0
        sizes = sorted(points)
        above = min(bisect_left(sizes, size), len(sizes) - 1)
        below = max(above - 1, 0) if sizes[above] > size else above
        around = [points[sizes[below]], points[sizes[above]]]
        return min(1.0, max(ratio for ratio, _ in around)), min(us for _, us in around) * 1e-6


def ratios(version: str) -> Ratios:
    """For the MPI whose version text this is."""
    text = (resources.files("stretto") / "data" / "takeover.json").read_text(encoding="utf-8")
    mpi = "openmpi" if "Open MPI" in version else "mpich" if "MPICH" in version else ""
    return Ratios(json.loads(text)["rows"], mpi)


def takeover(job: Job, cells: pl.DataFrame, sized: pl.DataFrame) -> pl.DataFrame:
    """By function, size and what became of the calls; of the collectives that Stretto can take over. `sized`: arrival.by_size."""
    wanted = cells.filter(pl.col("function").str.contains(f"^{TAKEN.pattern}$") & (pl.col("library") == "MPI"))
    keys = ["function", "communicator", "identity", "upper", "stretto", "location"]
    ratios_ = ratios(job.mpi[0].trace.header.library if job.mpi else "")
    known = transfers(sized)
    sums: dict[tuple[str, int, str], tuple[int, float, float]] = {}
    for function, label, identity, upper, stretto, location, calls, time in (
        wanted.group_by(keys).agg(pl.col("calls", "time").sum()).sort(keys).iter_rows()
    ):
        what = _outcome(job, identity, stretto, location)
        gain = _gain(what, function, upper, (calls, time), known.get((function, label, upper)), ratios_)
        before = sums.get((function, upper, what), (0, 0.0, 0.0))
        sums[function, upper, what] = (before[0] + calls, before[1] + time, before[2] + gain)
    table = [(*key, calls, time, None if key[2].startswith("left") else gain) for key, (calls, time, gain) in sums.items()]
    return pl.DataFrame(table, schema=TABLES["takeover"], orient="row")


@dataclass(frozen=True, slots=True)
class Transfer:
    share: float  # of the time that is not waiting
    alpha: float  # seconds of an undisturbed invocation


def transfers(sized: pl.DataFrame) -> dict[tuple[str, str, int], Transfer]:
    """By function, communicator and upper bound of the size bin."""
    rows = sized.filter((pl.col("waiting") + pl.col("transfer") > 0) & (pl.col("alpha") > 0)).select(
        "function", "communicator", "upper", pl.col("transfer") / (pl.col("waiting") + pl.col("transfer")), "alpha"
    )
    return {(function, label, upper): Transfer(share, alpha) for function, label, upper, share, alpha in rows.iter_rows()}


def _outcome(job: Job, identity: int, stretto: str, location: str) -> str:
    if stretto and not (stretto == NOT_JOINED and job.text("accelerate") != "on"):
        return f"left: {stretto.removeprefix('MPI: ')}" if stretto.startswith("MPI: ") else "taken over"
    group = job.groups.get(("MPI", identity))
    if group is None or group.nodes == 0:
        return "left: communicator unknown"
    if group.inter:
        return "left: intercommunicator"
    if group.size < 2:
        return "left: single rank"
    if group.nodes > 1:
        return "left: several nodes"
    return "left: buffers on a device" if location == "device" else "would take over"


def _gain(what: str, function: str, upper: int, sums: tuple[int, float], known: Transfer | None, ratios_: Ratios) -> float:
    """Seconds, over the ranks that made the calls."""
    calls, time = sums
    ratio, seconds = ratios_.at(function.removeprefix("MPI_").removesuffix("_c").lower(), upper)
    if what.startswith("left") or ratio <= 0:
        return 0.0
    if what == "taken over":
        spent = min(time * known.share, calls * known.alpha) if known else min(time, calls * seconds)
        return spent * (1.0 / ratio - 1.0)
    spent = min(time * known.share, calls * known.alpha) if known else min(time, calls * seconds / ratio)
    return spent * (1.0 - ratio)
