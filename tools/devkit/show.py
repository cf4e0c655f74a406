"""`./dev demo` and `./dev bench`."""

from __future__ import annotations

from devkit.build import build
from devkit.common import MPI_ENVIRONMENTS, ROOT, VENV, DevError, run, say


def build_once() -> None:
    if not list((ROOT / "python" / "stretto" / "lib").glob("*.so")):
        build()


def demo() -> int:
    """examples/demo.py with the first MPI environment that is there."""
    build_once()
    for name, folder in MPI_ENVIRONMENTS.items():
        if (folder / "bin" / "python").exists():
            say(f"examples/demo.py with {name}")
            return run([folder / "bin" / "python", "examples/demo.py"])
    raise DevError("no MPI environment: ./dev setup")


def bench(*arguments: str) -> int:
    build_once()
    return run([VENV / "bin" / "python", "bench/run.py", *arguments])
