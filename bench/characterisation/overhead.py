#!/usr/bin/env python3
"""What a profile costs a training, found within one run: steps whose calls are recorded against steps whose calls are not.

    overhead.py [--ranks 4] [--steps 400] [--mpi openmpi] [--rounds 3]

Ratios are medians over fours of steps (recorded, not, not, recorded), with standard errors; beside them the report's own figure.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from stretto.comparison import ratio_of_fours  # noqa: E402

MODES = {"sums": [], "every call": ["--trace"]}


def environment(mpi: str) -> dict[str, str]:
    extra = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    path = f"{ROOT / '.mpi' / mpi / 'bin'}:{os.environ['PATH']}"
    return {**os.environ, **extra, "PATH": path, "PYTHONPATH": f"{ROOT / 'python'}:{ROOT / '.mpi' / 'examples'}"}


def run(words: list[str], options: argparse.Namespace) -> None:
    done = subprocess.run(words, env=environment(options.mpi), capture_output=True, text=True, timeout=1200, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")


def measured(mode: str, options: argparse.Namespace) -> tuple[list[float], float]:
    """Seconds of each step, and the share of the run that the report says recording took."""
    stretto, home = str(ROOT / ".venv/bin/stretto"), ROOT / ".mpi" / options.mpi / "bin"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        more = ["--oversubscribe"] if options.mpi == "openmpi" else []
        training = str(Path(__file__).with_name("overhead_training.py"))
        program = ["-m", "mpi4py", training, "--steps", str(options.steps)]  # which ends all ranks when one fails
        job = [
            str(home / "mpirun"),
            *more,
            "-n",
            str(options.ranks),
            str(home / "python"),
            *program,
            "--out",
            str(folder / "steps"),
        ]
        run([stretto, "profile", *MODES[mode], "-o", str(folder / "profile"), "--", *job], options)
        run([stretto, "report", str(folder / "profile"), "--json", str(folder / "report")], options)
        steps = json.loads((folder / "steps").read_text())["steps"]
        return steps, json.loads((folder / "report").read_text())["overhead"].get("share") or 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mpi", choices=("openmpi", "mpich"), default="openmpi")
    options = parser.parse_args()
    print(f"| {options.ranks} ranks, {options.mpi} | steps | recorded / not | by the report |")
    print("|---|---:|---:|---:|")
    for mode in MODES:
        fours: list[list[float]] = []
        shares = []
        for _ in range(options.rounds):
            steps, share = measured(mode, options)
            fours += [steps[i : i + 4] for i in range(0, len(steps) - 3, 4)]
            shares.append(share)
        ratio = ratio_of_fours(fours)
        own = 100 * sum(shares) / len(shares)
        print(f"| {mode} | {4 * len(fours)} | {ratio.value:.4f} ± {ratio.error:.4f} | {own:.4f} % |", flush=True)


if __name__ == "__main__":
    main()
