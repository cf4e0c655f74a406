"""Ranks that take themselves for several nodes: they have host names of their own, and the launcher does not say otherwise."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from mpi_job import Mpi, Outcome
from read_trace import Trace, text

PER_NODE = 2
# Two ranks a node. The launcher's word for how many ranks are here is changed to match.
AS_NODES = """
r=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}
export OMPI_COMM_WORLD_LOCAL_SIZE=2 MPI_LOCALNRANKS=2
exec unshare --uts bash -c 'hostname node$(($0 / 2)); exec "$@"' $r "$@"
"""


def allowed() -> bool:
    return subprocess.run(["unshare", "--uts", "true"], capture_output=True, check=False).returncode == 0


def reference_at(first: Trace, ticks: int) -> float:
    """The reference clock by world rank 0's own readings. Really all ranks share one cycle counter."""
    begin, end = first.tables["clock"]
    rate = (int(end["reference_ns"]) - int(begin["reference_ns"])) / (int(end["ticks"]) - int(begin["ticks"]))
    return float(int(begin["reference_ns"]) + (ticks - int(begin["ticks"])) * rate)


def clock_problem(traces: dict[int, Trace]) -> str:
    """Both synchronisations are there, and as right as they claim to be."""
    own_error = max(int(one["error_ns"]) for one in traces[0].tables["clock"])
    for rank, trace in traces.items():
        clocks = trace.tables["clock"]
        if [int(one["at"]) for one in clocks] != [0, 1]:
            return f"rank {rank}: synchronised at {[int(one['at']) for one in clocks]}"
        for one in clocks:
            off = abs(int(one["reference_ns"]) - reference_at(traces[0], int(one["ticks"])))
            if off > int(one["error_ns"]) + own_error + 1:
                return f"rank {rank}: off by {off:.0f} ns, which claims {one['error_ns']}"
            leads = rank % PER_NODE == 0
            if (int(one["via"]) == rank) != (not leads or rank == 0):
                return f"rank {rank}: synchronised with {one['via']}"
    return ""


def nodes_problem(profiled: Callable[..., tuple[Outcome, list[Trace]]], mpi: Mpi, program: Path, ranks: int) -> str:
    with tempfile.TemporaryDirectory() as name:
        command = ["bash", "-c", AS_NODES, "as_nodes", program]
        outcome, found = profiled(mpi, command, ranks, Path(name), STRETTO_ACCELERATE="off")
    traces = {trace.header["world_rank"]: trace for trace in found}
    if outcome.code != 0 or sorted(traces) != list(range(ranks)):
        return f"exit code {outcome.code}, traces of {sorted(traces)}\n{outcome.tail()}"
    nodes = {rank: (trace.header["node"], trace.header["host"]) for rank, trace in traces.items()}
    if nodes != {rank: (rank // PER_NODE, f"node{rank // PER_NODE}") for rank in range(ranks)}:
        return f"nodes {nodes}"
    counted = {text(one["name"]): int(one["nodes"]) for one in traces[0].tables["communicators"]}
    if counted["MPI_COMM_WORLD"] != ranks // PER_NODE or counted["MPI_COMM_SELF"] != 1:
        return f"communicators span {counted}"
    return clock_problem(traces)
