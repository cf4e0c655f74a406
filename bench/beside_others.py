#!/usr/bin/env python3
"""Collectives of ranks that share their CPUs with other processes, such as data loaders: MPI's own and Stretto's, in turn.

    beside_others.py [--ranks 4] [--busy 0 2] [--libraries BEFORE.so AFTER.so] -- mpirun --map-by :OVERSUBSCRIBE

Runs `stretto bench` beside so many processes that compute, in its own session, as a program's helpers are: the kernel divides
time among sessions first. Prints medians in us, as Markdown.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

COMPUTE = "while True: pass"


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    started = [subprocess.Popen([sys.executable, "-c", COMPUTE]) for _ in range(processes)]
    try:
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()


def measure(library: Path | None, options: argparse.Namespace) -> dict[tuple[str, int], tuple[float, float]]:
    """Medians of MPI and of Stretto in us, by collective and bytes."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        words = [str(Path(sys.executable).with_name("stretto")), "bench", *options.collectives, "--json", str(results)]
        words += ["--sizes", options.sizes, "--budget", str(options.budget), *(["--library", str(library)] if library else [])]
        subprocess.run([*words, "--", *options.launcher, "-n", str(options.ranks)], check=True, stdout=subprocess.DEVNULL)
        points = json.loads(results.read_text())["points"]
    if any(point["wrong"] for point in points):
        sys.exit("wrong results")
    sides = {(point["collective"], point["bytes"]): point["sides"] for point in points}
    return {key: (side["pmpi"]["median_us"], side["mpi"]["median_us"]) for key, side in sides.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 2], help="processes that compute beside")
    parser.add_argument("--libraries", type=Path, nargs="+", help="preload libraries, measured one after the other")
    parser.add_argument("--collectives", nargs="+", default=["barrier", "bcast", "reduce", "allreduce", "alltoall"])
    parser.add_argument("--sizes", default="8,64K,1M")
    parser.add_argument("--budget", type=float, default=1000, help="ms for each point")
    parser.add_argument("launcher", nargs="+", help="the launcher and its options, without -n")
    options = parser.parse_args()
    libraries = options.libraries or [None]
    names = ["Stretto"] if len(libraries) == 1 else [f"Stretto, {library.parent.name}" for library in libraries]
    print("| beside | collective | bytes | " + " | ".join(f"MPI | {name} | ratio" for name in names) + " |")
    print("|---:|---|---:|" + "---:|---:|---:|" * len(names))
    for processes in options.busy:
        with busy(processes):
            runs = [measure(library, options) for library in libraries]
        for collective, size in runs[0]:
            cells = [f"{mpi:.4g} | {own:.4g} | {own / mpi:.2g}" for mpi, own in (run[collective, size] for run in runs)]
            print(f"| {processes} | {collective} | {size} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
