"""Arrival at collectives, from traces to tables: synthetic jobs whose truth is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import trace_writer as writer
from stretto.profile import analyse, scan
from stretto.profile.figures import quantile
from stretto.profile.thinned import Thinned
from stretto.profile_model import TABLES
from synthetic_jobs import allreduces, profile, rows, world


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_arrival_figures_are_the_papers(tmp_path: Path, nodes: int) -> None:
    """Omega, delta, waiting and transfer by their definitions, on clocks with offset and drift."""
    processes = world(4, nodes=nodes)
    arrivals = 1.0 + np.arange(50)[:, None] * 0.1 + np.random.default_rng(1).random((50, 4)) * 0.02
    allreduces(processes, arrivals, 0.003)
    found = profile(tmp_path, processes)
    (row,) = rows(found.table("arrival"), scope="cluster")
    near = {"abs": 3e-9}
    omega, mean = np.ptp(arrivals, axis=1), arrivals.mean(axis=1, keepdims=True)
    delta = np.abs(arrivals - mean).mean(axis=1)
    assert (row["invocations"], row["of_invocations"], row["size_class"], row["communicator"]) == (
        50,
        50,
        "small",
        "MPI_COMM_WORLD",
    )
    assert row["omega_mean"] == pytest.approx(omega.mean(), **near) and row["omega_most"] == pytest.approx(omega.max(), **near)
    assert row["omega_median"] == pytest.approx(np.median(omega), **near) and row["delta_mean"] == pytest.approx(
        delta.mean(), **near
    )
    assert row["alpha"] == pytest.approx(0.003, **near)
    assert row["omega_factor"] == pytest.approx(omega.mean() / 0.003, rel=1e-5)
    assert row["delta_factor"] == pytest.approx(delta.mean() / 0.003, rel=1e-5)
    waiting = (arrivals.max(axis=1, keepdims=True) - arrivals).sum()
    assert row["waiting"] == pytest.approx(waiting, abs=1e-6) and row["transfer"] == pytest.approx(50 * 4 * 0.003, abs=1e-6)
    assert row["in_noise"] is False
    shown = found.table("invocations").sort("sequence")
    assert shown["last_rank"].to_list() == arrivals.argmax(axis=1).tolist()
    assert shown["omega"].to_numpy() == pytest.approx(omega, **near)
    assert shown["at"].to_numpy() == pytest.approx(arrivals.min(axis=1), **near)
    last = np.bincount(arrivals.argmax(axis=1), minlength=4)
    late = {row["rank"]: row for row in found.table("late").to_dicts()}
    assert [late[rank]["last"] for rank in range(4)] == last.tolist()
    others = (4 * mean - arrivals) / 3
    assert [late[rank]["behind"] for rank in range(4)] == pytest.approx((arrivals - others).mean(axis=0), **near)
    raster = found.table("raster").sort("sequence", "rank")["after_first"].to_numpy().reshape(50, 4)
    assert raster == pytest.approx(arrivals - arrivals.min(axis=1, keepdims=True), abs=3e-9)
    here = rows(found.table("arrival"), scope="node")
    if nodes == 4:
        assert here == []
    else:
        parts = [arrivals[:, :2], arrivals[:, 2:]] if nodes == 2 else [arrivals]
        assert here[0]["omega_mean"] == pytest.approx(np.mean([np.ptp(part, axis=1) for part in parts]), **near)
        assert here[0]["invocations"] == 50


def test_figures_below_three_times_the_clock_error_are_marked(tmp_path: Path) -> None:
    for error, noisy in ((0.9e-4, False), (1.2e-4, True)):
        processes = world(2, nodes=2)
        processes[1].clocks = [(0.1, error, 0, 0), (9.9, error, 0, 1)]
        allreduces(processes, 1.0 + np.arange(1500)[:, None] * 5e-3 + [[0.0, 3e-4]] * 1500, 1e-5)
        found = profile(tmp_path / str(noisy), processes)
        assert [row["in_noise"] for row in rows(found.table("arrival"), scope="cluster")] == [noisy]
        assert any("clocks are too far apart" in one.title for one in found.verdict) == noisy
        assert any("Waiting for rank 1" in one.title for one in found.verdict) == (not noisy)


def test_the_message_is_the_largest_part_and_classes_are_told_apart(tmp_path: Path) -> None:
    processes = world(2)
    for number, size in enumerate((0, 1, 4096, 4097, 65536, 65537)):
        allreduces(processes, [[1.0 + number, 1.001 + number]], 1e-3, size, first=number)
    table = profile(tmp_path, processes).table("arrival").filter(pl.col("scope") == "cluster")
    assert {row["size_class"]: row["invocations"] for row in table.to_dicts()} == {"none": 1, "small": 2, "medium": 2, "large": 1}


def test_who_leaves_early_does_not_wait_longer_than_it_stays(tmp_path: Path) -> None:
    """The root of a broadcast goes on while others come late."""
    processes = world(3)
    for process, begin, end in zip(processes, (1.0, 1.5, 2.0), (1.1, 2.2, 2.2), strict=True):
        process.call("MPI_Bcast", begin, end, sent=8, received=8, peer=0)
    (row,) = rows(profile(tmp_path, processes).table("arrival"), scope="cluster")
    assert row["waiting"] == pytest.approx(0.1 + 0.5, abs=1e-8) and row["transfer"] == pytest.approx(0.4, abs=1e-8)


def test_only_invocations_that_all_members_recorded_are_used(tmp_path: Path) -> None:
    processes = world(3)
    arrivals = 1.0 + np.arange(100)[:, None] * 0.01 + np.random.default_rng(2).random((100, 3)) * 1e-3
    allreduces(processes, arrivals, 1e-4)
    processes[0].kept = lambda calls: calls["sequence"] % 2 == 0
    processes[1].kept = lambda calls: calls["sequence"] % 3 == 0
    processes[2].kept = lambda calls: calls["sequence"] < 60
    found = profile(tmp_path, processes)
    (row,) = rows(found.table("arrival"), scope="cluster")
    kept = np.arange(0, 60, 6)
    assert (row["invocations"], row["of_invocations"]) == (10, 100)
    assert row["omega_mean"] == pytest.approx(np.ptp(arrivals[kept], axis=1).mean(), abs=3e-9)
    assert found.table("invocations")["sequence"].to_list() == kept.tolist()


def test_persistent_collectives_are_matched_by_their_starts(tmp_path: Path) -> None:
    """Rank 1 starts the even ones, by MPI_Start and MPI_Startall in turn, 2 ms late; parts that complete them are no arrivals."""
    processes = world(2)
    for rank, process in enumerate(processes):
        process.functions = (*process.functions, "MPI_Start", "MPI_Allreduce_init")
        for number in range(20):
            at = 1.0 + number * 10e-3 + rank * 2e-3 * (number % 2 == 0)
            both = {"sequence": number, "sent": 64, "received": 64, "datatype": 0, "op": 0, "request": number + 1}
            caller = ("MPI_Start", "MPI_Startall")[number // 2 % 2]
            process.call(caller, at, at + 1e-5, **(both if caller == "MPI_Start" else {}))
            process.call("MPI_Allreduce_init", at, at + 1e-5, **both, flags=writer.PART, partitions=1)
            process.call("MPI_Waitall", at + 5e-3, at + 6e-3)
            process.call("MPI_Allreduce_init", at + 5e-3, at + 6e-3, request=number + 1, flags=writer.PART)
    found = profile(tmp_path, processes)
    (row,) = rows(found.table("arrival"), scope="cluster")
    assert (row["function"], row["invocations"]) == ("MPI_Allreduce_init", 20)
    assert row["omega_mean"] == pytest.approx(1e-3, rel=1e-3)
    late = rows(found.table("late"), rank=1)[0]
    assert late["caused"] == pytest.approx(10 * 1e-5, rel=1e-2)  # the starts do not wait: each ends when it has begun


def test_the_sample_of_mode_aggregate_stands_for_all(tmp_path: Path) -> None:
    """The tracer keeps early collectives densely; here only the later ones wait."""
    processes = world(2, mode=1, finalize=60.0)
    arrivals = 1.0 + np.arange(20000)[:, None] * 2e-3 + np.zeros((20000, 2))
    arrivals[5000:, 1] += 1e-3
    allreduces(processes, arrivals, 1e-4)
    for process in processes:
        process.kept = lambda calls: writer.sampled(calls["sequence"])
    found = profile(tmp_path, processes, mode="aggregate")
    (row,) = rows(found.table("arrival"), scope="cluster")
    assert (row["invocations"], row["of_invocations"]) == (int(writer.sampled(np.arange(20000)).sum()), 20000)
    assert row["waiting"] == pytest.approx(15000 * 1e-3, rel=5e-3) and row["transfer"] == pytest.approx(40000 * 1e-4, rel=5e-3)
    assert row["omega_mean"] == pytest.approx(0.75e-3, rel=5e-3)
    late = rows(found.table("late"), rank=1)[0]
    assert late["caused"] == pytest.approx(15.0, rel=5e-3) and late["since"] == pytest.approx(11.0, abs=0.1)


def test_the_sample_stands_for_all_in_medians_and_in_who_is_last(tmp_path: Path) -> None:
    """Early on rank 1 comes late, by much; later rank 0 does, by little, and transfers are short."""
    processes, number = world(2, mode=1, finalize=30.0), np.arange(20000)
    for process in processes:
        late = np.where(number < 4096, 1e-4 * (process.rank == 1), 5e-6 * (process.rank == 0))
        end = number * 1e-3 + np.where(number < 4096, 2e-4, 5e-5)
        process.call("MPI_Allreduce", number * 1e-3 + late, end, sequence=number, sent=8, received=8)
        process.kept = lambda calls: writer.sampled(calls["sequence"])
    found = profile(tmp_path, processes, mode="aggregate")
    (row,) = rows(found.table("arrival"), scope="cluster")
    assert row["omega_median"] == pytest.approx(5e-6, rel=1e-2)
    first, second = (rows(found.table("late"), rank=rank)[0] for rank in range(2))
    assert first["share"] == pytest.approx(15904 / 20000, rel=0.01) and second["share"] == pytest.approx(4096 / 20000, rel=0.02)
    assert first["last"] == pytest.approx(15904, rel=0.02) and first["last"] + second["last"] == first["invocations"]
    assert second["behind"] == pytest.approx((4096 * 1e-4 - 15904 * 5e-6) / 20000, rel=0.02)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), min_size=1), st.floats(0, 1))
def test_quantiles_count_values_as_often_as_they_weigh(pairs: list[tuple[int, int]], share: float) -> None:
    values, weights = np.array(pairs).T.astype(float)
    repeated = np.repeat(values, weights.astype(int))
    assert quantile(values, weights, share) == pytest.approx(np.quantile(repeated, share), abs=1e-9)


def test_the_sample_stands_for_all_where_the_root_moves(tmp_path: Path) -> None:
    """The root alone has the bytes of the message's size: each rank counts but a quarter of the calls under it."""
    processes = world(4, mode=1)
    number, count = np.arange(20000), 20000
    for process in processes:
        begin = number * 1e-4 + 1e-5 * (process.rank == 1)
        received = np.where(number % 4 == process.rank, 4096, 0)
        process.call("MPI_Gather", begin, number * 1e-4 + 3e-5, sequence=number, sent=1024, received=received, peer=number % 4)
        process.kept = lambda calls: writer.sampled(calls["sequence"])
    found = profile(tmp_path, processes, mode="aggregate")
    (row,) = rows(found.table("arrival"), scope="cluster")
    assert row["of_invocations"] == pytest.approx(count, rel=0.02) and row["of_invocations"] <= count
    assert row["waiting"] == pytest.approx(3 * count * 1e-5, rel=0.02)
    assert row["transfer"] == pytest.approx(4 * count * 2e-5, rel=0.02)


