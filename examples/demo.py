#!/usr/bin/env python3
"""Trains examples/train.py plainly and under Stretto, in turn, and shows losses and times side by side; then once more with
MPI and Stretto taking turns within the run, which tells their speeds apart where that of the machine changes; then profiles a
training with a slow rank.

    ./dev demo                                          with the MPI of the Python that runs it
    .mpi/mpich/bin/python examples/demo.py --mpi mpich

Exits 1 where the losses differ by more than rounding (4 ranks), or at all (2 ranks, where any order of summation rounds
alike).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import stragglers

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ROUNDING = 1e-3  # relative; what single-precision rounding may grow to over a short training

# Both MPIs run at their own defaults unless --tuned says otherwise; these are their best known settings when ranks outnumber
# cores on one machine.
TUNED = {
    "openmpi": {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,sm"},
    "mpich": {"MPIR_CVAR_DEVICE_COLLECTIVES": "none"},
}


@dataclass(frozen=True)
class Mpi:
    family: str
    home: Path  # the virtual environment that has the MPI wheel and mpi4py

    def launch(self, ranks: int, *words: str) -> list[str]:
        more: list[str] = []
        if self.family == "openmpi":
            more = ["--oversubscribe"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])
        return [str(self.home / "bin" / "mpirun"), *more, "-n", str(ranks), str(self.home / "bin" / "python"), *words]


@dataclass(frozen=True)
class Run:
    training: dict
    summary: dict  # what `stretto run --summary` wrote; empty for a plain run


def find_mpi(family: str | None) -> Mpi:
    """The environment that runs this script, or the checkout's for the family asked for."""
    candidates = [Path(sys.prefix), ROOT / ".mpi" / "openmpi", ROOT / ".mpi" / "mpich"]
    if family:
        candidates.insert(0, ROOT / ".mpi" / family)
    for home in candidates:
        found = "openmpi" if (home / "bin" / "ompi_info").exists() else "mpich"
        if (home / "bin" / "mpirun").exists() and family in (None, found):
            return Mpi(found, home)
    sys.exit("demo: no MPI environment here: run ./dev setup")


def find_stretto() -> str:
    local = ROOT / ".venv" / "bin" / "stretto"
    found = str(local) if local.exists() else shutil.which("stretto")
    return found or sys.exit("demo: no stretto command: run ./dev setup && ./dev build")


