"""`stretto run` with real launchers and the real preload libraries, as built by ./dev build."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
STRETTO = ROOT / ".venv" / "bin" / "stretto"
LAUNCHERS = {"openmpi": ["mpirun", "--oversubscribe"], "mpich": ["mpiexec"]}
PRELOADS = {"openmpi": "libstretto_ompi.so", "mpich": "libstretto_mpich.so"}

COUNT = """
import numpy, sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
x = numpy.full(1000, comm.rank + 1.0)
y = numpy.empty_like(x)
for _ in range(10):
    comm.Allreduce(x, y)
assert (y == sum(range(1, comm.size + 1))).all()
"""
KILL = COUNT + "\nimport os, time\nos.kill(os.getpid(), 9) if comm.rank == 1 else time.sleep(60)\n"
SLEEP = COUNT + "\nimport time\nopen(sys.argv[1] + f'/up-{comm.rank}', 'w').close()\ntime.sleep(60)\n"


@pytest.fixture(params=sorted(LAUNCHERS))
def mpi(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name = str(request.param)
    if not (ROOT / ".mpi" / name).is_dir() or not (ROOT / "python" / "stretto" / "lib" / PRELOADS[name]).is_file():
        pytest.skip(f"needs ./dev setup and ./dev build: .mpi/{name}, {PRELOADS[name]}")
    for variable in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(variable, "1")
    monkeypatch.setenv("OMPI_MCA_pml", "ob1")
    monkeypatch.setenv("OMPI_MCA_btl", "self,sm")
    monkeypatch.setenv("MPIR_CVAR_DEVICE_COLLECTIVES", "none")
    monkeypatch.delenv("CHECKOUT_ROOT", raising=False)
    return name


def command(mpi: str, ranks: int, program: str, *arguments: str) -> list[str]:
    bin_folder = ROOT / ".mpi" / mpi / "bin"
    launcher, *options = LAUNCHERS[mpi]
    return [str(bin_folder / launcher), *options, "-n", str(ranks), str(bin_folder / "python"), "-c", program, *arguments]


def run(tmp_path: Path, words: list[str], *options: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    summary = tmp_path / "summary.json"
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    whole = [str(STRETTO), "run", "--summary", str(summary), *options, "--", *words]
    done = subprocess.run(whole, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert not list(tmp_path.glob("stretto-run-*")), "the records are removed"
    return done, json.loads(summary.read_text())


def test_calls_are_counted_and_accelerated(mpi: str, tmp_path: Path) -> None:
    done, found = run(tmp_path, command(mpi, 3, COUNT))
    assert done.returncode == 0, done.stderr
    assert found["collectives"]["Allreduce"]["calls"] == 30
    assert found["collectives"]["Allreduce"]["accelerated_share"] == 1.0
    assert found["collectives"]["Allreduce"]["bytes"] == 30 * 8000
    assert [(rank["rank"], rank["state"], rank["accelerating"]) for rank in found["ranks"]] == [
        (number, "finalized", True) for number in range(3)
    ]
    assert "Allreduce" in done.stderr


def test_observed_only(mpi: str, tmp_path: Path) -> None:
    done, found = run(tmp_path, command(mpi, 2, COUNT), "--accelerate", "off")
    assert done.returncode == 0, done.stderr
    allreduce = found["collectives"]["Allreduce"]
    assert (allreduce["calls"], allreduce["accelerated_calls"]) == (20, 0)
    assert sum(allreduce["declines"].values()) == 20


def test_a_killed_rank_is_named_and_its_counts_kept(mpi: str, tmp_path: Path) -> None:
    done, found = run(tmp_path, command(mpi, 2, KILL))
    assert done.returncode != 0
    states = {rank["rank"]: rank for rank in found["ranks"]}
    assert states[1]["state"] == "initialised"
    assert f"rank 1 (pid {states[1]['pid']}) did not finish" in done.stderr
    assert found["collectives"]["Allreduce"]["calls"] == 20


def test_a_program_without_mpi_is_noticed(mpi: str, tmp_path: Path) -> None:
    words = command(mpi, 2, "")[:-3]
    # MPICH's launcher now and then dies of SIGPIPE where all ranks end at once.
    done, found = run(tmp_path, [*words, "sh", "-c", "sleep 0.3; exit 3"])
    assert done.returncode == 3
    assert "no MPI call was seen" in done.stderr
    assert found["exit_code"] == 3


def test_mpmd_and_the_users_own_preload(mpi: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    libm = next(Path(line.split()[-1]) for line in Path("/proc/self/maps").read_text().splitlines() if "/libm." in line)
    monkeypatch.setenv("LD_PRELOAD", str(libm))
    show = COUNT + "\nimport os\nos.write(1, os.environb[b'LD_PRELOAD'] + b'\\n')\n"
    words = command(mpi, 1, show)
    tail = words[len(LAUNCHERS[mpi]) :]
    done, found = run(tmp_path, [*words, ":", *tail])
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == [f"{libm}:{ROOT / 'python/stretto/lib' / PRELOADS[mpi]}"] * 2
    assert found["world_size"] == 2
    assert found["collectives"]["Allreduce"]["accelerated_calls"] == 20


def test_a_signal_ends_the_job_and_the_summary_still_comes(mpi: str, tmp_path: Path) -> None:
    words = [str(STRETTO), "run", "--", *command(mpi, 2, SLEEP, str(tmp_path))]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}) as process:
        deadline = time.monotonic() + 60
        while len(list(tmp_path.glob("up-*"))) < 2 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "2 ranks" in err
    assert "rank 0 (pid " in err


ROWS_THEN_COLUMNS = """
import numpy
from mpi4py import MPI
world = MPI.COMM_WORLD
x, y = numpy.ones(10), numpy.ones(10)
for colour in (world.rank // 2, world.rank % 2):
    comm = world.Split(colour, world.rank)
    for _ in range(3000):  # of which few are compared
        comm.Allreduce(x, y)
    comm.Free()
    world.Barrier()
"""


FEW_CALLS = """
from mpi4py import MPI
import numpy
x, y = numpy.ones(10), numpy.ones(10)
for _ in range(300):
    MPI.COMM_WORLD.Allreduce(x, y)
"""


def test_arrivals_of_a_short_job_are_compared_at_its_end(mpi: str, tmp_path: Path) -> None:
    done, summary = run(tmp_path, command(mpi, 2, FEW_CALLS))
    assert done.returncode == 0, done.stderr
    assert [one["ranks"] for one in summary["arrivals"]] == [[0, 1]]


CELLS_LATER = """
from mpi4py import MPI
import numpy
world = MPI.COMM_WORLD
x, y = numpy.ones(8192), numpy.ones(8192 * world.size)
for _ in range(2):
    world.Iallgather(x, y).Wait()
    world.Barrier()
"""


def test_nonblocking_calls_wait_for_a_blocking_one_to_make_cells(mpi: str, tmp_path: Path) -> None:
    done, summary = run(tmp_path, command(mpi, 2, CELLS_LATER))
    assert done.returncode == 0, done.stderr
    found = summary["collectives"]["Allgather"]
    assert (found["declines"], found["accelerated_calls"]) == ({"communicator not prepared": 2}, 2)


def test_communicators_that_follow_one_another_have_arrivals_of_their_own(mpi: str, tmp_path: Path) -> None:
    done, summary = run(tmp_path, command(mpi, 4, ROWS_THEN_COLUMNS))
    assert done.returncode == 0, done.stderr
    found = {tuple(one["ranks"]) for one in summary["arrivals"]}
    assert {(0, 1), (2, 3), (0, 2), (1, 3)} <= found, summary["arrivals"]