def test_the_sample_of_persistent_collectives_stands_for_all(tmp_path: Path) -> None:
    processes = world(2, mode=1)
    number, count = np.arange(20000), 20000
    for process in processes:
        process.functions = (*process.functions, "MPI_Start", "MPI_Allreduce_init")
        begin, end = number * 1e-4 + 1e-5 * process.rank, number * 1e-4 + 3e-5
        process.call("MPI_Allreduce_init", -2e-5, -1e-5)
        process.call("MPI_Start", begin, end, sequence=number, sent=8, received=8)
        facts = {"sequence": number, "sent": 8, "received": 8, "flags": writer.PART, "partitions": 1}
        process.call("MPI_Allreduce_init", begin, end, **facts)
        process.kept = lambda calls: (calls["flags"] & writer.PART != 0) & writer.sampled(calls["sequence"])
    found = profile(tmp_path, processes, mode="aggregate")
    (row,) = rows(found.table("arrival"), scope="cluster")
    assert row["of_invocations"] == pytest.approx(count, rel=0.02)
    assert row["waiting"] == pytest.approx(count * 1e-5, rel=0.02)


def test_a_missing_rank_costs_the_arrivals_of_its_communicators_alone(tmp_path: Path) -> None:
    processes = world(3)
    for process in processes[:2]:
        process.communicator(7, [0, 1], "pair")
    allreduces(processes, [[1.0, 1.1, 1.2]], 0.1)
    allreduces(processes[:2], [[2.0, 2.1]], 0.1, communicator=1)
    found = profile(tmp_path, processes[:2])
    assert found.table("arrival")["communicator"].unique().to_list() == ["pair"]
    assert not found.complete and "1 of 3 ranks left no trace that can be read: 2" in found.problems
    assert found.verdict[0].title == "1 rank of 3 did not finish" and "rank 2: left no trace" in found.verdict[0].text


