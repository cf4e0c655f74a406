"""What stretto tune chooses and writes, on made-up measurements."""

from __future__ import annotations

import datetime
import json
import math
import os
from pathlib import Path

import pytest

from benchmark_lines import SETUP, line, points, results
from stretto.benchmark import choosing, program, rules_file, tuning
from stretto.benchmark.choosing import Range
from stretto.benchmark.model import Point, Results
from stretto.benchmark.rules_file import RulesFile
from stretto.errors import StrettoError


def ranges(found: list[Range]) -> list[tuple[str, int | None]]:
    return [(one.algorithm, one.until) for one in found]


NEVER = math.nan


def test_each_range_gets_its_best() -> None:
    found = choosing.choose(points(pmpi=[9, 9, 9, 1], flat=[1, 1, 5, NEVER], slices=[4, 4, 2, 3]), 4)
    assert ranges(found) == [("flat", 181), ("slices", 1448), ("mpi", None)]
    assert [point.bytes for point in found[1].points] == [512]


def test_a_hair_is_not_worth_a_rule() -> None:
    assert ranges(choosing.choose(points(pmpi=[9] * 5, a=[1, 1, 1.02, 1, 1], b=[2, 2, 1, 2, 2]), 4)) == [("a", None)]
    assert ranges(choosing.choose(points(pmpi=[9] * 5, a=[1, 1, 1.5, 1, 1], b=[2, 2, 1, 2, 2]), 4)) == [
        ("a", 181),
        ("b", 1448),
        ("a", None),
    ]


def test_an_algorithm_is_not_chosen_where_it_cannot_run() -> None:
    assert ranges(choosing.choose(points(pmpi=[9, 9], flat=[1, NEVER]), 4)) == [("flat", 22), ("mpi", None)]


@pytest.mark.parametrize(
    ("collective", "expected"),
    [
        ("allgather", [("a", 22), ("mpi", None)]),
        ("alltoall", [("a", 88), ("mpi", None)]),  # rules count the blocks for all 4 ranks
        ("gatherv", [("a", None)]),  # rules know no size
    ],
)
def test_sizes_are_those_that_rules_know(collective: str, expected: list[tuple[str, int | None]]) -> None:
    made = results(line(collective, 8, pmpi=9.0, a=1.0), line(collective, 64, pmpi=1.0, a=2.0)).points
    assert ranges(choosing.choose(made, 4)) == expected


def test_best_choice_is_found_as_by_trying_all() -> None:
    """The dynamic programming against every possible path."""
    import itertools
    import random

    random.seed(1)
    for _ in range(50):
        times = {name: [random.choice([1.0, 1.03, 1.1, 1.5, 3.0]) for _ in range(5)] for name in ("pmpi", "a", "b")}
        made = points(**times)

        def cost(path: tuple[str, ...], made: list[Point] = made) -> float:
            switches = sum(one != other for one, other in itertools.pairwise(path))
            return switches * choosing.SWITCH + sum(choosing._cost(point, name) for point, name in zip(made, path, strict=True))

        least = min(cost(path) for path in itertools.product(times, repeat=5))
        found = tuple(choosing._cheapest(made, list(times), choosing.SWITCH))
        assert cost(found) == pytest.approx(least)


BUILT_IN = "allreduce flat\n"


def test_rules_are_written_below_what_was_measured(tmp_path: Path) -> None:
    found = results(line("allreduce", 8, pmpi=9.0, flat=1.0), line("barrier", 0, pmpi=1.0, flat=2.0))
    done = tuning.tune(found, BUILT_IN, False, tmp_path / "r", datetime.date(2026, 1, 2))
    assert done.text.splitlines()[:3] == [
        "# Rules measured by stretto tune",
        "# for A CPU; Open MPI v5.0.11",
        SETUP["tuning"]["header"],
    ]  # type: ignore[index]
    assert "# measured allreduce ranks=4 crowded=yes arena=no on 2026-01-02\n#   8 B: flat 1.00 us, mpi 9.00\n" in done.text
    assert "\nallreduce ranks=4 crowded=yes arena=no  flat\n" in done.text
    assert "\nbarrier ranks=4 crowded=yes arena=no  mpi\n" in done.text
    assert done.text.endswith(BUILT_IN)
    tuning.write(done)
    assert (tmp_path / "r").read_text() == done.text
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_rules_over_nodes_are_of_nodes_and_ranks(tmp_path: Path) -> None:
    found = results(line("allreduce", 8, pmpi=9.0, leader=1.0))
    found.setup = {**found.setup, "nodes": 2}
    done = tuning.tune(found, BUILT_IN, False, tmp_path / "r", datetime.date(2026, 1, 2))
    assert "\nallreduce nodes=2 ranks=4  leader\n" in done.text


