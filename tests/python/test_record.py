"""The reader of records: what a record says, and what damaged or foreign files lead to."""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records import Block, Builder, example
from stretto import record

ROOT = Path(__file__).resolve().parents[2]


def test_threads_are_added_up() -> None:
    found = record.parse(example().bytes())
    assert (found.functions["MPI_Send"].calls, found.functions["MPI_Send"].ticks, found.functions["MPI_Send"].bytes) == (
        3,
        40,
        24,
    )
    allreduce = found.kinds["Allreduce"]
    assert (allreduce.accelerated_calls, allreduce.declined_calls) == (8, 2)
    assert (allreduce.accelerated_bytes, allreduce.declined_bytes) == (640, 160)
    assert allreduce.declines == {"user op": 2}
    assert allreduce.algorithms == {"flat": 5, "slices": 3}
    assert list(found.kinds) == ["Allreduce"]
    assert found.problem == ""


def test_header() -> None:
    found = record.parse(example(rank=3, size=8, accelerating=0, stage=1, verdict=b"off: no\x1b[31m memory").bytes())
    assert (found.world_rank, found.world_size, found.pid, found.stage) == (3, 8, 103, "initialised")
    assert not found.accelerating
    assert found.verdict == "off: no?[31m memory", "control characters do not reach the terminal"
    assert (found.mpi_library, found.host, found.init_ns, found.finalize_ns) == ("Some MPI 1.0", "node1", 600, 1400)


def test_ticks_become_seconds_by_the_two_clock_pairs() -> None:
    assert record.parse(example().bytes()).seconds_per_tick() == pytest.approx(0.5e-9)
    assert record.parse(example(last=(1000, 500)).bytes()).seconds_per_tick() == 0


def test_blocks_beyond_those_used_are_not_read() -> None:
    assert record.parse(example(used=1).bytes()).functions["MPI_Send"].calls == 1
    assert record.parse(example(used=4_000_000_000).bytes()).functions["MPI_Send"].calls == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"magic": b"NOTHING!"}, "no Stretto record"),
        ({"magic": bytes(8)}, "no Stretto record"),
        ({"version": 5}, "version 5"),
        ({"header_bytes": 12}, "header of 12 bytes"),
        ({"block_count": 3, "reasons": ("x",) * 70_000}, "table longer"),
    ],
)
def test_what_is_no_record_is_refused(change: dict[str, object], words: str) -> None:
    builder = example(**change)
    data = builder.header() + bytes(4096)
    with pytest.raises(record.RecordError, match=words):
        record.parse(data)


def test_hostile_lengths_cost_nothing() -> None:
    data = bytearray(example().bytes())
    struct.pack_into("<4I", data, 80, 2**32 - 1, 2**32 - 1, 2**32 - 1, 2**32 - 1)
    with pytest.raises(record.RecordError, match="table longer"):
        record.parse(bytes(data))


def test_a_record_cut_off_gives_what_is_there() -> None:
    builder = example(block_count=2)
    whole = builder.bytes()
    arrivals, turns = 64 * 32, 16 + 512 * 16
    for length, part in ((1, "turns"), (turns + 1, "arrivals")):
        ended = record.parse(whole[:-length])
        assert (ended.problem, ended.calls()) == (f"cut off before its {part} end", record.parse(whole).calls())
    cut = record.parse(whole[: -arrivals - turns - 1])
    assert cut.problem == "cut off in thread block 2 of 2"
    assert cut.functions["MPI_Allreduce"].calls == 10
    assert cut.functions["MPI_Send"].calls == 1
    assert "tables" in record.parse(whole[:600]).problem


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "rank-1.record"
    file.write_bytes(example().bytes())
    assert record.read(file).pid == 100
    file.write_bytes(b"")
    with pytest.raises(record.RecordError, match=r"rank-1\.record: no Stretto record: 0 bytes"):
        record.read(file)
    with pytest.raises(record.RecordError, match="No such file"):
        record.read(tmp_path / "absent")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(record.RecordError, match="not a regular file"):
        record.read(tmp_path / "pipe")


def test_kinds_are_numbered_as_in_the_library() -> None:
    header = (ROOT / "src" / "collective" / "request.hpp").read_text()
    names = re.search(r"enum class Kind[^{]*\{([^}]*)\}", header)
    assert names is not None
    listed = [name.strip() for name in names[1].split(",") if name.strip()]
    assert [name.lower() for name in record.KINDS] == listed


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damage_is_reported_or_harmless(data: st.DataObject) -> None:
    """Whatever bytes change, the reader returns a record or raises RecordError."""
    raw = bytearray(Builder(blocks=[Block()], block_count=2).bytes())
    for _ in range(data.draw(st.integers(0, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)))]
    try:
        found = record.parse(bytes(raw))
    except record.RecordError:
        return
    assert found.calls() >= 0
    assert all(letter.isprintable() for letter in found.verdict + found.host + "".join(found.functions))


@settings(deadline=None)
@given(st.binary(max_size=2048))
def test_arbitrary_bytes(raw: bytes) -> None:
    try:
        record.parse(raw)
    except record.RecordError:
        return
    assert raw.startswith(record.MAGIC)


def test_arrivals() -> None:
    cell = (4096, 1, 4, 10, 50000, 9000, 20000, 3, 6)
    assert record.parse(example(arrivals=[cell]).bytes()).arrivals == [record.ArrivalCount(*cell)]
    assert record.parse(example(version=1).bytes()).arrivals == []


def test_turns() -> None:
    found = record.parse(example(turn_calls=11, turns=[(60, 20, 8), (61, 19, 0), (62, 18, 1 << 40)]).bytes())
    assert (found.turn_calls, found.turns) == (
        11,
        [record.Turn(60 << 10, 20 << 10, 8), record.Turn(61 << 10, 19 << 10, 0), record.Turn(62 << 10, 18 << 10, 1 << 40)],
    )
    assert record.parse(example().bytes()).turns == []
    many = record.parse(example(turn_calls=11, turns=[(i, 1, 0) for i in range(1001)]).bytes()).turns
    assert [turn.ticks >> 10 for turn in many] == list(range(492, 1001)), "the newest, from the first of four on"


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_the_golden_record(version: int) -> None:
    """What the library's own test writes, byte for byte, and what it wrote before."""
    found = record.read(ROOT / "tests" / "golden" / f"record_v{version}" / "example.record")
    cells = [record.ArrivalCount(4096, 1, 4, 10, 50000, 9000, 20000, 3, 6)]
    assert found.arrivals == (cells if version > 1 else [])
    turns = [record.Turn((60 + i) << 10, (20 - i) << 10, 1000 * i if version > 3 else 0) for i in range(5)]
    assert found.turns == (turns if version > 2 else [])
    assert (found.world_rank, found.world_size, found.pid, found.stage) == (1, 4, 4242, "finalized")
    assert found.seconds_per_tick() == pytest.approx(0.5e-9)
    assert found.functions["MPI_Allreduce"] == record.FunctionCount(3, 15000, 3072)
    allreduce = found.kinds["Allreduce"]
    assert (allreduce.accelerated_calls, allreduce.declined_calls) == (2, 1)
    assert (allreduce.declines, allreduce.algorithms) == ({"size": 1}, {"flat": 1, "tree": 1})
    assert found.problem == ""
