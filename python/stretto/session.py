"""One job under Stretto, from the user's command line to its summary."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stretto import analysis, elf, job, meeting, preload, programs
from stretto.errors import StrettoError
from stretto.launchers import Launcher, Style, identify
from stretto.rewrite import PRELOAD, merge, rewrite

_LOOKS, _BETWEEN_LOOKS = 5, 0.002  # at the number of processes that want a CPU; seconds


@dataclass(frozen=True, slots=True)
class Plan:
    """How a command will be run: its launcher, the preload library, and what is worth saying beforehand."""

    command: list[str]  # as the user wrote it
    launcher: Launcher
    abi: str
    library: Path
    accelerate: str  # "on" or "off"
    warning: str
    job_id: str = field(default_factory=job.job_id)
    more_libraries: tuple[Path, ...] = ()  # preloaded behind `library`
    settings: dict[str, str] = field(default_factory=dict)  # more variables for the ranks
    arena: Path | None = None  # the arena's library, where it is asked for
    in_launcher: Path | None = None  # preloaded into the launcher itself

    def rewritten(self, record_folder: Path | None, meeting_at: str = "") -> list[str]:
        """The command line as it is run. `meeting_at`: where the nodes of the job meet."""
        others = {**self._inherited(), "STRETTO_JOB": self.job_id, "STRETTO_ACCELERATE": self.accelerate, **self.settings}
        if meeting_at:
            others["STRETTO_MEETING"] = meeting_at
        if record_folder is not None:
            others["STRETTO_RECORD_DIR"] = str(record_folder)
        if self.arena is not None:
            others["STRETTO_ARENA"] = "on"
        arena = [self.arena] if self.arena is not None else []
        libraries = [str(path) for path in (self.library, *arena, *self.more_libraries)]
        return rewrite(self.launcher.style, self.command, libraries, others, os.environ)

    def launcher_environment(self) -> dict[str, str]:
        """What differs in the launcher's environment from this process's."""
        if self.in_launcher is None:
            return {}
        return {PRELOAD: merge(os.environ.get(PRELOAD, ""), str(self.in_launcher))}

    def shown(self) -> str:
        """What is run, as a shell would read it."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.launcher_environment().items()]
        return " ".join([*variables, shlex.join(self.rewritten(None))])

    def _inherited(self) -> dict[str, str]:
        """The user's settings, which Open MPI does not take to other nodes by itself; all nodes must have the same."""
        if self.launcher.style is not Style.OPENMPI:
            return {}
        return {name: value for name, value in os.environ.items() if name.startswith("STRETTO_")}

    def run(self, folder: Path) -> job.Outcome:
        """Runs the job to its end, with its records in `folder`."""
        with meeting.held(self.job_id, folder) as addresses:
            return job.run(self.launcher.path, self.rewritten(folder, addresses), {**os.environ, **self.launcher_environment()})


@dataclass(frozen=True, slots=True)
class Result:
    plan: Plan
    outcome: job.Outcome
    summary: analysis.Summary

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": analysis.SCHEMA,
            "command": self.plan.command,
            "exit_code": self.outcome.exit_code,
            "mpi": self.plan.abi,
            "launcher": str(self.plan.launcher.path),
            "launcher_version": self.plan.launcher.version,
            "accelerate": self.plan.accelerate,
            "arena": self.plan.arena is not None,
            "wall_seconds": self.outcome.wall_seconds,
            **analysis.as_json(self.summary),
        }


def plan(
    command: Sequence[str],
    accelerate: str | None,
    abi: str | None,
    library: Path | None,
    arena: bool | None = None,
    order: str | None = None,
    turns: int = 0,
) -> Plan:
    """What will be done for a command; None: decide by the launcher, the program and the environment."""
    if not command:
        raise StrettoError("nothing to run: write stretto run -- mpirun -n 4 PROGRAM")
    launcher = identify(command[0])
    program = programs.find_program(command[1:], letters=launcher.style is Style.SLURM)
    chosen, warning = (abi, "") if abi else _choose_abi(launcher, program)
    if library is not None and not library.is_file():
        raise StrettoError(f"preload library {library} is missing")
    path = library.resolve() if library is not None else preload.find(chosen)
    if damage := elf.damage(path):
        raise StrettoError(f"preload library {path} {damage}")
    mode = accelerate or os.environ.get("STRETTO_ACCELERATE") or "on"
    arena_library = preload.find_arena(path) if wants_arena(arena) else None
    settings = {"STRETTO_ORDER": order} if order else {}
    if turns:
        settings["STRETTO_TURNS"] = str(turns)
    in_launcher = preload.find_for_launcher(path) if mode == "on" and _parts_ranks(launcher) else None
    return Plan(
        list(command), launcher, chosen, path, mode, warning, settings=settings, arena=arena_library, in_launcher=in_launcher
    )


def wants_arena(asked: bool | None) -> bool:
    """As the option says; None: as the environment does."""
    return os.environ.get("STRETTO_ARENA") == "on" if asked is None else asked


def _parts_ranks(launcher: Launcher) -> bool:
    """Whether it may start each rank in a session of its own, where one that waits takes time from one that works; and whether
    that is to be prevented. Beside others that compute, one session for all ranks has the share of a single process."""
    sessions = os.environ.get("STRETTO_SESSIONS", "auto")
    return launcher.style is Style.HYDRA and (sessions == "shared" or (sessions == "auto" and not others_compute()))


def others_compute() -> bool:
    """Whether processes besides this one want CPUs that it may use, in all of a few looks."""
    elsewhere = (os.cpu_count() or 1) - len(os.sched_getaffinity(0))  # as many may run on other CPUs
    for _ in range(_LOOKS):
        try:
            running = int(Path("/proc/loadavg").read_text().split()[3].split("/")[0])
        except (OSError, ValueError, IndexError):
            return False
        if running - 1 <= elsewhere:
            return False
        time.sleep(_BETWEEN_LOOKS)
    return True


def _choose_abi(launcher: Launcher, program: Path | None) -> tuple[str, str]:
    """(ABI, warning). The program's own linkage decides where the launcher serves several ABIs."""
    if launcher.style is Style.SLURM:
        found = programs.loaded_abi(program) if program else ""
        if not found:
            raise StrettoError(f"which MPI {program or 'the program'} uses cannot be told: add --mpi ompi|ompi4|mpich|mpich3|abi")
        return found, ""
    linked = programs.linked_abi(program) if program else ""
    if linked == "abi":
        return "abi", ""
    if linked and linked != launcher.abi.rstrip("34"):
        families = {"ompi": "Open MPI", "mpich": "MPICH or a relative of it"}  # old and new programs look alike
        found, given = families.get(linked, linked), preload.ABI_NAMES[launcher.abi]
        said = f"{program} is linked with {found}, but {launcher.path} belongs to {given}: use the launcher of the program's MPI"
        return launcher.abi, said
    # An old launcher starts programs with newer libraries of its ABI too.
    if launcher.abi == "mpich3" and program and programs.loaded_abi(program) == "mpich":
        return "mpich", ""
    return launcher.abi, ""


def execute(chosen: Plan) -> Result:
    """Runs the job and reads what its ranks left, also when they were killed."""
    with job.record_folder() as folder:
        outcome = chosen.run(folder)
        records, problems = analysis.read_folder(folder)
    return Result(chosen, outcome, analysis.summarise(records, problems, outcome.end_ns))
