"""From traces to tables: synthetic jobs whose truth is known."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import trace_writer as writer
from stretto.errors import StrettoError
from stretto.profile import analyse, scan
from stretto.profile.arrival import size_bin, size_class
from stretto.profile.thinned import Thinned
from stretto.profile_model import TABLES, Profile


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


def test_counts_and_bytes_are_exact(tmp_path: Path) -> None:
    generator = random.Random(3)
    processes, calls, sizes, sent = world(3), Counter[Any](), Counter[Any](), Counter[Any]()
    for process in processes:
        at = 0.1
        for _ in range(200):
            function = generator.choice(["MPI_Bcast", "MPI_Allreduce", "MPI_Send", "MPI_Recv", "MPI_Put"])
            size, thread, partner = (
                generator.choice([0, 1, 2, 3, 4, 5, 1 << 20, 1 << 34]),
                generator.randrange(3),
                generator.randrange(3),
            )
            receives = function == "MPI_Recv"
            direction = {"MPI_Send": "sent", "MPI_Recv": "received", "MPI_Put": "put"}.get(function, "")
            facts = {"received" if receives else "sent": size, "direction": direction, "partner": partner if direction else -1}
            process.call(function, at, at + 0.01, thread=thread, datatype=1, location=generator.choice([0, 1, 14]), **facts)
            at += 0.02
            calls[process.rank, function] += 1
            sizes[function, 0 if size == 0 else 1 << (size - 1).bit_length()] += 1
            sent[process.rank, function] += 0 if receives else size
    found = profile(tmp_path, processes)
    functions = {(row["rank"], row["function"]): row for row in found.table("functions").to_dicts()}
    assert {key: row["calls"] for key, row in functions.items()} == dict(calls)
    assert {key: row["sent"] for key, row in functions.items()} == {key: sent[key] for key in calls}
    assert all(row["time"] == pytest.approx(row["calls"] * 0.01, abs=1e-6) for row in functions.values())
    assert all(row["share"] == pytest.approx(row["time"] / 10) for row in functions.values())
    by_size = found.table("sizes").group_by("function", "upper").agg(pl.col("calls").sum())
    assert {(row[0], row[1]): row[2] for row in by_size.iter_rows()} == dict(sizes)
    assert set(found.table("sizes")["location"]) <= {"host", "device", "managed"}
    pairs = Counter[Any]()
    for process in processes:
        for batch in process.batches:
            one = batch[0]
            if one["direction"] in (1, 3):
                pairs[process.rank, int(one["partner"]), "sent" if one["direction"] == 1 else "put"] += int(one["sent"])
    got = {(row["source"], row["target"], row["how"]): row["bytes"] for row in found.table("partners").to_dicts()}
    assert got == dict(pairs)
    assert rows(found.table("communicators"))[0]["calls"] == 600
    assert found.table("ranks")["calls"].to_list() == [200, 200, 200] and found.complete


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
    assert [late[rank]["behind"] for rank in range(4)] == pytest.approx((arrivals - mean).mean(axis=0), **near)
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


def test_sizes_at_the_end_of_their_range(tmp_path: Path) -> None:
    processes = world(2)
    allreduces(processes, [[1.0, 1.1]], 0.1, size=(1 << 63) - 1)
    found = profile(tmp_path, processes)
    assert found.table("invocations")["bytes"].to_list() == [(1 << 63) - 1] and "damaged sums" in found.problems[0]


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


def test_requests_are_followed_from_start_to_completion(tmp_path: Path) -> None:
    (process,) = world(1)
    process.call("MPI_Isend", 1.0, 1.1, request=1)
    process.call("MPI_Irecv", 1.2, 1.3, request=2)
    process.call("MPI_Test", 1.4, 1.5, request=2, flags=writer.INCOMPLETE)
    process.call("MPI_Waitall", 2.0, 2.5, thread=1)
    process.call("MPI_Isend", 2.0, 2.5, thread=1, request=1, flags=writer.PART)
    process.call("MPI_Irecv", 2.0, 2.5, thread=1, request=2, flags=writer.PART)
    process.call("MPI_Isend", 3.0, 3.1, request=3)
    process.call("MPI_Isend", 3.2, 3.3, request=4)
    process.call("MPI_Wait", 3.4, 3.5, request=3)
    process.call("MPI_Isend", 3.4, 3.5, request=3, flags=writer.PART)  # what MPI_Wait received, as its part
    process.call("MPI_Send_init", 3.6, 3.65, request=9)
    for at in (4.0, 5.0):
        process.call("MPI_Startall", at, at + 0.1)
        process.call("MPI_Send_init", at, at + 0.1, request=9, flags=writer.PART)
        process.call("MPI_Wait", at + 0.4, at + 0.5, request=9)
    process.call("MPI_Wait", 0.5, 0.6, request=77)  # its start was not recorded
    found = {row["function"]: row for row in profile(tmp_path, [process]).table("requests").to_dicts()}
    assert (found["MPI_Isend"]["completed"], found["MPI_Isend"]["open"]) == (2, 1)
    assert (found["MPI_Irecv"]["completed"], found["MPI_Irecv"]["open"]) == (1, 0)
    assert found["MPI_Isend"]["in_flight"] == pytest.approx(1.5 + 0.5, abs=1e-8)
    assert found["MPI_Isend"]["waited"] == pytest.approx(0.5 + 0.1, abs=1e-8)
    assert found["MPI_Irecv"]["hidden_share"] == pytest.approx(1 - 0.5 / 1.3, abs=1e-8)
    assert (found["MPI_Startall"]["completed"], found["MPI_Startall"]["open"]) == (2, 0)
    assert found["MPI_Startall"]["in_flight"] == pytest.approx(1.0, abs=1e-8) and set(found) == {
        "MPI_Isend",
        "MPI_Irecv",
        "MPI_Startall",
    }


def test_threads_inside_at_once(tmp_path: Path) -> None:
    one, two = world(2)
    one.call("MPI_Recv", [1.0, 3.0, 5.0], [2.0, 4.0, 6.0])
    one.call("MPI_Send", [1.5, 4.0, 5.2], [1.7, 4.5, 5.8], thread=1)
    one.call("MPI_Send", 5.4, 7.0, thread=2)
    two.call("MPI_Recv", [1.0, 3.0], [2.0, 4.0])
    table = {row["rank"]: row for row in profile(tmp_path, [one, two]).table("overlap").to_dicts()}
    assert (table[0]["most"], table[0]["calls_overlapped"]) == (3, 5)
    assert table[0]["overlapped"] == pytest.approx(0.2 + 0.8, abs=1e-8)
    assert (table[1]["most"], table[1]["overlapped"], table[1]["calls_overlapped"]) == (1, 0.0, 0)


def test_buckets_that_repeat_are_recognised(tmp_path: Path) -> None:
    sizes = [15_600_000, 64 << 20, 64 << 20, 2_100_000] * 20
    (process, other) = world(2)
    arrivals = 1.0 + np.arange(80)[:, None] * 0.01 + np.zeros((80, 2))
    allreduces([process, other], arrivals, 1e-3, size=np.array(sizes))  # type: ignore[arg-type]
    found = {row["bytes"]: row for row in profile(tmp_path, [process, other]).table("buckets").to_dicts()}
    assert {size: row["per_iteration"] for size, row in found.items()} == {15_600_000: 1, 64 << 20: 2, 2_100_000: 1}
    assert {row["iterations"] for row in found.values()} == {20}


def test_reductions_without_a_period_are_no_iterations(tmp_path: Path) -> None:
    generator = np.random.default_rng(4)
    sizes = generator.choice([1 << 20, 2 << 20, 3 << 20], 200)
    processes = world(2)
    allreduces(processes, 1.0 + np.arange(200)[:, None] * 0.01 + np.zeros((200, 2)), 1e-3, size=sizes)
    table = profile(tmp_path, processes).table("buckets")
    assert table["per_iteration"].null_count() == 3 and table["iterations"].sum() == 200


def test_messages_are_told_apart_by_use(tmp_path: Path) -> None:
    processes = world(2)
    arrivals = 5.0 + np.arange(40)[:, None] * 0.01 + np.zeros((40, 2))
    allreduces(processes, arrivals, 1e-4, size=16, datatype=2, op=1)
    allreduces(processes, arrivals + 1, 1e-4, size=1 << 22, first=40)
    allreduces(processes, arrivals + 2, 1e-4, size=8, first=80, datatype=1, op=0)
    for process in processes:
        process.call("MPI_Bcast", [0.5, 6.5], [0.6, 6.6], sent=1 << 24, datatype=0, sequence=[120, 121])
        process.call("MPI_Gather", 7.5, 7.6, sent=64, datatype=3)
    table = profile(tmp_path, processes).table("sizes")
    assert {(row["function"], row["upper"], row["use"]) for row in table.to_dicts()} == {
        ("MPI_Allreduce", 16, "control"),
        ("MPI_Allreduce", 1 << 22, "gradients"),
        ("MPI_Allreduce", 8, ""),
        ("MPI_Bcast", 1 << 24, ""),
        ("MPI_Gather", 64, "control"),
    }


def test_a_large_broadcast_at_the_beginning_is_of_parameters(tmp_path: Path) -> None:
    processes = world(2)
    for process in processes:
        process.call("MPI_Bcast", 0.5, 0.6, sent=1 << 24, datatype=0)
    assert profile(tmp_path, processes).table("sizes")["use"].to_list() == ["parameters"]


def test_mpi_and_nccl_side_by_side(tmp_path: Path) -> None:
    processes = world(2)
    allreduces(processes, [[1.0, 1.1]], 0.1)
    other = [
        writer.Process(rank=-1, size=0, pid=process.pid or 1000 + process.rank, library="NCCL 2.27") for process in processes
    ]
    for number, one in enumerate(other):
        one.rank = number
        one.communicator(5, [0, 1], "nccl comm")
        one.rank = -1
        one.call("ncclAllReduce", 2.0 + 0.1 * number, 2.3, sent=1 << 20, received=1 << 20, datatype=0, op=0, location=0x11)
    found = profile(tmp_path, processes + other)
    assert sorted(found.table("ranks").select("rank", "library").iter_rows()) == [
        (0, "MPI"),
        (0, "NCCL"),
        (1, "MPI"),
        (1, "NCCL"),
    ]
    assert rows(found.table("sizes"), library="NCCL")[0]["location"] == "device"
    assert {row["library"] for row in rows(found.table("arrival"), scope="cluster")} == {"MPI", "NCCL"}


def test_sums_alone_say_what_they_can(tmp_path: Path) -> None:
    processes = world(2, mode=1)
    allreduces(processes, 1.0 + np.arange(10)[:, None] + [[0.0, 0.1]] * 10, 0.01)
    for process in processes:
        process.kept = lambda calls: calls["sequence"] < 0
    found = profile(tmp_path, processes, mode="aggregate")
    assert found.mode == "aggregate" and found.table("functions")["calls"].to_list() == [10, 10]
    assert found.unavailable["arrival"] == "the traces hold sums alone"
    assert found.unavailable["requests"] == "single calls are recorded with --trace alone"
    assert found.verdict[0].title.startswith("Communication takes") and "cannot be told" in found.verdict[0].text


def test_queue_variables_over_ranks(tmp_path: Path) -> None:
    processes = world(2)
    for process in processes:
        process.call("MPI_Barrier", 1.0, 1.1)
        process.queues = [
            ("length", "messages", "", 10 + process.rank, 20.0, float(process.rank), 5.0 + process.rank),
            ("time", "s", "built without it", 0, 0.0, 0.0, 0.0),
        ]
    found = profile(tmp_path, processes)
    (row,) = found.table("queues").to_dicts()
    assert (row["least"], row["most"], row["samples"]) == (0.0, 6.0, 21) and row["mean"] == pytest.approx(40 / 21)
    assert found.unavailable["queues"] == "time: built without it"


def test_overhead_is_calls_times_what_one_costs(tmp_path: Path) -> None:
    processes = world(2, nodes=2, event_cost_ns=80.0)
    allreduces(processes, 1.0 + np.arange(100)[:, None] * 0.01 + np.zeros((100, 2)), 1e-4)
    overhead = profile(tmp_path, processes).overhead
    assert overhead is not None and overhead.calls == 200
    assert overhead.nanoseconds_per_call == pytest.approx(80, rel=1e-3) and overhead.share == pytest.approx(
        200 * 80e-9 / 20, rel=1e-3
    )


def test_states_of_ranks_that_did_not_end(tmp_path: Path) -> None:
    processes = world(4)
    for process in processes:
        process.call("MPI_Barrier", 1.0, 1.1)
    processes[1].stage, processes[2].stage, processes[3].stage = 1, 1, 1
    processes[2].inside = {0: (writer.FUNCTIONS.index("MPI_Recv"), 1.5)}
    processes[3].functions = (*writer.FUNCTIONS, "MPI_Abort")
    processes[3].call("MPI_Abort", 2.0, 2.0)
    found = profile(tmp_path, processes)
    assert found.table("ranks")["state"].to_list() == [
        "finished",
        "no MPI_Finalize",
        "no MPI_Finalize: ended in MPI_Recv",
        "aborted",
    ]
    assert not found.complete and found.verdict[0].title == "3 ranks of 4 did not finish"


def test_an_empty_folder_and_folders_without_traces(tmp_path: Path) -> None:
    with pytest.raises(StrettoError, match="no traces here"):
        analyse(tmp_path)
    with pytest.raises(StrettoError):
        analyse(tmp_path / "missing")
    (tmp_path / "rank-1.trace").write_bytes(b"what is this")
    with pytest.raises(StrettoError, match="none of its 1 traces can be read"):
        analyse(tmp_path)


def test_processes_that_never_were_ranks(tmp_path: Path) -> None:
    found = profile(tmp_path, [writer.Process(rank=-1, size=0, stage=0)])
    assert found.world_size == 0 and found.table("ranks").height == 0 and not found.complete
    assert found.problems == ["1 processes that never got as far as the end of MPI_Init"]


def test_what_cannot_be_read_is_told_and_the_rest_is_used(tmp_path: Path) -> None:
    processes = world(2)
    allreduces(processes, [[1.0, 1.2]], 0.1)
    profile(tmp_path, processes)
    (tmp_path / "rank-9.trace").write_bytes(b"junk")
    (tmp_path / "job.json").write_text("{")
    found = analyse(tmp_path)
    assert found.table("arrival").height == 2 and len(found.problems) == 2
    assert (found.command, found.wall_seconds) == ("", 0.0)


def test_the_second_trace_of_a_rank_is_left_out(tmp_path: Path) -> None:
    processes = world(1)
    processes[0].call("MPI_Barrier", [1.0, 2.0], [1.1, 2.1])
    second = writer.Process(pid=5)
    second.call("MPI_Barrier", 1.0, 1.1)
    found = profile(tmp_path, [*processes, second])
    assert found.table("ranks")["calls"].to_list() == [2] and "a second trace of rank 0" in found.problems[0]


def test_many_communicators_of_one_name_share_a_label(tmp_path: Path) -> None:
    processes = world(1)
    for number in range(12):
        processes[0].communicator(100 + number, [0], "again")
    for number in range(3):
        processes[0].communicator(200 + number, [0], "few")
    names = profile(tmp_path, processes).table("communicators")["name"].to_list()
    assert names.count("again (12 of them)") == 12 and {"few #1", "few #2", "few #3"} <= set(names)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_hostile_folders_end_in_a_profile_or_in_one_line(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    writer.make_example(folder, ranks=2, iterations=8)
    for path in sorted(folder.glob("*.trace")):
        raw = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(0, 6))):
            at = data.draw(st.integers(0, len(raw) // 64 - 1)) * 64 + 4 * data.draw(st.integers(0, 15))
            value = data.draw(st.sampled_from([0, 1, 255, 65535, 1 << 31, (1 << 32) - 1]) | st.integers(0, (1 << 32) - 1))
            raw[at : at + 4] = value.to_bytes(4, "little")
        path.write_bytes(raw[: data.draw(st.integers(len(raw) // 2, len(raw)))])
    if data.draw(st.booleans()):
        (folder / "job.json").write_text(
            json.dumps(
                data.draw(
                    st.dictionaries(
                        st.sampled_from(["cpus", "command", "wall_seconds"]),
                        st.none() | st.integers() | st.lists(st.text()) | st.dictionaries(st.just("node0"), st.integers()),
                    )
                )
            )
        )
    try:
        found = analyse(folder)
    except StrettoError:
        return
    assert set(found.tables) == set(TABLES)


@settings(deadline=None)
@given(st.lists(st.integers(0, 1 << 50), min_size=1))
def test_size_bins_are_the_formats(sizes: list[int]) -> None:
    assert size_bin(np.array(sizes)).tolist() == writer.size_bin(np.array(sizes)).tolist()
    assert [size_class(size) for size in (0, 1, 4096, 4097, 65536, 65537)] == [
        "none",
        "small",
        "small",
        "medium",
        "medium",
        "large",
    ]


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
