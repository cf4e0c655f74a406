"""Where the ranks of a hung job are, and whom they wait for: known hangs, told exactly."""

from __future__ import annotations

import datetime
import io
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stretto import live
from stretto.profile_report.live import print_live
from trace_writer import FUNCTIONS, NONE16, PART, Process, text, write_job

WORLD, ROW = 0xC0FFEE, 0xBEEF


@dataclass
class Hung(Process):
    """A process whose threads are inside calls: (function, since, communicator, sequence, peer) per thread."""

    where: dict[int, tuple[str, float, int, int, int]] = field(default_factory=dict)

    def _threads(self, rows: Any) -> bytes:
        entries = []
        for thread in sorted({0, *np.unique(rows["thread"]).tolist(), *self.where}):
            function, since, communicator, sequence, peer = self.where.get(thread, ("", 0.0, NONE16, 0, -1))
            index = self.functions.index(function) if function else NONE16
            begin = int(self.clock.ticks(since)) if function else 0
            name = text("main" if thread == 0 else f"worker {thread}", 16)
            entries.append(struct.pack("<IHHQIiQ16s2Q", 5000 + thread, index, communicator, begin, sequence, peer, 0, name, 0, 0))
        return b"".join(entries)


def hang(folder: Path, ranks: int, done: list[int], where: dict[int, tuple[str, float, int, int, int]], **job: Any) -> None:
    """A job that stopped at 10 s: `done` collectives were finished by each rank, then each is where it is."""
    folder.mkdir(exist_ok=True)
    for rank in range(ranks):
        process = Hung(rank=rank, size=ranks, node=0, finalize=10.0, stage=1)
        process.communicator(WORLD, range(ranks), "MPI_COMM_WORLD")
        begins = 1.0 + np.arange(done[rank]) * 0.01
        if done[rank]:
            process.call("MPI_Allreduce", begins, begins + 0.001, sequence=np.arange(done[rank]), sent=8, received=8)
        if rank in where:
            process.where[0] = where[rank]
        process.write(folder)
    write_job(folder, exit_code=137, **job)


def printed(folder: Path) -> str:
    screen = io.StringIO()
    print_live(live.look(folder), "x", screen)
    return screen.getvalue()


def test_one_rank_has_not_come(tmp_path: Path) -> None:
    inside = ("MPI_Allreduce", 4.0, 0, 20, -1)
    hang(
        tmp_path,
        4,
        [20, 20, 20, 20],
        {0: inside, 1: inside, 3: ("MPI_Recv", 2.5, 0, 0, 1)} | {2: ("MPI_Allreduce", 5.0, 0, 20, -1)},
    )
    found = live.look(tmp_path)
    assert not found.running
    one = found.gatherings[0]
    assert (one.function, one.sequence, one.inside, one.absent, one.size) == ("MPI_Allreduce", 20, (0, 1, 2), (3,), 4)
    assert one.since == pytest.approx(6.0, abs=0.01)
    assert found.elsewhere == {3: "in MPI_Recv from 1 on MPI_COMM_WORLD for 7.50 s"}
    page = printed(tmp_path)
    assert "MPI_Allreduce number 20 on MPI_COMM_WORLD waits for rank 3" in page
    assert "ranks 0–2 are in it, the first for 6.00 s" in page
    assert "rank 3: in MPI_Recv from 1" in page


def test_a_rank_that_went_on_is_not_missed(tmp_path: Path) -> None:
    slow = ("MPI_Allreduce", 9.0, 0, 7, -1)
    hang(tmp_path, 3, [7, 8, 9], {0: slow, 1: ("MPI_Allreduce", 9.5, 0, 8, -1)})
    found = live.look(tmp_path)
    by_number = {one.sequence: one.absent for one in found.gatherings}
    assert by_number == {7: (), 8: (0,)}, "rank 2 has done number 8, rank 1 is past number 7"
    assert found.gatherings[0].sequence == 8, "where somebody is missing comes first"


