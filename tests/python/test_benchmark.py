"""Results, tables and pictures of stretto bench, and what it refuses, on made-up measurements."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from benchmark_lines import late, line, results
from stretto import bench_cli, bench_options, launchers, record
from stretto.benchmark import explain, pictures, program, tables
from stretto.benchmark.model import Results
from stretto.cli import main
from stretto.errors import StrettoError
from stretto.launchers import Launcher, Style
from stretto.profile_report.svg import Drawing


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


@pytest.mark.parametrize("sizes", ["3", "8,2048M", "0:8:2", "8:64:1"])
def test_sizes_that_no_rank_would_take(sizes: str) -> None:
    with pytest.raises(StrettoError, match="blocks have 4 bytes"):
        bench_options.block_sizes(sizes)


@pytest.mark.parametrize(
    ("sizes", "count"), [("8", 1), ("8,1K,1M", 3), ("8:16M:2", 22), ("8:1M:4", 9), ("8:100:8", 2), ("8:4:2", 0)]
)
def test_sizes_are_counted(sizes: str, count: int) -> None:
    assert len(bench_options.block_sizes(sizes)) == count


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
        ("bench allreduce", "put -- before the launcher: stretto bench [OPTIONS] -- mpirun -n 4\n"),
        ("tune", "put -- before the launcher: stretto tune [OPTIONS] -- mpirun -n 4\n"),
        ("tune --", "nothing after --: write stretto tune [OPTIONS] -- mpirun -n 4\n"),
        ("tune --output /tmp -- mpirun -n 2", "cannot write /tmp: Is a directory"),
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

    assert bench_options.without_program(Context(), "bench") == words.split()  # type: ignore[arg-type]
