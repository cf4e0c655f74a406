"""Results, tables, pictures and choices of stretto bench and stretto tune, on made-up measurements."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import os
import re
from pathlib import Path
from typing import Any

import pytest

from stretto import bench_cli, launchers, preload, record
from stretto.benchmark import chooser, choosing, explain, pictures, program, rules_file, tables, tuning
from stretto.benchmark.choosing import Range
from stretto.benchmark.model import Point, Results
from stretto.benchmark.rules_file import RulesFile
from stretto.cli import main
from stretto.errors import StrettoError
from stretto.launchers import Launcher, Style
from stretto.profile_report.svg import Drawing

SETUP = {
    "kind": "setup",
    "library": "Open MPI v5.0.11, package: x",
    "ranks": 4,
    "cores": 2,
    "crowded": True,
    "pinned": False,
    "clock": "TSC",
    "stretto": "0.1.0",
    "accelerating": True,
    "why": "accelerating: 4 ranks",
    "tuning": {"path": "", "header": "tuned build=01 machine=02 mpi=03", "about": "A CPU; Open MPI v5.0.11"},
}


def side(us: float, **more: Any) -> dict[str, Any]:
    return {"median_us": us, "p10_us": us * 0.9, "p90_us": us * 1.2, "samples": 100, **more}


def line(collective: str, size: int, **sides: Any) -> str:
    times = {name: us if isinstance(us, dict) else side(us) for name, us in sides.items()}
    value = {"kind": "point", "collective": collective, "bytes": size, "ranks": 4, "mode": "single", "calls": 1}
    return json.dumps({**value, "floor_us": 0.5, "hop_ns": [100, 100], "wrong": 0, "sides": times})


def late(size: int, spread: float, mpi: float, pmpi: float) -> str:
    raster = [[0.0, 0.1, 12.0], [10.0, 10.1, 12.5]]
    sides = {name: side(us, exit_us=[us, us], raster=raster) for name, us in (("mpi", mpi), ("pmpi", pmpi))}
    value = json.loads(line("allreduce", size, **sides))
    shape = "last-delayed" if spread else "balanced"
    return json.dumps({**value, "shape": shape, "spread": spread, "unit_us": 5.0, "waiting_us": 2.5, "bound_us": 0.7})


def results(*lines: str) -> Results:
    found = Results(["mpirun", "-n", "4"])
    for one in (json.dumps(SETUP), *lines):
        found.take(one)
    return found


def points(**sides: list[float]) -> list[Point]:
    """At 8, 64, 512, ... bytes; NaN: that side cannot do the size."""
    count = len(next(iter(sides.values())))
    made = []
    for place in range(count):
        there = {name: values[place] for name, values in sides.items() if not math.isnan(values[place])}
        made.append(line("allreduce", 8 ** (place + 1), **there))
    return results(*made).points


def test_results_are_read_and_written_again() -> None:
    found = results(
        line("allreduce", 8, mpi=1.0, pmpi=2.0), json.dumps({"kind": "skipped", "collective": "scan", "bytes": 8, "why": "-"})
    )
    assert found.points[0].ratio == 0.5
    assert found.points[0].samples == 100
    written = found.as_json()
    assert written["schema"] == 1
    assert written["setup"]["ranks"] == 4
    assert written["points"][0]["sides"]["mpi"]["median_us"] == 1.0
    assert written["skipped"] == [{"collective": "scan", "bytes": 8, "why": "-"}]


@pytest.mark.parametrize("wrong", ["", "[]", "{", '{"kind": "point"}', '{"kind": "point", "collective": "x"}', "3"])
def test_a_line_that_does_not_read_is_one_error(wrong: str) -> None:
    with pytest.raises(StrettoError, match="does not read"):
        Results().take(wrong)


def test_table_has_both_sides_ratio_and_floor() -> None:
    (point,) = results(line("allreduce", 1024, mpi=1.25, pmpi=2.5)).points
    assert tables.header(point).split() == "allreduce bytes Stretto us p10 MPI us p10 ratio floor us samples".split()
    assert tables.row(point).split() == ["1024", "1.25", "1.12", "2.50", "2.25", "0.500", "0.500", "100"]
    assert len(tables.header(point)) == len(tables.row(point))


def test_table_of_one_side_has_no_ratio() -> None:
    (point,) = results(line("bcast", 8, mpi=1.25)).points
    assert tables.header(point).split() == "bcast bytes MPI us p10 floor us samples".split()
    assert "WRONG" not in tables.row(point)


def test_columns_stand_apart_whatever_the_algorithms_are_called() -> None:
    (point,) = results(line("allreduce", 8, mpi=1.0, pmpi=2.0, a_long_name_of_one=3.0)).points
    assert "p10  a_long_name_of_one us        p10" in tables.header(point)
    assert len(tables.header(point)) == len(tables.row(point))


def test_a_header_stands_again_where_an_algorithm_is_not_there_for_all_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    show = bench_cli._printer([])
    found = results()
    for one in (
        line("allreduce", 8, mpi=1.0, flat=2.0),
        line("allreduce", 16, mpi=1.0, flat=2.0),
        line("allreduce", 64, mpi=1.0),
    ):
        show(found, found.take(one))
    headers = [said for said in capsys.readouterr().out.splitlines() if "samples" in said]
    assert ["flat us" in header for header in headers] == [True, False]


def test_every_collective_that_is_counted_can_be_measured() -> None:
    assert set(program.COLLECTIVES) == {kind.lower() for kind in record.KINDS}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[program.Choice, list[str]]]:
    """What the benchmark program would have been told."""
    told: list[tuple[program.Choice, list[str]]] = []

    def run(_: object, choice: program.Choice, words: list[str], __: object) -> Results:
        told.append((choice, words))
        return results(line("allreduce", 8, mpi=1.0, pmpi=2.0))

    monkeypatch.setattr(program, "run", run)
    return told


def test_the_order_of_sums_is_told_to_the_ranks(measured: list[tuple[program.Choice, list[str]]]) -> None:
    assert main(["bench", "--order", "arrival", "--", "mpirun", "-n", "2"]) == 0
    assert main(["bench", "--", "mpirun", "-n", "2"]) == 0
    assert [choice.settings for choice, _ in measured] == [(("STRETTO_ORDER", "arrival"),), ()]


@pytest.mark.parametrize(
    ("shape", "told"), [("last-late", "last-delayed"), ("first-late", "first-delayed"), ("1-late", "1-late")]
)
def test_names_of_shapes(shape: str, told: str, measured: list[tuple[program.Choice, list[str]]]) -> None:
    assert main(["bench", "--arrival", shape, "--", "mpirun", "-n", "2"]) == 0
    words = measured[0][1]
    assert words[words.index("--arrival") + 1] == told


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--arrival", "9-late"], "--arrival 9-late: of 2 ranks at most 1 can be late"),
        (["--root", "2"], "--root 2: there are ranks 0 to 1"),
        (["--order", "arrival", "--plain"], "--order and --plain exclude one another"),
    ],
)
def test_what_cannot_be_measured_is_refused_before(
    options: list[str], said: str, measured: list[object], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *options, "--", "mpirun", "-n", "2"]) == 2
    assert capfd.readouterr().err == f"stretto: {said}\n"
    assert not measured


def test_table_under_an_arrival_pattern_has_delay_waiting_and_bound() -> None:
    (point,) = results(late(8, 2.0, 1.4, 2.8)).points
    assert tables.row(point).split() == "last-delayed x2 8 10.0 2.50 1.40 2.00 2.80 4.00 0.500 0.700 100".split()


def test_wrong_results_are_shouted() -> None:
    value = json.loads(line("scan", 8, mpi=1.0))
    found = results(json.dumps({**value, "wrong": 3}))
    assert "WRONG RESULTS" in tables.row(found.points[0])
    assert found.wrong == 1


def test_a_lone_point_of_a_curve_is_seen() -> None:
    drawing = Drawing(100, 50, "one point")
    drawing.curve([(10, 20)], "stretto")
    drawing.curve([], "mpi")
    assert re.findall(r' d="([^"]*)"', drawing.render()) == ["M6 20L14 20"]


def test_pictures_show_every_collective_and_escape_what_they_are_told() -> None:
    found = results(*(line("allreduce", size, mpi=size * 1e-3, pmpi=size * 2e-3) for size in (8, 64, 512)))
    found.setup["why"] = "<script>"
    text = pictures.as_svg(found)
    assert text.startswith("<svg")
    assert "allreduce: time of a call" in text
    assert text.count('<path class="stretto"') == 2
    assert "<script>" not in text
    page = pictures.as_html(found, ["a <b> line", "allreduce   Stretto us"])
    assert "a &lt;b&gt; line" in page
    assert "Stretto µs" in page
    assert "pre{overflow-x:auto" in page


def test_rates_have_a_logarithmic_axis() -> None:
    """The floor is many times what a call reaches: on an even axis the curves would lie on the ground."""
    found = results(*(line("allreduce", size, mpi=size * 1e-3, pmpi=size * 2e-3) for size in (1024, 65536)))
    found.points = [dataclasses.replace(point, floor=point.bytes * 1e-5) for point in found.points]
    _, rates = pictures.drawings(found)
    drawn = rates.render()
    high, middle, low = (
        float(re.findall(rf'class="{side}" d="M\S+ ([\d.]+)L', drawn)[0]) for side in ("floor", "stretto", "mpi")
    )
    assert high < middle < low
    assert middle - high == pytest.approx((270 - 44) * 2 / 3, abs=1), "100 and 1 GB/s of 0.1 to 100"


def test_pictures_under_an_arrival_pattern_are_gains_and_a_raster() -> None:
    found = results(*(late(size, spread, 1.0, 2.0) for size in (8, 64) for spread in (0, 10)))
    text = pictures.as_svg(found)
    assert "gain over the MPI library" in text
    assert "last-delayed x10" in text
    assert text.count('<rect class="after"') == 5  # the legend's and one for each rank and side
    assert "µs after the start" in text
    assert not re.search(r"\bus\b", text)


def test_too_little_for_a_picture() -> None:
    assert pictures.as_svg(results(line("barrier", 0, mpi=1.0, pmpi=2.0))) == ""


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


@pytest.mark.parametrize(
    ("text", "number"), [("8", 8), ("64K", 65536), ("1m", 1 << 20), ("2KiB", 2048), ("1G", 1 << 30), ("4KB", 4096)]
)
def test_sizes_of_questions(text: str, number: int) -> None:
    assert explain.parse_bytes(text) == number


@pytest.mark.parametrize("text", ["", "K", "1T", "-8", "8 K"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(StrettoError):
        explain.parse_bytes(text)


def test_libraries_of_which_the_same_is_to_be_said_are_told_of_together() -> None:
    class Asked(chooser.Chooser):
        built_in = "gatherv library=mpich staged\ngatherv mpi\n"
        tuned_path, header = None, ""

        def __init__(self) -> None:
            pass

        def explain(self, rules: str | None, question: chooser.Question) -> chooser.Answer:
            taken = rules is None and question.collective == "gatherv" and question.library == "mpich"
            return chooser.Answer("staged", 1) if taken else chooser.Answer("mpi", 2)

    gatherv = explain.explain(Asked(), chooser.Question("gatherv", 8, 2, False), {}, 2)[0]
    assert "  under any other MPI: the MPI library" in gatherv and "  under MPICH: staged" in gatherv
    alltoallv = explain.explain(Asked(), chooser.Question("alltoallv", 8, 2, False), {}, 2)[0]
    assert [line for line in alltoallv if "under" in line] == ["  under any MPI: the MPI library"]


@pytest.mark.parametrize(
    ("rules", "ranks", "said"),
    [
        ("allreduce flat\n", 2, ["the MPI library", "flat does no more than 1072 bytes, and no other rule holds", "line 1 of "]),
        ("allreduce mpi\n", 2, ["the MPI library", "line 1 of "]),
        ("bcast flat\n", 2, ["the MPI library", "no rule of "]),
        ("allreduce slices\n", 513, ["the MPI library", "Stretto takes at most 512 ranks of a node"]),
        ("", 2, ["is refused, and all is left to the MPI library: no rules in it"]),
        (
            "allreduce slices\nallreduce speed=7 flat\n",
            2,
            ["left to the MPI library: line 2: not a rule: speed=7 is no condition"],
        ),
    ],
)
def test_why_mpi_does_it_is_told(rules: str, ranks: int, said: list[str], tmp_path: Path) -> None:
    file = tmp_path / "my.rules"
    file.write_text(rules)
    question = chooser.Question("allreduce", 65536, ranks, False)
    asked = chooser.Chooser(preload.any_library())
    lines, _ = explain.explain(asked, question, {"STRETTO_RULES": str(file)}, 2)
    assert len(lines) == 1 + len(said)
    assert all(part in line for part, line in zip(said, lines[1:], strict=True)), lines


def test_nobody_is_told_to_tune_what_stretto_does_not_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    asked = chooser.Chooser(preload.any_library())
    told = {ranks: explain.explain(asked, chooser.Question("allreduce", 8, ranks, True), {}, 2)[0] for ranks in (512, 513)}
    assert ["would" in lines[-1] for lines in told.values()] == [True, False]


def test_first_calls_are_told_where_they_differ() -> None:
    class Asked(chooser.Chooser):
        built_in = "bcast handover\nreduce pair\nbcast fresh=yes direct\nreduce fresh=yes pair\n"
        tuned_path, header = None, ""

        def __init__(self) -> None:
            pass

        def explain(self, rules: str | None, question: chooser.Question) -> chooser.Answer:
            assert rules is None
            of_bcast = chooser.Answer("direct", 3) if question.fresh else chooser.Answer("handover", 1)
            of_reduce = chooser.Answer("pair", 4 if question.fresh else 2)
            return of_bcast if question.collective == "bcast" else of_reduce

    bcast = explain.explain(Asked(), chooser.Question("bcast", 8, 2, False), {}, 2)[0]
    assert bcast[-3:-1] == ["    a communicator's first calls: direct", "      line 3: bcast fresh=yes direct"]
    assert len(explain.explain(Asked(), chooser.Question("reduce", 8, 2, False), {}, 2)[0]) == 4


def test_what_was_not_measured_here_is_told_last(tmp_path: Path) -> None:
    class Asked(chooser.Chooser):
        built_in = "bcast handover\n"
        header = "tuned build=01 machine=02 mpi=00"
        tuned_path = tmp_path / "02-03.rules"

        def __init__(self) -> None:
            pass

        def explain(self, rules: str | None, _: chooser.Question) -> chooser.Answer:
            return chooser.Answer("handover", 4 if rules else 1)

    def told(environment: dict[str, str]) -> str:
        return explain.explain(Asked(), chooser.Question("bcast", 8, 3, False), environment, 4)[0][-1]

    last = "  nothing was measured for this on this machine: stretto tune -- mpirun -n 3 would"
    assert told({}) == last
    assert told({"STRETTO_RULES": "builtin"}) != last, "tuned rules would not be used"
    Asked.tuned_path.write_text(
        "# Rules measured by stretto tune\ntuned build=01 machine=02 mpi=03\n#   8 B: handover 1.00 us\nbcast handover\n"
    )
    assert told({}) != last
    stale = tmp_path / "stale.rules"
    stale.write_text("tuned build=09 machine=02 mpi=03\nbcast handover\n")
    question = chooser.Question("bcast", 8, 3, False)
    lines, refused = explain.explain(Asked(), question, {"STRETTO_RULES": str(stale)}, 4)
    assert refused and "is refused: measured with another build" in lines[-1]
    assert not explain.explain(Asked(), question, {"STRETTO_RULES": str(Asked.tuned_path)}, 4)[1]
    os.mkfifo(tmp_path / "pipe")
    lines, refused = explain.explain(Asked(), question, {"STRETTO_RULES": str(tmp_path / "pipe")}, 4)
    assert refused and "pipe: not a regular file" in lines[-1]


@pytest.mark.parametrize("sizes", ["3", "8,2048M", "0:8:2", "8:64:1"])
def test_sizes_that_no_rank_would_take(sizes: str) -> None:
    with pytest.raises(StrettoError, match="blocks have 4 bytes"):
        bench_cli._block_sizes(sizes)


@pytest.mark.parametrize(
    ("sizes", "count"), [("8", 1), ("8,1K,1M", 3), ("8:16M:2", 22), ("8:1M:4", 9), ("8:100:8", 2), ("8:4:2", 0)]
)
def test_sizes_are_counted(sizes: str, count: int) -> None:
    assert len(bench_cli._block_sizes(sizes)) == count


def test_a_stale_file_is_explained_away() -> None:
    own = "tuned build=01 machine=02 mpi=00"
    assert explain.why_refused("tuned build=01 machine=02 mpi=03", own) == ""
    assert "another build" in explain.why_refused("tuned build=00 machine=02 mpi=03", own)
    assert "another machine" in explain.why_refused("tuned build=01 machine=00 mpi=03", own)
    assert explain.why_refused("", own) == ""


def test_mpi_library_is_looked_for_beside_the_launcher(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    launcher = tmp_path / "bin" / "mpirun"
    launcher.touch()
    assert program.find_mpi(launcher, "mpich") == "libmpi.so.12"
    (tmp_path / "lib" / "x86_64-linux-gnu").mkdir(parents=True)
    (tmp_path / "lib" / "x86_64-linux-gnu" / "libmpi.so.40").touch()
    assert program.find_mpi(launcher, "ompi") == str(tmp_path / "lib" / "x86_64-linux-gnu" / "libmpi.so.40")


def test_with_srun_the_mpi_on_path_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = Launcher(tmp_path / "srun", Style.SLURM, "", "Slurm")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(StrettoError, match="put its mpirun on PATH"):
        program.which_mpi(launcher, program.Choice())
    named = program.Choice(mpi_library=tmp_path / "libmpi.so.40")
    assert program.which_mpi(launcher, named) == ("ompi", str(tmp_path / "libmpi.so.40"))
    for path in ("bin/mpirun", "bin/prterun", "lib/libmpi.so.40"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch(mode=0o755)
    assert program.which_mpi(launcher, program.Choice()) == ("ompi", str(tmp_path / "lib" / "libmpi.so.40"))
    assert program.which_mpi(launcher, named) == ("ompi", str(tmp_path / "libmpi.so.40"))


def test_results_of_ranks_elsewhere_lie_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for style, here in ((Style.SLURM, True), (Style.HYDRA, False)):
        with program.results_folder(Launcher(tmp_path / "x", style, "", "")) as folder:
            assert (Path(folder).parent == tmp_path) is here
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "ranks"),
    [
        ("mpirun -n 4", 4),
        ("mpiexec -np 16 --x", 16),
        ("mpirun -c 3", 3),
        ("mpirun --np=5", 5),
        ("srun --ntasks 3", 3),
        ("/opt/srun -c 2 -n4", 4),
        ("srun --ntasks=2", 2),
    ],
)
def test_number_of_ranks_of_a_command(command: str, ranks: int) -> None:
    assert launchers.ranks_of(command.split()) == ranks
    with pytest.raises(StrettoError):
        launchers.ranks_of(["mpirun", "--hostfile", "x"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("bench allreduce", "put -- before the launcher"),
        ("tune", "put -- before the launcher"),
        ("bench pigeons -- mpirun -n 2", "pigeons cannot be measured"),
        ("tune pigeons -- mpirun -n 2", "pigeons cannot be measured"),
        ("bench --sizes 8,x -- mpirun -n 2", "cannot use --sizes 8,x"),
        ("bench --sizes 8:16 -- mpirun -n 2", "cannot use --sizes 8:16"),
        ("tune --sizes, -- mpirun -n 2", "--sizes,"),
        ("bench --arrival sometimes -- mpirun -n 2", "cannot use --arrival sometimes"),
        ("bench --arrival 0-late -- mpirun -n 2", "cannot use --arrival 0-late"),
        ("bench --arrival random --spread much -- mpirun -n 2", "cannot use --spread much"),
        ("bench --mode fast -- mpirun -n 2", "cannot use --mode fast"),
        ("bench --mode loops -- mpirun -n 2", "cannot use --mode loops"),
        ("bench --spread 3 -- mpirun -n 2", "--spread needs --arrival"),
        ("bench --arrival random --replay x -- mpirun -n 2", "exclude one another"),
        ("bench --picture x.png -- mpirun -n 2", ".svg or a .html"),
        ("bench allreduce -- mpirun -n 2 /bin/cat x.py", "no program belongs there (cat): stretto bench brings"),
        ("tune -- mpirun --oversubscribe -n 2 /bin/echo", "no program belongs there (echo): stretto tune brings its own"),
        ("tune --explain allreduce 8 -n 0", "greater than or equal to 1 (stretto tune --help)"),
        ("bench --sices 8 -- mpirun -n 2", "(stretto bench --help)"),
        ("tune --explain", "write stretto tune --explain"),
        ("tune --explain allreduce much", "much is no size"),
    ],
)
def test_mistakes_are_one_line(
    words: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_without_stretto_there_is_one_side_and_no_ratio() -> None:
    """A single rank has nobody to talk to: both sides are the MPI library, told once and in whole words."""
    found = results(line("allreduce", 1024, mpi=1.25, pmpi=2.5))
    setup = {**found.setup, "ranks": 1, "cores": 1, "crowded": False, "stretto": "0.1.0", "why": "a single rank has nobody"}
    found.setup = setup | {"accelerating": False}
    told = tables.setup_line(found.setup)
    assert ", 1 rank on 1 core" in told and told.endswith("Stretto 0.1.0 takes no part: a single rank has nobody")
    (point,) = (one.as_run(found.accelerating) for one in found.points)
    assert tables.header(point).split() == "allreduce bytes MPI us p10 floor us samples".split()
    assert point.median("pmpi") == 2.5 and point.ratio is None
    assert found.points[0].as_run(True) == found.points[0]
    (alone,) = (one.as_run(False) for one in results(line("bcast", 8, mpi=3.0)).points)
    assert alone.median("pmpi") == 3.0


@pytest.mark.parametrize(
    "words", ["mpirun -n 2", "mpirun --map-by core -n 2", "mpirun -n 2 numactl --localalloc", "mpirun ./bind"]
)
def test_a_launcher_with_its_options_alone(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that binds the ranks may stand before the benchmark."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bind").write_text('#!/bin/sh\nexec taskset -c 1 "$@"\n')
    (tmp_path / "bind").chmod(0o755)

    class Context:
        obj = words.split()

    assert bench_cli._without_program(Context(), "bench") == words.split()  # type: ignore[arg-type]
