"""Waiting in collectives of which single calls were kept of some alone, where members have different sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trace_writer as writer
from synthetic_jobs import profile, rows, world

COUNT = 4000


def gathers(blocks: Any, roots: Any) -> list[writer.Process]:
    """Four ranks of which rank 1 comes 10 us late; all leave 20 us later. Of the calls the third quarter is kept."""
    processes, number = world(4), np.arange(COUNT)
    for process in processes:
        begin = number * 1e-4 + 1e-5 * (process.rank == 1)
        received = np.where(roots == process.rank, 4 * blocks, 0)
        process.call("MPI_Gather", begin, number * 1e-4 + 3e-5, sequence=number, sent=blocks, received=received, peer=roots)
        process.kept = lambda calls: (calls["sequence"] >= COUNT // 2) & (calls["sequence"] < COUNT * 3 // 4)
    return processes


@pytest.mark.parametrize("moves", [True, False])
def test_iterations_stand_for_all_wherever_the_root_is(tmp_path: Path, moves: bool) -> None:
    (row,) = rows(profile(tmp_path, gathers(1024, np.arange(COUNT) % 4 * moves)).table("arrival"), scope="cluster")
    assert (row["invocations"], row["of_invocations"]) == (COUNT // 4, COUNT)
    assert row["waiting"] == pytest.approx(3 * COUNT * 1e-5, rel=1e-3)
    assert row["transfer"] == pytest.approx(4 * COUNT * 2e-5, rel=1e-3)


@pytest.mark.parametrize("moves", [True, False])
def test_blocks_as_long_as_all_of_another_call(tmp_path: Path, moves: bool) -> None:
    """What the root has of a fifth of the calls is as much as the others have of the rest."""
    number = np.arange(COUNT)
    found = profile(tmp_path, gathers(np.where(number % 5, 4096, 1024), number % 4 * moves)).table("arrival")
    small, medium = (rows(found, scope="cluster", size_class=one)[0] for one in ("small", "medium"))
    assert (small["of_invocations"], medium["of_invocations"]) == (COUNT // 5, COUNT * 4 // 5)
    assert small["waiting"] == pytest.approx(3 * COUNT / 5 * 1e-5, rel=1e-3)


def test_sizes_of_which_no_call_was_kept_are_not_put_on_others(tmp_path: Path) -> None:
    number = np.arange(COUNT)
    processes = gathers(np.where(number < 100, 1 << 20, 1024), 0)
    (row,) = rows(profile(tmp_path, processes).table("arrival"), scope="cluster")
    assert (row["size_class"], row["of_invocations"]) == ("small", COUNT - 100)
