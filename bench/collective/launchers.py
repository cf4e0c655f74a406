"""The peers: where each MPI lies, the settings under which it is measured, and how it puts ranks on cores."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import machine

ROOT = Path(__file__).resolve().parents[2]
INTEL = "impi-rt==2021.19.0"  # its libfabric requirement is not needed on one node
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


def _for_ranks(peer: Peer, ranks: int, cores: int, settings: Mapping[str, str]) -> list[str]:
    """Launcher arguments: rank count, binding, and environment for the ranks alone."""
    args, unit = ["-n", str(ranks)], "hwthread" if ranks > machine.physical_cores() else "core"
    if peer.key == "openmpi":
        args += ["--use-hwthread-cpus"] if unit == "hwthread" else []
        args += ["--map-by", unit, "--bind-to", unit] if ranks <= cores else ["--bind-to", "none", "--oversubscribe"]
        return args + [word for name, value in settings.items() for word in ("-x", f"{name}={value}")]
    if peer.key == "mpich" and ranks <= cores:
        args += ["-bind-to", unit, "-map-by", unit]
    if peer.key == "intel" and ranks <= cores:
        args += ["-genv", "I_MPI_PIN_DOMAIN", "1" if unit == "hwthread" else unit, "-genv", "I_MPI_PIN_ORDER", "compact"]
    return args + [word for name, value in settings.items() for word in ("-genv", name, value)]


def _check(setup: dict[str, Any], peer: Peer, stretto: Stretto | None) -> None:
    if not setup["library"].startswith(peer.version):
        raise RunFailed(f"the program ran under {setup['library']}, not {peer.title}")
    if stretto and not setup["stretto"]:
        raise RunFailed(f"{stretto.library.name} was not loaded")
    if stretto and setup["ranks"] > 1 and stretto.settings.get("STRETTO_ACCELERATE") != "off" and not setup["accelerating"]:
        raise RunFailed(f"Stretto took no part: {setup.get('why') or 'see the summary of stretto run'}")
    places = setup["cpus"] if "cpus" in setup else [_cpus(mask) for mask in setup["cpu_masks"]]
    apart = len({cpu for cpus in places for cpu in cpus}) == sum(map(len, places))
    if setup["ranks"] <= setup["cores"] and not apart:
        raise RunFailed(f"ranks are not pinned to cores of their own (CPUs {places})")


def _cpus(mask: int) -> list[int]:
    return [cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1]


def end(process: subprocess.Popen[str], first: signal.Signals = signal.SIGTERM) -> None:
    """What leads a session of its own, and that session: asked first, then made to."""
    for how in (first, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=10)
            return


def _finish(command: list[str], env: dict[str, str], limit: float) -> bool:
    """Runs the command to its end; False: it was cut off. Whatever ends this process first ends the ranks too."""
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
        _, errors = process.communicate(timeout=limit)
    except BaseException as why:
        end(process)
        if isinstance(why, subprocess.TimeoutExpired):
            return False
        raise
    if process.returncode:
        raise RunFailed(f"exit code {process.returncode}: {' '.join(errors.split())[-300:]}")
    return True


@dataclass(frozen=True)
class Stretto:
    """What is preloaded into the ranks, and settings (STRETTO_*) that are theirs too."""

    library: Path
    arena: Path | None = None
    settings: dict[str, str] = field(default_factory=dict)

    def for_ranks(self) -> dict[str, str]:
        loaded = [self.library] + ([self.arena] if self.arena else [])
        env = {"LD_PRELOAD": ":".join(map(str, loaded)), "STRETTO_JOB": uuid.uuid4().hex, **self.settings}
        return {**env, "STRETTO_ARENA": "on"} if self.arena else env

    def for_launcher(self, peer: Peer) -> dict[str, str]:
        """As `stretto run` does it for Hydra (docs/commands.md)."""
        found = find_beside(self.library.parent, "libstretto_launcher.so") if peer.key != "openmpi" else None
        return {"LD_PRELOAD": str(found)} if found else {}


def find_preloads() -> Path | None:
    """The newest folder in which a build left the preload libraries."""
    places = [ROOT / "build/release/src/shim", ROOT / "python/stretto/lib"]
    built = [place for place in places if (place / "libstretto_ompi.so").exists()]
    return max(built, key=lambda place: (place / "libstretto_ompi.so").stat().st_mtime, default=None)


def find_beside(folder: Path, name: str) -> Path | None:
    """Another library or program of Stretto's, beside the preload libraries: installed, or in a build's folders."""
    places = (folder / name, folder.parent / "arena" / name, folder.parent / "bench" / name, folder.parent / "launcher" / name)
    return next((place for place in places if place.is_file()), None)


@dataclass(frozen=True)
class Program:
    """A benchmark program that writes JSON lines to what follows --json, the setup first."""

    path: Path
    arguments: tuple[str, ...] = ()


def collective_bench(peer: Peer, *arguments: str) -> Program:
    return Program(ROOT / "build/bench" / peer.binary / "collective_bench", arguments)


def run(
    peer: Peer, config: Config, ranks: int, cores: int, program: Program, *, stretto: Stretto | None = None, limit: float = 600
) -> list[dict[str, Any]]:
    """Runs the program under the peer and returns its lines, the setup line first.

    What takes longer than `limit` seconds is cut off: what it had written is returned, and a last line of the kind "cut".
    """
    for_ranks = stretto.for_ranks() if stretto else {}
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "points.json"
        command = [str(peer.home / "bin" / peer.launcher), *_for_ranks(peer, ranks, cores, for_ranks), str(program.path)]
        command += [*program.arguments, "--json", str(output)]
        env = _environment(peer, config) | (stretto.for_launcher(peer) if stretto else {})
        whole = _finish(command, env, limit)
        text = output.read_text() if output.exists() else ""
    lines: list[dict[str, Any]] = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    if not lines:
        raise RunFailed("it wrote no results" if whole else f"nothing within {limit:.0f} s")
    _check(lines[0], peer, stretto)
    return lines if whole else [*lines, {"kind": "cut", "seconds": limit}]


def ensure_intel(say: Callable[[str], None]) -> None:
    """Intel MPI from its wheel, in .peers/impi. Without a network the other peers are measured alone."""
    intel = next(peer for peer in PEERS if peer.key == "intel")
    if intel.available():
        return
    say(f"installing {INTEL} into {intel.home.relative_to(ROOT)}")
    made = subprocess.run([sys.executable, "-m", "venv", intel.home])
    if made.returncode == 0:
        made = subprocess.run([intel.home / "bin/pip", "install", "--quiet", "--no-deps", INTEL])
    if made.returncode:
        say("FAILED: Intel MPI could not be installed; going on without it")
