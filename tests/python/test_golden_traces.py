"""Traces that the tracer itself wrote, beside what they hold: the Python reader agrees with the C++ writer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stretto import trace
from stretto.profile import analyse
from stretto.trace_layout import PART

GOLDEN = Path(__file__).parents[1] / "golden" / "trace_v2"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.trace"))

pytestmark = pytest.mark.skipif(not NAMES, reason=f"no example traces in {GOLDEN}")


@pytest.mark.parametrize("name", NAMES)
def test_the_reader_finds_what_the_tracer_wrote(name: str) -> None:
    truth = json.loads((GOLDEN / f"{name}.json").read_text())
    one = trace.read(GOLDEN / f"{name}.trace")
    header = one.header
    assert one.problems == []
    assert (header.mode, header.stage, header.world_rank) == (truth["mode"], truth["stage"], truth["world_rank"])
    assert (header.world_size, header.dropped_events) == (truth["world_size"], truth["dropped_events"])
    batches = [batch for thread in one.event_threads() for batch in one.batches(thread, 100)]
    rows = sum(len(batch.rows) for batch in batches)
    parts = sum(int((batch.rows["flags"] & PART != 0).sum()) for batch in batches)
    assert (rows - parts, parts, one.event_count() - rows) == (truth["events"], truth["parts"], truth["wide_events"])
    columns = {"event_ticks": "spent", "event_sent": "sent", "event_received": "received"}
    sums = {key: sum(int(getattr(batch, column).sum()) for batch in batches) for key, column in columns.items()}
    assert sums == {key: truth[key] for key in sums}
    assert [{"what": int(mark["what"]), "number": int(mark["number"])} for mark in one.marks] == truth["marks"]
    keys = ("function", "communicator", "datatype", "op", "location", "bin", "outcome")
    values = ("calls", "sent", "received", "ticks")
    found: dict[tuple[int, ...], list[int]] = {}
    for cell in one.cells[one.cells["calls"] > 0]:
        sums_of = found.setdefault(tuple(int(cell[key]) for key in keys), [0, 0, 0, 0])
        for place, value in enumerate(values):
            sums_of[place] += int(cell[value])
    expected = {tuple(cell[key] for key in keys): [cell[value] for value in values] for cell in truth["cells"]}
    assert found == expected
    partners: dict[tuple[int, ...], list[int]] = {}
    for cell in one.partners[one.partners["calls"] > 0]:
        sums_of = partners.setdefault(tuple(int(cell[key]) for key in ("communicator", "direction", "partner")), [0, 0])
        sums_of[0] += int(cell["calls"])
        sums_of[1] += int(cell["bytes"])
    keys = ("communicator", "direction", "partner")
    assert partners == {tuple(row[key] for key in keys): [row["calls"], row["bytes"]] for row in truth["partners"]}


@pytest.mark.parametrize("name", NAMES)
def test_their_profiles_count_the_same_calls(name: str, tmp_path: Path) -> None:
    truth = json.loads((GOLDEN / f"{name}.json").read_text())
    (tmp_path / "rank-1.trace").write_bytes((GOLDEN / f"{name}.trace").read_bytes())
    profile = analyse(tmp_path)
    assert profile.table("functions")["calls"].sum() == sum(cell["calls"] for cell in truth["cells"])
    assert profile.table("sizes")["calls"].sum() == sum(cell["calls"] for cell in truth["cells"])
    assert not profile.complete