def test_later_measurements_replace_their_own_block_alone(tmp_path: Path) -> None:
    path = tmp_path / "r"
    tuning.write(
        tuning.tune(
            results(line("allreduce", 8, pmpi=9.0, flat=1.0), line("bcast", 8, pmpi=9.0, flat=1.0)),
            BUILT_IN,
            False,
            path,
            datetime.date(2026, 1, 2),
        )
    )
    again = results(line("allreduce", 8, pmpi=1.0, flat=9.0))
    done = tuning.tune(again, BUILT_IN, False, path, datetime.date(2026, 1, 3))
    assert "allreduce ranks=4 crowded=yes arena=no  mpi" in done.text
    assert "allreduce ranks=4 crowded=yes arena=no  flat" not in done.text
    assert "bcast ranks=4 crowded=yes arena=no  flat" in done.text
    arena = tuning.tune(again, BUILT_IN, True, path, datetime.date(2026, 1, 3))
    assert "allreduce ranks=4 crowded=yes arena=no  flat" in arena.text
    assert "allreduce ranks=4 crowded=yes arena=yes  mpi" in arena.text


def test_later_measurements_over_nodes_replace_the_earlier(tmp_path: Path) -> None:
    path = tmp_path / "r"
    one_node = tuning.tune(results(line("bcast", 8, pmpi=9.0, flat=1.0)), BUILT_IN, False, path, datetime.date(2026, 1, 1))
    tuning.write(one_node)
    for algorithm in ("leader", "rsa"):
        found = results(line("allreduce", 8, pmpi=9.0, **{algorithm: 1.0}))
        found.setup = {**found.setup, "nodes": 2}
        tuning.write(tuning.tune(found, BUILT_IN, False, path, datetime.date(2026, 1, 2)))
    text = path.read_text()
    assert "\nallreduce nodes=2 ranks=4  rsa\n" in text and "leader" not in text
    assert "\nbcast ranks=4 crowded=yes arena=no  flat\n" in text


def test_measurements_of_another_build_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "r"
    old = RulesFile("tuned build=00 machine=02 mpi=03", "x", BUILT_IN)
    old.put("bcast", "ranks=4 crowded=yes arena=no", "2026-01-01", ["bcast ranks=4 crowded=yes arena=no  flat"])
    rules_file.write(path, old.text())
    done = tuning.tune(results(line("allreduce", 8, pmpi=1.0, flat=9.0)), BUILT_IN, False, path, datetime.date(2026, 1, 2))
    assert "bcast" not in done.text
    path.unlink()
    os.mkfifo(path)
    assert (
        tuning.tune(results(line("allreduce", 8, pmpi=1.0, flat=9.0)), BUILT_IN, False, path, datetime.date(2026, 1, 2)).kept == 0
    )


def test_nothing_is_tuned_without_stretto(tmp_path: Path) -> None:
    found = results(line("allreduce", 8, pmpi=1.0, flat=9.0))
    found.setup = {**found.setup, "accelerating": False, "why": "a single rank"}
    with pytest.raises(StrettoError, match="a single rank"):
        tuning.tune(found, BUILT_IN, False, tmp_path / "r", datetime.date(2026, 1, 2))
    with pytest.raises(StrettoError, match="no home"):
        tuning.tune(results(line("allreduce", 8, pmpi=1.0)), BUILT_IN, False, None, datetime.date(2026, 1, 2))


def test_what_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StrettoError, match="cannot write"):
        rules_file.write(tmp_path / "file" / "below", "x")
    with pytest.raises(StrettoError, match="cannot write"):
        rules_file.check_writable(tmp_path / "file" / "below")
    rules_file.check_writable(tmp_path / "new" / "rules")
    assert not list((tmp_path / "new").iterdir())


def test_what_cannot_be_shown_is_kept(tmp_path: Path) -> None:
    def show(*_: object) -> None:
        raise BrokenPipeError

    lines = tmp_path / "lines"
    lines.write_text("".join(f"{one}\n" for one in (json.dumps(SETUP), line("bcast", 8, pmpi=1.0), line("bcast", 16, pmpi=1.0))))
    found = Results()
    with program._Follower(lines, found, show):
        pass
    assert len(found.points) == 2 and isinstance(found.unshown, BrokenPipeError)
