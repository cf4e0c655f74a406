"""From records to the summary, and what the report says of it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from records import Block, example
from stretto import analysis, record, report


def records(*builders: object) -> list[record.Record]:
    return [record.parse(builder.bytes()) for builder in builders]  # type: ignore[attr-defined]


def test_totals_over_ranks() -> None:
    summary = analysis.summarise(records(example(0, 2), example(1, 2)))
    allreduce = summary.collectives["Allreduce"]
    assert (allreduce.calls, allreduce.accelerated_calls, allreduce.bytes) == (20, 16, 1600)
    assert allreduce.accelerated_share == pytest.approx(0.8)
    assert allreduce.seconds == pytest.approx(2 * 1600 * 0.5e-9)
    assert allreduce.algorithms == {"flat": 10, "slices": 6}
    assert allreduce.declines == {"user op": 4}
    assert summary.functions["MPI_Send"].calls == 6
    assert summary.missing == []


def test_time_in_mpi_leaves_out_init_and_finalize() -> None:
    (rank,) = analysis.summarise(records(example())).ranks
    assert rank.mpi_seconds == pytest.approx((2000 + 40) * 0.5e-9)
    assert rank.collective_seconds == pytest.approx(2000 * 0.5e-9)
    assert rank.running_seconds == pytest.approx(800e-9)


def test_a_killed_rank_borrows_the_others_clock_and_ends_with_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    killed = example(1, 2, stage=1, last=(1000, 500), finalize_ns=0)
    elsewhere = analysis.summarise(records(example(0, 2), killed), end_ns=1600)
    assert elsewhere.ranks[1].running_seconds == 0  # of another machine's clock, nothing is known
    monkeypatch.setattr("socket.gethostname", lambda: "node1")
    summary = analysis.summarise(records(example(0, 2), killed), end_ns=1600)
    assert summary.ranks[1].mpi_seconds == summary.ranks[0].mpi_seconds
    assert summary.ranks[1].running_seconds == pytest.approx(1000e-9)
    assert report.warnings(summary, 0) == ["rank 1 (pid 101) did not finish"]
    assert report.warnings(summary, None) == [], "it may still run"


def test_a_rank_killed_on_another_host_has_no_share_in_the_time() -> None:
    """All that its record has is the time of MPI_Init, of a clock that may be another one."""
    killed = example(1, 2, stage=1, last=(1202, 601), finalize_ns=0)
    summary = analysis.summarise(records(example(0, 2), killed), end_ns=10**9)
    assert summary.ranks[1].running_seconds == 0
    mpi = summary.ranks[0].mpi_seconds
    summary.ranks[0].mpi_seconds = mpi / 4
    assert summary.mpi_share == pytest.approx(mpi / 4 / 800e-9)
    assert analysis.as_json(summary)["ranks"][1]["running_seconds"] == 0


def test_a_rank_that_aborts_says_when() -> None:
    aborting = example(functions=("MPI_Abort", "MPI_Allreduce", "MPI_Send"), stage=1, finalize_ns=0)
    assert analysis.summarise(records(aborting)).ranks[0].running_seconds == pytest.approx(900e-9)


def test_threads_that_are_in_mpi_at_once_make_no_more_than_all_of_the_time() -> None:
    summary = analysis.summarise(records(example()))
    assert summary.ranks[0].mpi_seconds > summary.ranks[0].running_seconds
    assert summary.mpi_share == 1


def test_ranks_without_a_record_are_named() -> None:
    summary = analysis.summarise(records(example(0, 4), example(2, 4)))
    assert summary.missing == [1, 3]
    (line,) = report.warnings(summary, 0)
    assert "2 of 4 ranks left no record (rank 1, 3)" in line


def test_a_shell_between_launcher_and_program_is_no_rank() -> None:
    shell = example(rank=-1, size=0, stage=0, blocks=[Block()], verdict=b"")
    summary = analysis.summarise(records(shell, example()))
    assert [rank.rank for rank in summary.ranks] == [0]
    assert report.warnings(summary, 0) == []


def summary_text(summary: analysis.Summary, exit_code: int | None, accelerate: str) -> str:
    out = io.StringIO()
    report.print_summary(summary, 1.5, exit_code, accelerate, out)
    return out.getvalue()


def test_calls_that_may_not_have_returned_are_mentioned() -> None:
    summary = analysis.summarise(records(example()))
    for exit_code, calls in ((0, "MPI;"), (137, "calls of MPI that have returned;"), (None, "calls of MPI that have returned;")):
        text = summary_text(summary, exit_code, "on")
        assert f"100 % of the ranks' time in {calls}" in text
        assert ("exit code 137, 100 %" in text) == (exit_code == 137)


def test_bytes_that_were_not_looked_at_are_not_told() -> None:
    example_block = Block(kinds={0: (0, 0, 0, 5, 0, 2000)}, declines={(0, 0): 5})
    left = example(reasons=("not joined", "user op"), blocks=[example_block])
    summary = analysis.summarise(records(left))
    for accelerate, reason in (("off", "MPI: acceleration is off 5"), ("on", "MPI: not joined 5")):
        (row,) = [line for line in summary_text(summary, 0, accelerate).splitlines() if reason in line]
        assert row.split()[1:5] == ["5", "0", "%", "-"]
    others = example(reasons=("user op", "not joined"), blocks=[example_block])
    (row,) = [line for line in summary_text(analysis.summarise(records(others)), 0, "on").splitlines() if "user op 5" in line]
    assert row.split()[4:6] == ["0", "B"]


def test_arrivals_of_the_ranks_are_put_together() -> None:
    """Two ticks per ns: rank 3 of the world is the last in 8 of 10, 1 us behind."""
    first = example(2, 4, arrivals=[(64, 0, 2, 10, 20000, 4000, 0, 2, 7)])
    second = example(3, 4, arrivals=[(64, 1, 2, 10, 20000, 5000, 20000, 8, 7)])
    (one,) = analysis.summarise(records(second, first)).arrivals
    assert (one.ranks, one.calls, one.usual_last) == ([2, 3], 10, 3)
    assert (one.mean_spread, one.most_spread) == (pytest.approx(1e-6), pytest.approx(2.5e-6))
    assert one.last == {2: pytest.approx(0.2), 3: pytest.approx(0.8)}
    assert one.behind == {2: 0, 3: pytest.approx(1e-6)}
    assert one.repeated == pytest.approx(0.7)
    summary = analysis.summarise(records(first, second, example(0, 4), example(1, 4)))
    assert (
        "arrival (ranks 2-3), 10 collectives compared: 1 us from first to last (at most 2.5 us); rank 3 last in 80 %"
        in summary_text(summary, 0, "on")
    )
    summary.ranks = summary.ranks[:2]
    assert "arrival, 2 ranks, 10" in summary_text(summary, 0, "on")
    assert analysis.as_json(summary)["arrivals"][0]["last_share"] == {"2": pytest.approx(0.2), "3": pytest.approx(0.8)}


def test_arrivals_of_communicators_that_had_one_identity_are_left_out() -> None:
    """The rows of four ranks have 64 and 65, the columns of another world too: rank 0 counts both in one cell."""
    cells = {0: [(64, 0)], 1: [(64, 1), (65, 0)], 2: [(65, 0), (64, 1)], 3: [(65, 1)]}
    rows = {
        rank: [(identity, own, 2, 10, 20000, 4000, 0, 2, 7) for identity, own in mine] + [(66, rank, 4, 10, 20000, 4000, 0, 2, 7)]
        for rank, mine in cells.items()
    }
    found = analysis.summarise(records(*(example(rank, 4, arrivals=mine) for rank, mine in rows.items()))).arrivals
    assert [one.ranks for one in found] == [[0, 1, 2, 3]]
    one_left = [(64, own, 2, 10, 20000, 4000, 0, 2, 7) for own in (0, 1)]
    assert analysis.summarise(records(example(1, 4, arrivals=one_left))).arrivals == []


def test_no_mpi_call() -> None:
    assert "no MPI call was seen (exit code 3)" in report.warnings(analysis.Summary(), 3)[0]
    shell = example(rank=-1, size=0, stage=0, blocks=[Block()], verdict=b"other MPI")
    (line,) = report.warnings(analysis.summarise(records(shell)), 0)
    assert "in 1 process: other MPI" in line
    counted = [Block(functions={0: (1, 400, 0)})]
    sessions = example(rank=-1, size=0, stage=0, blocks=counted, functions=("MPI_Session_init",), verdict=b"")
    (line,) = report.warnings(analysis.summarise(records(sessions)), 0)
    assert "the program uses MPI sessions without MPI_Init" in line


def test_unreadable_records_are_reported_and_the_others_used(tmp_path: Path) -> None:
    (tmp_path / "rank-1.record").write_bytes(b"junk")
    (tmp_path / "rank-2.record").write_bytes(example().bytes())
    found, problems = analysis.read_folder(tmp_path)
    assert len(found) == 1
    assert "rank-1.record" in problems[0]
    assert analysis.summarise(found, problems).problems == problems


@pytest.mark.parametrize(
    ("name", "collective"),
    [
        ("MPI_Allreduce_c", True),
        ("MPI_Ialltoallw", True),
        ("MPI_Reduce_scatter_block_init", True),
        ("MPI_Ineighbor_allgatherv", True),
        ("MPI_Reduce_local", False),
        ("MPI_Sendrecv", False),
    ],
)
def test_which_functions_are_collectives(name: str, collective: bool) -> None:
    one = example(functions=("MPI_Init", name, "MPI_Send"))
    (rank,) = analysis.summarise(records(one)).ranks
    assert (rank.collective_seconds > 0) == collective


def test_printed_summary() -> None:
    out = io.StringIO()
    report.print_summary(analysis.summarise(records(example(0, 2), example(1, 2))), 1.5, 0, "on", out)
    text = out.getvalue()
    assert "2 ranks, 1.50 s" in text
    assert "Allreduce" in text
    assert "80 %" in text
    assert "flat 10, slices 6; MPI: user op 4" in text
    assert "MPI_Send 6" in text
    assert "MPI_Init" not in text


@pytest.mark.parametrize(("share", "text"), [(0, "0 %"), (0.001, "<1 %"), (0.5, "50 %"), (0.9999, "99.9 %"), (1, "100 %")])
def test_percent_keeps_all_and_none_for_themselves(share: float, text: str) -> None:
    assert report.percent(share) == text


def test_few_ranks_that_finished_are_named() -> None:
    """As after an exception in one rank, which Python ends with MPI_Finalize: the others wait for it."""
    stuck = [example(rank, 3, stage=1, finalize_ns=0) for rank in (0, 2)]
    *_, last = report.warnings(analysis.summarise(records(example(1, 3), *stuck)), 1)
    assert last == "rank 1 has come to MPI_Finalize, the others had not"
    survivors = [example(rank, 3) for rank in (0, 2)]
    assert len(report.warnings(analysis.summarise(records(example(1, 3, stage=1, finalize_ns=0), *survivors)), 1)) == 1


def test_nothing_accelerated_is_not_called_accelerated() -> None:
    summary = analysis.summarise(records(example(0, 2), example(1, 2)))
    for one in summary.collectives.values():
        one.accelerated_calls = 0
    assert "; ready, but no collective was accelerated" in summary_text(summary, 0, "on")
    summary.collectives.clear()
    assert "; ready, but no collective that Stretto takes over was called" in summary_text(summary, 0, "on")
