"""Bytes from node to node, of jobs whose truth is known."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import pytest

import trace_writer as writer
from stretto.profile import analyse
from stretto.profile_model import Profile
from stretto.profile_report import terminal
from stretto.profile_report.page import html_page

FUNCTIONS = (*writer.FUNCTIONS, "MPI_Alltoall", "MPI_Ireduce", "MPI_Scatterv", "MPI_Reduce_scatter_block")
ALGORITHMS = ("slices", "leader", "rsa")
BY_MPI = 128 + 4  # "MPI preferred"


def world(ranks: int, nodes: int) -> list[writer.Process]:
    processes = []
    for rank in range(ranks):
        process = writer.Process(rank=rank, size=ranks, node=rank * nodes // ranks, functions=FUNCTIONS, algorithms=ALGORITHMS)
        process.clocks = [(0.1, 0.0, 0, 0), (9.9, 0.0, 0, 1)] if nodes > 1 else []
        process.communicator(0xC0FFEE, range(ranks), "MPI_COMM_WORLD", nodes=nodes)
        processes.append(process)
    return processes


def collective(
    processes: list[writer.Process], function: str, sent: list[int], at: float, outcome: int = BY_MPI, **more: Any
) -> None:
    for process, size in zip(processes, sent, strict=True):
        process.call(function, at, at + 0.001, sent=size, sequence=int(at * 1000), outcome=outcome, **more)


def gave(process: writer.Process, function: str, algorithm: str, size: int) -> None:
    what = FUNCTIONS.index(function) | ALGORITHMS.index(algorithm) << 16
    entry = struct.pack("<HHiQQQ", 0, 5, what, 1, size, 0)
    process.extra.append(writer.section(writer.SECTIONS["partners"], entry, 32, 0))


def profile(folder: Path, processes: list[writer.Process]) -> Profile:
    for process in processes:
        process.write(folder)
    writer.write_job(folder)
    return analyse(folder)


def crossed(found: Profile) -> dict[tuple[str, str], tuple[int, str]]:
    rows = found.table("crossing").to_dicts()
    assert len({(row["what"], row["carried"]) for row in rows}) == len(rows)
    return {(row["what"], row["carried"]): (row["crossed"], row["known"]) for row in rows}


def test_messages_are_counted_by_the_nodes_of_their_ends(tmp_path: Path) -> None:
    processes = world(4, 2)
    processes[0].call("MPI_Send", 0.2, 0.3, sent=100, direction="sent", partner=1)
    processes[0].call("MPI_Send", 0.4, 0.5, sent=1000, direction="sent", partner=2)
    processes[1].call("MPI_Recv", 0.2, 0.3, received=100, direction="received", partner=0)
    processes[2].call("MPI_Recv", 0.4, 0.5, received=1000, direction="received", partner=0)
    processes[3].call("MPI_Put", 0.6, 0.7, sent=10, direction="put", partner=0)
    processes[1].call("MPI_Get", 0.6, 0.7, received=24, direction="got", partner=3)
    processes[1].call("MPI_Get", 0.8, 0.9, received=5, direction="got", partner=0)
    found = profile(tmp_path, processes)
    assert crossed(found) == {("messages", ""): (1000, "exact"), ("puts", ""): (10, "exact"), ("gets", ""): (24, "exact")}
    assert {row["what"]: row["sent"] for row in found.table("crossing").to_dicts()} == {"messages": 1100, "puts": 10, "gets": 29}


def test_what_stretto_gave_away_is_exact_but_where_the_mpi_chose_how(tmp_path: Path) -> None:
    processes = world(4, 2)
    collective(processes, "MPI_Allreduce", [1000] * 4, 0.1, ALGORITHMS.index("rsa"))
    collective(processes, "MPI_Allreduce", [8] * 4, 0.2, ALGORITHMS.index("leader"))
    for leader in (0, 2):
        gave(processes[leader], "MPI_Allreduce", "rsa", 1000)
        gave(processes[leader], "MPI_Allreduce", "leader", 8)
    found = profile(tmp_path, processes)
    assert crossed(found) == {
        ("MPI_Allreduce", "Stretto: rsa"): (2000, "exact"),
        ("MPI_Allreduce", "Stretto: leader"): (16, "at least"),
    }
    assert not found.table("partners").height


@pytest.mark.parametrize(
    ("function", "sent", "needed", "known"),
    [
        ("MPI_Allreduce", [600] * 6, 2 * 2 * 600, "at least"),
        ("MPI_Allreduce_c", [600] * 6, 2 * 2 * 600, "at least"),
        ("MPI_Ireduce", [600] * 6, 2 * 600, "at least"),
        ("MPI_Reduce_scatter_block", [600] * 6, 2 * 600, "at least"),
        ("MPI_Bcast", [50, 0, 0, 0, 0, 0], 2 * 50, "at least"),
        ("MPI_Allgather", [10, 10, 10, 10, 10, 10], 2 * 60, "at least"),
        ("MPI_Alltoall", [60] * 6, 6 * 40, "estimate"),
        ("MPI_Gather", [30] * 6, 120, "estimate"),
        ("MPI_Scatterv", [180, 0, 0, 0, 0, 0], 120, "estimate"),
    ],
)
def test_what_a_pattern_needs_is_told_of_calls_left_to_mpi(
    tmp_path: Path, function: str, sent: list[int], needed: int, known: str
) -> None:
    """Three nodes of two ranks."""
    processes = world(6, 3)
    for repeat in range(4):
        collective(processes, function, sent, 0.1 + repeat)
    found = profile(tmp_path, processes)
    assert crossed(found) == {(function, "MPI"): (4 * needed, known)}
    assert found.table("crossing")["calls"].to_list() == [24]


def test_communicators_on_one_node_cross_nothing(tmp_path: Path) -> None:
    processes = world(4, 2)
    for node in (0, 1):
        members = [2 * node, 2 * node + 1]
        for rank in members:
            processes[rank].communicator(0xA0 + node, members, "node", nodes=1)
        collective([processes[rank] for rank in members], "MPI_Allreduce", [64, 64], 0.1, communicator=1)
    collective(processes, "MPI_Barrier", [0] * 4, 0.5)
    found = profile(tmp_path, processes)
    assert not found.table("crossing").height and "nothing crossed" in found.unavailable["crossing"]


def test_a_job_on_one_node_says_so(tmp_path: Path) -> None:
    processes = world(2, 1)
    collective(processes, "MPI_Allreduce", [64, 64], 0.1)
    assert "one node" in profile(tmp_path, processes).unavailable["crossing"]


def test_both_pages_show_it(tmp_path: Path) -> None:
    processes = world(4, 2)
    collective(processes, "MPI_Allreduce", [1 << 20] * 4, 0.1)
    processes[0].call("MPI_Send", 0.4, 0.5, sent=1 << 20, direction="sent", partner=2)
    found = profile(tmp_path, processes)
    shown = io.StringIO()
    terminal.print_page(found, shown)
    page = " ".join(shown.getvalue().split())
    assert "Between nodes" in page and "at least 3 MiB crossed from node to node in all" in page
    assert 'id="crossing"' in html_page(found) and "At least 3 MiB crossed" in html_page(found)
