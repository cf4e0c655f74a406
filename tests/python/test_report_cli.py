"""stretto report and export from outside, with prepared traces."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stretto.cli import main
from synthetic_jobs import profile, world
from trace_writer import Process, make_example


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_example(tmp_path / "profile", ranks=3, iterations=12)
    return tmp_path / "profile"


def test_report(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder), "--json", str(tmp_path / "x.json")]) == 0
    out, err = capfd.readouterr()
    assert "mpirun -n 4 python train.py" in out
    assert f"with figures: {folder / 'report.html'}" in out
    assert err == ""
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    assert json.loads((tmp_path / "x.json").read_text())["world_size"] == 3
    assert main(["report", str(folder), "--html", str(tmp_path / "y.html")]) == 0
    assert (tmp_path / "y.html").is_file()


@pytest.mark.parametrize("name", ["", "missing", "plain"])
def test_report_of_no_profile(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plain").write_text("x")
    assert main(["report", str(tmp_path / name)]) == 2
    err = capfd.readouterr().err
    assert err.startswith("stretto: ")
    assert err.count("\n") == 1


def test_report_where_the_page_cannot_be_written(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "report.html").mkdir()
    assert main(["report", str(folder)]) == 0
    out, err = capfd.readouterr()
    assert "Calls and time" in out
    assert "--html FILE" in err
    assert main(["report", str(folder), "--html", str(folder / "report.html")]) == 2


def test_report_opens_no_browser_without_a_display(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    assert main(["report", str(folder), "--open"]) == 0
    assert "no display here" in capfd.readouterr().err


def test_export(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target, line = tmp_path / "table", tmp_path / "line.json"
    assert main(["export", str(folder), "--parquet", str(target), "--perfetto", str(line)]) == 0
    rows = pl.read_parquet(target / "*.parquet")
    reduces = rows.filter((pl.col("function") == "MPI_Allreduce") & ~pl.col("part"))
    assert reduces.height == 3 * 12 * 6
    assert reduces["comm"].unique().to_list() == ["MPI_COMM_WORLD"]
    assert sorted(reduces.filter(pl.col("rank") == 1)["seq"].to_list()) == list(range(2, 2 + 12 * 6))
    assert (rows["t_exit_ns"] >= rows["t_entry_ns"]).all()
    small = reduces.filter(pl.col("bytes_sent") == 8)
    assert small["op"].unique().to_list() == ["MPI_BAND"]
    assert small["count"].unique().to_list() == [1]
    assert small["location"].unique().to_list() == ["host"]
    assert small["decline"].null_count() == 0
    assert small["algorithm"].null_count() == small.height
    events = json.loads(line.read_text())["traceEvents"]
    calls = rows.filter(~pl.col("part")).height
    assert len([one for one in events if one["ph"] == "X"]) == calls < rows.height
    assert {one["args"]["name"] for one in events if one["name"] == "process_name"} >= {"rank 0 on node0", "rank 2 on node1"}
    assert f"{calls} calls in {target}\n" in capfd.readouterr().out


def test_export_to_one_file_has_the_same_rows(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for target in (tmp_path / "table", tmp_path / "one.parquet", tmp_path / "one.parquet"):
        assert main(["export", str(folder), "--parquet", str(target)]) == 0
    assert (tmp_path / "one.parquet").is_file()
    rows = pl.read_parquet(tmp_path / "one.parquet")
    assert rows.height > 3 * 12 * 6
    assert rows.equals(pl.read_parquet(tmp_path / "table" / "*.parquet"))
    assert main(["export", str(folder), "--parquet", "/proc/none/one.parquet"]) == 2
    assert "cannot write" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["one.parquet", "table"])
def test_a_file_that_cannot_be_written_wholly_is_removed(
    name: str, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / name
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        code = main(["export", str(folder), "--parquet", str(target)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert code == 2
    assert "cannot write" in capfd.readouterr().err
    assert not list(tmp_path.rglob("*.parquet"))


def test_small_sections_make_no_small_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for process in make_example(tmp_path / "profile", ranks=1, iterations=40):
        process.block = 16
        process.write(tmp_path / "profile")
    assert main(["export", str(tmp_path / "profile"), "--parquet", str(tmp_path / "t")]) == 0
    threads = pl.read_parquet(tmp_path / "t" / "*.parquet")["thread"].n_unique()
    assert len(list((tmp_path / "t").iterdir())) == threads
    assert "calls in" in capfd.readouterr().out


def test_an_earlier_export_does_not_stay_among_the_new_files(tmp_path: Path) -> None:
    for ranks in (4, 2):
        make_example(tmp_path / str(ranks), ranks=ranks, iterations=4)
        assert main(["export", str(tmp_path / str(ranks)), "--parquet", str(tmp_path / "t")]) == 0
    assert pl.read_parquet(tmp_path / "t" / "*.parquet")["rank"].n_unique() == 2


def test_export_of_iterations(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(folder), "--parquet", str(tmp_path / "t"), "--iterations", "2:3"]) == 0
    rows = pl.read_parquet(tmp_path / "t" / "*.parquet").filter(pl.col("function") == "MPI_Allreduce")
    assert rows.height == 3 * 2 * 6
    assert sorted(rows.filter(pl.col("rank") == 0)["seq"].to_list()) == list(range(2 + 2 * 6, 2 + 4 * 6))
    for process in make_example(tmp_path / "other", ranks=1, iterations=3):
        process.marks = []
        process.write(tmp_path / "other")
    capfd.readouterr()
    assert main(["export", str(tmp_path / "other"), "--parquet", str(tmp_path / "t"), "--iterations", "2:3"]) == 2
    assert "no iterations were marked" in capfd.readouterr().err
    assert main(["export", str(folder)]) == 2
    assert "--parquet" in capfd.readouterr().err


def test_iterations_that_one_rank_alone_marked_hold_for_all(tmp_path: Path) -> None:
    """Rank 1's clock is another one; an NCCL trace, which has no marks, lies beside rank 0's."""
    begins, processes = np.arange(10) * 0.5 + 0.1, world(2, nodes=2)
    processes.append(Process(rank=0, size=2, pid=1000, library="NCCL 2.28", node=-1, host="node0"))
    processes[2].communicator(5, range(2), "nccl")
    for process, function in zip(processes, ("MPI_Allreduce", "MPI_Allreduce", "ncclAllReduce"), strict=True):
        process.call(function, begins, begins + 0.01, sequence=np.arange(10), sent=8, received=8)
    processes[0].marks = [(float(begin) - 0.01, 3, number) for number, begin in enumerate(begins)]
    profile(tmp_path / "job", processes)
    assert main(["export", str(tmp_path / "job"), "--parquet", str(tmp_path / "t.parquet"), "--iterations", "2:3"]) == 0
    told = pl.read_parquet(tmp_path / "t.parquet").group_by("rank", "library").agg(pl.col("seq").sort())
    assert {(str(one["library"]), one["rank"], *one["seq"]) for one in told.to_dicts()} == {
        ("MPI", 0, 2, 3),
        ("MPI", 1, 2, 3),
        ("NCCL", 0, 2, 3),
    }


def test_a_timeline_is_of_limited_size(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stretto.timeline.MOST", 50)
    assert main(["export", str(folder), "--perfetto", str(tmp_path / "line.json")]) == 0
    assert "the first of" in capfd.readouterr().out
    slices = [one for one in json.loads((tmp_path / "line.json").read_text())["traceEvents"] if one["ph"] == "X"]
    assert len(slices) == 50
    assert [one["ts"] for one in slices] == sorted(one["ts"] for one in slices)
