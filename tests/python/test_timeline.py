"""Time lines: Perfetto's packets, read by a decoder of protobuf's wire format, and OTF2 archives, read by their own reader."""

from __future__ import annotations

import random
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stretto import exports
from stretto.cli import main
from stretto.profile.job import open_job
from synthetic_jobs import world
from trace_writer import ANY_SOURCE, ANY_TAG, CANCELLED, PART, make_example

RANKS, ITERATIONS = 3, 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_example(tmp_path / "profile", ranks=RANKS, iterations=ITERATIONS)
    return tmp_path / "profile"


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
            yield key >> 3, value
        elif key & 7 == 1:
            yield key >> 3, struct.unpack_from("<Q", data, at)[0]
            at += 8
        else:
            assert key & 7 == 2
            length, at = varint(data, at)
            yield key >> 3, data[at : at + length]
            at += length


def packets(path: Path) -> list[dict[int, Any]]:
    found = []
    for number, packet in fields(path.read_bytes()):
        assert number == 1
        found.append(dict(fields(packet)))
    return found


def test_a_perfetto_trace_has_tracks_slices_and_arrows(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "line.pftrace"
    assert main(["export", str(folder), "--perfetto", str(target)]) == 0
    told = int(capfd.readouterr().out.split()[0])
    found = packets(target)
    tracks = {dict(fields(one[60]))[1]: dict(fields(one[60])) for one in found if 60 in one}
    names = [dict(fields(track[3]))[6].decode() for track in tracks.values() if 3 in track]
    assert names == ["rank 0 on node0", "rank 1 on node0", "rank 2 on node1"]
    slices = [(one[8], list(fields(one[11]))) for one in found if 11 in one]
    assert Counter(dict(event)[9] for _, event in slices) == {1: told, 2: told}
    assert all(dict(event)[11] in tracks and 4 in tracks[dict(event)[11]] for _, event in slices)
    flows: dict[int, list[tuple[int, str]]] = defaultdict(list)  # id: when, and whether it ends there
    for at, event in slices:
        for number, value in event:
            if number in (47, 48):
                flows[value].append((at, "ends" if number == 48 else "goes on"))
    collectives = 2 + ITERATIONS * 6 + ITERATIONS  # on the world, and on the node that has two ranks
    assert len(flows) == collectives
    for steps in flows.values():
        ordered = [how for _, how in sorted(steps)]
        assert ordered == ["goes on"] * (len(steps) - 1) + ["ends"] and len(steps) in (2, 3)


def test_an_otf2_archive_holds_calls_messages_and_collectives(folder: Path, tmp_path: Path) -> None:
    otf2 = pytest.importorskip("otf2")
    target = tmp_path / "archive"
    assert main(["export", str(folder), "--otf2", str(target)]) == 0
    seen: Counter[str] = Counter()
    newest: dict[Any, int] = {}
    with otf2.reader.open(str(target / "traces.otf2")) as archive:
        assert len(list(archive.definitions.locations)) == 2 * RANKS
        for location, event in archive.events:
            seen[type(event).__name__] += 1
            assert newest.get(location, 0) <= event.time
            newest[location] = event.time
    assert seen["Enter"] == seen["Leave"] and seen["MpiCollectiveEnd"] == RANKS * (2 + 7 * ITERATIONS)
    messages = RANKS * ITERATIONS
    assert (seen["MpiIrecvRequest"], seen["MpiIsend"], seen["MpiIrecv"], seen["MpiIsendComplete"]) == (messages,) * 4
    assert main(["export", str(folder), "--otf2", str(target)]) == 2


def test_a_receive_says_whom_it_was_from_in_the_row_that_began_it(tmp_path: Path) -> None:
    (process,) = world(1)
    facts = {"datatype": 3, "location": 15 << 4}
    process.call("MPI_Irecv", 1.0, 1.001, received=400, peer=-2, tag=-1, request=7, flags=ANY_SOURCE | ANY_TAG, **facts)
    process.call("MPI_Irecv", 1.1, 1.101, received=400, peer=3, tag=5, request=8, **facts)
    process.call("MPI_Irecv", 1.2, 1.201, received=400, peer=3, tag=5, request=9, **facts)
    process.call("MPI_Send", 1.3, 1.301, sent=12, peer=4, tag=5, **facts)
    process.call("MPI_Waitall", 2.0, 2.1)
    process.call("MPI_Irecv", 2.0, 2.1, received=40, peer=6, tag=11, request=7, flags=PART, **facts)
    process.call("MPI_Irecv", 2.0, 2.1, received=0, peer=3, tag=5, request=8, flags=PART | CANCELLED, **facts)
    target = tmp_path / "calls.parquet"
    process.write(tmp_path)
    assert main(["export", str(tmp_path), "--parquet", str(target)]) == 0
    calls = pl.read_parquet(target).filter(~pl.col("part") & (pl.col("function") == "MPI_Irecv"))
    got = list(calls.sort("t_entry_ns").select("peer", "tag", "bytes_received").iter_rows())
    assert got == [(6, 11, 40), (3, 5, 0), (3, 5, 400)]


def test_parts_stay_with_their_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (process,) = world(1)
    for round_ in range(40):
        at = 1.0 + 0.01 * round_
        process.call("MPI_Waitall", at, at + 1e-3)
        for request in range(5):
            process.call("MPI_Isend", at, at + 1e-3, peer=1, request=round_ * 5 + request + 1, flags=PART)
    process.write(tmp_path)
    monkeypatch.setattr(exports, "_BLOCK", 16)
    job = open_job(tmp_path)
    tables = list(exports.frames(job.processes[0]))
    assert len(tables) > 10 and sum(table.height for table in tables) == 240
    assert not any(table["part"][0] for table in tables) and all(table.height % 6 == 0 for table in tables)


@pytest.mark.parametrize("seed", range(6))
def test_damaged_traces_are_exported_as_far_as_they_are_whole(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "job"
    make_example(folder, ranks=2, iterations=8)
    chance = random.Random(seed)
    for path in sorted(folder.glob("rank-*.trace")):
        raw = bytearray(path.read_bytes())
        for _ in range(2000 if seed < 2 else 60):
            raw[chance.randrange(600, len(raw))] = chance.choice([0, 255, chance.randrange(256)])
        path.write_bytes(raw)
    forms = (("parquet", "a.parquet"), ("parquet", "a"), ("perfetto", "b"), ("perfetto", "b.json"), ("otf2", "c"))
    codes = [main(["export", str(folder), f"--{form}", str(tmp_path / target)]) for form, target in forms]
    assert set(codes) <= {0, 2} and (seed < 2 or codes[0] == 0)


def test_otf2_without_its_package_says_so(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "otf2", None)
    assert main(["export", str(folder), "--otf2", str(tmp_path / "archive")]) == 2
    assert "pip install otf2" in capfd.readouterr().err
