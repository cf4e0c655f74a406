"""Calls, messages, requests and queues, from traces to tables: synthetic jobs whose truth is known."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trace_writer as writer
from stretto import exports
from stretto.profile.arrival import size_bin, size_class
from stretto.profile.comparison import compare
from stretto.profile_report import views
from synthetic_jobs import allreduces, profile, rows, world


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
    (world_sums,) = rows(found.table("communicators"))
    assert world_sums["calls"] == 600
    moved = {name: sum(size for (_, one), size in sent.items() if one == name) for name in ("MPI_Send", "MPI_Recv")}
    assert moved["MPI_Send"] > 0
    assert world_sums["bytes"] == sum(sent.values()), "a message counts where it was sent"
    assert found.table("ranks")["calls"].to_list() == [200, 200, 200] and found.complete


def test_sizes_at_the_end_of_their_range(tmp_path: Path) -> None:
    processes = world(2)
    allreduces(processes, [[1.0, 1.1]], 0.1, size=(1 << 63) - 1)
    found = profile(tmp_path, processes)
    assert found.table("invocations")["bytes"].to_list() == [(1 << 63) - 1] and "damaged sums" in found.problems[0]


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
        ("MPI_Allreduce", 1 << 22, "sums"),
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


def test_shares_are_of_the_ranks_run_time_in_every_library(tmp_path: Path) -> None:
    processes = world(2, finalize=100.0)
    allreduces(processes, [[1.0, 1.0]], 0.5)
    for rank in range(2):
        late = writer.Process(
            rank=rank, size=2, library="NCCL 2.28", node=-1, host="node0", start=89.9, init=90.0, finalize=100.0
        )
        late.communicator(5, [0, 1], "nccl comm")
        late.call("ncclAllReduce", 90 + np.arange(5) * 2.0, 91 + np.arange(5) * 2.0, sequence=np.arange(5))
        processes.append(late)
    found = profile(tmp_path, processes)
    assert rows(found.table("functions"), rank=0, library="NCCL")[0]["share"] == pytest.approx(0.05)
    assert views.totals(found).communication == pytest.approx(2 * 5.5)
    assert {row["function"]: row["share"] for row in views.function_rows(found)} == pytest.approx(
        {"MPI_Allreduce": 0.005, "ncclAllReduce": 0.05}
    )


def nccl_pairs(members: dict[int, list[int]], identity: Any) -> list[writer.Process]:
    """Ranks that each know themselves alone in their pair, of which rank 1 comes 1 ms late."""
    processes, times = [], np.arange(100) * 0.1
    for rank, pair in members.items():
        one = writer.Process(rank=rank, size=4, library="NCCL 2.28")
        one.communicator(identity(pair), [other if other == rank else -1 for other in pair], "dp group")
        facts = {"sequence": np.arange(100), "sent": 1 << 20, "received": 1 << 20}
        one.call("ncclAllReduce", times + 1e-3 * (rank == 1), times + 0.01, **facts)
        processes.append(one)
    return processes


def test_members_of_nccl_communicators_are_told_by_all_together(tmp_path: Path) -> None:
    pairs = {0: [0, 1], 1: [0, 1], 2: [2, 3], 3: [2, 3]}
    found = profile(tmp_path, nccl_pairs(pairs, lambda pair: 7 + pair[0]))
    of_pairs = rows(found.table("arrival"), scope="cluster")
    assert sorted(round(row["omega_mean"], 6) for row in of_pairs) == [0.0, 0.001]
    assert rows(found.table("late"), rank=1)[0]["caused"] == pytest.approx(0.1)


def test_nccl_communicators_that_share_an_identity_are_not_mixed(tmp_path: Path) -> None:
    pairs = {0: [0, 3], 1: [1, 2], 2: [1, 2], 3: [0, 3]}
    found = profile(tmp_path, nccl_pairs(pairs, lambda _: 7))
    assert found.unavailable["arrival"]


def test_kernels_are_no_calls(tmp_path: Path) -> None:
    times = np.arange(100) * 0.1
    facts = {"sequence": np.arange(100), "sent": 1 << 20, "received": 1 << 20, "datatype": 0, "op": 0}
    processes = []
    for rank in range(2):
        one = writer.Process(rank=rank, size=2, library="NCCL 2.28", functions=(*writer.FUNCTIONS, "GPU ncclAllReduce"))
        one.communicator(5, [0, 1], "nccl comm")
        one.call("ncclAllReduce", times, times + 1e-3, **facts)
        one.call("GPU ncclAllReduce", times, times + 9e-2, thread=1, **facts)
        processes.append(one)
    found = profile(tmp_path, processes)
    assert (found.calls, found.single_calls) == (200, 200)
    assert found.table("ranks")["calls"].to_list() == [100, 100]
    assert found.table("ranks")["library_time"].to_list() == pytest.approx([0.1, 0.1])
    assert rows(found.table("communicators"))[0]["bytes"] == 200 << 20
    assert found.table("sizes")["calls"].to_list() == [200]
    assert found.table("overlap")["overlapped"].to_list() == [0.0, 0.0]
    assert views.totals(found).communication == pytest.approx(0.2)
    named = {row["function"]: (row["calls"], row["share"]) for row in views.function_rows(found)}
    assert named["ncclAllReduce"] == (200, pytest.approx(0.01)) and named["GPU ncclAllReduce"] == (200, None)
    assert found.overhead is not None and found.overhead.calls == 200
    figures = {one.name: one.first for one in compare(found, found).figures}
    assert (figures["calls of a rank"], figures["in communication"]) == (100, pytest.approx(0.1))
    assert exports.to_parquet(tmp_path, tmp_path / "calls.parquet") == 200


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


def test_calls_that_were_not_timed_cost_no_clock(tmp_path: Path) -> None:
    processes = world(2, nodes=2, event_cost_ns=80.0, clock_cost_ns=30.0, untimed=0.5)
    allreduces(processes, 1.0 + np.arange(100)[:, None] * 0.01 + np.zeros((100, 2)), 1e-4)
    overhead = profile(tmp_path, processes).overhead
    assert overhead is not None and overhead.nanoseconds_per_call == pytest.approx(65, rel=1e-3)


def test_many_communicators_of_one_name_share_a_label(tmp_path: Path) -> None:
    processes = world(1)
    for number in range(12):
        processes[0].communicator(100 + number, [0], "again")
    for number in range(3):
        processes[0].communicator(200 + number, [0], "few")
    names = profile(tmp_path, processes).table("communicators")["name"].to_list()
    assert names.count("again (12 of them)") == 12 and {"few #1", "few #2", "few #3"} <= set(names)


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
