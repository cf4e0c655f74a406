"""Profiles of jobs on emulated nodes: arrival, node-wide and over all, and what crossed, against what the program did."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
from pathlib import Path
from typing import Any

from mpi_job import STRETTO

ROUNDS, COUNT = 12, 1024  # collectives, floats of each
PER_NODE = 2
_ARRIVED = re.compile(r"arrived (\d+) (\d+) (\d+)")


def command(folder: Path, options: list[str], launch: list[str], accelerate: str) -> list[str]:
    return [str(STRETTO), "profile", "--accelerate", accelerate, "-o", str(folder), *options, "--", *launch]


def true_spreads(output: str) -> dict[str, float]:
    """Median over collectives, seconds: of all ranks' arrival, and of that of a node's ranks."""
    at: dict[int, dict[int, int]] = {}
    for rank, round_, when in (map(int, found) for found in _ARRIVED.findall(output)):
        at.setdefault(round_, {})[rank] = when
    cluster, node = [], []
    for arrival in at.values():
        cluster.append(max(arrival.values()) - min(arrival.values()))
        for first in range(0, len(arrival), PER_NODE):
            mine = [arrival[rank] for rank in range(first, first + PER_NODE)]
            node.append(max(mine) - min(mine))
    return {"cluster": statistics.median(cluster) * 1e-9, "node": statistics.median(node) * 1e-9}


def problem_of(folder: Path, output: str, ranks: int, accelerated: bool) -> str:
    """Of the report of a job whose `output` this is; "" none."""
    figures = folder / "figures.json"
    done = subprocess.run(
        [str(STRETTO), "report", str(folder), "--json", str(figures)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return f"    stretto report: exit code {done.returncode}\n{done.stderr}"
    tables = json.loads(figures.read_text())["tables"]
    return arrival_problem(tables, true_spreads(output), ranks) or crossing_problem(tables, ranks, accelerated)


def arrival_problem(tables: dict[str, Any], truth: dict[str, float], ranks: int) -> str:
    """The stamps of the program and of the profile lie apart by what a busy machine puts between them: half is allowed."""
    mine = {row["scope"]: row for row in tables["arrival"] if row["function"] == "MPI_Allreduce"}
    for scope, spread in truth.items():
        if scope not in mine:
            return f"    no arrival of scope {scope}: {sorted(mine)}"
        found = mine[scope]["omega_median"]
        if not 0.5 * spread < found < 1.5 * spread:
            return f"    {scope}: median spread {found:.4f} s, the program's {spread:.4f} s"
    late = {row["rank"]: row["last"] for row in tables["late"] if row["function"] == "MPI_Allreduce"}
    return "" if max(late, key=lambda rank: late[rank]) == ranks - 1 else f"    last were {late}, not mostly rank {ranks - 1}"


def crossing_problem(tables: dict[str, Any], ranks: int, accelerated: bool) -> str:
    nodes, size = ranks // PER_NODE, 4 * COUNT
    least = 2 * (nodes - 1) * size * ROUNDS
    found = {(row["what"], row["carried"]): row for row in tables["crossing"]}
    messages = found.pop(("messages", ""), {})
    if (messages.get("sent"), messages.get("crossed"), messages.get("known")) != (1100, 1000, "exact"):
        return f"    messages: {messages}"
    rows = {carried: row for (what, carried), row in found.items() if what == "MPI_Allreduce"}
    if not accelerated:
        said = {carried: (row["crossed"], row["known"]) for carried, row in rows.items()}
        return "" if said == {"MPI": (least, "at least")} else f"    left to MPI: {said}"
    # Slices sent whole: each of two nodes sends what it has once, each of more sends it to all others.
    whole = nodes * (nodes - 1) * size * ROUNDS
    said = {carried: (row["crossed"], row["known"]) for carried, row in rows.items()}
    return "" if said == {"Stretto: rsa": (whole, "exact")} else f"    carried by Stretto: {said}, not {whole} bytes"