def test_calls_that_make_communicators_have_numbers_too(tmp_path: Path) -> None:
    hang(tmp_path, 3, [0, 0, 0], {0: ("MPI_Reduce", 9.0, 0, 3, -1), 1: ("MPI_Comm_split", 9.0, 1, 0, -1)})
    for rank in range(3):
        process = Hung(rank=rank, size=3, node=0, finalize=10.0, stage=1)
        process.communicator(WORLD, range(3), "MPI_COMM_WORLD")
        process.communicator(ROW, range(1, 3), "row")
        process.call("MPI_Comm_split", np.arange(3.0), np.arange(3.0) + 0.1, sequence=np.arange(3))
        if rank > 0:
            process.call("MPI_Reduce", 5.0, 5.1, sequence=3, sent=8)
        process.where = {0: [("MPI_Reduce", 9.0, 0, 3, -1), ("MPI_Comm_split", 9.0, 1, 0, -1), ("MPI_Recv", 9.0, 0, 0, 0)][rank]}
        process.write(tmp_path)
    found = {one.function: one.absent for one in live.look(tmp_path).gatherings}
    assert found == {"MPI_Reduce": (), "MPI_Comm_split": (2,)}


SUMS: dict[str, Any] = {"mode": 1, "kept": lambda rows: rows["begin"] < 0}
STARTS = (*FUNCTIONS, "MPI_Start", "MPI_Allreduce_init", "MPI_Intercomm_create")


def with_others(folder: Path, last: dict[int, int], others: Callable[[Process], int], **changes: Any) -> tuple[int, ...]:
    """Who is said to be missing in the barrier that rank 0 is in. `others`: calls before, and how many collectives they are;
    `last`: how many barriers each rank has finished since."""
    for rank, done in last.items():
        process = Hung(rank=rank, size=len(last), finalize=10.0, stage=1, functions=STARTS, **changes)
        first = others(process)
        process.communicator(WORLD, last, "MPI_COMM_WORLD", begun=first + done + (rank == 0))
        process.call("MPI_Barrier", 5.0 + np.arange(done) * 0.1, 5.0 + np.arange(done) * 0.1, sequence=first + np.arange(done))
        process.where = {0: ("MPI_Barrier", 9.0, 0, first + last[0], -1)} if rank == 0 else {}
        process.write(folder)
    write_job(folder, exit_code=137)
    return live.look(folder).gatherings[0].absent


def started(process: Process, by: str) -> int:
    at, number = np.arange(40) * 0.1, np.arange(40)
    process.call("MPI_Allreduce_init", 0.0, 0.0)
    if by == "MPI_Start":
        process.call("MPI_Start", at, at + 0.01, sequence=number)
    else:
        process.call("MPI_Startall", at, at + 0.01, communicator=NONE16)
    process.call("MPI_Allreduce_init", at, at + 0.01, sequence=number, flags=PART, partitions=1)
    return 40


def test_starts_of_persistent_collectives_have_numbers_too(tmp_path: Path) -> None:
    for by in ("MPI_Start", "MPI_Startall"):
        assert with_others(tmp_path, {0: 10, 1: 11, 2: 10}, lambda process, by=by: started(process, by), **SUMS) == (2,)


def test_starts_of_messages_have_none(tmp_path: Path) -> None:
    def messages(process: Process) -> int:
        process.call("MPI_Send_init", 0.0, 0.0, peer=1)
        process.call("MPI_Start", np.arange(40) * 0.1, np.arange(40) * 0.1, peer=1)
        return 0

    def both(process: Process) -> int:
        messages(process)
        return started(process, "MPI_Start")

    assert with_others(tmp_path, {0: 10, 1: 11, 2: 10}, messages, **SUMS) == (2,)
    assert with_others(tmp_path, {0: 10, 1: 11, 2: 10}, both, **SUMS) == (2,)


def test_collectives_before_the_sums_were_reset_count_too(tmp_path: Path) -> None:
    def reset(process: Process) -> int:
        process.marks = [(4.9 + 0.6 * (process.rank == 1), 2, 0)]
        return started(process, "MPI_Start")

    assert with_others(tmp_path, {0: 10, 1: 11, 2: 10}, reset, **SUMS) == (2,)


def test_making_an_intercommunicator_has_a_number_too(tmp_path: Path) -> None:
    def make(process: Process) -> int:
        process.call("MPI_Intercomm_create", 0.0, 0.1, sequence=0)
        return 1

    assert with_others(tmp_path, {0: 10, 1: 11, 2: 10}, make, **SUMS) == (2,)


