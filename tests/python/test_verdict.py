"""The verdict: each rule speaks where its truth was put into a job, and is silent where it was not."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import takeover_table
import trace_writer as writer
from stretto.profile import say
from stretto.profile.takeover import ratios
from stretto.profile_model import Profile, Severity
from synthetic_jobs import about, allreduces, balanced, profile, rows, world

ROOT = Path(__file__).parents[2]


def titles(found: Profile) -> list[str]:
    return [one.title for one in found.verdict]


def test_a_job_in_order_is_told_so(tmp_path: Path) -> None:
    processes = world(4)
    allreduces(processes, balanced(2000, 4), 2e-6, size=1 << 20)
    found = profile(tmp_path, processes, cpus={"node0": 4})
    (only,) = [one for one in found.verdict if one.severity != Severity.fine] or [found.verdict[0]]
    assert only.title == "Waiting for late ranks takes 0.06 % of the run time, transfer 0.04 %"
    assert titles(found) == [only.title]


def test_the_larger_of_waiting_and_transfer_comes_first(tmp_path: Path) -> None:
    processes = world(2)
    arrivals = balanced(1000, 2)
    arrivals[:, 1] += 1e-4
    allreduces(processes, arrivals, 1e-3)
    expected = "Transfer in collectives takes 10 % of the run time, waiting for late ranks 0.5 %"
    assert titles(profile(tmp_path, processes))[0] == expected


def test_sizes_in_which_the_mpi_is_slow(tmp_path: Path) -> None:
    for slow in (1.0, 20.0):
        processes = world(2)
        for number in range(6):
            last = (5e-6 + 1e-9 * (256 << number)) * (slow if number == 3 else 1.0)
            allreduces(
                processes, balanced(300, 2, number) + number * 1.3, last, size=256 << number, first=300 * number, datatype=2
            )
        found = profile(tmp_path / str(slow), processes)
        one = about(found, "MPI_Allreduce of 1 KiB to 2 KiB takes 19 times what its neighbours let expect")
        assert (one is not None) == (slow > 1) and sum("neighbours" in title for title in titles(found)) == (slow > 1)


def test_broadcasts_of_bytes_are_no_training(tmp_path: Path) -> None:
    processes = world(2)
    for rank, process in enumerate(processes):
        begin = np.arange(500) * 1e-3
        moved = {"sent" if rank == 0 else "received": 64}
        process.call("MPI_Bcast", begin, begin + 1e-5, sequence=np.arange(500), peer=0, datatype=3, **moved)
    assert about(profile(tmp_path, processes), "No gradients") is None


def test_after_a_reset_all_is_of_the_time_since(tmp_path: Path) -> None:
    processes = world(2)
    allreduces(processes, balanced(100, 2), 1e-5)
    late = balanced(100, 2) + 5
    late[:, 1] += 1e-3
    allreduces(processes, late, 1e-5, first=100)
    for process in processes:
        process.marks = [(1.0, 1, 0), (4.0, 2, 0)]
    found = profile(tmp_path, processes)
    assert found.table("arrival")["invocations"].to_list() == [100, 100]
    assert rows(found.table("sizes"))[0]["calls"] == 200
    assert [round(one, 3) for one in found.table("ranks")["run_time"]] == [round(processes[0].finalize - 4.0, 3)] * 2


def test_training_that_reduces_no_gradients(tmp_path: Path) -> None:
    for gradients in (0, 1):
        processes = world(2)
        allreduces(processes, balanced(500, 2), 1e-5, size=16, datatype=2, op=1)
        if gradients:
            allreduces(processes, balanced(1, 2) + 5, 1e-5, size=1 << 20, first=500)
        found = profile(tmp_path / str(gradients), processes)
        assert (titles(found)[0] == "No gradients were reduced") == (not gradients)
    plain = world(2)
    allreduces(plain, balanced(500, 2), 1e-5, size=8, datatype=1, op=2)
    assert about(profile(tmp_path / "plain", plain), "gradients") is None


def test_control_messages_that_take_long(tmp_path: Path) -> None:
    for last, told in ((1e-3, True), (1e-6, False)):
        processes = world(2)
        allreduces(processes, balanced(1000, 2), last, size=16, datatype=2, op=1)
        allreduces(processes, balanced(10, 2) + 5, 1e-5, size=1 << 20, first=1000)
        found = profile(tmp_path / str(told), processes)
        assert (about(found, "Control messages take 10 %") is not None) == told
        transfer = about(found, "Transfer in collectives takes 10 %")
        assert transfer is None or "control messages, which move next to nothing" in transfer.advice
        assert (transfer is not None) == told


def test_transfer_is_not_put_down_to_control_messages_that_wait(tmp_path: Path) -> None:
    processes = world(2)
    late = balanced(500, 2)
    late[:, 1] += 9e-4
    allreduces(processes, late, 1e-4, size=16, datatype=2, op=1)
    allreduces(processes, balanced(84, 2) + 5, 3e-3, size=1 << 20, first=500)
    transfer = about(profile(tmp_path, processes), "Transfer in collectives")
    assert transfer is not None
    assert transfer.advice.startswith("The time is in moving and reducing data")


def test_polling(tmp_path: Path) -> None:
    for spent, told in ((1e-3, True), (1e-5, False)):
        (process,) = world(1)
        begin = 1.0 + np.arange(2000) * 4e-3
        process.call("MPI_Iprobe", begin, begin + spent, flags=writer.INCOMPLETE)
        assert (about(profile(tmp_path / str(told), [process]), "Polling with MPI_Iprobe takes 20 %") is not None) == told


def test_what_stretto_would_take_over(tmp_path: Path) -> None:
    """Allreduces of 16 KiB inside a node: the transfer shrinks by the measured ratio, the waiting does not."""
    processes = world(2)
    arrivals = balanced(1000, 2)
    arrivals[:, 1] += 1e-3
    allreduces(processes, arrivals, 1e-3, size=16384)
    found = profile(tmp_path, processes)
    (row,) = found.table("takeover").to_dicts()
    ratio, _ = ratios("Open MPI v5.0.11").at("allreduce", 16384)
    assert (row["outcome"], row["calls"], 0 < ratio < 1) == ("would take over", 2000, True)
    assert row["expected_gain"] == pytest.approx(2.0 * (1 - ratio), rel=1e-3)
    one = about(found, "Stretto would save about")
    assert one is not None and say.percent(2.0 * (1 - ratio) / 20) in one.title
    assert one.severity == (Severity.bad if 2.0 * (1 - ratio) / 20 >= 0.1 else Severity.notable)


def test_a_gain_weighs_as_much_as_any_other_time(tmp_path: Path) -> None:
    """Marks fall with the seconds, so that the verdict is not read as out of order."""
    processes = world(2)
    allreduces(processes, balanced(1000, 2), 3.5e-3, size=16384)
    found = profile(tmp_path, processes)
    one = about(found, "Stretto would save about")
    assert one is not None and one.severity == Severity.bad
    marks = [list(Severity).index(said.severity) for said in found.verdict]
    assert marks == sorted(marks)


def test_what_disturbs_a_transfer_is_not_gained(tmp_path: Path) -> None:
    """A tenth of the calls is cut short by other work on the cores: they count like the others."""
    processes = world(2)
    arrivals = balanced(1000, 2)
    allreduces(processes, arrivals[:900], 1e-4, size=16384)
    allreduces(processes, arrivals[900:], 3e-3, size=16384, first=900)
    (row,) = profile(tmp_path, processes).table("takeover").to_dicts()
    ratio, _ = ratios("Open MPI v5.0.11").at("allreduce", 16384)
    assert row["expected_gain"] == pytest.approx(2000 * 1e-4 * (1 - ratio), rel=1e-3)


def test_what_stretto_left_and_took_over(tmp_path: Path) -> None:
    processes = world(2, nodes=2)
    for process in processes:
        process.communicator(7, [0, 1], "node", nodes=1)
    allreduces(processes, balanced(100, 2), 1e-4)
    allreduces(processes, balanced(100, 2) + 1, 1e-4, communicator=1, outcome=0)
    allreduces(processes, balanced(50, 2) + 2, 1e-4, communicator=1, outcome=128 + 3, first=100)
    found = profile(tmp_path, processes)
    outcomes = {row["outcome"]: row["calls"] for row in found.table("takeover").to_dicts()}
    assert outcomes == {"left: several nodes": 200, "taken over": 200, "left: unsupported op": 100}
    assert about(found, "Stretto took over 40 % of 500 collectives") is not None and about(found, "would save") is None
    assert rows(found.table("sizes"), stretto="flat")[0]["calls"] == 200


@pytest.mark.parametrize(
    ("accelerate", "outcome"), [("off", "would take over"), (None, "would take over"), ("on", "left: not joined")]
)
def test_ranks_that_did_not_join_because_a_profile_changes_nothing(tmp_path: Path, accelerate: str | None, outcome: str) -> None:
    processes = world(2)
    allreduces(processes, balanced(10, 2), 1e-4, outcome=128 + writer.REASONS.index("not joined"))
    assert rows(profile(tmp_path, processes, accelerate=accelerate).table("takeover"))[0]["outcome"] == outcome


def test_without_arrivals_the_gain_is_what_such_calls_took_elsewhere(tmp_path: Path) -> None:
    processes = world(2, mode=1)
    allreduces(processes, balanced(1000, 2), 1.0, size=16384)
    for process in processes:
        process.kept = lambda calls: calls["sequence"] < 0
    (row,) = profile(tmp_path, processes, mode="aggregate").table("takeover").to_dicts()
    ratio, seconds = ratios("Open MPI v5.0.11").at("allreduce", 16384)
    assert row["expected_gain"] == pytest.approx(2000 * seconds * (1 / ratio - 1))


def test_the_ratios_are_those_of_the_committed_measurement() -> None:
    assert (ROOT / takeover_table.TARGET).read_text() == takeover_table.document(ROOT)


def test_ratios_between_sizes_take_the_worse_neighbour() -> None:
    known, everywhere = ratios("Open MPI v5.0.11"), ratios("some other MPI")
    for collective in ("allreduce", "bcast", "reduce"):
        around = [known.at(collective, size)[0] for size in (1024, 16384)]
        assert known.at(collective, 5000)[0] == max(around)
        assert known.at(collective, 1 << 40) == known.at(collective, 8 << 20)
        assert everywhere.at(collective, 5000)[0] >= known.at(collective, 5000)[0]
    assert known.at("alltoallw", 8) == (1.0, 0.0)


def test_lost_data_is_told(tmp_path: Path) -> None:
    processes = world(2)
    allreduces(processes, balanced(10, 2), 1e-5)
    assert about(profile(tmp_path / "whole", processes), "Not everything") is None
    processes[0].dropped_events = 5
    one = about(profile(tmp_path / "lost", processes), "Not everything was recorded")
    assert one is not None and "5 events" in one.text and "--limit" in one.advice


def test_a_live_job_says_where_its_ranks_are(tmp_path: Path) -> None:
    """A child of this test stands for a rank that hangs."""
    pid = os.fork()
    if pid == 0:
        os.pause() if hasattr(os, "pause") else __import__("signal").pause()
    try:
        process = writer.Process(rank=0, size=1, pid=pid, host=socket.gethostname(), stage=1, clock=writer.Clock())
        process.call("MPI_Barrier", 1.0, 1.1)
        process.inside = {0: (writer.FUNCTIONS.index("MPI_Recv"), 2.0)}
        found = profile(tmp_path, [process], exit_code=None)
        assert found.table("ranks")["state"].to_list()[0].startswith("in MPI_Recv since ")
        assert titles(found)[0] == "1 rank of 1 had not finished" and "rank 0 is in MPI_Recv" in found.verdict[0].text
        ended = profile(tmp_path, [process], exit_code=1)
        assert ended.table("ranks")["state"].to_list() == ["no MPI_Finalize: ended in MPI_Recv"]
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def test_findings_are_ordered_by_what_they_cost(tmp_path: Path) -> None:
    writer.make_example(tmp_path, iterations=100)
    from stretto.profile import analyse

    found = analyse(tmp_path)
    assert titles(found)[0].startswith("Transfer in collectives takes")
    assert titles(found)[1].startswith("Waiting for rank 3 takes") and "since" in titles(found)[1]
    assert all(len(one.title) < 120 and one.text.endswith(".") for one in found.verdict)
    assert json.dumps([one.title for one in found.verdict])


def test_words() -> None:
    assert [say.percent(share) for share in (0.314, 0.0421, 0.00031, 0.0, 1.0)] == [
        "31 %",
        "4.2 %",
        "0.031 %",
        "under 0.01 %",
        "100 %",
    ]
    assert [say.seconds(s) for s in (3.671, 0.0005, 2.5e-7, 12345.6)] == ["3.67 s", "500 µs", "250 ns", "12,346 s"]
    assert [say.size(size) for size in (0, 8, 1024, 65536 * 1024)] == ["0 B", "8 B", "1 KiB", "64 MiB"]
    assert (say.ranks([3]), say.ranks([1, 2, 5])) == ("rank 3", "ranks 1, 2 and 5")
    assert say.listed(range(9)) == "0, 1, 2, 3, 4, 5 and 3 more" and say.count(1, "call") == "1 call"


def test_tables_hold_no_figure_that_is_not_a_number(tmp_path: Path) -> None:
    writer.make_example(tmp_path, iterations=50)
    from stretto.profile import analyse

    for name, table in analyse(tmp_path).tables.items():
        for column in table.select(pl.selectors.float()).iter_columns():
            assert not column.is_nan().any() and not column.is_infinite().any(), (name, column.name)


def test_calls_that_never_returned(tmp_path: Path) -> None:
    """A job that hung for 40 s after 10 s of work, and was killed: most of its time is in calls of which there is no sum."""
    processes = world(3)
    allreduces(processes, balanced(1000, 3), 1e-5)
    for process in processes:
        process.stage = 1
        process.inside = {0: (writer.FUNCTIONS.index("MPI_Recv" if process.rank == 2 else "MPI_Barrier"), 10.0)}
    times = {"started": "2027-01-15T08:00:00+00:00", "wall_seconds": 50.1, "exit_code": 137}
    found = profile(tmp_path, processes, **times)
    assert found.table("ranks")["run_time"].to_list() == pytest.approx([50.0] * 3)
    assert found.table("ranks")["library_time"].to_list() == pytest.approx([40.0] * 3, rel=1e-3)
    (barrier,) = rows(found.table("functions"), rank=0, function="MPI_Barrier")
    assert (barrier["calls"], barrier["time"], barrier["share"]) == pytest.approx((0, 40.0, 0.8))
    one = about(found, "80 % of the run time is in calls that had not returned")
    assert one is not None and one.severity == Severity.bad
    assert "ranks 0 and 1 in MPI_Barrier for 40 s; rank 2 in MPI_Recv for 40 s, up to the job's end" in one.text
    shares = about(found, "aiting for late ranks")
    assert shares is not None and "All calls together take 80 %" in shares.text and not shares.advice


@pytest.mark.parametrize("another_finished", [False, True])
def test_a_rank_in_its_own_code_lived_as_long_as_the_job_that_was_ended(tmp_path: Path, another_finished: bool) -> None:
    """Not one that the others outlived: of it no more is known than what it recorded."""
    processes = world(2)
    for process in processes:
        process.call("MPI_Barrier", 1.0, 2.0)
        process.stage = 1
    processes[0].inside = {0: (writer.FUNCTIONS.index("MPI_Recv"), 10.0)}
    if another_finished:
        processes[0].stage, processes[0].inside = 2, {}
    times = {"started": "2027-01-15T08:00:00+00:00", "wall_seconds": 50.1, "exit_code": 137}
    found = profile(tmp_path, processes, **times)
    assert found.table("ranks")["run_time"].to_list() == pytest.approx([10.0] * 2 if another_finished else [50.0] * 2)


@pytest.mark.parametrize("times", [{"started": "2026-01-15T08:00:00+00:00"}, {"started": "x"}, {"wall_seconds": 1e300}])
def test_the_end_of_a_killed_job_is_believed_where_it_can_be(tmp_path: Path, times: dict[str, Any]) -> None:
    (process,) = world(1)
    process.call("MPI_Barrier", 1.0, 2.0)
    process.stage, process.inside = 1, {0: (writer.FUNCTIONS.index("MPI_Recv"), 5.0)}
    found = profile(tmp_path, [process], exit_code=137, **times)
    assert found.table("ranks")["run_time"].to_list() == pytest.approx([10.0])  # what the file itself knows of


def test_what_is_drawn_from_some_iterations_is_no_more_than_the_sums(tmp_path: Path) -> None:
    """Of 1000 calls 100 are kept, those with much waiting: all calls together waited less than these let expect."""
    processes = world(2)
    arrivals = balanced(1000, 2)
    arrivals[:100, 1] += 2e-3
    allreduces(processes, arrivals, 1e-4)
    for process in processes:
        process.kept = lambda calls: calls["sequence"] < 100
    found = profile(tmp_path, processes)
    exact = found.table("functions")["time"].sum()
    for scope in ("cluster", "node"):
        (row,) = rows(found.table("arrival"), scope=scope)
        assert (row["invocations"], row["of_invocations"]) == (100, 1000)
        assert row["waiting"] + row["transfer"] == pytest.approx(exact)
    one = about(found, "Waiting for late ranks")
    assert one is not None and "estimated from 100 of 1,000 collectives" in one.text
    assert (found.single_calls, found.calls) == (200, 2000)


def test_threads_that_call_at_once_explain_shares_above_all(tmp_path: Path) -> None:
    processes = world(1)
    for thread in (0, 1):
        processes[0].call("MPI_Recv", 1.0, 9.0, thread=thread)
    found = profile(tmp_path, processes)
    (one,) = [one for one in found.verdict if one.figure == "functions"]
    assert "160 %" in one.title and "(threads of a rank call at once)" in one.text
