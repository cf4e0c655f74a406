"""The benchmark of collectives to which ranks come apart: cells and verdicts (bench/arrivals)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import late_goals
import late_page
import late_pictures
from goals import Verdict
from kept import Kept
from lateness import Cell, Key, Variant, cells_of, merge
from runs import Run

ROOT = Path(__file__).resolve().parents[2]
PLAIN = Variant("openmpi", "stretto")


def line(size: int, sides: dict[str, float], shape: str = "last-delayed", spread: float = 5, **more: Any) -> dict[str, Any]:
    times = {name: {"median_us": us, "p10_us": us / 2} for name, us in sides.items()}
    found = {"kind": "point", "collective": "reduce", "bytes": size, "ranks": 4, "shape": shape, "spread": spread}
    return {**found, "bound_us": 2.0, "hop_ns": [0.0, 0.0], "wrong": 0, "sides": times, **more}


def run(peer: str, points: list[dict[str, Any]], way: str = "", config: str = "defaults") -> Run:
    return Run(peer, config, way, "4 ranks", [{"kind": "setup", "library": f"{peer} 1"}, *points])


def cells(*stretto: dict[str, Any], peer: float = 10) -> list[Cell]:
    """Stretto's points, and a peer that takes as long at each."""
    theirs = [{**point, "sides": {"mpi": {"median_us": peer}}} for point in stretto]
    return merge([run("mpich", theirs), *both(*stretto)])


def both(*points: dict[str, Any]) -> list[Run]:
    """As fast among others as alone."""
    return [run("openmpi", list(points), way) for way in ("stretto", "stretto alone")]


def verdict(found: list[Cell], words: str) -> Verdict:
    (one,) = [one for one in late_goals.judge(found) if words in one.goal]
    return one


def test_cores_apart_are_not_compared() -> None:
    near, far = {"hop_ns": [45.0, 50.0], "crowded": True}, {"hop_ns": [240.0, 230.0], "crowded": True}
    runs = [run("mpich", [line(8, {"mpi": 2}, **near), line(64, {"mpi": 3}, **near)]), run("mpich", [line(8, {"mpi": 9}, **far)])]
    runs += both(line(8, {"mpi": 4}, **far), line(64, {"mpi": 8}, hop_ns=[45.0, 240.0], crowded=True))
    found = {(one.key.bytes, one.key.apart_ns): one for one in merge(runs)}
    assert sorted(found) == [(8, 45), (8, 230), (64, 45)]
    assert found[8, 230].over_peers(PLAIN) == pytest.approx(4 / 9)
    assert found[8, 45].over_peers(PLAIN) is None and found[64, 45].over_peers(PLAIN) is None
    (one,) = [one for one in late_goals.judge(list(found.values())) if "best peer" in one.goal]
    assert "4 ranks, cores 230 ns apart" in one.goal


def test_cells_hold_what_was_measured_together() -> None:
    runs = [
        run("mpich", [line(8, {"mpi": 12})]),
        run("mpich", [line(8, {"mpi": 10})], config="other"),
        run("openmpi", [line(8, {"mpi": 4, "pmpi": 9, "paper_small": 8, "paper_large": 16, "slices": 5})], "stretto"),
        run("openmpi", [line(8, {"mpi": 6, "pmpi": 9, "paper_small": 8, "slices": 3})], "stretto"),
        run("openmpi", [line(8, {"mpi": 3})], "stretto alone"),
        run("openmpi", [line(8, {"mpi": 2})], "stretto by arrival"),
    ]
    (found,) = merge(runs)
    assert found.key == Key("reduce", 8, 4, "last-delayed", 5)
    assert found.peers == {"mpich": (10, "other")}
    assert found.over_peers(PLAIN) == 0.3
    assert found.over_sides(PLAIN, ("paper_small", "paper_large")) == pytest.approx((4 / 8 + 6 / 8) / 2)
    assert found.over_sides(PLAIN, ("slices",)) == pytest.approx((4 / 5 + 6 / 3) / 2)
    assert found.over_bound(PLAIN) == 1.5
    assert found.over_arrival_order(PLAIN) == 1.5
    (quiet,) = merge(runs, "p10_us")
    assert (quiet.time(PLAIN), quiet.peers["mpich"][0], quiet.over_bound(PLAIN)) == (2, 5, 0.75)
    assert late_goals.variants([found]) == [PLAIN]
    assert found.as_json()["stretto"][0]["us"]["paper_large"] == 16


