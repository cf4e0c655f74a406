"""The preload libraries: which there are, where they stand, and what they say of themselves."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from stretto.errors import StrettoError

LIBRARIES = {
    "ompi": "libstretto_ompi.so",  # Open MPI 5
    "ompi4": "libstretto_ompi4.so",  # Open MPI 4
    "mpich": "libstretto_mpich.so",  # MPICH, Intel MPI, MVAPICH
    "abi": "libstretto_abi.so",  # the MPI standard ABI
}
ARENA = "libstretto_arena.so"  # the allocator of --arena, for any MPI
ABI_NAMES = {
    "ompi": "Open MPI 5",
    "ompi4": "Open MPI 4",
    "mpich": "MPICH ABI (MPICH, Intel MPI, MVAPICH)",
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


def find_arena(beside: Path) -> Path:
    """The arena's library, which stands beside the preload library `beside` or is installed. StrettoError where it is not."""
    for path in (beside.parent / ARENA, folder() / ARENA):
        if path.is_file():
            return path
    raise StrettoError(f"{folder() / ARENA} is missing: build it with ./dev build, or reinstall Stretto")


def load(path: Path) -> ctypes.CDLL:
    """Loads a preload library into this process, without an MPI. StrettoError says why it cannot be."""
    try:
        return ctypes.CDLL(str(path), mode=os.RTLD_LAZY | os.RTLD_LOCAL)
    except OSError as error:
        raise StrettoError(f"{path} cannot be loaded: {error}") from None


def settings() -> list[tuple[str, str, str, str]]:
    """The settings table of the library: (name, type, default, help) each."""
    for abi in LIBRARIES:
        if (folder() / LIBRARIES[abi]).is_file():
            return _settings(load(folder() / LIBRARIES[abi]))
    raise StrettoError(f"no preload library in {folder()}: build them with ./dev build, or reinstall Stretto")


def _settings(library: ctypes.CDLL) -> list[tuple[str, str, str, str]]:
    function = library.stretto_settings
    function.restype = ctypes.c_char_p
    text = (function() or b"").decode("utf-8", "replace")
    rows = (line.split("\t") for line in text.splitlines() if line)
    return [(row[0], row[1], row[2], row[3]) for row in rows if len(row) == 4]
