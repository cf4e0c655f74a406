"""stretto report A B, and stretto top."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import trace_writer as writer
from stretto.cli import main
from stretto.profile import rates


def job(folder: Path, wait: float, calls: int = 100, **changes: object) -> Path:
    """Four ranks, the last of which comes `wait` seconds late to each allreduce."""
    folder.mkdir()
    processes = [writer.Process(rank=rank, size=4, finalize=10.0) for rank in range(4)]
    arrivals = 1.0 + np.arange(calls)[:, None] * 20e-3 + np.zeros((calls, 4))
    arrivals[:, 3] += wait
    for process in processes:
        process.communicator(1, range(4), "MPI_COMM_WORLD")
    columns = {"sequence": np.arange(calls), "datatype": 0, "op": 0, "sent": 1024, "received": 1024, "location": 0}
    writer.collective(processes, "MPI_Allreduce", arrivals, 1e-3, **columns)
    for process in processes:
        process.write(folder)
    writer.write_job(folder, wall_seconds=11.0, **changes)
    return folder


def test_two_runs_side_by_side(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first, second = job(tmp_path / "a", 4e-3), job(tmp_path / "b", 8e-3)
    assert main(["report", str(first), str(second), "--json", str(tmp_path / "c.json")]) == 0
    out = capfd.readouterr().out
    assert "note:" not in out and "MPI_Allreduce" in out
    found = json.loads((tmp_path / "c.json").read_text())
    figures = {one["name"]: one for one in found["figures"]}
    assert figures["waiting for late ranks"]["first"] == pytest.approx(100 * 3 * 4e-3 / 4, rel=1e-3)
    assert figures["waiting for late ranks"]["ratio"] == pytest.approx(2.0, rel=1e-3)
    assert figures["transfer in collectives"]["ratio"] == pytest.approx(1.0, rel=1e-3)
    (row,) = [one for one in found["functions"] if one["function"] == "MPI_Allreduce"]
    assert (row["calls"], row["calls_second"]) == (100, 100)
    assert row["time_second"] > row["time"]
    assert found["late"] == {"first": [3], "second": [3]}
    assert not (first / "report.html").exists()


def test_what_makes_runs_hard_to_compare_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first, second = job(tmp_path / "a", 1e-3), job(tmp_path / "b", 1e-3, command="mpirun -n 4 other")
    assert main(["report", str(first), str(second)]) == 0
    assert "different commands" in capfd.readouterr().out
    assert main(["report", str(first), str(tmp_path / "none")]) == 2
    assert main(["report", str(first), str(second), "--html", str(tmp_path / "x.html")]) == 2


def test_rates_count_calls_that_last_longer_than_between_two_looks(tmp_path: Path) -> None:
    """Rank 0 was in a call for 9 s at the first look, comes out of it, and is in the next for 0.5 s at the second, 2 s later."""
    before = rates.look(job(tmp_path / "a", 1e-3, calls=40))
    after = rates.look(job(tmp_path / "b", 1e-3, calls=40))
    ended = after.cells.with_columns(
        pl.when(pl.col("rank") == 0).then(pl.col("time") + 10.0).otherwise("time"), pl.col("calls") + 1
    )
    inside = [pl.DataFrame({"rank": [0], "inside": [time]}, schema_overrides={"rank": pl.Int32}) for time in (9.0, 0.5)]
    first = rates.Look(before.at, before.job, before.cells, inside[0])
    found = rates.between(first, rates.Look(before.at + 2.0, after.job, ended, inside[1]))
    assert found.ranks["share"].to_list() == pytest.approx([1.5 / 2, 0.0, 0.0, 0.0])
    assert found.functions["share"].max() <= 1.0
    moments_later = rates.between(first, rates.Look(before.at + 1.4, after.job, ended, inside[1]))
    assert moments_later.ranks["share"].max() == 1.0, "the sums are read some time after the clock"


def test_rates_are_what_happened_between_two_looks(tmp_path: Path) -> None:
    before = rates.look(job(tmp_path / "a", 1e-3, calls=40))
    after = rates.look(job(tmp_path / "b", 1e-3, calls=100))
    after = rates.Look(before.at + 2.0, after.job, after.cells)
    found = rates.between(before, after)
    (row,) = found.functions.to_dicts()
    assert (row["function"], row["upper"]) == ("MPI_Allreduce", 1024)
    assert row["calls"] == pytest.approx(4 * 60 / 2.0)
    assert row["bytes"] == pytest.approx(4 * 60 * 1024 / 2.0)
    by_rank = dict(found.ranks.select("rank", "share").iter_rows())
    assert by_rank[3] == pytest.approx(60 * 1e-3 / 2.0, rel=1e-3) and by_rank[0] == pytest.approx(60 * 2e-3 / 2.0, rel=1e-3)
    assert (
        rates.between(after, rates.Look(after.at + 1, before.job, before.cells)).functions["calls"].sum() == 160
    )  # after a reset


def test_top_draws_and_ends_with_the_job(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = job(tmp_path / "a", 1e-3)
    assert main(["top", str(folder), "--every", "0.2"]) == 0
    out = capfd.readouterr().out
    assert "not running any more" in out and "Late" in out and "\x1b" not in out
    (tmp_path / "empty").mkdir()
    assert main(["top", str(tmp_path / "empty")]) == 2