def test_members_that_call_different_functions_are_left_out(tmp_path: Path) -> None:
    processes = world(2)
    allreduces(processes, [[1.0, 1.1]], 0.1)
    processes[0].call("MPI_Bcast", 2.0, 2.1, sequence=1)
    processes[1].call("MPI_Barrier", 2.0, 2.1, sequence=1)
    found = profile(tmp_path, processes)
    assert found.table("arrival")["function"].unique().to_list() == ["MPI_Allreduce"]
    assert any("called different functions" in problem for problem in found.problems)


def test_intercommunicators_are_matched_over_both_groups(tmp_path: Path) -> None:
    processes = world(4)
    for process in processes:
        mine, other = ([0, 1], [2, 3]) if process.rank < 2 else ([2, 3], [0, 1])
        process.communicator(99, mine, "bridge", remote=other)
    arrivals = np.array([[1.0, 1.1, 1.3, 1.2], [2.0, 2.4, 2.1, 2.2]])
    allreduces(processes, arrivals, 0.05, communicator=1)
    found = profile(tmp_path, processes)
    (row,) = rows(found.table("arrival"), scope="cluster")
    assert (row["communicator"], row["invocations"]) == ("bridge", 2) and row["omega_mean"] == pytest.approx(0.35, abs=1e-8)
    assert rows(found.table("communicators"), name="bridge")[0]["size"] == 4
    assert rows(found.table("takeover"))[0]["outcome"] == "left: intercommunicator"


