#!/usr/bin/env python3
"""Measures Open MPI, MPICH and Intel MPI, each at several settings, and Stretto under the first two, side by side.

Runs take turns: each repeat goes through all of them once, so that a machine's moods meet all alike.
Writes bench/results/<machine>/collectives.md and .json (peers.md and .json with --peers-only).
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import launchers
import machine
import report
import tables
from runs import Run, distances

FULL_SIZES = "8,32,128,512,1K,4K,16K,64K,256K,1M,4M,16M,64M"
QUICK_SIZES = "8,128,1K,16K,256K,4M"


@dataclass
class Options:
    ranks: list[int] = field(default_factory=lambda: [2, 4, 8])
    repeats: int = 3
    sizes: str = FULL_SIZES
    most_shared: int = 16 << 20  # bytes; larger messages are left out where ranks share cores
    budget_ms: float = 100
    peers: tuple[str, ...] = tuple(peer.key for peer in launchers.PEERS)
    preloads: Path | None = None  # folder with the preload libraries; None: measure the peers alone
    say: Callable[[str], None] = print


@dataclass(frozen=True)
class Job:
    peer: launchers.Peer
    config: launchers.Config
    ranks: int
    preload: Path | None

    def title(self) -> str:
        return f"{self.peer.title} ({self.config.name}){' + Stretto' if self.preload else ''}, {self.ranks} ranks"


def find_preloads() -> Path | None:
    """The newest folder in which a build left the preload libraries."""
    places = [launchers.ROOT / "build/release/src/shim", launchers.ROOT / "python/stretto/lib"]
    built = [place for place in places if (place / "libstretto_ompi.so").exists()]
    return max(built, key=lambda place: (place / "libstretto_ompi.so").stat().st_mtime, default=None)


def plan(options: Options) -> list[Job]:
    """One repeat: for each rank count, every peer at every setting, Stretto right after its host's first."""
    jobs = []
    for ranks in options.ranks:
        oversubscribed = ranks > machine.cores()
        for peer in launchers.PEERS:
            if peer.key not in options.peers or not peer.available():
                continue
            configs = [config for config in peer.configs if config.fits(oversubscribed)]
            jobs += [Job(peer, config, ranks, None) for config in configs]
            if options.preloads and peer.key in tables.HOSTS:
                jobs.append(Job(peer, configs[0], ranks, options.preloads / peer.preload))
    return jobs


def _bytes(size: str) -> int:
    return int(size[:-1]) << {"K": 10, "M": 20}[size[-1]] if size[-1] in "KM" else int(size)


def arguments(job: Job, options: Options) -> list[str]:
    pinned = job.ranks <= machine.cores()
    sizes = [size for size in options.sizes.split(",") if pinned or _bytes(size) <= options.most_shared]
    args = ["--sizes", ",".join(sizes), "--budget", str(options.budget_ms), "--least", "5"]
    if pinned:
        args += ["--mode", "both"]
    return args if job.preload else [*args, "--side", "pmpi"]


def _lacking(runs: list[Run], jobs: list[Job]) -> list[Job]:
    """Pinned jobs with a point not yet measured under the commonest placement of the cores: worth another try."""
    apart = distances(runs)
    if not apart:
        return []
    commonest = statistics.mode(sorted(apart.values()))
    done: dict[tuple[str, str, bool], set[tuple[str, int, str]]] = defaultdict(set)
    for (r, p), where in apart.items():
        run, point = runs[r], runs[r].points()[p]
        if where == commonest:
            done[run.peer, run.config, run.stretto].add((point["collective"], point["bytes"], point["mode"]))
    every = set().union(*done.values())
    pinned = [job for job in jobs if job.ranks <= machine.cores()]
    return [job for job in pinned if done[job.peer.key, job.config.name, job.preload is not None] != every]


def measure(options: Options) -> tuple[list[Run], list[str]]:
    """All runs that ended well, and a line for each that did not. An interrupt ends the series early."""
    runs: list[Run] = []
    failures: list[str] = []
    jobs = plan(options)
    try:
        for repeat in range(options.repeats):
            _measure_each(jobs, f"{repeat + 1}/{options.repeats}", options, runs, failures)
        for more in range(options.repeats + 1):
            if lacking := _lacking(runs, jobs):
                _measure_each(lacking, f"again {more + 1}", options, runs, failures)
    except KeyboardInterrupt:
        failures.append(f"interrupted after {len(runs)} of {options.repeats * len(jobs)} runs")
        options.say(failures[-1])
    return runs, failures


def _measure_each(jobs: list[Job], turn: str, options: Options, runs: list[Run], failures: list[str]) -> None:
    for number, job in enumerate(jobs, 1):
        began = time.monotonic()
        try:
            lines = launchers.run(job.peer, job.config, job.ranks, machine.cores(), arguments(job, options), stretto=job.preload)
            runs.append(Run(job.peer.key, job.config.name, job.preload is not None, lines))
            outcome = f"{time.monotonic() - began:.1f} s"
        except launchers.RunFailed as why:
            failures.append(f"{job.title()}: {why}")
            outcome = f"FAILED: {why}"
        options.say(f"[{turn}, {number}/{len(jobs)}] {job.title()}: {outcome}")


def results_folder() -> Path:
    return launchers.ROOT / "bench/results" / machine.name()


def interrupt_on_termination() -> None:
    """Being terminated is the same as Ctrl-C: the run in progress ends, and what was measured is reported."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def main() -> int:
    interrupt_on_termination()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4,8", help="rank counts (default: 2,4,8)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sizes", default=FULL_SIZES, help="bytes, with K or M, separated by commas")
    parser.add_argument("--peers-only", action="store_true", help="leave Stretto out")
    parser.add_argument("--preloads", type=Path, help="folder of the preload libraries")
    args = parser.parse_args()
    options = Options([int(r) for r in args.ranks.split(",")], args.repeats, args.sizes)
    options.preloads = None if args.peers_only else args.preloads or find_preloads()
    if not options.preloads and not args.peers_only:
        parser.error("no preload libraries found: run ./dev build, or measure the peers alone with --peers-only")
    runs, failures = measure(options)
    if not runs:
        print("peers.py: no run succeeded", file=sys.stderr)
        return 1
    series = report.Series(runs, failures, [], options.repeats, "bench/collective/peers.py " + " ".join(sys.argv[1:]))
    page, document = report.make(series)
    for path in report.write(results_folder(), "peers" if args.peers_only else "collectives", page, document):
        print(path.relative_to(launchers.ROOT))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
