"""Where the nodes of a job meet: a socket of `stretto run`, at which the first rank of every node says who takes part, and which
takes the records of ranks that do not see its folder.

A rank that does not run Stretto cannot answer MPI's collectives as Stretto's ranks would ask them, so MPI is not used to find
out. A group is the nodes of one MPI_COMM_WORLD; all of them get one answer: `joined` when every rank has come and all have the
same fingerprint, `differ` where fingerprints differ, `missing` when somebody has not come in time. docs/nodes.md has the lines.
"""

from __future__ import annotations

import contextlib
import fcntl
import re
import signal
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

GREETING = b"stretto meeting 1\n"
_SIOCGIFADDR = 0x8915
_LONGEST = 1 << 20  # bytes of a question
_PATIENCE = 30.0  # seconds to hear a question once connected
_MOST_BYTES = 1 << 24  # of a record; Stretto's have 3 MB
_MOST_IN_ALL = 1 << 30  # that are written for a job
_PAGE = 4096  # bytes of a record that are sent together, behind their number


@dataclass(frozen=True, slots=True)
class Question:
    launch: str
    nonce: str
    world: int
    fingerprint: str
    patience: float
    ranks: set[int]


@dataclass(slots=True)
class Group:
    """What is known of one world."""

    world: int
    fingerprint: str
    deadline: float
    nodes: dict[str, set[int]] = field(default_factory=dict)  # the ranks of each node, by its nonce
    verdict: str = ""

    def takes(self, question: Question) -> bool:
        """Whether the question belongs here: the group is open, or waits no more for a node like this, or was asked before."""
        seen = set().union(*self.nodes.values())
        return not self.verdict or question.nonce in self.nodes or (self.verdict != "joined" and not seen & question.ranks)

    def add(self, question: Question) -> None:
        ranks = question.ranks
        seen = set().union(*self.nodes.values())
        self.nodes[question.nonce] = ranks
        if self.verdict:
            return
        if not ranks or ranks & seen:
            self.verdict = "missing"
        elif question.fingerprint != self.fingerprint:
            self.verdict = "differ"
        elif seen | ranks == set(range(self.world)):
            self.verdict = "joined"


def parse(line: bytes, job_id: str) -> Question | None:
    """A line `meet JOB LAUNCH NONCE WORLD FINGERPRINT TIMEOUT-MS RANKS` of this job; None: something else."""
    words = line.decode("ascii", "replace").split()
    if len(words) != 8 or words[0] != "meet" or words[1] != job_id:
        return None
    try:
        ranks = set() if words[7] == "-" else {int(word) for word in words[7].split(",")}
        return Question(words[2], words[3], int(words[4]), words[5], int(words[6]) / 1000, ranks)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class SentRecord:
    """What a line `record JOB NONCE BYTES PAGES` announces; behind it come PAGES times a page's number and the page."""

    nonce: str
    size: int
    pages: int

    def keep(self, rest: IO[bytes], folder: Path) -> bool:
        """Into `folder`: the whole record, zero where nothing is sent, or none. False: it broke off, or makes no sense."""
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".sent-", delete=False) as file:
            try:
                if self._copy(rest, file):
                    file.flush()
                    Path(file.name).replace(folder / f"rank-sent-{self.nonce}.record")
                    return True
            finally:
                Path(file.name).unlink(missing_ok=True)
        return False

    def _copy(self, rest: IO[bytes], file: IO[bytes]) -> bool:
        file.truncate(self.size)
        for _ in range(self.pages):
            sent = rest.read(4 + _PAGE)
            at = int.from_bytes(sent[:4], "little") * _PAGE
            if len(sent) < 4 + _PAGE or at >= self.size:
                return False
            file.seek(at)
            file.write(sent[4 : 4 + self.size - at])
        return True


def parse_record(line: bytes, job_id: str) -> SentRecord | None:
    """None: something else, of another job, or longer than any of Stretto's."""
    match = re.fullmatch(rb"record (\S+) ([0-9a-f]{1,16}) (\d{1,10}) (\d{1,7})\n", line)
    if not match or match[1] != job_id.encode():
        return None
    found = SentRecord(match[2].decode(), int(match[3]), int(match[4]))
    return found if found.size <= _MOST_BYTES and found.pages * _PAGE < found.size + _PAGE else None


class Meeting:
    """Answers in threads of its own until it is closed."""

    def __init__(self, job_id: str, folder: Path) -> None:
        self._job_id, self._folder = job_id, folder
        self._room = _MOST_IN_ALL
        self._closed = False
        self._groups: dict[tuple[str, int], Group] = {}
        self._changed = threading.Condition()
        self._socket = socket.create_server(("", 0), backlog=512)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def addresses(self) -> str:
        """As in STRETTO_MEETING."""
        port = self._socket.getsockname()[1]
        return "/".join(f"{address}:{port}" for address in own_addresses())

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._attend, args=(connection,), daemon=True).start()
            except (OSError, RuntimeError):  # no descriptor or thread is free, or it has been closed
                time.sleep(0.01)

    def _attend(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(_PATIENCE)
            connection.sendall(GREETING)
            hearing = connection.makefile("rb")
            line = hearing.readline(_LONGEST)
            record = parse_record(line, self._job_id)
            question = parse(line, self._job_id)
            if record is not None and self._has_room(record) and record.keep(hearing, self._folder):
                connection.sendall(b"kept\n")
            elif question is not None:
                connection.sendall(self._answer(question).encode() + b"\n")

    def _has_room(self, record: SentRecord) -> bool:
        with self._changed:
            self._room -= record.pages * _PAGE
            return self._room >= 0

    def _answer(self, question: Question) -> str:
        """Waits for the verdict of the question's group. The first of a group that fails is to tell the user of it."""
        with self._changed:
            group = self._group_of(question)
            if question.nonce not in group.nodes:
                group.add(question)
                self._changed.notify_all()
            while not group.verdict:
                left = group.deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    group.verdict = group.verdict or "missing"
                    self._changed.notify_all()
            tells = group.verdict != "joined" and next(iter(group.nodes)) == question.nonce
            return group.verdict + ("!" if tells else "")

    def _group_of(self, question: Question) -> Group:
        """The open group of this world, or the one in which this very question was asked before; else a new one."""
        key = (question.launch, question.world)
        group = self._groups.get(key)
        if group is None or not group.takes(question):
            group = Group(question.world, question.fingerprint, time.monotonic() + question.patience)
            self._groups[key] = group
        return group


@contextlib.contextmanager
def held(job_id: str, folder: Path) -> Iterator[str]:
    """A meeting while the block runs, records going into `folder`; its addresses, empty where no socket can be had."""
    everything = set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, everything)  # threads inherit it: signals are for the launcher
    try:
        meeting = Meeting(job_id, folder)
    except OSError:
        meeting = None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield meeting.addresses if meeting else ""
    finally:
        if meeting:
            meeting.close()


def own_addresses() -> list[str]:
    """This machine's IPv4 addresses but those of the loopback."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            with contextlib.suppress(OSError):
                found.append(socket.inet_ntoa(fcntl.ioctl(asking.fileno(), _SIOCGIFADDR, request)[20:24]))
    return [address for address in found if not address.startswith("127.")]
