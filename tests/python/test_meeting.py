"""Where the nodes of a job meet: one answer for all."""

from __future__ import annotations

import os
import resource
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stretto import meeting

JOB = "feedbeef"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[meeting.Meeting]:
    held = meeting.Meeting(JOB, tmp_path)
    yield held
    held.close()


def ask(place: meeting.Meeting, line: str) -> str:
    port = place._socket.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection, connection.makefile("rb") as answers:
        assert answers.readline() == meeting.GREETING
        connection.sendall(line.encode() + b"\n")
        return answers.readline().decode().strip()


def question(nonce: str, ranks: str, fingerprint: str = "f", world: int = 4, patience: int = 20000, launch: str = "l") -> str:
    return f"meet {JOB} {launch} {nonce} {world} {fingerprint} {patience} {ranks}"


def ask_all(place: meeting.Meeting, lines: list[str]) -> list[str]:
    answers = [""] * len(lines)

    def one(number: int) -> None:
        answers[number] = ask(place, lines[number])

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(lines))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return answers


def test_all_come(place: meeting.Meeting) -> None:
    assert ask_all(place, [question("a", "0,1"), question("b", "3,2")]) == ["joined", "joined"]


def test_the_same_question_gets_the_same_answer_again(place: meeting.Meeting) -> None:
    ask_all(place, [question("a", "0,1"), question("b", "3,2")])
    assert ask(place, question("b", "3,2")) == "joined"


def test_one_job_after_the_other(place: meeting.Meeting) -> None:
    for run in range(3):
        assert ask_all(place, [question(f"a{run}", "0,1"), question(f"b{run}", "2,3")]) == ["joined", "joined"]


def test_whoever_is_missing_is_not_waited_for_longer_than_allowed(place: meeting.Meeting) -> None:
    assert ask_all(place, [question("a", "0", patience=300), question("b", "2,3", patience=300)]).count("missing!") == 1


def test_one_node_tells_the_user(place: meeting.Meeting) -> None:
    lines = [question("a", "0", "f"), question("b", "1", "g"), question("c", "2,3", "f")]
    answers = ask_all(place, lines)
    assert sorted(answers) == ["differ", "differ", "differ!"]


def test_a_node_whose_own_ranks_have_not_joined_ends_the_wait(place: meeting.Meeting) -> None:
    answers = ask_all(place, [question("a", "0,1"), question("b", "-")])
    assert sorted(answer.rstrip("!") for answer in answers) == ["missing", "missing"]


def test_ranks_that_come_twice_are_of_different_jobs(place: meeting.Meeting) -> None:
    answers = ask_all(place, [question("a", "0,1"), question("b", "1,2")])
    assert {answer.rstrip("!") for answer in answers} == {"missing"}


def test_jobs_are_told_apart_by_their_launcher(place: meeting.Meeting) -> None:
    lines = [question(f"{launch}{ranks}", ranks, launch=launch) for launch in "xy" for ranks in ("0,1", "2,3")]
    assert ask_all(place, lines) == ["joined"] * 4


@pytest.mark.parametrize(
    "line", ["", "meet", "meet other l n 4 f 10 0,1", f"meet {JOB} l n four f 10 0", f"meet {JOB} l n 4 f 10 0,x"]
)
def test_others_get_no_answer(place: meeting.Meeting, line: str) -> None:
    assert ask(place, line) == ""


def test_addresses_are_for_other_machines(tmp_path: Path) -> None:
    with meeting.held(JOB, tmp_path) as addresses:
        assert "127.0.0.1" not in addresses
        for address in addresses.split("/") if addresses else []:
            assert address.rpartition(":")[2].isdigit()


def send(place: meeting.Meeting, message: bytes) -> bytes:
    port = place._socket.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection, connection.makefile("rb") as answers:
        answers.readline()
        try:
            connection.sendall(message)
            connection.shutdown(socket.SHUT_WR)
            return answers.readline()
        except OSError:  # closed before all was heard
            return b""


def page(number: int, letter: bytes) -> bytes:
    return number.to_bytes(4, "little") + letter * 4096


def test_a_record_from_afar_is_kept_with_its_holes(place: meeting.Meeting, tmp_path: Path) -> None:
    message = f"record {JOB} 1f 10000 2\n".encode() + page(0, b"a") + page(2, b"c")
    for _ in range(2):  # sent again when the connection broke
        assert send(place, message) == b"kept\n"
    (path,) = tmp_path.iterdir()
    assert path.match("rank-*.record")
    assert path.read_bytes() == b"a" * 4096 + bytes(4096) + b"c" * (10000 - 8192)


def test_a_record_is_there_wholly_or_not_at_all(place: meeting.Meeting, tmp_path: Path) -> None:
    """Seen while it is sent, and once its sender is gone."""
    port = place._socket.getsockname()[1]
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    connection.sendall(f"record {JOB} 1f 10000 2\n".encode() + page(0, b"a"))
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob(".sent-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not list(tmp_path.glob("*.record"))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()  # a reset
    while list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not list(tmp_path.iterdir())


def test_no_more_is_written_than_a_job_could_need(
    place: meeting.Meeting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "_room", 3 * 4096)
    for nonce, answer in (("1", b"kept\n"), ("2", b""), ("3", b"")):
        assert send(place, f"record {JOB} {nonce} 8192 2\n".encode() + page(0, b"a") + page(1, b"b")) == answer
    assert len(list(tmp_path.iterdir())) == 1


def test_it_goes_on_when_descriptors_are_free_again(place: meeting.Meeting) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as early:
        free = os.dup(early.fileno())
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
        try:
            early.connect(("127.0.0.1", place._socket.getsockname()[1]))
            time.sleep(0.1)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert ask(place, question("a", "0,1,2,3")) == "joined"


@pytest.mark.parametrize(
    "message",
    [
        b"record other 1f 10000 0\n",
        b"record feedbeef ../x 10000 0\n",
        b"record feedbeef 1f 9999999999 0\n",
        b"record feedbeef 1f 4096 2\n" + page(0, b"a") * 2,
        b"record feedbeef 1f 10000 2\n" + page(0, b"a"),
        b"record feedbeef 1f 10000 1\n" + page(3, b"a"),
        b"record feedbeef 1f 10000 1\n" + page(0, b"a")[:-1],
        b"record feedbeef 1f 10000 0",
    ],
)
def test_what_is_no_whole_record_leaves_nothing(place: meeting.Meeting, tmp_path: Path, message: bytes) -> None:
    assert send(place, message) == b""
    assert not list(tmp_path.iterdir())
