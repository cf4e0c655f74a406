"""Jobs of trace_writer's processes, written down and analysed; several tests begin with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import trace_writer as writer
from stretto.profile import analyse
from stretto.profile_model import TABLES, Finding, Profile


def profile(folder: Path, processes: list[writer.Process], **facts: Any) -> Profile:
    folder.mkdir(parents=True, exist_ok=True)
    for process in processes:
        process.write(folder)
    writer.write_job(folder, **facts)
    result = analyse(folder)
    for name, schema in TABLES.items():
        assert dict(result.table(name).schema) == {
            column: kind() if isinstance(kind, type) else kind for column, kind in schema.items()
        }
        assert result.table(name).height or name in result.unavailable, name
    return result


def world(ranks: int, *, nodes: int = 1, **changes: Any) -> list[writer.Process]:
    """Ranks on one clock per node, those of other nodes than the first with another offset and rate, and the synchronisations."""
    processes = []
    for rank in range(ranks):
        node = rank * nodes // ranks
        clock = writer.Clock() if not node else writer.Clock(offset=10**12 * node, rate=2.5e9 * (1 + 3e-6 * node))
        process = writer.Process(rank=rank, size=ranks, node=node, clock=clock, **changes)
        if nodes > 1:
            error = 1e-6 * node
            process.clocks = [(0.1, error, 0, 0), (9.9, error, 0, 1)]
        process.communicator(0xC0FFEE, range(ranks), "MPI_COMM_WORLD", nodes=nodes)
        processes.append(process)
    return processes


def rows(table: pl.DataFrame, **equal: Any) -> list[dict[str, Any]]:
    for name, value in equal.items():
        table = table.filter(pl.col(name) == value)
    return table.to_dicts()


def allreduces(
    processes: list[writer.Process], arrivals: Any, last: float, size: int = 8, first: int = 0, **columns: Any
) -> None:
    sequence = first + np.arange(len(arrivals))
    facts = {"datatype": 0, "op": 0, "sent": size, "received": size, "location": 0} | columns
    writer.collective(processes, "MPI_Allreduce", np.asarray(arrivals), last, sequence=sequence, **facts)


def about(found: Profile, words: str) -> Finding | None:
    return next((one for one in found.verdict if words in one.title), None)


def balanced(count: int, ranks: int, seed: int = 1) -> Any:
    """Arrivals 4 ms apart, 10 us of chance: a job in which nothing is wrong."""
    return 1.0 + np.arange(count)[:, None] * 4e-3 + np.random.default_rng(seed).random((count, ranks)) * 1e-5
