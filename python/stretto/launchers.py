"""Which launcher a command begins with, and which MPI it belongs to."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from stretto import programs
from stretto.errors import StrettoError


class Style(Enum):
    """How a launcher is told to set environment variables on the ranks only."""

    OPENMPI = "openmpi"  # -x NAME=value, in every context of an MPMD line
    HYDRA = "hydra"  # -genv NAME value, once
    SLURM = "slurm"  # --export=ALL,NAME=value,...


@dataclass(frozen=True, slots=True)
class Launcher:
    path: Path
    style: Style
    abi: str  # "ompi", "ompi4", "mpich", "mpich3"; "" where the launcher does not tell (Slurm)
    version: str  # as far as it is known without asking, or as it says itself


KNOWN_NAMES = ("mpirun", "mpiexec", "mpiexec.hydra", "mpirun.openmpi", "mpirun.mpich", "orterun", "prterun", "srun")
_QUEUES = {  # they start no ranks; what the script or the shell they start says does
    "sbatch": "write stretto run before srun or mpirun in the script",
    "salloc": "write it behind: salloc ... stretto run -- srun PROGRAM",
}
MPICH_SONAMES = ("libmpi.so.12", "libmpich.so.12")
_VERSION_SECONDS = 10.0


def locate(word: str) -> Path:
    """The launcher's file, from PATH unless the word has a slash. StrettoError where there is none."""
    found = shutil.which(word)
    if found is None:
        raise StrettoError(f"launcher {word} not found: give its path, or put it on PATH", 127)
    return Path(found)


def identify(word: str) -> Launcher:
    """The launcher behind `word`: by its resolved name, by the files beside it, and last by what --version says."""
    path = locate(word)
    if path.name in _QUEUES:
        raise StrettoError(f"{path.name} asks for nodes and starts no ranks: {_QUEUES[path.name]}")
    launcher = _by_name(path) or _by_neighbours(path) or _by_version(path)
    library = programs.library_beside(path, MPICH_SONAMES) if launcher.style is Style.HYDRA else None
    return replace(launcher, abi=programs.abi_of_library(library)) if library else launcher


def _names(path: Path) -> list[str]:
    """The names along the chain of links, such as mpirun -> /etc/alternatives/mpirun -> mpirun.openmpi -> orterun."""
    names = [path.name]
    for _ in range(16):
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
        names.append(path.name)
    return names


def _by_name(path: Path) -> Launcher | None:
    for name in _names(path):
        if name == "srun":
            return Launcher(path, Style.SLURM, "", "Slurm")
        if "hydra" in name or name.endswith(".mpich"):
            return Launcher(path, Style.HYDRA, "mpich", "Hydra")
        if name in ("prterun", "prun"):
            return Launcher(path, Style.OPENMPI, "ompi", "Open MPI 5")
    return None


def _by_neighbours(path: Path) -> Launcher | None:
    """From the one kind of process manager installed beside an mpirun or mpiexec; None where there are several or none."""
    if path.name not in ("mpirun", "mpiexec"):
        return None
    folder = Path(os.path.realpath(path)).parent
    openmpi5 = (folder / "prterun").exists()
    openmpi4 = (folder / "orterun").exists() and not openmpi5
    hydra = (folder / "mpiexec.hydra").exists() or (folder / "hydra_pmi_proxy").exists()
    if hydra and not openmpi4 and not openmpi5:
        return Launcher(path, Style.HYDRA, "mpich", "Hydra")
    if openmpi5 and not hydra:
        return Launcher(path, Style.OPENMPI, "ompi", "Open MPI 5")
    if openmpi4 and not hydra:
        return Launcher(path, Style.OPENMPI, "ompi4", "Open MPI 4")
    return None


def version_text(path: Path) -> str:
    """The first lines of what `path --version` prints; empty where it fails, hangs or cannot run."""
    try:
        done = subprocess.run(
            [str(path), "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout[:4096].decode("utf-8", "replace")


def said_version(path: Path) -> str:
    """ "Open MPI 5.0.11", "Hydra 4.0.2", "Slurm 23.02.6", "PRRTE 3.0.2" as --version tells it; empty for anything else."""
    text = version_text(path)
    for pattern, name in (
        (r"\((?:Open MPI|OpenRTE)\) ([\w.]+)", "Open MPI"),
        (r"(?:PRRTE|PRTE)\)? *v?([\w.]+)", "PRRTE"),
        (r"HYDRA[\s\S]*?Version:\s+([\w.]+)", "Hydra"),
        (r"Intel\(R\) MPI Library.*?Version ([\w.]+)", "Intel MPI"),
        (r"^slurm\S* ([\w.]+)", "Slurm"),
    ):
        match = re.search(pattern, text)
        if match:
            return f"{name} {match[1]}"
    return ""


def _by_version(path: Path) -> Launcher:
    said = said_version(path)
    name, _, number = said.rpartition(" ")
    if name == "Open MPI":
        return Launcher(path, Style.OPENMPI, "ompi4" if number.split(".")[0] in "1234" else "ompi", said)
    if name == "PRRTE":
        return Launcher(path, Style.OPENMPI, "ompi", "Open MPI 5")
    if name in ("Hydra", "Intel MPI"):
        return Launcher(path, Style.HYDRA, "mpich", said)
    if name == "Slurm":
        return Launcher(path, Style.SLURM, "", said)
    raise StrettoError(
        f"{path} is no launcher that Stretto knows (Open MPI, MPICH or Intel MPI's Hydra, Slurm's srun); with a script that "
        "calls one of these, put stretto run -- before it there; with another launcher, set LD_PRELOAD on the ranks yourself "
        "(stretto doctor shows the libraries)"
    )


def is_srun(word: str) -> bool:
    return Path(word).name == "srun"


def ranks_of(command: Sequence[str]) -> int:
    """How many ranks a launcher's command asks for. StrettoError: it does not say."""
    options = "-n|--ntasks" if is_srun(command[0]) else "-n|-np|--n|--np|-c"
    for word, following in zip(command, [*command[1:], ""], strict=True):
        match = re.fullmatch(rf"(?:{options})=?([0-9]*)", word)
        number = (match[1] or following) if match else ""
        if re.fullmatch("[0-9]+", number):
            return int(number)
    raise StrettoError("the launcher's command does not tell the number of ranks (-n N)")