def test_a_rank_that_hangs_in_finalize(tmp_path: Path) -> None:
    hang(tmp_path, 1, [1], {})
    process = Hung(rank=0, size=1, node=0, finalize=10.0, stage=1)
    process.communicator(WORLD, range(1), "MPI_COMM_WORLD")
    process.where = {0: ("MPI_Finalize", 2.0, NONE16, 0, -1)}
    data = bytearray(process.bytes())
    finalize_ticks = struct.calcsize("<8sIIIIiiii6Q")
    struct.pack_into("<Q", data, finalize_ticks, int(process.clock.ticks(2.0)))
    (tmp_path / "rank-1000.trace").write_bytes(data)
    assert [round(place.since) for place in live.look(tmp_path).places] == [8]


def test_a_rank_in_its_own_code_and_one_without_a_trace(tmp_path: Path) -> None:
    hang(tmp_path, 4, [3, 3, 3, 3], {0: ("MPI_Allreduce", 2.0, 0, 3, -1), 1: ("MPI_Allreduce", 2.0, 0, 3, -1)})
    (tmp_path / "rank-1003.trace").unlink()
    found = live.look(tmp_path)
    assert found.gatherings[0].absent == (2, 3)
    assert found.unseen == (3,)
    assert "own code" in found.elsewhere[2]
    assert found.elsewhere[3] == "left no trace"


def test_a_send_that_nobody_receives(tmp_path: Path) -> None:
    hang(tmp_path, 2, [0, 0], {0: ("MPI_Send", 1.0, 0, 0, 1), 1: ("MPI_Recv", 3.0, 0, 0, -2)})
    found = live.look(tmp_path)
    assert found.gatherings == []
    told = [live.describe(place) for place in found.places]
    assert told == ["in MPI_Send with 1 on MPI_COMM_WORLD for 9.00 s", "in MPI_Recv from any rank on MPI_COMM_WORLD for 7.00 s"]
    page = printed(tmp_path)
    assert "MPI_Send" in page
    assert "rank 1" in page


def test_many_ranks_are_told_in_few_lines(tmp_path: Path) -> None:
    inside = ("MPI_Barrier", 4.0, 0, 2, -1)
    hang(tmp_path, 96, [2] * 96, {rank: inside for rank in range(96) if rank not in (17, 40)})
    page = printed(tmp_path)
    assert "waits for ranks 17, 40" in page
    assert "0–16, 18–39, 41–95" in page
    assert len(page.splitlines()) < 20


def test_nobody_is_in_a_call(tmp_path: Path) -> None:
    hang(tmp_path, 2, [1, 1], {})
    assert "no rank is in a call" in printed(tmp_path)


def test_a_job_that_runs_is_said_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hang(tmp_path, 1, [1], {})
    facts = json.loads((tmp_path / "job.json").read_text())
    (tmp_path / "job.json").write_text(json.dumps(facts | {"exit_code": None}))
    assert not live.look(tmp_path).running, "its process is gone"
    monkeypatch.setattr("stretto.running.is_alive", lambda _: True)
    assert live.look(tmp_path).running


def test_a_killed_job_waited_until_it_was_killed(tmp_path: Path) -> None:
    begin = datetime.datetime.fromtimestamp(1_800_000_000, datetime.timezone.utc).isoformat()  # the writer's own
    hang(tmp_path, 2, [1, 1], {0: ("MPI_Barrier", 4.0, 0, 1, -1)}, started=begin, wall_seconds=64.0)
    assert live.look(tmp_path).gatherings[0].since == pytest.approx(60.0, abs=0.2)
    hang(tmp_path, 2, [1, 1], {0: ("MPI_Barrier", 4.0, 0, 1, -1)}, started="yesterday", wall_seconds=64.0)
    assert live.look(tmp_path).gatherings[0].since == pytest.approx(6.0, abs=0.01)


def test_damage_does_not_stop_it(tmp_path: Path) -> None:
    hang(tmp_path, 2, [3, 3], {0: ("MPI_Allreduce", 2.0, 0, 3, -1), 1: ("MPI_Allreduce", 2.0, 500, 3, -1)})
    found = live.look(tmp_path)
    assert [place.communicator for place in found.places] == ["MPI_COMM_WORLD", ""], "a communicator that the file lacks"
    whole = (tmp_path / "rank-1000.trace").read_bytes()
    for length in (5000, 9000, len(whole) // 2, len(whole) - 100):
        (tmp_path / "rank-1000.trace").write_bytes(whole[:length])
        live.look(tmp_path)
