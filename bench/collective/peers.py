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

import goals
import launchers
import machine
import report
import tables
from kept import Kept
from runs import Run, distances

FULL_SIZES = "8,32,128,512,1K,4K,16K,64K,256K,1M,4M,16M,64M"
QUICK_SIZES = "8,1K,16K,128K,1M,8M"
_FROM_ARENA = 16 << 10  # bytes: below, nothing is different with an arena


@dataclass
class Options:
    ranks: list[int] = field(default_factory=lambda: [2, 4, 8])
    repeats: int = 3
    tries: int = 4  # more rounds for runs with points during which the cores moved
    sizes: str = FULL_SIZES
    collectives: tuple[str, ...] = tables.COLLECTIVES
    batches: bool = True  # calls back to back also where each rank has a core
    most: int = 64 << 20  # bytes: points at which a rank's buffer of all blocks would be larger are left out
    most_shared: int = 16 << 20  # the same where ranks share cores
    budget_ms: float = 100
    limit_s: float = 300  # of a run; what takes longer is cut off
    peers: tuple[str, ...] = tuple(peer.key for peer in launchers.PEERS)
    preloads: Path | None = None  # folder with the preload libraries; None: measure the peers alone
    say: Callable[[str], None] = print


@dataclass(frozen=True)
class Job:
    peer: launchers.Peer
    config: launchers.Config
    ranks: int
    collectives: tuple[str, ...]
    stretto: launchers.Stretto | None = None
    in_turn: bool = False  # MPI_X and PMPI_X, for their ratio; else one of them alone, as every peer is
    bare: bool = False  # no MPI: plain stores in shared memory

    @property
    def way(self) -> str:
        if self.bare:
            return tables.BARE
        return "" if not self.stretto else "arena" if self.stretto.arena else "stretto"

    @property
    def task(self) -> str:
        return f"{self.ranks} ranks, {' '.join(self.collectives)}{', in turn with PMPI' if self.in_turn else ''}"

    @property
    def identity(self) -> tuple[str, str, str, str]:
        return self.peer.key, self.config.name, self.way, self.task

    def pinned(self) -> bool:
        return self.ranks <= machine.cores()

    def title(self) -> str:
        loaded = {"": "", "stretto": " + Stretto", "arena": " + Stretto, arena", tables.BARE: ", bare calls"}[self.way]
        return f"{self.peer.title} ({self.config.name}){loaded}, {self.task}"


def plan(options: Options) -> list[Job]:
    """One repeat: for each rank count and group of collectives, every peer at every setting, and Stretto after its host."""
    jobs = []
    groups = [tuple(name for name in group if name in options.collectives) for group in tables.GROUPS]
    for ranks in options.ranks:
        for group in filter(None, groups):
            for peer in launchers.PEERS:
                if peer.key in options.peers and peer.available():
                    jobs += _jobs(peer, ranks, group, options.preloads)
    return jobs


def _jobs(peer: launchers.Peer, ranks: int, group: tuple[str, ...], preloads: Path | None) -> list[Job]:
    configs = [config for config in peer.configs if config.fits(ranks > machine.cores())]
    jobs = [Job(peer, config, ranks, group) for config in configs]
    if preloads and peer.key in tables.HOSTS:
        arena = launchers.find_beside(preloads, "libstretto_arena.so")
        for with_arena in (None, arena) if arena and group != ("barrier",) else (None,):
            loaded = launchers.Stretto(preloads / peer.preload, with_arena)
            jobs += [Job(peer, configs[0], ranks, group, loaded, in_turn) for in_turn in (False, True)]
        if peer.key == tables.HOSTS[0] and (small := tuple(name for name in group if name in goals.FIRST)):
            jobs.append(Job(peer, configs[0], ranks, small, bare=True))
    return jobs


def _bytes(size: str) -> int:
    return int(size[:-1]) << {"K": 10, "M": 20}[size[-1]] if size[-1] in "KM" else int(size)


