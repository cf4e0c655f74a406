"""docs/summary.md explains every word that a summary may have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXPLAINED = (ROOT / "docs/summary.md").read_text()


IN_NODE, OVER_NODES = EXPLAINED.split("## Algorithms ")[1:]


@pytest.mark.parametrize(
    ("table", "explained"), [("src/collective/algorithms.hpp", IN_NODE), ("src/collective/hierarchy/rows.hpp", OVER_NODES)]
)
def test_every_algorithm_is_explained(table: str, explained: str) -> None:
    names = set(re.findall(r'^    \{"(\w+)", Kind::', (ROOT / table).read_text(), re.MULTILINE))
    assert {"flat", "leader"} & names
    missing = names - set(re.findall(r"`(\w+)`", explained))
    assert not missing, f"docs/summary.md does not explain {missing}"


def test_every_reason_is_explained() -> None:
    names = re.findall(r'^    "([^"]+)",', (ROOT / "src/select/reason.hpp").read_text(), re.MULTILINE)
    told = [line.split("|")[1].strip() for line in EXPLAINED.splitlines() if line.startswith("| ")]
    explained = {name for cell in told for name in cell.split(", ")}
    assert names[0] == "none" and "MPI preferred" in names
    missing = set(names[1:]) - explained
    assert not missing, f"docs/summary.md does not explain {missing}"
