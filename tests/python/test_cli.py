"""The commands from outside: errors in one line, dry runs, and runs with a launcher made of shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from records import example
from stretto import __version__
from stretto.cli import main

ROOT = Path(__file__).resolve().parents[2]

# A launcher of the Open MPI kind: sets the variables of its -x options, then copies prepared records and ends as told.
LAUNCHER = """#!/bin/sh
[ "$1" = --version ] && { echo "mpirun (Open MPI) 5.0.0"; exit 0; }
while [ "$1" = -x ]; do export "$2"; shift 2; done
echo "preload=$LD_PRELOAD accelerate=$STRETTO_ACCELERATE job=${#STRETTO_JOB}${STRETTO_TURNS:+ turns=$STRETTO_TURNS}"
cp "$(dirname "$0")"/records/* "$STRETTO_RECORD_DIR" 2>/dev/null
exit "${1:-0}"
"""


@pytest.fixture
def launcher(tmp_path: Path) -> Path:
    path = tmp_path / "mpirun"
    path.write_text(LAUNCHER)
    path.chmod(0o755)
    (tmp_path / "records").mkdir()
    for rank in (0, 1):
        (tmp_path / "records" / f"rank-{rank}.record").write_bytes(example(rank, 2).bytes())
    return path


def words(launcher: Path, library: Path, *options: str) -> list[str]:
    return ["run", "--library", str(library), *options, "--", str(launcher)]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "mpirun", "-n", "2", "a"], "put -- before the launcher"),
        (["compare", "mpirun", "a"], "put -- before the launcher"),
        (["run", "mpirun", "--", "a"], "put -- before the launcher"),
        (["run", "--"], "nothing after --"),
        (["run", "--", "no-such-launcher", "a"], "launcher no-such-launcher not found"),
        (["run", "--bogus", "--", "mpirun"], "No such option: --bogus (stretto run --help)"),
        (["report", "--bogus", "x"], "(stretto report --help)"),
        (["doctor", "--bogus"], "(stretto doctor --help)"),
        (["doctor", "--prefix", "/no/such"], "/no/such is no folder"),
        (["run", "--accelerate", "maybe", "--", "mpirun"], "maybe"),
        (["bogus"], "No such command 'bogus'. (stretto --help)"),
    ],
)
def test_mistakes_give_one_line(arguments: list[str], text: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) != 0
    err = capfd.readouterr().err
    assert text in err
    assert err.startswith("stretto: ")
    assert err.count("\n") == 1


def test_missing_library_and_unwritable_summary(
    launcher: Path, library: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(words(launcher, tmp_path / "absent.so")) == 2
    assert "is missing" in capfd.readouterr().err
    cut = tmp_path / "cut.so"
    cut.write_bytes(library.read_bytes()[:-1])
    assert main(words(launcher, cut)) == 2
    out, err = capfd.readouterr()
    assert "cut" in err and err.count("\n") == 1 and out == "", "its ranks would die of bus errors"
    assert main(words(launcher, library, "--summary", str(tmp_path / "no" / "file.json"))) == 2
    out, err = capfd.readouterr()
    assert "cannot write" in err
    assert out == "", "found out before the program runs"


def test_a_summary_that_cannot_be_written_leaves_the_exit_code(
    launcher: Path, library: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*words(launcher, library, "--summary", "/dev/full"), "7"]) == 7
    err = capfd.readouterr().err
    assert "cannot write /dev/full" in err and "Allreduce" in err
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert main([*words(launcher, library, "--summary", str(tmp_path / "link")), "7"]) == 7
    assert (tmp_path / "link").is_symlink() and json.loads((tmp_path / "target").read_text())["exit_code"] == 7
    with Path("/dev/full").open("wb") as full:
        line = [sys.executable, "-m", "stretto", *words(launcher, library, "--summary", str(tmp_path / "s")), "7"]
        assert subprocess.run(line, stderr=full, env={"PYTHONPATH": str(ROOT / "python")}, timeout=60).returncode == 7
    assert json.loads((tmp_path / "s").read_text())["exit_code"] == 7


def test_a_pipe_for_the_summary_gets_it_whole(launcher: Path, library: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", str(tmp_path / "pipe")], stdout=subprocess.PIPE) as reader:
        assert main([*words(launcher, library, "--summary", str(tmp_path / "pipe")), "0"]) == 0
        assert json.loads(reader.communicate(timeout=60)[0])["exit_code"] == 0


def test_letters_that_the_terminal_lacks_are_spelled_out(launcher: Path, library: Path) -> None:
    line = [sys.executable, "-m", "stretto", *words(launcher, library, "--dry-run"), "ä"]
    env = {"PYTHONPATH": str(ROOT / "python"), "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"}
    done = subprocess.run(line, env=env, capture_output=True, timeout=60)
    assert done.returncode == 0 and done.stdout.endswith(b" '\\xe4'\n") and done.stderr == b""


def test_dry_run_prints_and_runs_nothing(launcher: Path, library: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*words(launcher, library, "--dry-run"), "7", "a b"]) == 0
    out = capfd.readouterr().out
    assert out.startswith(f"{launcher} -x LD_PRELOAD={library} -x STRETTO_JOB=")
    assert out.endswith("7 'a b'\n")


@pytest.mark.parametrize("code", [0, 5])
def test_run(code: int, launcher: Path, library: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "summary.json"
    assert main([*words(launcher, library, "--summary", str(target), "--accelerate", "off"), str(code)]) == code
    out, err = capfd.readouterr()
    assert out == f"preload={library} accelerate=off job=32\n"
    assert "Allreduce" in err
    found = json.loads(target.read_text())
    assert (found["schema"], found["exit_code"], found["mpi"], found["command"]) == (1, code, "ompi", [str(launcher), str(code)])
    assert found["collectives"]["Allreduce"]["accelerated_share"] == pytest.approx(0.8)
    assert found["collectives"]["Allreduce"]["declines"] == {"user op": 4}
    assert [(rank["rank"], rank["pid"], rank["state"]) for rank in found["ranks"]] == [
        (0, 100, "finalized"),
        (1, 101, "finalized"),
    ]
    assert found["functions"]["MPI_Send"]["calls"] == 6


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_the_exit_code_holds_where_a_standard_stream_is_closed(
    closed: str, launcher: Path, library: Path, tmp_path: Path
) -> None:
    target = tmp_path / "summary.json"
    script = f'exec "$@" {closed}'
    command = [sys.executable, "-m", "stretto", *words(launcher, library, "--summary", str(target)), "5"]
    done = subprocess.run(["sh", "-c", script, "sh", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 5
    assert "Traceback" not in done.stderr
    assert ("Allreduce" in done.stderr) == ("2>&-" not in closed)
    assert json.loads(target.read_text())["exit_code"] == 5


def test_compare(launcher: Path, library: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "comparison.json"
    assert main(["compare", "-n", "2", "--library", str(library), "--json", str(target), "--", str(launcher), "0"]) == 0
    out = capfd.readouterr().out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("preload=")] == [
        "accelerate=off",
        "accelerate=on",
        "accelerate=off",
        "accelerate=on",
    ]
    assert "accelerated / plain" in out
    found = json.loads(target.read_text())
    assert [run["mode"] for run in found["runs"]] == ["plain", "accelerated"] * 2
    assert found["ratios"]["collective_seconds"] == pytest.approx(1.0)


def test_compare_in_one_run(launcher: Path, library: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "turns.json"
    command = ["compare", "--one-run", "--turn", "7", "--library", str(library), "--json", str(target), "--", str(launcher)]
    assert main([*command, "0"]) == 1
    assert "no turns to compare" in capfd.readouterr().err
    # Fours of turns whose ratios are 1/2, 3/5, 2/5; two ticks per ns.
    fours = [((5, 1), (10, 2), (10, 2), (5, 1)), ((7, 1), (9, 2), (11, 2), (5, 3)), ((400, 1), (1000, 2), (1000, 2), (400, 1))]
    turns = [(ticks << 10, inside << 10, 0) for four in fours for ticks, inside in four]
    for rank in (0, 1):
        builder = example(rank, 2, turn_calls=7, turns=[*turns, (1, 1, 0)])
        (tmp_path / "records" / f"rank-{rank}.record").write_bytes(builder.bytes())
    assert main([*command, "0"]) == 0
    out = capfd.readouterr().out
    assert "accelerate=on" in out
    assert "turns=7" in out
    assert "0.500 ± 0.10" in out
    found = json.loads(target.read_text())
    assert (found["calls"], found["fours"]) == (7, 3)
    assert found["seconds"]["plain"] == pytest.approx(10.5 * 2**20 * 0.5e-9)
    assert found["wall"]["value"] == pytest.approx(0.5)
    assert found["wall"]["error"] == pytest.approx(1.2533 * 1.4826 * 0.1 / 3**0.5)
    assert found["mpi"]["value"] == pytest.approx(0.5)
    assert found["bytes"] is None
    assert main([*command, "3"]) == 3


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (lambda _: (1000, 1000), ""),
        (lambda i: (1500 + i % 3, 1000), "held 1.50 ± 0.00 times the bytes"),
        (lambda i: (4000 if i % 3 == 1 else 1, 4000 if i % 3 == 2 else 1), "held 1.33 ±"),  # rarely any,
        (lambda i: (10**9 if i == 0 else 1000, 1000), ""),  # sent out once, at the start
        (lambda _: (0, 1000), ""),
    ],
)
def test_turns_that_held_other_work(
    held: Callable[[int], tuple[int, int]],
    said: str,
    launcher: Path,
    library: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    target = tmp_path / "turns.json"
    turns = []
    for i in range(20):
        ours, theirs = held(i)
        turns += [(400, 1, ours), (500, 1, theirs), (500, 1, theirs), (400, 1, ours)]
    for rank in (0, 1):
        builder = example(rank, 2, turn_calls=7, turns=turns)
        (tmp_path / "records" / f"rank-{rank}.record").write_bytes(builder.bytes())
    assert main(["compare", "--one-run", "--library", str(library), "--json", str(target), "--", str(launcher), "0"]) == 0
    out, err = capfd.readouterr()
    assert "0.800 ± 0.000" in out
    assert said in err
    assert ("turns held" in err) == bool(said)
    if "1.50" in said:
        found = json.loads(target.read_text())
        assert found["per_byte"]["value"] == pytest.approx(0.8 / 1.501, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "said"), [(["--turn", "3"], "--turn needs --one-run"), (["--one-run", "-n", "2"], "leave out -n")]
)
def test_options_of_the_other_way_to_compare(
    options: list[str], said: str, launcher: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *options, "--", str(launcher), "0"]) == 2
    assert said in capfd.readouterr().err


@pytest.mark.parametrize("one_run", [False, True])
def test_a_program_without_mpi_cannot_be_compared(
    one_run: bool, launcher: Path, library: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for record in (launcher.parent / "records").iterdir():
        record.unlink()
    options = ["--one-run"] if one_run else ["-n", "1"]
    assert main(["compare", *options, "--library", str(library), "--", str(launcher), "0"]) == 1
    out, err = capfd.readouterr()
    assert "accelerated / plain" not in out
    (said,) = [line for line in err.splitlines() if line.startswith("stretto: ")]
    assert said.startswith("stretto: no MPI call was seen (exit code 0): the program may not use MPI")
    assert "PyTorch's gloo" in said


def test_compare_stops_at_a_failure(launcher: Path, library: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--library", str(library), "--", str(launcher), "9"]) == 9
    assert "run 1 (plain) failed with exit code 9" in capfd.readouterr().err


def test_doctor(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    found = {one["name"]: one for one in json.loads(capfd.readouterr().out)["findings"]}
    assert {"CPUs", "CMA", "yama", "XPMEM", "/dev/shm", "memfd", "huge pages", "GPUs"} <= set(found)
    assert all(one["advice"] for one in found.values() if one["state"] == "missing" and not one["name"].startswith("preload"))
    assert "could not be examined" not in str(found)


def test_version(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capfd.readouterr().out == f"stretto {__version__}\n"
    assert f'#define STRETTO_VERSION "{__version__}"' in (ROOT / "include" / "stretto" / "stretto.h").read_text()
