"""`./dev setup`: the system packages, .venv with the tools, and one environment per MPI under .mpi."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

from devkit.common import MPI_ENVIRONMENTS, OLD_MPI, ROOT, VENV, DevError, capture, need, run, say

REQUIREMENTS = ROOT / "tools" / "requirements"
EXAMPLES = ROOT / ".mpi" / "examples"

SLURM = "the tests with Slurm"  # they are left out where it cannot be installed
# (found where one of these exists, Debian package, what it is for); the first two groups are needed to build and test.
SYSTEM = [
    (["g++"], "g++", "the build"),
    (["/usr/include/gtest/gtest.h"], "libgtest-dev", "the unit tests"),
    (["/usr/include/benchmark/benchmark.h"], "libbenchmark-dev", "the micro-benchmarks"),
    (["gfortran"], "gfortran", "the Fortran tests"),
    (["mpirun.openmpi", "orterun"], "openmpi-bin", "the tests with Debian's Open MPI"),
    (["mpicc.openmpi"], "libopenmpi-dev", "the tests with Debian's Open MPI"),
    (["mpiexec.mpich", "mpirun.mpich"], "mpich", "the tests with Debian's MPICH"),
    (["mpicc.mpich"], "libmpich-dev", "the tests with Debian's MPICH"),
    (["slurmctld"], "slurmctld", SLURM),
    (["slurmd"], "slurmd", SLURM),
    (["srun"], "slurm-client", SLURM),
    (["munged"], "munge", SLURM),
]


def setup() -> None:
    """Makes everything ready; done in a second when nothing has changed."""
    system_packages()
    python_environment(VENV, [REQUIREMENTS / "dev.txt"])
    command_of_the_checkout()
    for name, folder in {**MPI_ENVIRONMENTS, **OLD_MPI}.items():
        python_environment(folder, [REQUIREMENTS / f"{name}.txt"])
    example_packages()
    say("ready: now ./dev build")


def system_packages() -> None:
    missing = {package: use for probes, package, use in SYSTEM if not any(present(probe) for probe in probes)}
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        missing["python3-venv"] = "the Python environments"
    if not missing:
        return
    names = sorted(missing)
    if os.geteuid() == 0 and shutil.which("apt-get"):
        say(f"installing {' '.join(names)}")
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        run(["apt-get", "update", "-qq"], quiet)
        install: list[str | Path] = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"]
        slurm = [name for name in names if missing[name] == SLURM]
        needed = [name for name in names if name not in slurm]
        if needed:
            need([*install, *needed], quiet)
        if slurm and run([*install, *slurm], quiet):
            say(f"{' '.join(slurm)} cannot be installed: without {SLURM}")
        return
    for name in names:
        say(f"missing: {name}, for {missing[name]}")
    say(f"install them with: sudo apt-get install {' '.join(names)}")
    if "g++" in missing or "python3-venv" in missing:
        raise DevError("a C++ compiler and Python's venv are needed")


def present(probe: str) -> bool:
    return Path(probe).exists() if probe.startswith("/") else shutil.which(probe) is not None


def fingerprint(files: list[Path]) -> str:
    digest = hashlib.sha256(f"{sys.version} {ROOT}".encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def python_environment(folder: Path, requirements: list[Path]) -> None:
    """A virtual environment with exactly these requirements; untouched while they are unchanged."""
    stamp = folder / "stretto-setup.stamp"
    wanted = fingerprint(requirements)
    if stamp.is_file() and stamp.read_text() == wanted and capture([folder / "bin/python", "-V"])[0] == 0:
        return
    say(f"setting up {folder.relative_to(ROOT)}")
    if capture([folder / "bin/python", "-m", "pip", "--version"])[0] != 0:
        need([sys.executable, "-m", "venv", "--clear", folder])
    arguments = [word for file in requirements for word in ("-r", str(file))]
    need([folder / "bin/python", "-m", "pip", "install", "-qq", *arguments])
    stamp.write_text(wanted)


def site_packages(folder: Path) -> Path:
    return folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def command_of_the_checkout() -> None:
    """.venv/bin/stretto runs python/stretto of the checkout as it stands: no reinstallation after an edit."""
    write_if_changed(site_packages(VENV) / "stretto-checkout.pth", f"{ROOT / 'python'}\n")
    script = VENV / "bin" / "stretto"
    body = "import sys\n\nfrom stretto.cli import main\n\nsys.exit(main())\n"
    write_if_changed(script, f"#!{VENV / 'bin' / 'python'}\n{body}")
    script.chmod(0o755)


def write_if_changed(file: Path, text: str) -> None:
    if not file.is_file() or file.read_text() != text:
        file.write_text(text)


def example_packages() -> None:
    """Data sets and, where a CPU build can be had, PyTorch: one folder that both MPI environments see, and stretto.torch."""
    files = [REQUIREMENTS / "examples.txt", REQUIREMENTS / "torch.txt"]
    stamp = EXAMPLES / "stretto-setup.stamp"
    if not stamp.is_file() or stamp.read_text() != fingerprint(files):
        say(f"setting up {EXAMPLES.relative_to(ROOT)}")
        shutil.rmtree(EXAMPLES, ignore_errors=True)
        python = MPI_ENVIRONMENTS["openmpi"] / "bin/python"
        install: list[str | Path] = [python, "-m", "pip", "install", "-qq", "--no-deps", "--target", EXAMPLES, "-r"]
        need([*install, files[0]])
        if run([python, "-m", "pip", "download", "-qqq", "--no-deps", "-d", EXAMPLES / "probe", "torch==2.13.0+cpu"]):
            say("PyTorch: pip finds no CPU build here; the examples will use NumPy")
        else:
            need([*install, files[1]])
        shutil.rmtree(EXAMPLES / "probe", ignore_errors=True)
        stamp.write_text(fingerprint(files))
    for folder in MPI_ENVIRONMENTS.values():
        write_if_changed(site_packages(folder) / "stretto-examples.pth", f"{EXAMPLES}\n{ROOT / 'python'}\n")
