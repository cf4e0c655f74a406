"""Folders in which ranks are missing, dead, or have left what cannot be read."""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import socket
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trace_writer as writer
from stretto import live
from stretto.errors import StrettoError
from stretto.profile import analyse
from stretto.profile.job import open_job
from stretto.profile.scan import scan
from stretto.profile_model import TABLES, Profile, Severity
from stretto.profile_report import terminal
from stretto.profile_report.page import html_page
from synthetic_jobs import allreduces, profile, world


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
        "no MPI_Finalize: ended outside MPI",
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


@pytest.mark.parametrize(
    ("left", "title"),
    [
        (60000, "The file of rank 2 is damaged: figures are without part of it"),
        (4096, "The file of rank 2 is damaged: figures are without part of it"),
        (100, "The file of rank 2 is damaged: figures are without it"),
        (0, "The file of rank 2 is damaged: figures are without it"),
    ],
)
def test_a_file_that_was_cut_off_is_told_first(tmp_path: Path, left: int, title: str) -> None:
    writer.make_example(tmp_path, ranks=3, iterations=300)
    path = tmp_path / "rank-1002.trace"
    path.write_bytes(path.read_bytes()[:left])
    found = analyse(tmp_path)
    assert found.verdict[0].title == title and found.verdict[0].severity == Severity.bad
    assert path.name in found.verdict[0].text and not found.complete
    assert not any("did not finish" in one.title for one in found.verdict)
    terminal.print_short(found, page := io.StringIO())
    assert title in page.getvalue() and title in html_page(found)


def test_files_that_do_not_tell_their_rank(tmp_path: Path) -> None:
    writer.make_example(tmp_path, ranks=3, iterations=10)
    (tmp_path / "rank-1001.trace").write_bytes(b"")
    (tmp_path / "rank-1002.trace").write_bytes(b"")
    assert analyse(tmp_path).verdict[0].title == "The files of ranks 1 and 2 are damaged: figures are without them"
    (tmp_path / "rank-1001.trace").unlink()
    found = analyse(tmp_path)
    assert found.verdict[0].title == "1 file of ranks 1 and 2 cannot be read, the others are not there: figures are without it"
    (tmp_path / "rank-1002.trace").unlink()
    assert analyse(tmp_path).verdict[0].title == "2 ranks of 3 did not finish"


def test_a_file_of_no_rank_that_lacks_is_told(tmp_path: Path) -> None:
    writer.make_example(tmp_path, ranks=2, iterations=10)
    (tmp_path / "rank-7.trace").write_bytes(b"junk")
    assert analyse(tmp_path).verdict[0].title == "1 file cannot be read: figures are without it"


def test_more_ranks_than_files_may_be_open(tmp_path: Path) -> None:
    processes = world(40)
    allreduces(processes, [[0.1 + 0.01 * rank for rank in range(40)]], 1e-3)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/proc/self/fd").iterdir()]) + 20, limits[1]))
    try:
        found = profile(tmp_path, processes)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert (found.single_calls, found.problems) == (40, []) and found.table("arrival").height


def test_events_that_cannot_be_read_any_more_are_told(tmp_path: Path) -> None:
    processes = world(2)
    allreduces(processes, [[0.1, 0.2]], 1e-3)
    for process in processes:
        process.write(tmp_path)
    job = open_job(tmp_path)
    (tmp_path / "rank-1001.trace").unlink()
    scan(job, [])
    assert job.problems == ["rank-1001.trace: not all of its calls could be read: No such file or directory"]


@pytest.mark.parametrize("text", ["{]", "[]", "\x00\xff"])
def test_facts_that_cannot_be_read_are_told_first(tmp_path: Path, text: str) -> None:
    writer.make_example(tmp_path, ranks=2, iterations=10)
    (tmp_path / "job.json").write_text(text, encoding="latin-1")
    found = analyse(tmp_path)
    assert found.verdict[0].title == "job.json cannot be read" and "how the job ended" in found.verdict[0].text


def left_behind(folder: Path, **about: Any) -> Profile:
    """What a killed `stretto profile` leaves of a rank that has sat in a call since its 5th second, and had recorded 6."""
    process = writer.Process(rank=0, size=1, stage=1, finalize=6.0, **about)
    process.call("MPI_Barrier", 1.0, 2.0)
    process.inside = {0: (writer.FUNCTIONS.index("MPI_Recv"), 5.0)}
    return profile(folder, [process], exit_code=None, wall_seconds=None)


def test_a_killed_profile_has_no_figures_that_grow_with_its_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: writer.STARTED + 86400.0)
    found = left_behind(tmp_path)
    assert found.table("ranks")["run_time"].to_list() == pytest.approx([6.0])
    assert found.table("functions").filter(pl.col("function") == "MPI_Recv")["time"].to_list() == pytest.approx([1.0])
    assert not found.complete and "How and when the job ended is not known" in [one.title for one in found.verdict]
    assert any("rank 0 in MPI_Recv for 1 s at least" in one.text for one in found.verdict)
    looked = live.look(tmp_path)
    assert not looked.running and looked.end_unknown and looked.places[0].since == pytest.approx(1.0)


def test_a_process_that_got_the_number_of_a_rank_is_not_the_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        for age, state in ((0.0, "in MPI_Recv since"), (86400.0, "no MPI_Finalize: ended in MPI_Recv")):
            monkeypatch.setattr(time, "time", lambda age=age: writer.STARTED + age)
            found = left_behind(tmp_path, pid=child, host=socket.gethostname(), clock=writer.Clock())
            assert found.table("ranks")["state"].to_list()[0].startswith(state)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_killed_profile_whose_ranks_ended_is_whole(tmp_path: Path) -> None:
    writer.make_example(tmp_path, ranks=2, iterations=10)
    writer.write_job(tmp_path, exit_code=None, wall_seconds=None)
    assert analyse(tmp_path).complete and not open_job(tmp_path).end_unknown


def test_the_second_trace_of_a_rank_is_left_out(tmp_path: Path) -> None:
    processes = world(1)
    processes[0].call("MPI_Barrier", [1.0, 2.0], [1.1, 2.1])
    second = writer.Process(pid=5)
    second.call("MPI_Barrier", 1.0, 1.1)
    found = profile(tmp_path, [*processes, second])
    assert found.table("ranks")["calls"].to_list() == [2] and "a second trace of rank 0" in found.problems[0]


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