def _sizes(job: Job, options: Options) -> list[str]:
    least, most = _FROM_ARENA if job.way == "arena" else 0, options.most if job.pinned() else options.most_shared
    most = tables.SMALL if job.bare else most
    return [size for size in options.sizes.split(",") if least <= _bytes(size) <= most]


def program(job: Job, options: Options) -> launchers.Program:
    names = [name for name in job.collectives if not (job.way == "arena" and name == "barrier")]
    words = ["--collectives", ",".join(names), "--sizes", ",".join(_sizes(job, options))]
    words += ["--most", str(options.most if job.pinned() else options.most_shared)]
    words += ["--budget", str(options.budget_ms), "--least", "5"]
    if job.pinned() and options.batches:
        words += ["--mode", "both"]
    side = "both" if job.in_turn else "mpi" if job.stretto else "pmpi"
    return launchers.collective_bench(job.peer, *words, *(["--bare"] if job.bare else ["--side", side]))


def _lacking(runs: list[Run], jobs: list[Job]) -> list[Job]:
    """Jobs with a point not yet measured under the commonest placement of the cores: worth another try."""
    apart = distances(runs)
    if not apart:
        return []
    commonest = statistics.mode(sorted(apart.values()))
    done: dict[tuple[str, ...], set[tuple[str, int, str]]] = defaultdict(set)
    every: dict[tuple[str, str], set[tuple[str, int, str]]] = defaultdict(set)
    for (r, p), where in apart.items():
        run, point = runs[r], runs[r].points()[p]
        if where == commonest:
            what = (point["collective"], point["bytes"], point["mode"])
            done[run.identity].add(what)
            every[_extent(run.way), run.task].add(what)
    return [job for job in jobs if done[job.identity] != every[_extent(job.way), job.task]]


def _extent(way: str) -> str:
    """Runs of one task have the same points where this is equal."""
    return way if way in ("arena", tables.BARE) else ""


def measure(options: Options, kept: Kept) -> None:
    """All runs, and a line for each that did not end well. What is there already is not measured again. An interrupt ends
    the series early."""
    jobs = [job for job in plan(options) if _sizes(job, options)]
    try:
        for repeat in range(options.repeats):
            missing = [job for job in jobs if kept.count(job.identity) <= repeat]
            _measure_each(missing, f"{repeat + 1}/{options.repeats}", options, kept)
        for more in range(options.tries):
            if lacking := _lacking(kept.runs, jobs):
                _measure_each(lacking, f"again {more + 1}", options, kept)
    except KeyboardInterrupt:
        kept.failures.append(f"interrupted after {len(kept.runs)} of {options.repeats * len(jobs)} runs")
        options.say(kept.failures[-1])


def _measure_each(jobs: list[Job], turn: str, options: Options, kept: Kept) -> None:
    for number, job in enumerate(jobs, 1):
        began = time.monotonic()
        try:
            lines = launchers.run(
                job.peer,
                job.config,
                job.ranks,
                machine.cores(),
                program(job, options),
                stretto=job.stretto,
                limit=options.limit_s,
            )
            run = Run(*job.identity, lines)
            kept.run(run)
            cut = f", CUT OFF after {len(run.points())} points" if run.cut_after() else ""
            outcome = f"{time.monotonic() - began:.1f} s{cut}"
        except launchers.RunFailed as why:
            kept.failure(f"{job.title()}: {why}")
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
    options.preloads = None if args.peers_only else args.preloads or launchers.find_preloads()
    if not options.preloads and not args.peers_only:
        parser.error("no preload libraries found: run ./dev build, or measure the peers alone with --peers-only")
    kept = Kept()
    kept.command("bench/collective/peers.py " + " ".join(sys.argv[1:]))
    measure(options, kept)
    if not kept.runs:
        print("peers.py: no run succeeded", file=sys.stderr)
        return 1
    page, document = report.make(kept)
    for path in report.write(results_folder(), "peers" if args.peers_only else "collectives", page, document):
        print(path.relative_to(launchers.ROOT))
    return 1 if kept.failures else 0


if __name__ == "__main__":
    sys.exit(main())
