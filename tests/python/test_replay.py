"""stretto bench --replay: the delays that a profile has recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import trace_writer as writer
from stretto.benchmark import replay
from stretto.errors import StrettoError
from synthetic_jobs import world


def test_calls_of_other_numbers_of_ranks_take_no_room(tmp_path: Path) -> None:
    """Pairs meet more often than are kept before all four do."""
    processes = world(4, finalize=100.0)
    for process in processes:
        pair = process.rank // 2
        process.communicator(5 + pair, [2 * pair, 2 * pair + 1], "pair")
        early, late = np.arange(4200) * 1e-2, 60 + np.arange(200) * 0.1 + process.rank * 1e-3
        process.call("MPI_Barrier", early, early + 1e-3, communicator=1, sequence=np.arange(4200))
        process.call("MPI_Allreduce", late, 60 + np.arange(200) * 0.1 + 1e-2, sequence=np.arange(200), sent=8, received=8)
        process.write(tmp_path)
    found = replay.delays(tmp_path, 4)
    assert found.shape == (200, 4) and found[7] == pytest.approx([0, 1e6, 2e6, 3e6])
    assert replay.delays(tmp_path, 2).shape == (4096, 2)
    with pytest.raises(StrettoError, match=r"no allreduce of 2 ranks .*this many members: 4"):
        replay.delays(tmp_path, 2, "allreduce")


def test_collectives_are_told_by_their_whole_name(tmp_path: Path) -> None:
    names = (
        "MPI_Reduce",
        "MPI_Reduce_c",
        "MPI_Reduce_scatter",
        "MPI_Reduce_scatter_block",
        "MPI_Gather",
        "MPI_Gatherv",
        "MPI_Scan",
    )
    processes = world(2, functions=(*writer.FUNCTIONS, "MPI_Reduce_c", *names[2:4], "MPI_Gatherv", "MPI_Scan"))
    for process in processes:
        for number, name in enumerate(names):
            process.call(name, 1.0 + number, 1.1 + number, sequence=number)
        process.write(tmp_path)
    wanted = ("reduce", "reduce_scatter", "reduce_scatter_block", "gather", "gatherv", "scan")
    assert [len(replay.delays(tmp_path, 2, name)) for name in wanted] == [2, 1, 1, 1, 1, 1]
