"""Runs the benchmark program on the ranks, and hands on what it writes while it runs."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stretto import job, meeting, preload, programs, session
from stretto.benchmark.model import Point, Results
from stretto.errors import StrettoError
from stretto.launchers import MPICH_SONAMES, Launcher, Style, identify

PROGRAMS = {
    "ompi": "stretto-bench-ompi",
    "ompi4": "stretto-bench-ompi",
    "mpich": "stretto-bench-mpich",
    "mpich3": "stretto-bench-mpich",
    "abi": "stretto-bench-abi",
}
SONAMES = {
    "ompi": ("libmpi.so.40",),
    "ompi4": ("libmpi.so.40",),
    "mpich": MPICH_SONAMES,
    "mpich3": MPICH_SONAMES,
    "abi": ("libmpi_abi.so.1", "libmpi_abi.so.0"),
}
# What the program can measure (src/bench/collectives.cpp).
COLLECTIVES = (
    *("barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall"),
    *("gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw"),
    *("reduce_scatter", "reduce_scatter_block", "scan", "exscan"),
)
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Choice:
    """Of the MPI, where the launcher does not tell; of the library that is measured; whether with Stretto at all."""

    abi: str | None = None
    library: Path | None = None  # the preload
    arena: bool | None = None
    plain: bool = False
    mpi_library: Path | None = None
    settings: tuple[tuple[str, str], ...] = ()  # more variables for the ranks


def find_program(abi: str, beside: Path | None = None) -> Path:
    """The benchmark program of an ABI, beside a preload library or installed. StrettoError where it is not."""
    for folder in (beside.parent if beside else preload.folder(), preload.folder()):
        path = folder / PROGRAMS[abi]
        if path.is_file():
            return path
    raise StrettoError(f"{preload.folder() / PROGRAMS[abi]} is missing: build it with ./dev build, or reinstall Stretto")


def find_mpi(launcher: Path, abi: str) -> str:
    """The MPI library that belongs to a launcher: below the same prefix, or the name by which the loader finds it."""
    return str(programs.library_beside(launcher, SONAMES[abi]) or SONAMES[abi][0])


def which_mpi(launcher: Launcher, choice: Choice) -> tuple[str, str]:
    """(ABI, library). srun belongs to no MPI: with it the one on PATH is meant, unless another is named."""
    home = launcher
    if not launcher.abi and not choice.mpi_library:
        home = _mpi_on_path() or launcher
    abi = choice.abi or home.abi or (programs.abi_of_library(choice.mpi_library) if choice.mpi_library else "")
    if not abi:
        raise StrettoError("which MPI is meant cannot be told: put its mpirun on PATH, or add --mpi-library FILE")
    return abi, str(choice.mpi_library or find_mpi(home.path, abi))


def _mpi_on_path() -> Launcher | None:
    for word in ("mpirun", "mpiexec"):
        with contextlib.suppress(StrettoError):
            return identify(word)
    return None


def results_folder(launcher: Launcher) -> tempfile.TemporaryDirectory[str]:
    """Where the first rank can write too: srun may start it on another machine, which is likely to see the working directory."""
    here = launcher.style is Style.SLURM and os.access(".", os.W_OK)
    return tempfile.TemporaryDirectory(prefix=".stretto-bench-", dir=Path.cwd() if here else None)


def run(
    command: Sequence[str], choice: Choice, arguments: Sequence[str], show: Callable[[Results, Point | None], None]
) -> Results:
    """Measures with `command` (a launcher and its options, no program). `show` is told of every line while the program runs.

    StrettoError: the launcher or the program failed, or a result was wrong.
    """
    launcher = identify(command[0])
    abi, mpi_library = which_mpi(launcher, choice)
    beside = choice.library.resolve() if choice.library else None
    words = [str(find_program(abi, beside)), "--mpi", mpi_library, *arguments]
    results = Results([*command])
    with results_folder(launcher) as folder:
        lines = Path(folder) / "lines.json"
        lines.touch()  # a network file system would remember for a while that there is none
        whole = [*command, *words, "--json", str(lines)]
        follower = _Follower(lines, results, show)
        outcome = _execute(launcher, whole, replace(choice, abi=abi), follower, Path(folder))
    if outcome.exit_code:
        raise StrettoError(f"the benchmark ended with exit code {outcome.exit_code}", outcome.exit_code)
    if not results.setup:
        where = "see the working directory" if launcher.style is Style.SLURM else "run on this machine"
        raise StrettoError(f"the benchmark wrote no results: do the ranks {where}?")
    return results


def _execute(launcher: Launcher, whole: list[str], choice: Choice, follower: _Follower, folder: Path) -> job.Outcome:
    environment = dict(os.environ)
    if choice.plain:
        with follower:
            return job.run(launcher.path, whole, environment)
    plan = session.plan(whole, "on", choice.abi, choice.library, choice.arena)
    # What is measured over nodes are not a communicator's first calls.
    prepared = {} if "STRETTO_NODES_AFTER" in environment else {"STRETTO_NODES_AFTER": "0"}
    plan = replace(plan, settings={**plan.settings, **prepared, **dict(choice.settings)})
    environment |= plan.launcher_environment()
    with meeting.held(plan.job_id, folder) as addresses, follower:
        return job.run(launcher.path, plan.rewritten(None, addresses), environment)


class _Follower:
    """Reads the program's lines as they come. What goes wrong in it is raised when it ends; what cannot be shown is kept all the
    same."""

    def __init__(self, path: Path, results: Results, show: Callable[[Results, Point | None], None]) -> None:
        self._path, self._results, self._show = path, results, show
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._read = 0
        self._error: StrettoError | None = None

    def __enter__(self) -> _Follower:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        if self._error:
            raise self._error

    def _follow(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are the main thread's
        try:
            while not self._done.wait(_POLL_SECONDS):
                self._take()
            self._take()
        except StrettoError as error:
            self._error = error

    def _take(self) -> None:
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        complete = text.rfind(b"\n") + 1
        self._read += complete
        for line in text[:complete].decode("utf-8", "replace").splitlines():
            point = self._results.take(line)
            if self._results.unshown is None:
                try:
                    self._show(self._results, point)
                except OSError as error:
                    self._results.unshown = error
