"""What the verdict says where ranks share CPUs, and what it advises under each launcher."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from synthetic_jobs import about, allreduces, balanced, profile, world


@pytest.mark.parametrize(
    ("cpus", "told"), [({"node0": 2}, True), ({"node0": 4}, False), ({"other": 1}, False), (None, False), ("x", False)]
)
def test_oversubscription(tmp_path: Path, cpus: Any, told: bool) -> None:
    processes = world(4)
    allreduces(processes, balanced(100, 4), 1e-5)
    found = profile(tmp_path, processes, cpus=cpus)
    assert (about(found, "4 ranks share 2 CPUs on node0") is not None) == told


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"launcher_version": "Hydra 5.0.2", "accelerate": "off"}, "stretto run"),
        ({"launcher_version": "Hydra", "accelerate": "on"}, ""),
        ({"launcher_version": "Open MPI 5.0.11", "command": "mpirun -n 4 a"}, "--oversubscribe"),
        ({"launcher_version": "Open MPI 5.0.11", "command": "mpirun --oversubscribe -n 4 a"}, ""),
    ],
)
def test_how_ranks_may_share_cpus(tmp_path: Path, facts: dict[str, str], told: str) -> None:
    processes = world(4)
    allreduces(processes, balanced(100, 4), 1e-5)
    finding = about(profile(tmp_path, processes, cpus={"node0": 2}, **facts), "4 ranks share 2 CPUs on node0")
    assert finding is not None and told in finding.advice
    assert bool(told) == (", or " in finding.advice)


@pytest.mark.parametrize(
    ("masks", "told"), [((3, 3, 3, 3), True), ((1, 2, 4, 8), False), ((3, 3, 0, 12), False), ((1,) * 4, True)]
)
def test_oversubscription_by_what_the_ranks_say(tmp_path: Path, masks: tuple[int, ...], told: bool) -> None:
    processes = world(4)
    for process, mask in zip(processes, masks, strict=True):
        process.cpus = mask
    allreduces(processes, balanced(100, 4), 1e-5)
    found = profile(tmp_path, processes, cpus={"elsewhere": 1})
    assert (about(found, "4 ranks share") is not None) == told
