"""A job of many.py: how it is run, and by which ways buffers are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mpi_job import Mpi, accelerated_share, run_accelerated

WAYS: dict[str, dict[str, str]] = {
    "staged": {},
    "cma": {"STRETTO_TRANSPORT": "cma"},
    "arena": {"STRETTO_ARENA": "on", "STRETTO_TRANSPORT": "cma"},
}


def run_many(mpi: Mpi, way: str, communicators: int, buffers: int) -> tuple[list[dict[str, Any]], str]:
    """What each rank of two prints, and what is wrong with the job, or nothing."""
    program = Path(__file__).resolve().parent / "many.py"
    command = mpi.launch(2, str(mpi.python), program, str(communicators), str(buffers))
    outcome = run_accelerated(mpi, command, 500, WAYS[way])
    if outcome.code != 0:
        return [], f"    exit code {outcome.code}\n" + outcome.tail()
    if accelerated_share(outcome, "Allreduce") <= 0.9:
        return [], "    not accelerated\n" + outcome.tail()
    return json.loads(next(line for line in outcome.output.splitlines() if line.startswith("["))), ""
