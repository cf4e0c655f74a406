"""One job profiled: its folder, what stands in job.json, and the libraries and settings its ranks get."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import shlex
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stretto import job, preload, running, session
from stretto.errors import StrettoError
from stretto.files import read_bytes

SCHEMA = 1  # of job.json; docs/commands.md describes it
JOB_FILE = "job.json"
NCCL_LIBRARY = "libstretto_nccl.so"
NCCL_DEFAULT_PLUGIN = "libnccl-profiler.so"
_OURS = ("rank-*.record", ".sent-*", "rank-*.trace", JOB_FILE, f".{JOB_FILE}.*", "report.html")
_MOST_FOLDERS = 100_000


@dataclass(frozen=True, slots=True)
class Options:
    trace: bool = False  # every call as an event, not only sums and a sample
    iterations: str = ""  # "A:B"
    iteration_calls: int = 0
    limit_mib: int | None = None

    def settings(self) -> dict[str, str]:
        """The ranks' variables. StrettoError: what was given makes no sense."""
        found = {"STRETTO_PROFILE": "full" if self.trace else "aggregate"}
        if self.iterations:
            parse_iterations(self.iterations)
            found["STRETTO_ITERATIONS"] = self.iterations
        if self.iteration_calls:
            found["STRETTO_ITERATION_CALLS"] = str(self.iteration_calls)
        if self.limit_mib is not None:
            found["STRETTO_TRACE_MIB"] = str(self.limit_mib)
        return found


def parse_iterations(text: str) -> tuple[int, int]:
    """The first and the last of "A:B". StrettoError: anything else."""
    match = re.fullmatch(r"(\d{1,9}):(\d{1,9})", text)
    if not match or int(match[1]) > int(match[2]):
        raise StrettoError(f"--iterations {text}: write two numbers A:B, the first and the last iteration wanted")
    return int(match[1]), int(match[2])


def with_profile(plan: session.Plan, options: Options) -> session.Plan:
    """The plan with what makes its ranks write traces, and NCCL's where its library is installed."""
    settings = options.settings()
    nccl = plan.library.parent / NCCL_LIBRARY
    if not nccl.is_file():
        nccl = preload.folder() / NCCL_LIBRARY
    libraries: tuple[Path, ...] = ()
    if nccl.is_file():
        libraries = (nccl,)
        settings |= _nccl_settings(plan, nccl)
    return replace(plan, settings={**plan.settings, **settings}, more_libraries=libraries)


def _nccl_settings(plan: session.Plan, library: Path) -> dict[str, str]:
    """NCCL loads one profiler plugin: Stretto's, which calls the user's, or else the one that NCCL would load unasked, if there
    is one. One named on the launcher's line is left alone."""
    name, following = "NCCL_PROFILER_PLUGIN", "STRETTO_NCCL_NEXT_PLUGIN"
    if any(name in word for word in plan.command):
        return {}
    users = os.environ.get(name, "") or os.environ.get(following, "") or NCCL_DEFAULT_PLUGIN
    return {name: str(library)} | ({following: users} if users.lower() != "none" and users != str(library) else {})


def make_folder(wanted: Path | None) -> Path:
    """An empty folder for the profile, its path absolute. An earlier profile in `wanted` is removed; anything else is not."""
    if wanted is None:
        return _next_folder(Path.cwd())
    folder = Path(os.path.abspath(wanted))  # noqa: PTH100 (links stay: other nodes may know the folder by this name only)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _empty(folder)
        probe = folder / f".stretto-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise StrettoError(f"{folder}: no profile can be written here: {error.strerror}") from None
    return folder


def _next_folder(parent: Path) -> Path:
    for number in range(1, _MOST_FOLDERS):
        folder = parent / f"stretto-profile-{number}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise StrettoError(f"{folder} cannot be made: {error.strerror} (-o names another place)") from None
        return folder
    raise StrettoError(f"{parent} holds {_MOST_FOLDERS} profiles: name a folder with -o")


def has_traces(folder: Path) -> bool:
    return next(folder.glob("rank-*.trace"), None) is not None


def drop_empty(folder: Path, keep_folder: bool) -> None:
    """Removes what a job without a trace left, since nothing can be shown of it. `keep_folder`: it was there before."""
    if has_traces(folder):
        return
    with contextlib.suppress(OSError):
        for path in _ours(folder):
            path.unlink()
        if not keep_folder:
            folder.rmdir()


def _ours(folder: Path) -> set[Path]:
    return {path for pattern in _OURS for path in folder.glob(pattern) if path.is_file() and not path.is_symlink()}


def _empty(folder: Path) -> None:
    present = set(folder.iterdir())
    if not present:
        return
    mine = _ours(folder)
    if not is_profile(folder) or present - mine:
        raise StrettoError(f"{folder} holds something other than a profile: name another folder with -o")
    facts = read_job(folder)
    if facts.get("exit_code") is None and running.is_alive(facts):
        raise StrettoError(f"{folder}: the job that writes this profile still runs (pid {facts.get('pid')})")
    for path in mine:
        path.unlink()


def is_profile(folder: Path) -> bool:
    return (folder / JOB_FILE).is_file() or has_traces(folder)


def read_job(folder: Path) -> dict[str, Any]:
    """What job.json says; nothing where it is missing or unreadable."""
    try:
        facts = json.loads(read_bytes(folder / JOB_FILE, 1 << 20))
    except (OSError, ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _write_job(folder: Path, facts: dict[str, Any]) -> None:
    """Whole or not at all: a reader may come at any moment."""
    part = folder / f".{JOB_FILE}.{os.getpid()}"
    try:
        part.write_text(json.dumps(facts, indent=2) + "\n")
        part.replace(folder / JOB_FILE)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise StrettoError(f"{folder / JOB_FILE} cannot be written: {error.strerror}") from None


def facts_before(plan: session.Plan, options: Options) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "job_id": plan.job_id,
        "command": shlex.join(plan.command),
        "mode": "full" if options.trace else "aggregate",
        "mpi": plan.abi,
        "launcher": str(plan.launcher.path),
        "launcher_version": plan.launcher.version,
        "accelerate": plan.accelerate,
        "settings": plan.settings,
        "started": datetime.datetime.now().astimezone().isoformat(timespec="milliseconds"),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "pid_start": running.start_time(os.getpid()),
        "cpus": {socket.gethostname(): len(os.sched_getaffinity(0))},
        "wall_seconds": None,
        "exit_code": None,
    }


@contextlib.contextmanager
def _described(folder: Path, facts: dict[str, Any]) -> Iterator[None]:
    """job.json stands before the job starts, and says how it ended however that was."""
    begin = time.monotonic()
    _write_job(folder, facts)
    try:
        yield
    except StrettoError as error:
        _write_job(folder, facts | {"wall_seconds": time.monotonic() - begin, "exit_code": error.exit_code})
        raise


def execute(plan: session.Plan, options: Options, folder: Path) -> job.Outcome:
    """Runs the job; its ranks leave their files in `folder`."""
    facts = facts_before(plan, options)
    with _described(folder, facts):
        outcome = plan.run(folder)
    with contextlib.suppress(StrettoError):  # a full disk: the traces tell nearly as much, and the exit code must be kept
        _write_job(folder, facts | {"wall_seconds": outcome.wall_seconds, "exit_code": outcome.exit_code})
    return outcome
