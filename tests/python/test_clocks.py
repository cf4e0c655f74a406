"""Processes' clocks on one time line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trace_writer as writer
from stretto import trace
from stretto.profile.clocks import DRIFT, Timeline, timelines


def lines(folder: Path, processes: list[writer.Process]) -> tuple[list[Timeline], list[str]]:
    problems: list[str] = []
    return timelines([trace.read(process.write(folder)) for process in processes], problems), problems


def process(rank: int, *, node: int = 0, clocks: Any = (), **changes: Any) -> writer.Process:
    clock = writer.Clock() if not node else writer.Clock(offset=5 * 10**12, rate=1.9e9 * (1 + 4e-6))
    return writer.Process(rank=rank, size=2, node=node, clock=clock, clocks=list(clocks), **changes)


def differ(first: tuple[Timeline, writer.Process], second: tuple[Timeline, writer.Process]) -> float:
    """The largest difference of what two lines say of the same moments."""
    moments = np.linspace(0.0, 10.0, 101)
    seen = [line.at(one.clock.ticks(moments).astype(np.uint64)) for line, one in (first, second)]
    return float(np.abs(seen[0] - seen[1]).max())


def test_offset_and_drift_between_two_synchronisations(tmp_path: Path) -> None:
    both = [process(0, clocks=[(0.0, 0.0, 0, 0)]), process(1, node=1, clocks=[(0.05, 1e-6, 0, 0), (9.95, 2e-6, 0, 1)])]
    found, problems = lines(tmp_path, both)
    assert differ((found[0], both[0]), (found[1], both[1])) < 3e-9 and not problems
    assert found[0].error == 0.0 and found[1].error == pytest.approx(2e-6 + 0.05 * DRIFT, rel=1e-3)


def test_a_clock_that_changes_its_rate_is_followed_through_more_synchronisations(tmp_path: Path) -> None:
    both = [process(0), process(1, node=1, clocks=[(at, 1e-6, 0, 2) for at in (0.1, 3.0, 6.0, 9.9)])]
    found, _ = lines(tmp_path, both)
    line = found[1]
    assert len(line.ticks) == 4 and line.at(both[1].clock.ticks(6.0)) == pytest.approx(6.1, abs=2e-9)
    assert line.at(both[1].clock.ticks([11.0, -0.05]).astype(np.uint64)) == pytest.approx([11.1, 0.05], abs=5e-9)


def test_one_synchronisation_leaves_drift(tmp_path: Path) -> None:
    found, _ = lines(tmp_path, [process(0), process(1, node=1, clocks=[(0.0, 1e-6, 0, 0)])])
    assert found[1].error == pytest.approx(1e-6 + 10 * DRIFT)


def test_processes_of_a_node_read_one_counter(tmp_path: Path) -> None:
    """Those without an entry take the line of one that has some, or of rank 0."""
    three = [process(0), process(1), process(2, node=1, clocks=[(0.1, 1e-6, 0, 0), (9.9, 1e-6, 0, 1)]), process(3, node=1)]
    for number, one in enumerate(three):
        one.start = -0.1 - 0.01 * number
    three[2].reference_start = three[0].start
    found, problems = lines(tmp_path, three)
    for number in (1, 2, 3):
        assert differ((found[0], three[0]), (found[number], three[number])) < 5e-9
    assert [line.error for line in found[:2]] == [0.0, 0.0] and found[3].error == found[2].error and not problems


def test_clocks_that_were_never_compared(tmp_path: Path) -> None:
    found, problems = lines(tmp_path, [process(0), process(1, node=1)])
    assert math.isinf(found[1].error) and "never compared" in problems[0]
    assert found[1].at(5 * 10**12) == pytest.approx(0.1, abs=1e-3)  # by the wall clock


@pytest.mark.parametrize("bad", [(5.0, 2.0), (5.0, 9e9)])
def test_entries_that_do_not_fit_are_left_out(tmp_path: Path, bad: tuple[float, float]) -> None:
    one = process(1, node=1, clocks=[(0.1, 1e-6, 0, 0), (9.9, 1e-6, 0, 1)])
    raw = one.bytes()
    good = np.array([(int(one.clock.ticks(bad[0])), int(bad[1] * 1e9), 1000, 0, 2)], trace.CLOCK).tobytes()
    body = raw[writer.PAGE :] + writer.section(writer.SECTIONS["clock"], good, 32)
    path = tmp_path / "rank-1.trace"
    path.write_bytes(one.header(writer.PAGE + len(body)) + body)
    problems: list[str] = []
    (line,) = timelines([trace.read(path)], problems)
    assert "1 clock entries that do not fit" in problems[0] and len(line.ticks) == 2


def test_a_process_killed_before_its_first_calibration(tmp_path: Path) -> None:
    """Its own rate is unknown: what it shares the counter with tells it."""
    whole, cut = process(0), process(1)
    cut.finalize, cut.stage = cut.start, 1
    found, _ = lines(tmp_path, [whole, cut])
    assert differ((found[0], whole), (found[1], cut)) < 5e-9


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1)), max_size=6)
)
def test_hostile_entries_give_numbers(tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[int, int, int]]) -> None:
    one = process(1, node=1)
    path = tmp_path_factory.getbasetemp() / "rank-1.trace"
    raw = np.array([(ticks, ns, error, 0, 2) for ticks, ns, error in entries], trace.CLOCK).tobytes()
    body = one.bytes()[writer.PAGE :] + writer.section(writer.SECTIONS["clock"], raw, 32)
    path.write_bytes(one.header(writer.PAGE + len(body)) + body)
    (line,) = timelines([trace.read(path)], [])
    seconds = line.at(np.array([0, 1, 10**10, (1 << 64) - 1], np.uint64))
    assert np.isfinite(seconds).all() and line.error >= 0