@pytest.mark.parametrize(("us", "met"), [(4.9, True), (5.1, False)])
def test_half_of_the_best_peer(us: float, met: bool) -> None:
    found = verdict(cells(line(8, {"mpi": us}), line(8, {"mpi": 99}, "balanced", 0)), "of the best peer")
    assert found.met is met
    assert ("reduce 8 B last-delayed x5 0.51" in found.measured) is not met


def test_the_papers_algorithms_by_size() -> None:
    sides = {"mpi": 3.0, "paper_small": 4.0, "paper_large": 9.0}
    small, large = line(4096, sides), line(65536, sides)
    assert verdict(cells(small), "below 64 KiB at most 0.8").met
    assert verdict(cells(small), "from 64 KiB at most 0.7").met is None
    assert verdict(cells(small, large), "from 64 KiB at most 0.7").met is False


def test_the_bound_counts_from_1_mib() -> None:
    assert verdict(cells(line(1 << 19, {"mpi": 30})), "times the bound").met is None
    assert verdict(cells(line(1 << 20, {"mpi": 2.9})), "times the bound").met
    assert verdict(cells(line(1 << 20, {"mpi": 3.1})), "times the bound").met is False


def test_balanced_calls_are_compared_with_balanced_algorithms() -> None:
    sides = {"mpi": 5.2, "slices": 6.0, "direct": 5.0, "paper_small": 1.0}
    found = cells(line(8, sides, "balanced", 0))
    assert verdict(found, "within 5 %").met
    assert verdict(found, "of the best peer").met is None
    assert verdict(cells(line(8, {**sides, "mpi": 5.3}, "balanced", 0)), "within 5 %").met is False


def test_what_determinism_costs() -> None:
    late = line(8, {"mpi": 4})
    found = merge([*both(late), run("openmpi", [line(8, {"mpi": 3})], "stretto by arrival")])
    assert verdict(found, "15 %").met is False
    found = merge([*both(late), run("openmpi", [line(8, {"mpi": 3.6})], "stretto by arrival")])
    assert verdict(found, "15 %").met


def test_a_call_that_was_over_before_the_last_rank_came_divides_nothing() -> None:
    (found,) = cells(line(8, {"mpi": 3, "paper_small": -1}))
    assert found.over_sides(PLAIN, ("paper_small",)) is None


def test_the_page_the_worst_first_and_the_picture() -> None:
    kept = Kept()
    points = [line(size, {"mpi": us, "paper_small": 8}) for size, us in ((4096, 6.0), (1 << 20, 9.0))]
    kept.run(run("mpich", [{**point, "sides": {"mpi": {"median_us": 10}}} for point in points]))
    for one in both(*points):
        kept.run(one)
    result = {"step_seconds": 0.2, "after_seconds": 0.01, "after_share": 0.05}
    kept.other("slow", {"options": {"late": "slow", "ranks": 4}, "Stretto": result})
    page, document = late_page.make(kept)
    rows = [row for row in page.splitlines() if "| on openmpi |" in row]
    assert [row.split(" | ")[-1] for row in rows] == ["4.50 |", "0.90 |", "1.12 |", "0.60 |"]
    assert "| slow, 4 ranks | Stretto | 200.00 | 10.00 | 5% |" in page
    assert len(document["cells"]) == 2
    drawn = late_page.picture(kept)
    assert drawn.startswith("<svg")
    assert "reduce, 4 ranks, Stretto" in drawn
    assert "reduce, 4 ranks, the paper" in drawn


def test_cells_are_read_again_from_what_was_written() -> None:
    written = cells(line(8, {"mpi": 3, "paper_small": 4}), line(64, {"mpi": 5}, "random", 1))
    document = {"cells": [cell.as_json() for cell in written], "versions": {"mpich": "MPICH 1"}}
    read = cells_of(document)
    assert [(cell.key, cell.best(), cell.missing) for cell in read] == [(cell.key, cell.best(), ()) for cell in written]
    for one, other in zip(read, written, strict=True):
        assert one.time(PLAIN, ("paper_small",)) == other.time(PLAIN, ("paper_small",))
        assert one.over_peers(PLAIN) == other.over_peers(PLAIN) is not None
    assert cells_of({**document, "versions": {"mpich": "", "intel": ""}})[0].missing == ("intel",)


def test_the_pictures_of_the_documentation_are_of_the_series_that_they_name(tmp_path: Path) -> None:
    """After another series: bench/arrivals/late_pictures.py SERIES docs."""
    late_pictures.main([str(ROOT / "bench/results/amd-epyc-genoa-2core/arrival-4ranks-quick.json"), str(tmp_path)])
    for drawn in tmp_path.iterdir():
        assert drawn.read_text() == (ROOT / "docs" / drawn.name).read_text()
    assert len(list(tmp_path.iterdir())) == 2
