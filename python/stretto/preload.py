"""The preload libraries: which there are, where they stand, and what they say of themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stretto.errors import StrettoError

LIBRARIES = {
    "ompi": "libstretto_ompi.so",  # Open MPI 5
    "ompi4": "libstretto_ompi4.so",  # Open MPI 4
    "mpich": "libstretto_mpich.so",  # MPICH 4 and later, Intel MPI
    "mpich3": "libstretto_mpich3.so",  # MPICH 3, MVAPICH2 and others of that time
    "abi": "libstretto_abi.so",  # the MPI standard ABI
}
_SECONDS = 60.0
ARENA = "libstretto_arena.so"  # the allocator of --arena, for any MPI
LAUNCHER = "libstretto_launcher.so"  # for the launcher, which no rank gets
ABI_NAMES = {
    "ompi": "Open MPI 5",
    "ompi4": "Open MPI 4",
    "mpich": "MPICH ABI (MPICH, Intel MPI, MVAPICH)",
    "mpich3": "MPICH ABI, before MPI 4 (MPICH 3, MVAPICH2)",
    "abi": "MPI standard ABI",
}


def folder() -> Path:
    return Path(__file__).resolve().parent / "lib"


def find(abi: str) -> Path:
    """The library for an ABI. StrettoError where it is not installed."""
    path = folder() / LIBRARIES[abi]
    if not path.is_file():
        raise StrettoError(f"preload library {path} is missing: build it with ./dev build, or reinstall Stretto")
    return path


def _find_beside(library: Path, name: str) -> Path | None:
    """Another library, which stands beside the preload library `library` or is installed."""
    return next((path for path in (library.parent / name, folder() / name) if path.is_file()), None)


def find_arena(beside: Path) -> Path:
    """The arena's library. StrettoError where it is not."""
    path = _find_beside(beside, ARENA)
    if path is None:
        raise StrettoError(f"{folder() / ARENA} is missing: build it with ./dev build, or reinstall Stretto")
    return path


def find_for_launcher(beside: Path) -> Path | None:
    """The launcher's library; None where it is not, or cannot be preloaded: one can do without it."""
    path = _find_beside(beside, LAUNCHER)
    return None if path is None or set(": ") & set(str(path)) else path


def ask(path: Path, calls: Sequence[Sequence[Any]]) -> list[Any]:
    """What functions of a preload library answer (inside.py), without an MPI. StrettoError says why it cannot be loaded.

    It is preloaded into a process of its own, as it is made for: what it keeps per thread is too much to be loaded later.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("STRETTO_")}
    env["LD_PRELOAD"] = str(path)
    command = [sys.executable, "-I", str(Path(__file__).with_name("inside.py"))]
    try:
        done = subprocess.run(
            command, env=env, input=json.dumps(calls), capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        answers: list[Any] = json.loads(done.stdout) if done.returncode == 0 else []
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise StrettoError(f"{path} cannot be asked: {error}") from None
    if "cannot be preloaded" in done.stderr or len(answers) != len(calls):
        raise StrettoError(f"{path} cannot be loaded: {' '.join(done.stderr.split()) or done.returncode}")
    if None in answers:
        raise StrettoError(f"{path} is of another version of Stretto: build it with ./dev build, or reinstall Stretto")
    return answers


def any_library() -> Path:
    """One of the installed ones, where all give the same answer."""
    for name in LIBRARIES.values():
        if (folder() / name).is_file():
            return folder() / name
    raise StrettoError(f"no preload library in {folder()}: build them with ./dev build, or reinstall Stretto")


def settings() -> list[tuple[str, str, str, str]]:
    """The settings table of the library: (name, type, default, help) each."""
    (text,) = ask(any_library(), [["stretto_settings"]])
    rows = (line.split("\t") for line in text.splitlines() if line)
    return [(row[0], row[1], row[2], row[3]) for row in rows if len(row) == 4]
