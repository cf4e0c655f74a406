"""Late ranks in the verdict: told where one was put into a job, and not where chance or the system did it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stretto.profile import say
from stretto.profile.late import waited_for_since
from stretto.profile_model import Severity
from synthetic_jobs import about, allreduces, balanced, profile, rows, world


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("since", [0, 1000])
def test_the_late_rank_and_since_when(tmp_path: Path, nodes: int, since: int) -> None:
    processes = world(4, nodes=nodes)
    arrivals = balanced(2000, 4)
    arrivals[since:, 2] += 1e-3
    allreduces(processes, arrivals, 1e-5)
    found = profile(tmp_path, processes)
    one = about(found, "Waiting for rank 2")
    share = (2000 - since) * 3e-3 / 40
    assert one is not None and say.percent(share) in one.title
    assert ("since" in one.title) == (since > 0) and one.figure == "late" and "rank 2" in one.advice
    late = rows(found.table("late"), rank=2)[0]
    assert late["since"] == pytest.approx(1.0 + 4e-3 * since if since else 0.0, abs=0.02)
    assert late["last"] >= 2000 - since and late["caused"] == pytest.approx((2000 - since) * 3e-3, rel=0.02)
    assert [row["since"] for row in found.table("late").to_dicts() if row["rank"] != 2] == [None] * 3
    assert one.severity == (Severity.bad if share >= 0.1 else Severity.notable)


@pytest.mark.parametrize("early", [1.2, 0.02])
def test_one_long_wait(tmp_path: Path, early: float) -> None:
    processes = world(4)
    arrivals = balanced(2000, 4)
    arrivals[700:] += 0.6
    arrivals[700:, 1] += 0.6
    arrivals[700, [0, 2, 3]] = arrivals[700, 1] - early
    arrivals[701:, [0, 2, 3]] += 0.6
    allreduces(processes, arrivals, 1e-5)
    found = profile(tmp_path, processes, cpus={"node0": 4})
    assert about(found, "Waiting for rank 1") is None, "it is not late as a rule"
    one = about(found, "Waiting in one MPI_Allreduce")
    if early < 1:
        assert one is None
        return
    assert one is not None and one.figure == "invocations" and one.severity == Severity.notable
    assert one.title == "Waiting in one MPI_Allreduce takes 9.0 % of the run time"
    assert "number 700 on MPI_COMM_WORLD" in one.text and "rank 1 comes last, 1.2 s after the first" in one.text
    assert "wait 3.6 s" in one.text and "rank 1" in one.advice


def test_a_late_rank_is_not_told_twice(tmp_path: Path) -> None:
    processes = world(2)
    allreduces(processes, 1.0 + np.arange(8)[:, None] * 1.1 + [[0.0, 1.05]] * 8, 1e-5)
    found = profile(tmp_path, processes)
    assert about(found, "Waiting for rank 1 takes") is not None and about(found, "Waiting in one") is None


def test_a_rank_that_was_late_and_is_no_more_is_not_blamed(tmp_path: Path) -> None:
    processes = world(3)
    arrivals = balanced(2000, 3)
    arrivals[:300, 1] += 1e-4
    allreduces(processes, arrivals, 1e-5)
    found = profile(tmp_path, processes)
    assert about(found, "rank 1") is None and rows(found.table("late"), rank=1)[0]["since"] is None


def test_lateness_in_the_first_collective_of_each_iteration(tmp_path: Path) -> None:
    """The others follow closely, so that the late rank is last in a minority of the calls and yet to blame."""
    processes = world(4)
    arrivals = balanced(2000, 4)
    arrivals[::8, 3] += 2e-3
    allreduces(processes, arrivals, 1e-5)
    found = profile(tmp_path, processes)
    one, late = about(found, "Waiting for rank 3"), rows(found.table("late"), rank=3)[0]
    assert one is not None and late["share"] < 0.4
    waiting = sum(row["caused"] for row in found.table("late").to_dicts())
    assert f"Of the waiting in MPI_Allreduce on MPI_COMM_WORLD, {say.percent(late['caused'] / waiting)} is for this" in one.text
    assert f"it comes last in {late['last']:,} of 2,000 calls" in one.text


def held_up(calls: int, calls_of: dict[int, range], seconds: float, ranks: int = 2) -> Any:
    """Arrivals of ranks that all do the same, of which some are interrupted before these calls, for about so long."""
    generator = np.random.default_rng(3)
    arrivals = 1.0 + np.cumsum(np.full((calls, 1), 1e-4) + generator.random((calls, 1)) * 1e-5, axis=0) + np.zeros((1, ranks))
    arrivals += generator.random(arrivals.shape) * 1e-6
    for rank, where in calls_of.items():
        for call in where:
            arrivals[call, rank] += seconds * (0.5 + generator.random())
            arrivals[call + 1 :] += 1.5 * seconds
    return arrivals


def test_two_ranks_of_which_one_is_interrupted_more_often_are_late_in_turn(tmp_path: Path) -> None:
    """Of two ranks one always causes half of the waiting or more, here three quarters."""
    processes = world(2, finalize=2.0)
    allreduces(processes, held_up(6000, {0: range(100, 5900, 200), 1: range(170, 5900, 600)}, 4e-3), 1e-6)
    for cpus, crowded in ((2, True), (8, False)):
        found = profile(tmp_path / str(cpus), processes, cpus={"node0": cpus})
        assert about(found, "Waiting for rank") is None
        assert found.table("late")["since"].to_list() == [None, None]
        shares = found.verdict[0]
        assert shares.title.startswith("Waiting for late ranks takes") and "No rank is late by more than chance" in shares.text
        assert shares.advice.startswith("See first that no rank shares its core: 2 ranks take all of 2 CPUs") == crowded
        assert "ven out the ranks' work" in shares.advice


@pytest.mark.parametrize("few", [10, 20])
def test_a_rank_that_is_interrupted_in_few_calls_is_not_late_as_a_rule(tmp_path: Path, few: int) -> None:
    """Nearly all waiting is for it, since what else runs on its core stays there."""
    processes = world(2, finalize=2.0)
    allreduces(processes, held_up(6000, {1: range(5900, 5900 + few)}, 4e-3), 2e-5)
    found = profile(tmp_path, processes)
    assert about(found, "Waiting for rank") is None and "No rank is late by more than chance" in found.verdict[0].text


def test_a_rank_that_is_last_by_a_hair_is_not_waited_for(tmp_path: Path) -> None:
    """In three calls of four, by some microseconds, in a program that does nothing but such calls."""
    processes = world(2, finalize=1.7)
    arrivals = held_up(6000, {}, 0.0)
    arrivals[:, 0] += np.random.default_rng(4).random(6000) * 12e-6 - 3e-6
    allreduces(processes, arrivals, 2e-6)
    found = profile(tmp_path, processes)
    assert about(found, "Waiting for rank") is None and found.verdict[0].severity == Severity.notable


def test_a_rank_with_much_more_work_now_and_then_is_waited_for(tmp_path: Path) -> None:
    """Once in 200 calls, but so long that no scheduler did it."""
    processes = world(4)
    allreduces(processes, held_up(6000, {1: range(50, 5990, 200)}, 40e-3, 4), 2e-5)
    for cpus, advice in ((4, "See what rank 1 (node0) does"), (2, "See first whether rank 1 (node0) has a core of its own")):
        one = about(profile(tmp_path / str(cpus), processes, cpus={"node0": cpus}), "Waiting for rank 1")
        assert one is not None and one.advice.startswith(advice)


def test_a_late_rank_is_told_though_another_is_last_by_a_hair_in_the_other_half_of_few_calls(tmp_path: Path) -> None:
    """Two buckets a step: the late rank comes last to the first one, and the other rank to the second, as it began it later."""
    processes = world(2, finalize=5.0)
    arrivals = 1.0 + np.arange(80)[:, None] * 40e-3 + np.random.default_rng(6).random((80, 2)) * 1e-5
    arrivals[::2, 1] += 8e-3
    arrivals[1::2, 0] += 2e-5
    allreduces(processes, arrivals, 1e-5)
    found = profile(tmp_path, processes)
    assert rows(found.table("late"), rank=1)[0]["last"] == 40
    assert about(found, "Waiting for rank 1") is not None


def test_a_late_rank_is_told_though_another_was_once_waited_for_much_longer(tmp_path: Path) -> None:
    """As a rank is that reads the input."""
    processes = world(4, finalize=30.0)
    arrivals = 8.0 + np.arange(4000)[:, None] * 5e-3 + np.random.default_rng(8).random((4000, 4)) * 1e-5
    arrivals[2000:, 3] += 1e-3
    arrivals[0, 1:] -= 5.0
    allreduces(processes, arrivals, 1e-5)
    found = profile(tmp_path, processes)
    assert rows(found.table("late"), rank=3)[0]["since"] is not None
    assert about(found, "Waiting for rank 3") is not None


def test_ranks_of_one_node_that_come_last_in_turn(tmp_path: Path) -> None:
    processes = world(6, nodes=2)
    arrivals = balanced(2000, 6)
    arrivals[:, 3:] += np.random.default_rng(9).random((2000, 3)) * 1e-3
    allreduces(processes, arrivals, 1e-5)
    found = profile(tmp_path, processes)
    assert about(found, "Waiting for the ranks of node1") is not None and about(found, "Waiting for rank") is None
    even = world(6, nodes=2)
    allreduces(even, balanced(2000, 6) + np.random.default_rng(9).random((2000, 6)) * 1e-3, 1e-5)
    assert about(profile(tmp_path / "even", even), "Waiting for the ranks of") is None


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 1.0])
def test_since_when_a_rank_is_waited_for(share: float) -> None:
    """The injected moment is found; without one there is none."""
    generator = np.random.default_rng(5)
    begin, counts = np.arange(400.0), np.ones(400)
    totals = generator.random(400) + 0.5
    before = generator.random(400) * 0.2
    part = np.where(np.arange(400) < 150, before, np.maximum(share, before)) * totals
    since = waited_for_since(part, totals, counts, begin)
    assert since is None if share < 0.5 else since == pytest.approx(150, abs=3)
    assert waited_for_since(totals, totals, counts, begin) == 0.0
    assert waited_for_since(part[::-1].copy(), totals[::-1].copy(), counts, begin) is None
    assert waited_for_since(np.zeros(400), np.zeros(400), counts, begin) is None