def test_calls_longer_than_the_low_half_of_their_field(tmp_path: Path) -> None:
    processes = world(2, finalize=100.0)
    allreduces(processes, [[1.0, 61.0]], 2.0, size=1 << 33)
    found = profile(tmp_path, processes)
    (row,) = rows(found.table("arrival"), scope="cluster")
    assert (row["waiting"], row["transfer"]) == pytest.approx((60.0, 4.0), abs=1e-7)
    assert found.table("invocations")["bytes"].to_list() == [1 << 33]


def test_threads_that_share_a_communicator(tmp_path: Path) -> None:
    """One rank's collectives are spread over two threads, whose events come in streams of their own."""
    processes = world(2)
    arrivals = 1.0 + np.arange(3000)[:, None] * 1e-3 + np.random.default_rng(5).random((3000, 2)) * 1e-4
    thread = np.where(np.arange(3000) < 1500, 0, 1)
    exits = arrivals.max(axis=1) + 1e-5
    facts = {"sequence": np.arange(3000), "sent": 8, "received": 8}
    processes[0].call("MPI_Allreduce", arrivals[:, 0], exits, thread=thread, **facts)
    processes[1].call("MPI_Allreduce", arrivals[:, 1], exits, thread=np.arange(3000) % 2, **facts)
    (row,) = rows(profile(tmp_path, processes).table("arrival"), scope="cluster")
    assert row["invocations"] == 3000 and row["omega_mean"] == pytest.approx(np.ptp(arrivals, axis=1).mean(), abs=3e-9)


def test_results_do_not_depend_on_the_length_of_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.make_example(tmp_path, iterations=60)
    whole = analyse(tmp_path)
    for longest in (3, 50, 997):
        monkeypatch.setattr(scan, "LONGEST", longest)
        monkeypatch.setattr(scan, "SHORTEST", 1)
        other = analyse(tmp_path)
        for name in TABLES:
            assert_frame_equal(whole.table(name), other.table(name), check_exact=False, rel_tol=1e-9, abs_tol=1e-12)
        assert [one.title for one in whole.verdict] == [one.title for one in other.verdict]


@settings(deadline=None)
@given(st.integers(1, 5000), st.integers(10, 200), st.integers(1, 64))
def test_thinned_rows_are_spread_and_do_not_depend_on_blocks(count: int, most: int, block: int) -> None:
    kept, whole = Thinned(most), Thinned(most)
    numbers = np.arange(count)
    for at in range(0, count, block):
        kept.add(numbers[at : at + block], numbers[at : at + block])
    whole.add(numbers, numbers)
    assert kept.columns()[0].tolist() == whole.columns()[0].tolist()
    assert min(count, most // 3) <= len(kept.columns()[0]) <= most
    if count > 4 * most and most >= 50:
        assert np.diff(kept.columns()[0]).max() < 12 * count / most