class Demo:
    def __init__(self, mpi: Mpi, options: argparse.Namespace, folder: Path) -> None:
        self.mpi, self.options, self.folder = mpi, options, folder
        self.stretto = find_stretto()
        self.environment = {**os.environ, **(TUNED[mpi.family] if options.tuned else {})}

    def training(self, ranks: int, *words: str) -> list[str]:
        """Its command; every rank sees as many images whatever their number."""
        images = str(self.options.images * ranks // self.options.ranks)
        return self.mpi.launch(ranks, str(HERE / "train.py"), "--images", images, "--backend", self.options.backend, *words)

    def run(self, command: list[str], result: Path) -> None:
        """Runs what is to leave a file `result`."""
        log = self.folder / "log"
        result.unlink(missing_ok=True)
        with log.open("w") as out:
            code = subprocess.run(command, env=self.environment, stdout=out, stderr=subprocess.STDOUT).returncode
        if code or not result.exists():
            print(log.read_text(), file=sys.stderr)
            sys.exit(f"demo: this failed with exit code {code}: {' '.join(command)}")

    def train(self, ranks: int, accelerated: bool) -> Run:
        losses, summary = self.folder / "losses.json", self.folder / "summary.json"
        command = self.training(ranks, "--losses-out", str(losses))
        if accelerated:
            command = [self.stretto, "run", "--summary", str(summary), "--", *command]
        self.run(command, losses)
        run = Run(json.loads(losses.read_text()), json.loads(summary.read_text()) if accelerated else {})
        how = "Stretto" if accelerated else "plain  "
        t = run.training
        print(f"  {how}  {t['seconds']:6.2f} s, {t['communication_seconds']:6.2f} s of it in communication", flush=True)
        return run

    def pairs(self, ranks: int, repeats: int) -> tuple[list[Run], list[Run]]:
        """Plain and accelerated runs in turn, so that both meet the same weather."""
        runs: dict[bool, list[Run]] = {False: [], True: []}
        for i in range(repeats):
            for accelerated in (False, True) if i % 2 == 0 else (True, False):
                runs[accelerated].append(self.train(ranks, accelerated))
        return runs[False], runs[True]

    def take_turns(self, ranks: int, *options: str) -> dict:
        """What `stretto compare --one-run` says of a training of some more epochs."""
        found = self.folder / "turns.json"
        command = [
            self.stretto,
            "compare",
            "--one-run",
            *options,
            "--json",
            str(found),
            "--",
            *self.training(ranks, "--epochs", "3"),
        ]
        self.run(command, found)
        return json.loads(found.read_text())

    def profile(self, ranks: int, folder: Path) -> dict:
        """Records a training whose last rank is slower than the others, shows the verdict, and returns the report's figures."""
        program = [str(HERE / "stragglers.py"), "--work", "--late", "slow", "--steps", "100", "--batch", "32"]
        program += ["--out", str(self.folder / "times.json")]
        command = [self.stretto, "profile", "--trace", "-o", str(folder), "--", *self.mpi.launch(ranks, *program)]
        shutil.rmtree(folder, ignore_errors=True)
        done = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print(done.stdout)
        if done.returncode:
            sys.exit(f"demo: this failed with exit code {done.returncode}: {' '.join(command)}")
        figures = self.folder / "profile.json"
        subprocess.run([self.stretto, "report", str(folder), "--json", str(figures)], stdout=subprocess.DEVNULL, check=True)
        return json.loads(figures.read_text())


def busy_share(seconds: float = 0.3) -> float:
    """Of the time of all CPUs, what is in use now."""

    def read() -> tuple[int, int]:
        times = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return sum(times), times[3] + times[4]  # idle, or waiting for a disk

    before = read()
    time.sleep(seconds)
    total, idle = (now - then for now, then in zip(read(), before, strict=True))
    return 1 - idle / total if total else 0.0


def largest_difference(a: list[float], b: list[float]) -> float:
    return max(abs(x - y) / max(abs(x), abs(y), 1e-30) for x, y in zip(a, b, strict=True))


def show_losses(plain: Run, accelerated: Run) -> None:
    print("\n  epoch  loss, plain          loss, Stretto        accuracy")
    rows = zip(plain.training["losses"], accelerated.training["losses"], accelerated.training["accuracies"], strict=True)
    for number, (a, b, accuracy) in enumerate(rows, 1):
        print(f"  {number:5}  {a:<19.15g}  {b:<19.15g}  {accuracy:.3f}")


def show_times(plain: list[Run], accelerated: list[Run]) -> None:
    print("\n  median of the runs        plain     Stretto   Stretto / plain")
    for key, title in (("communication_seconds", "time in communication"), ("seconds", "wall time of training")):
        before, after = (statistics.median(run.training[key] for run in runs) for runs in (plain, accelerated))
        ratio = f"{after / before:.2f}" if before > 0 else "-"
        print(f"  {title:22}{before:8.2f} s {after:9.2f} s   {ratio}")


def show_turns(demo: Demo, ranks: int) -> None:
    print("\nOne run in which MPI and Stretto take turns, so that both meet the same machine (stretto compare --one-run):")
    print("                    turn, plain -> Stretto   Stretto / plain   the same, in communication", flush=True)
    for number in dict.fromkeys((ranks, 2)):
        for options in ((), ("--arena",)):
            found = demo.take_turns(number, *options)
            plain, accelerated = (found["seconds"][side] * 1e3 for side in ("plain", "accelerated"))
            wall, inside = (f"{found[key]['value']:.2f} ± {found[key]['error']:.2f}" for key in ("wall", "mpi"))
            title = " ".join((f"{number} ranks", *options))
            print(f"  {title:16}  {plain:6.1f} ms -> {accelerated:6.1f} ms   {wall:15}   {inside}", flush=True)


def show_share(accelerated: list[Run]) -> bool:
    """Whether gradients really went through Stretto."""
    collectives = accelerated[-1].summary.get("collectives", {})
    shares = [f"{name} {one['accelerated_share']:.0%} of {one['calls']} calls" for name, one in collectives.items()]
    print(f"\n  taken over by Stretto: {', '.join(shares)}")
    return collectives.get("Allreduce", {}).get("accelerated_share", 0) > 0.9


def verdicts(four: tuple[list[Run], list[Run]], two: tuple[list[Run], list[Run]], ranks: int) -> list[tuple[bool, str]]:
    """What was checked: whether it holds, and in words."""
    apart = max(largest_difference(a.training["losses"], b.training["losses"]) for a, b in zip(*four, strict=True))
    repeated = len({tuple(run.training["losses"]) for run in four[1]}) == 1
    identical = all(a.training["losses"] == b.training["losses"] for a, b in zip(*two, strict=True))
    checks = [(apart <= ROUNDING, f"{ranks} ranks: losses equal to rounding (largest relative difference {apart:.1e})")]
    if len(four[1]) > 1:
        checks.append((repeated, f"{ranks} ranks: every run under Stretto gave the same losses to the last bit"))
    return [*checks, (identical, "2 ranks: losses with and without Stretto equal to the last bit")]


def told_of_late_ranks(report: dict, slowed: int) -> str:
    """What was done, and what the report found of it."""
    titles = [one["title"] for one in report["verdict"] if one["figure"] == "late"]
    says = f'"{titles[0]}"' if titles else "that no rank is late as a rule"
    return f"rank {slowed} was slowed on purpose by {stragglers.SLOWER * 100:.0f} %: the report says {says}"


def show(demo: Demo, options: argparse.Namespace) -> int:
    settings = "at its best known settings" if options.tuned else "at its own default settings"
    cpus = len(os.sched_getaffinity(0))
    if (share := busy_share()) > 0.25:
        print(f"Note: other programs take {share:.0%} of this machine's CPUs just now: times of single runs will vary.\n")
    print(f"Training with {options.ranks} ranks on {cpus} CPUs, {demo.mpi.family} {settings}:", flush=True)
    four = demo.pairs(options.ranks, options.repeats)
    about = four[0][0].training
    size = about["gradient_bytes"] / 2**20
    print(f"  ({about['mpi']}, {about['model']}, {about['images']}, {size:.1f} MiB of gradients a step)")
    show_losses(four[0][0], four[1][0])
    show_times(*four)
    taken = show_share(four[1])
    print("\nThe same with 2 ranks, once:", flush=True)
    two = demo.pairs(2, 1)
    show_turns(demo, options.ranks)
    print()
    checks = [*verdicts(four, two, options.ranks), (taken, "gradients were summed by Stretto (over 90 % of the Allreduce calls)")]
    for good, words in checks:
        print(f"  {'yes' if good else 'NO '}  {words}")
    profiled = min(options.ranks, max(2, cpus))  # where ranks take turns on a CPU, who is slow is late by chance
    print(f"\nWho is late: the same with {profiled} ranks, the last of which computes slower, under stretto profile:", flush=True)
    report = demo.profile(profiled, options.output)
    print(
        "\nWhere to look next:\n"
        f"  {options.output / 'report.html'}\n"
        "                                                           the whole report of that training, in a browser\n"
        "  .venv/bin/stretto run -- mpirun -n 4 YOUR_PROGRAM        the same for your program\n"
        "  .venv/bin/stretto compare -- mpirun -n 4 YOUR_PROGRAM    with and without, side by side\n"
        "  .venv/bin/stretto doctor                                 what this machine offers\n"
        "  examples/train.py                                        the training: plain mpi4py, nothing of Stretto in it"
    )
    print(f"\nAs a check of the profile: {told_of_late_ranks(report, profiled - 1)}")
    return 0 if all(good for good, _ in checks) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--mpi", choices=["openmpi", "mpich"], help="which MPI of the checkout; default: this Python's")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=2, help="runs of each kind")
    parser.add_argument("--images", type=int, default=2500)
    parser.add_argument("--backend", choices=["auto", "torch", "numpy"], default="auto")
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="folder of the profile")
    parser.add_argument("--tuned", action="store_true", help="give the MPI its best known settings instead of its defaults")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return show(Demo(find_mpi(options.mpi), options, Path(folder)), options)


if __name__ == "__main__":
    sys.exit(main())
