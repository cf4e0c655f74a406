"""What examples/demo.py says of its profile: taken from the report, whatever that found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    import demo

    yield demo
    for name in ("demo", "stragglers"):
        sys.modules.pop(name, None)


def verdict(*titles: tuple[str, str]) -> dict[str, Any]:
    return {"verdict": [{"figure": figure, "title": title} for figure, title in titles]}


def test_the_line_that_ends_the_demo_is_the_reports(demo: Any) -> None:
    found = verdict(("arrival", "Transfer takes 9 %"), ("late", "Waiting for rank 2 takes 5 %"), ("late", "Waiting for rank 0"))
    begin = "rank 3 was slowed on purpose by 30 %: the report says "
    assert demo.told_of_late_ranks(found, 3) == f'{begin}"Waiting for rank 2 takes 5 %"'
    assert demo.told_of_late_ranks(verdict(("arrival", "x")), 3) == f"{begin}that no rank is late as a rule"
