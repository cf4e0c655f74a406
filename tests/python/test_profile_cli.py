"""stretto profile and dump from outside, with a launcher made of shell and prepared traces."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from records import example as record_example
from stretto import profiling
from stretto.cli import main
from stretto.errors import StrettoError
from trace_writer import make_example

ROOT = Path(__file__).resolve().parents[2]

# A launcher of the Open MPI kind: tells its variables and what job.json says, copies prepared traces, and ends as told.
LAUNCHER = """#!/bin/sh
[ "$1" = --version ] && { echo "mpirun (Open MPI) 5.0.0"; exit 0; }
while [ "$1" = -x ]; do export "$2"; shift 2; done
env | grep -E '^(STRETTO|NCCL|LD_PRELOAD)' | sort
cp "$(dirname "$0")"/traces/rank-* "$STRETTO_RECORD_DIR" 2>/dev/null
cp "$STRETTO_RECORD_DIR/job.json" "$(dirname "$0")/job-before.json"
exit "${1:-0}"
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    for name in ("NCCL_PROFILER_PLUGIN", "LD_PRELOAD", "STRETTO_ACCELERATE"):
        monkeypatch.delenv(name, raising=False)
    return here


@pytest.fixture
def launcher(tmp_path: Path) -> Path:
    path = tmp_path / "mpirun"
    path.write_text(LAUNCHER)
    path.chmod(0o755)
    make_example(tmp_path / "traces", ranks=2, iterations=20)
    (tmp_path / "traces" / "job.json").unlink()
    return path


def words(launcher: Path, library: Path, *options: str) -> list[str]:
    return ["profile", "--library", str(library), *options, "--", str(launcher)]


def told(out: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in out.splitlines() if re.match(r"[A-Z_]+=", line))


def test_nothing_stays_of_a_job_that_cannot_be_started(
    tmp_path: Path, library: Path, place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/sh\n")
    srun.chmod(0o755)
    (place / "a,b").mkdir()
    monkeypatch.chdir(place / "a,b")
    assert main(["profile", "--library", str(library), "--mpi", "ompi", "--", str(srun), "true"]) == 2
    assert "comma" in capfd.readouterr().err
    assert not list((place / "a,b").iterdir())


@pytest.mark.parametrize("code", [0, 5])
def test_a_run(code: int, launcher: Path, library: Path, place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*words(launcher, library, "--trace", "--limit", "64"), str(code)]) == code
    out, err = capfd.readouterr()
    ranks = told(out)
    assert ranks["STRETTO_PROFILE"] == "full"
    assert ranks["STRETTO_TRACE_MIB"] == "64"
    assert ranks["STRETTO_ACCELERATE"] == "off"
    assert ranks["LD_PRELOAD"].split(":")[0] == str(library)
    assert ranks["STRETTO_RECORD_DIR"] == str(place / "stretto-profile-1")
    assert "STRETTO_ITERATIONS" not in ranks
    assert "stretto report stretto-profile-1" in err
    assert "2 ranks on 2 nodes" in err
    before = json.loads((launcher.parent / "job-before.json").read_text())
    after = json.loads((place / "stretto-profile-1" / "job.json").read_text())
    assert (before["exit_code"], before["wall_seconds"], before["pid"]) == (None, None, os.getpid())
    assert (after["exit_code"], after["mode"], after["mpi"], after["schema"]) == (code, "full", "ompi", 1)
    assert after["wall_seconds"] > 0
    assert after["job_id"] == ranks["STRETTO_JOB"]
    assert after["command"] == f"{launcher} {code}"
    assert next(iter(after["cpus"].values())) == len(os.sched_getaffinity(0))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", after["started"])


