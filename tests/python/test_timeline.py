"""Time lines: Perfetto's packets, read by a decoder of protobuf's wire format, and OTF2 archives, read by their own reader."""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stretto.cli import main
from trace_writer import make_example

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


def test_otf2_without_its_package_says_so(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "otf2", None)
    assert main(["export", str(folder), "--otf2", str(tmp_path / "archive")]) == 2
    assert "pip install otf2" in capfd.readouterr().err
