"""The reader of traces: every field comes back, and nothing that a file can hold brings it down."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trace_writer as writer
from stretto import trace
from stretto.trace_layout import CELL, CLOCK, COMMUNICATOR, DATATYPE, EVENT, MARK, PARTNER, QUEUE, THREAD


def example(**changes: Any) -> writer.Process:
    process = writer.Process(**({"rank": 1, "size": 2, "node": 3, "pid": 77, "host": "n3"} | changes))
    process.communicator(0xABC, [0, 1], "MPI_COMM_WORLD", nodes=2)
    process.communicator(0xDEF, [1], "to the other world", parent=0xABC, remote=[0, -1], freed=2.0)
    process.clocks = [(0.5, 2e-6, 0, 0), (9.0, 3e-6, 0, 1)]
    process.queues = [
        ("pml_ob1_unexpected_msgq_length", "messages", "", 10, 25.0, 1.0, 7.0),
        ("time", "s", "none", 0, 0.0, 0.0, 0.0),
    ]
    process.notes = ["one", "one", "two"]
    process.marks = [(1.0, 3, 0), (2.0, 3, 1)]
    process.call("MPI_Allreduce", [1.0, 2.0], [1.5, 2.25], sequence=[0, 1], sent=40, received=40, datatype=0, op=0, location=0)
    process.call("MPI_Send", 3.0, 3.5, thread=1, sent=100, peer=0, tag=9, direction="sent", partner=0, datatype=3)
    return process


def read(tmp_path: Path, data: bytes) -> trace.Trace:
    path = tmp_path / "rank-1.trace"
    path.write_bytes(data)
    return trace.read(path)


def every_event(one: trace.Trace, most: int = 1 << 16) -> list[trace.Batch]:
    return [batch for thread in one.event_threads() for batch in one.batches(thread, most)]


def test_layouts_have_the_sizes_of_the_specification() -> None:
    sizes = [kind.itemsize for kind in (EVENT, CELL, PARTNER, COMMUNICATOR, DATATYPE, THREAD, CLOCK, QUEUE, MARK)]
    assert sizes == [48, 64, 32, 128, 64, 64, 32, 256, 16]
    assert trace.HEADER.size == 608


def test_every_part_comes_back(tmp_path: Path) -> None:
    one = read(tmp_path, example().bytes())
    assert one.problems == []
    header = one.header
    assert (header.world_rank, header.world_size, header.node, header.pid, header.host) == (1, 2, 3, 77, "n3")
    assert (header.mode, header.stage, header.library, header.clock) == (2, 2, "Open MPI v5.0.11", "tsc")
    assert header.seconds_per_tick() == pytest.approx(1e-9)
    assert one.functions == list(writer.FUNCTIONS) and one.reasons == list(writer.REASONS)
    assert one.algorithms == list(writer.ALGORITHMS) and one.operations == list(writer.OPERATIONS)
    assert one.datatype_names == [name for name, _ in writer.DATATYPES]
    world, other = one.communicators
    assert (world.identity, world.name, world.rank, world.nodes, world.members.tolist()) == (
        0xABC,
        "MPI_COMM_WORLD",
        1,
        2,
        [0, 1],
    )
    assert (other.parent, other.size, other.remote_size, other.members.tolist()) == (0xABC, 1, 2, [1, 0, -1])
    assert other.freed_ticks == 3_000_000_000 and world.freed_ticks == 0
    assert one.clock["reference_ns"].tolist() == [600_000_000, 9_100_000_000] and one.clock["error_ns"].tolist() == [2000, 3000]
    assert one.queues["samples"].tolist() == [10, 0] and one.notes == ["one", "two"]
    assert one.marks["number"].tolist() == [0, 1] and one.thread_names == ["main", "worker 1"]
    assert one.cells["thread"].tolist() == [0, 1] and one.cells["calls"].tolist() == [2, 1]
    assert one.partners["bytes"].tolist() == [100]
    first, second = every_event(one)
    assert first.rows["begin"].tolist() == [2_000_000_000, 3_000_000_000] and first.spent.tolist() == [500_000_000, 250_000_000]
    assert (second.thread, second.sent.tolist(), second.rows["tag"].tolist()) == (1, [100], [9])


@pytest.mark.parametrize("block", [1, 2, 3, 1 << 30])
@pytest.mark.parametrize("most", [1, 2, 5, 1000])
def test_wide_events_are_put_together_wherever_blocks_end(tmp_path: Path, block: int, most: int) -> None:
    process = writer.Process(clock=writer.Clock(rate=4e9), block=block, spare=5000)
    process.communicator(1, [0])
    sizes = [5, 1 << 33, 7, (1 << 40) + 3, (1 << 32) - 1, 1 << 32]
    process.call("MPI_Bcast", np.arange(6) * 10.0, np.arange(6) * 10.0 + [1, 9, 1, 1, 1, 1], sent=sizes, sequence=np.arange(6))
    batches = every_event(read(tmp_path, process.bytes()), most)
    assert np.concatenate([batch.sent for batch in batches]).tolist() == sizes
    assert np.concatenate([batch.spent for batch in batches]).tolist() == [4 * 10**9 * n for n in (1, 9, 1, 1, 1, 1)]
    assert np.concatenate([batch.rows["sequence"] for batch in batches]).tolist() == list(range(6))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "0 bytes"),
        (b"x" * 700, "does not begin with STRETTOT"),
        (bytes(8192), "does not begin with STRETTOT"),
        (b"STRETTOT" + struct.pack("<II", 1, 4096) + bytes(5000), "version 1"),
        (b"STRETTOT" + struct.pack("<II", 2, 512) + bytes(5000), "header of 512 bytes"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_line(tmp_path: Path, data: bytes, why: str) -> None:
    with pytest.raises(trace.TraceError, match=why) as caught:
        read(tmp_path, data)
    assert "\n" not in str(caught.value)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rank-1.trace")
    for path in (tmp_path / "rank-1.trace", tmp_path, tmp_path / "missing", Path("/dev/zero")):
        with pytest.raises(trace.TraceError):
            trace.read(path)


def test_every_truncation_gives_what_is_there(tmp_path: Path) -> None:
    whole = example(spare=9000).bytes()
    complete = read(tmp_path, whole)
    for length in range(0, len(whole), 509):
        if length < 600:
            continue
        one = read(tmp_path, whole[:length])
        assert length == len(whole) or one.problems
        for name in ("functions", "operations", "notes"):
            found = getattr(one, name)
            assert found == getattr(complete, name)[: len(found)]
        every_event(one)


def test_sections_behind_a_damaged_one_are_found(tmp_path: Path) -> None:
    process = example()
    parts = process.sections()
    parts[4] = b"\xff" * len(parts[4])  # operations
    body = b"".join(parts)
    one = read(tmp_path, process.header(writer.PAGE + len(body)) + body)
    assert one.operations == [] and len(one.communicators) == 2 and len(every_event(one)) == 2
    assert any("damaged section" in problem for problem in one.problems)


def test_sections_of_unknown_types_are_skipped(tmp_path: Path) -> None:
    one = read(
        tmp_path, example(extra=[writer.section(99, b"abcd", 4), writer.section(14, b"late".ljust(256, b"\0"), 256)]).bytes()
    )
    assert one.notes == ["one", "two", "late"] and one.problems == []


def test_counts_beyond_a_section_are_cut_down(tmp_path: Path) -> None:
    data = bytearray(example().bytes())
    at = data.index(struct.pack("<IH", 0x54434553, writer.SECTIONS["events"]))
    data[at + 24 : at + 32] = struct.pack("<Q", 1 << 63)
    one = read(tmp_path, bytes(data))
    assert one.events[0].used == (4096 - 64) // 48 and any("that it counts" in problem for problem in one.problems)


def test_holes_cost_no_time(tmp_path: Path) -> None:
    process = example()
    body = b"".join(process.sections())
    path = tmp_path / "rank-1.trace"
    with path.open("wb") as file:
        file.write(process.header(1 << 42) + body + b"x")
        file.truncate(1 << 42)
    one = trace.read(path)
    assert len(one.communicators) == 2 and len(every_event(one)) == 2 and "damaged section" in one.problems[0]


def test_members_are_not_walked_again_and_again(tmp_path: Path) -> None:
    process = writer.Process(size=1000)
    for _ in range(5000):
        process.communicator(5, [0])
    process.members = list(range(1000))
    shared = struct.pack("<IiIIQ", 1000, 0, 0, 1, 0)  # all have the same thousand members
    process.communicators = [one[:32] + shared + one[56:] for one in process.communicators]
    one = read(tmp_path, process.bytes())
    known = [len(each.members) for each in one.communicators]
    assert known[:4000] == [1000] * 4000 and known[-1] == 0 and "communicators whose members" in one.problems[0]


def test_longer_entries_of_a_later_version_are_stepped_over(tmp_path: Path) -> None:
    notes = b"".join(text.ljust(256, b"\0") + b"later..." for text in (b"one", b"two"))
    rows = writer.events(np.zeros(3, writer.CALL))
    rows["sequence"] = [7, 8, 9]
    longer = b"".join(row.tobytes() + b"12345678" for row in rows)
    body = writer.section(14, notes, 264) + writer.section(13, longer, 56, 0)
    one = read(tmp_path, writer.Process().header(writer.PAGE + len(body)) + body)
    assert one.notes == ["one", "two"]
    for most in (1, 2, 3):
        assert [int(n) for batch in one.batches(0, most) for n in batch.rows["sequence"]] == [7, 8, 9]


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("most", [3, 1 << 16])
def test_a_tail_is_read_last_and_once(tmp_path: Path, copied: bool, most: int) -> None:
    process = writer.Process(block=10, tail=True, copied=copied)
    times = np.arange(35) * 1e-3
    process.call("MPI_Barrier", times, times + 1e-4, sequence=np.arange(35))
    process.call("MPI_Barrier", times, times + 1e-4, sequence=np.arange(35), thread=1)
    one = read(tmp_path, process.bytes())
    assert one.problems == [] and one.event_count() == 70
    for thread in (0, 1):
        found = [int(number) for batch in one.batches(thread, most) for number in batch.rows["sequence"]]
        assert found == list(range(35))


def test_a_tail_that_was_emptied_meanwhile_is_left_for_the_next_look(tmp_path: Path) -> None:
    process = writer.Process(block=10, tail=True)
    process.call("MPI_Barrier", np.arange(15) * 1e-3, np.arange(15) * 1e-3 + 1e-4, sequence=np.arange(15))
    one = read(tmp_path, process.bytes())
    with one.path.open("r+b") as file:
        file.seek(one.events[-1].head + 32)
        file.write(struct.pack("<Q", 15))
    assert [int(n) for batch in one.batches(0) for n in batch.rows["sequence"]] == list(range(10))


def test_names_are_fit_to_be_shown(tmp_path: Path) -> None:
    one = read(tmp_path, example(host="a\x1b[31m\n\u202eb").bytes())
    assert one.header.host == "a?[31m??b"


def test_a_file_that_shrinks_while_it_is_read_ends_early(tmp_path: Path) -> None:
    process = writer.Process()
    process.call("MPI_Barrier", np.arange(1000) * 1e-3, np.arange(1000) * 1e-3 + 1e-4)
    one = read(tmp_path, process.bytes())
    batches = one.batches(0, 100)
    next(batches)
    os.truncate(tmp_path / "rank-1.trace", one.events[0].offset + 250 * 48)
    assert sum(len(batch.rows) for batch in batches) == 150


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_mutations_never_bring_the_reader_down(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Words of headers set to what hurts, pages exchanged, bytes changed."""
    raw = bytearray(example().bytes())
    for _ in range(data.draw(st.integers(1, 12))):
        kind = data.draw(st.integers(0, 2))
        if kind == 0:
            at = data.draw(st.integers(0, len(raw) // 4096 - 1)) * 4096 + 4 * data.draw(st.integers(0, 40))
            value = data.draw(st.sampled_from([0, 1, 64, 4096, 4097, 1 << 31, (1 << 32) - 1]) | st.integers(0, (1 << 32) - 1))
            raw[at : at + 4] = struct.pack("<I", value)
        elif kind == 1:
            first, second = (data.draw(st.integers(1, len(raw) // 4096 - 1)) * 4096 for _ in range(2))
            raw[first : first + 4096], raw[second : second + 4096] = raw[second : second + 4096], raw[first : first + 4096]
        else:
            raw[data.draw(st.integers(8, len(raw) - 1))] = data.draw(st.integers(0, 255))
    check_survives(tmp_path_factory.getbasetemp() / "mutated.trace", bytes(raw))


def check_survives(path: Path, data: bytes) -> None:
    """Reads without any error but TraceError, and gives no more events than the file can hold."""
    path.write_bytes(data)
    try:
        one = trace.read(path)
    except trace.TraceError:
        return
    assert sum(len(batch.rows) for batch in every_event(one, 7)) * 48 <= 2 * len(data)
    assert all(len(text) < 4096 for text in one.problems)


def test_random_damage(tmp_path: Path) -> None:
    random.seed(20)
    whole = example().bytes()
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(random.randrange(1, 200)):
            data[random.randrange(8, len(data))] = random.randrange(256)
        check_survives(tmp_path / "damaged.trace", bytes(data[: random.randrange(len(data))]))