def test_settings_of_the_iterations(launcher: Path, library: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = ("--iterations", "10:12", "--iteration-calls", "6", "--accelerate", "on")
    assert main(words(launcher, library, *options)) == 0
    ranks = told(capfd.readouterr().out)
    assert (ranks["STRETTO_PROFILE"], ranks["STRETTO_ITERATIONS"], ranks["STRETTO_ITERATION_CALLS"]) == (
        "aggregate",
        "10:12",
        "6",
    )
    assert ranks["STRETTO_ACCELERATE"] == "on"


def test_each_run_has_its_own_folder(launcher: Path, library: Path, place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert [main(words(launcher, library)) for _ in range(2)] == [0, 0]
    assert sorted(path.name for path in place.iterdir()) == ["stretto-profile-1", "stretto-profile-2"]
    capfd.readouterr()


def test_an_earlier_profile_is_replaced_and_nothing_else_is(
    launcher: Path, library: Path, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = place / "out"
    assert main(words(launcher, library, "-o", "out")) == 0
    (target / "rank-9.trace").write_bytes(b"of a rank that the next run lacks")
    assert main(words(launcher, library, "-o", "out")) == 0
    assert not (target / "rank-9.trace").exists()
    (target / "thesis.tex").write_text("ten years")
    capfd.readouterr()
    assert main(words(launcher, library, "-o", "out")) == 2
    out, err = capfd.readouterr()
    assert "something other than a profile" in err
    assert out == "", "found out before the program runs"
    assert sorted(path.suffix for path in target.glob("*")) == sorted([".json", ".tex", ".trace", ".trace"])


def test_a_profile_that_is_being_written_is_left_alone(library: Path, launcher: Path, place: Path) -> None:
    target = place / "out"
    assert main(words(launcher, library, "-o", "out")) == 0
    facts = profiling.read_job(target)
    (target / "job.json").write_text(json.dumps(facts | {"exit_code": None}))
    with pytest.raises(StrettoError, match="still runs"):
        profiling.make_folder(target)
    (target / "job.json").write_text(json.dumps(facts | {"exit_code": None, "pid_start": "1"}))
    profiling.make_folder(target)
    assert list(target.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--iterations", "5"], "A:B"),
        (["--iterations", "7:5"], "A:B"),
        (["--limit", "0"], "limit"),
        (["--iteration-calls", "-1"], "iteration-calls"),
        (["-o", "/proc/none"], "no profile can be written"),
        (["-o", "/dev/null"], "no profile can be written"),
    ],
)
def test_mistakes_give_one_line(
    options: list[str], message: str, launcher: Path, library: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(words(launcher, library, *options)) == 2
    out, err = capfd.readouterr()
    assert message in err
    assert err.startswith("stretto: ")
    assert err.count("\n") == 1
    assert out == ""


def test_dashes_and_dry_run(launcher: Path, library: Path, place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "mpirun", "a"]) == 2
    assert "put -- before the launcher" in capfd.readouterr().err
    assert main(words(launcher, library, "--dry-run", "--trace")) == 0
    assert "-x STRETTO_PROFILE=full" in capfd.readouterr().out
    assert list(place.iterdir()) == []


def test_the_command_starts_without_the_heavy_libraries() -> None:
    code = "import sys, stretto.cli; print(*sorted({'numpy', 'polars', 'rich.table', 'stretto.profile'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT / "python")}, stdout=subprocess.PIPE, text=True
    )
    assert done.stdout == "\n"


def test_nccl_is_traced_where_its_library_is(
    launcher: Path, library: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = library.parent / "libstretto_nccl.so"
    plugin.write_bytes(b"")
    assert main(words(launcher, library)) == 0
    ranks = told(capfd.readouterr().out)
    assert ranks["LD_PRELOAD"] == f"{library}:{plugin}"
    assert ranks["NCCL_PROFILER_PLUGIN"] == str(plugin)
    monkeypatch.setenv("NCCL_PROFILER_PLUGIN", "libinspector.so")
    assert main([*words(launcher, library), "0", "NCCL_PROFILER_PLUGIN=mine"]) == 0
    assert told(capfd.readouterr().out)["NCCL_PROFILER_PLUGIN"] == "libinspector.so", "what the user's line says stays"
    assert main(["run", "--library", str(library), "--", str(launcher)]) == 0
    assert told(capfd.readouterr().out)["LD_PRELOAD"] == str(library)


@pytest.mark.parametrize(
    ("users", "before", "following"),
    [
        (None, None, "libnccl-profiler.so"),
        ("", None, "libnccl-profiler.so"),
        ("libinspector.so", None, "libinspector.so"),
        ("none", None, None),
        ("NONE", None, None),
        (None, "none", "none"),
        (None, "libinspector.so", "libinspector.so"),
        ("own", None, None),
    ],
)
def test_the_users_nccl_plugin_follows(
    users: str | None,
    before: str | None,
    following: str | None,
    launcher: Path,
    library: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plugin = library.parent / "libstretto_nccl.so"
    plugin.write_bytes(b"")
    for name, value in (("NCCL_PROFILER_PLUGIN", users), ("STRETTO_NCCL_NEXT_PLUGIN", before)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, str(plugin) if value == "own" else value)
    assert main(words(launcher, library)) == 0
    ranks = told(capfd.readouterr().out)
    assert ranks["NCCL_PROFILER_PLUGIN"] == str(plugin)
    assert ranks.get("STRETTO_NCCL_NEXT_PLUGIN") == following


@pytest.mark.parametrize(("options", "left"), [([], []), (["-o", "new"], []), (["-o", "mine"], ["mine"])])
def test_a_run_without_traces_says_so_and_leaves_nothing(
    options: list[str], left: list[str], launcher: Path, library: Path, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(launcher.parent / "traces")
    for name in left:
        (place / name).mkdir()
    assert main([*words(launcher, library, *options), "3"]) == 3
    err = capfd.readouterr().err
    (said,) = [line for line in err.splitlines() if line.startswith("stretto: ")]
    assert said.startswith("stretto: no MPI call was seen (exit code 3): ")
    assert sorted(path.name for path in place.rglob("*")) == left


@pytest.mark.parametrize("failure", [ValueError("boom"), KeyboardInterrupt()])
def test_a_report_that_fails_costs_no_exit_code(
    failure: BaseException, launcher: Path, library: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> None:
        raise failure

    monkeypatch.setattr("stretto.profile_cli._analyse", fail)
    assert main([*words(launcher, library), "7"]) == 7
    err = capfd.readouterr().err
    assert "the report" in err
    assert "stretto-profile-1" in err
    assert "Traceback" not in err


def test_a_launcher_that_cannot_start_leaves_a_folder_that_says_so(
    launcher: Path, library: Path, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    launcher.write_text("#!/no/such/interpreter\n")
    (launcher.parent / "prterun").write_text("")
    assert main(words(launcher, library)) == 126
    assert profiling.read_job(place / "stretto-profile-1")["exit_code"] == 126
    assert "cannot be started" in capfd.readouterr().err


# A launcher that waits, with a "rank" below it that has the variables in its environment.
WAITING = """#!/bin/sh
[ "$1" = --version ] && { echo "mpirun (Open MPI) 5.0.0"; exit 0; }
while [ "$1" = -x ]; do export "$2"; shift 2; done
cp "$(dirname "$0")"/traces/rank-* "$STRETTO_RECORD_DIR" 2>/dev/null
sleep 300 &
trap 'kill $!' TERM
wait
"""


@pytest.fixture
def job(request: pytest.FixtureRequest, launcher: Path, library: Path, place: Path) -> Iterator[subprocess.Popen[str]]:
    """A job that runs under the command named by the test."""
    launcher.write_text(WAITING)
    if request.param == "run":
        shutil.rmtree(launcher.parent / "traces")
        (launcher.parent / "traces").mkdir()
        for rank in (0, 1):
            (launcher.parent / "traces" / f"rank-{rank}.record").write_bytes(record_example(rank, 2, stage=1).bytes())
    command = [sys.executable, "-m", "stretto", request.param, "--library", str(library), "--", str(launcher), "-n", "2", "a"]
    env = os.environ | {"PYTHONPATH": str(ROOT / "python"), "TMPDIR": str(place)}
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
    until = time.monotonic() + 60
    while not list(place.glob("*/rank-*")) and time.monotonic() < until:
        time.sleep(0.02)
    yield process
    process.send_signal(signal.SIGTERM)
    process.wait(60)


@pytest.mark.parametrize("job", ["profile"], indirect=True)
def test_dump_finds_a_running_job(job: subprocess.Popen[str], place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = place / "stretto-profile-1"
    facts = profiling.read_job(folder)
    assert facts["pid"] == job.pid
    launchers = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    for name in (str(folder), str(job.pid), launchers[0], facts["job_id"], facts["job_id"][:8]):
        assert main(["dump", name]) == 0
        out = capfd.readouterr().out
        assert out.startswith(f"{folder}: running"), name
        assert "Calls and time" in out
    assert main(["dump", "1" + facts["job_id"]]) == 2
    assert facts["job_id"][:8] in capfd.readouterr().err, "it names what runs"


@pytest.mark.parametrize("job", ["run"], indirect=True)
def test_dump_of_a_job_that_keeps_counts(job: subprocess.Popen[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(job.pid)]) == 0
    out = capfd.readouterr().out
    assert "keeps counts only" in out
    assert "Allreduce" in out


def test_dump_of_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("99999999", "no-such-job", str(tmp_path / "absent"), str(tmp_path / "empty")):
        assert main(["dump", name]) == 2
        err = capfd.readouterr().err
        assert err.startswith("stretto: ")
        assert err.count("\n") == 1
