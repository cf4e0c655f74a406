#!/usr/bin/env python3
"""Collectives to which ranks come apart: what remains of them after the last arrival, of Stretto, of the paper's algorithms, of
Stretto's balanced ones and of the MPI libraries, in one series, and a verdict on every goal about that.

Writes bench/results/<machine>/arrival.md, .json and .svg. Quiet the machine first; the full run takes several hours, --quick
some 50 minutes. Every run is kept in a file as soon as it has ended: a series that was cut goes on with --resume, and several
partial ones become one page with --merge.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "collective"), str(HERE / "arrivals"), str(HERE.parent / "python")]

import late_page  # noqa: E402
import launchers  # noqa: E402
import machine  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import tables  # noqa: E402
from kept import Kept, merged, resumed  # noqa: E402
from lateness import ALONE, BALANCED, BY_ARRIVAL, PAPER, SHAPES  # noqa: E402
from runs import Run  # noqa: E402
from stretto.benchmark.program import PROGRAMS, find_mpi  # noqa: E402

ABIS = {"openmpi": "ompi", "mpich": "mpich", "intel": "mpich"}


@dataclass
class Options:
    ranks: list[int] = field(default_factory=lambda: [2, 4, 8])
    repeats: int = 3
    collectives: tuple[str, ...] = ("allreduce", "reduce")
    shapes: tuple[str, ...] = SHAPES[1:]
    sizes: str = "4K,16K,64K,256K,1M,4M,16M"
    spreads: str = "1,5,50"
    most_delay_ms: float = 100
    budget_ms: float = 200
    least: int = 7  # samples of each side
    limit_s: float = 300  # of a run; what takes longer is cut off
    hosts: tuple[str, ...] = tables.HOSTS
    preloads: Path = Path()
    say: Callable[[str], None] = print


@dataclass(frozen=True)
class Job:
    peer: launchers.Peer
    config: launchers.Config
    ranks: int
    collective: str
    shape: str
    way: str = ""
    stretto: launchers.Stretto | None = None

    @property
    def identity(self) -> tuple[str, str, str, str]:
        return self.peer.key, self.config.name, self.way, f"{self.ranks} ranks, {self.collective}, {self.shape}"

    def title(self) -> str:
        _, _, way, task = self.identity
        return f"{self.peer.title} ({self.config.name}){' + ' + way if way else ''}, {task}"


def plan(options: Options) -> list[Job]:
    """One repeat."""
    jobs = []
    for ranks in options.ranks:
        for collective in options.collectives:
            for shape in options.shapes:
                for peer in filter(launchers.Peer.available, launchers.PEERS):
                    jobs += _jobs(peer, ranks, collective, shape, options)
    return jobs


def _jobs(peer: launchers.Peer, ranks: int, collective: str, shape: str, options: Options) -> list[Job]:
    """The peer at every setting; Stretto on it, without and with an arena, each beside other algorithms, alone and by order of
    arrival."""
    configs = [config for config in peer.configs if config.fits(ranks > machine.cores())]
    jobs = [Job(peer, config, ranks, collective, shape) for config in configs]
    if peer.key not in options.hosts:
        return jobs
    arena = launchers.find_beside(options.preloads, "libstretto_arena.so")
    for way, library in (("stretto", None), *([("arena", arena)] if arena else [])):
        for ending, settings in (("", dict[str, str]()), (ALONE, {}), (BY_ARRIVAL, {"STRETTO_ORDER": "arrival"})):
            stretto = launchers.Stretto(options.preloads / peer.preload, library, settings)
            jobs.append(Job(peer, configs[0], ranks, collective, shape, way + ending, stretto))
    return jobs


def program(job: Job, options: Options, seed: int) -> launchers.Program:
    """`seed`: of random delays, so that those of a repeat are the same for all kinds of runs."""
    abi = ABIS[job.peer.key]
    path = launchers.find_beside(options.preloads, PROGRAMS[abi])
    if not path:
        raise launchers.RunFailed(f"{PROGRAMS[abi]} is not built")
    words = ["--mpi", find_mpi(job.peer.home / "bin" / job.peer.launcher, abi), "--collectives", job.collective]
    words += ["--sizes", options.sizes, "--arrival", job.shape, "--spreads", options.spreads, "--of-call"]
    words += ["--budget", str(options.budget_ms), "--least", str(options.least), "--most-delay", str(options.most_delay_ms)]
    words += ["--seed", str(seed)]
    if not job.way or job.way.endswith((ALONE, BY_ARRIVAL)):
        words.append("--plain")
    else:
        also = [name for name in (*PAPER, *BALANCED) if name != "pair" or job.ranks == 2]
        words += ["--also", ",".join(also)]
    return launchers.Program(path, tuple(words))


def measure(options: Options, kept: Kept) -> None:
    """All runs; those that are there already are not measured again. An interrupt ends the series early."""
    jobs = plan(options)
    try:
        for repeat in range(options.repeats):
            turn = jobs if repeat % 2 == 0 else jobs[::-1]
            missing = [job for job in turn if kept.count(job.identity) <= repeat]
            for number, job in enumerate(missing, 1):
                outcome = _one(job, options, kept, repeat + 1)
                options.say(f"[{repeat + 1}/{options.repeats}, {number}/{len(missing)}] {job.title()}: {outcome}")
    except KeyboardInterrupt:
        kept.failures.append(f"interrupted after {len(kept.runs)} of {options.repeats * len(jobs)} runs")
        options.say(kept.failures[-1])


def _one(job: Job, options: Options, kept: Kept, seed: int) -> str:
    """What became of it."""
    began = time.monotonic()
    try:
        lines = launchers.run(
            job.peer,
            job.config,
            job.ranks,
            machine.cores(),
            program(job, options, seed),
            stretto=job.stretto,
            limit=options.limit_s,
        )
    except launchers.RunFailed as why:
        kept.failure(f"{job.title()}: {why}")
        return f"FAILED: {why}"
    run = Run(*job.identity, lines)
    kept.run(run)
    return f"{time.monotonic() - began:.1f} s" + (f", CUT OFF after {len(run.points())} points" if run.cut_after() else "")


def train(quick: bool, kept: Kept, say: Callable[[str], None]) -> None:
    """examples/stragglers.py, with one slow rank and with random stragglers."""
    for late in ("slow", "random"):
        if late in kept.others:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "result.json"
            words = ["--late", late, "--json", str(path), "--mpi", "openmpi", "--repeats", "1" if quick else "5"]
            command: list[str | Path] = [launchers.ROOT / ".mpi/openmpi/bin/python", launchers.ROOT / "examples/stragglers.py"]
            outcome = _finish([*command, *words], 150 if quick else 600)
            if not outcome:
                kept.other(late, json.loads(path.read_text()))
        say(f"training, {late}: {outcome or 'done'}")
        if outcome:
            kept.failure(f"training, {late}: {outcome}")


def _finish(command: list[str | Path], limit: float) -> str:
    """Runs a command; empty, or what went wrong."""
    env = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    process = subprocess.Popen(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        _, errors = process.communicate(timeout=limit)
    except BaseException as why:
        launchers.end(process, signal.SIGINT)  # it removes its files
        if isinstance(why, subprocess.TimeoutExpired):
            return f"no end within {limit:.0f} s"
        raise
    return f"FAILED: {' '.join(errors.split())[-300:]}" if process.returncode else ""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few sizes, one repeat: some 50 minutes for 2, 4 and 8 ranks")
    parser.add_argument("--collectives", default="allreduce,reduce", metavar="LIST", help="(default: allreduce,reduce)")
    parser.add_argument("--ranks", default="2,4,8", help="rank counts (default: 2,4,8)")
    parser.add_argument("--repeats", type=int, help="how often each run is repeated (default: 3; --quick: 1)")
    parser.add_argument("--sizes", help="bytes, with K or M, separated by commas")
    parser.add_argument("--spreads", default="1,5,50", help="multiples of a balanced call's time (default: 1,5,50)")
    parser.add_argument("--most-delay", type=float, metavar="MS", help="no rank comes later (default: 100; --quick: 10)")
    parser.add_argument("--budget", type=float, help="ms for each point of a run (default: 200; --quick: 100)")
    parser.add_argument("--limit", type=float, help="s after which a run is cut off (default: 300; --quick: 60)")
    parser.add_argument("--p10", action="store_true", help="10th percentiles instead of medians, for a machine that is not quiet")
    parser.add_argument("--no-training", action="store_true", help="leave out examples/stragglers.py")
    parser.add_argument("--preloads", type=Path, help="folder with the preload libraries (default: the newest build)")
    parser.add_argument("--output", type=Path, help="folder for the results (default: bench/results/<machine>)")
    parser.add_argument("--resume", type=Path, metavar="RUNS", help="go on with the series of this file, or begin it")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="RUNS", help="measure nothing: one page of these files")
    return parser.parse_args()


def options_from(args: argparse.Namespace, say: Callable[[str], None]) -> Options:
    options = Options([int(r) for r in args.ranks.split(",")], args.repeats or (1 if args.quick else 3), say=say)
    options.collectives, options.spreads = tuple(args.collectives.split(",")), args.spreads
    if args.quick:
        options.sizes, options.budget_ms, options.most_delay_ms, options.limit_s = "4K,64K,1M,4M", 100, 10, 60
    options.sizes = args.sizes or options.sizes
    options.budget_ms, options.limit_s = args.budget or options.budget_ms, args.limit or options.limit_s
    options.most_delay_ms = args.most_delay or options.most_delay_ms
    preloads = args.preloads or launchers.find_preloads()
    if not preloads:
        sys.exit("arrival: no preload libraries: run ./dev build first")
    options.preloads = preloads
    return options


def main() -> int:
    peers.interrupt_on_termination()
    args = parse()
    stem = "arrival-quick" if args.quick else "arrival"
    began = time.monotonic()
    if args.merge:
        kept = merged(args.merge)
    else:
        options = options_from(args, lambda text: print(text, flush=True))
        launchers.ensure_intel(options.say)
        kept = resumed(args.resume or launchers.ROOT / f"build/bench/{stem}-{time.strftime('%Y%m%d-%H%M%S')}.runs")
        print(f"runs are kept in {kept.path}", flush=True)
        kept.command(" ".join(["bench/arrival.py", *sys.argv[1:]]))
        measure(options, kept)
        if not args.no_training and not any("interrupted" in text for text in kept.failures):
            train(args.quick, kept, options.say)
    if not kept.runs:
        sys.exit("arrival: no run succeeded")
    of = "p10_us" if args.p10 else "median_us"
    page, document = late_page.make(kept, of)
    folder = (args.output or peers.results_folder()).resolve()
    paths = report.write(folder, stem, page, document)
    if drawn := late_page.picture(kept, of):
        paths.append(folder / f"{stem}.svg")
        paths[-1].write_text(drawn)
    for path in paths:
        print(f"wrote {path.relative_to(launchers.ROOT) if path.is_relative_to(launchers.ROOT) else path}")
    wrong = sum(cell["wrong"] for cell in document["cells"])
    print(f"{len(kept.runs)} runs in {time.monotonic() - began:.0f} s, {len(kept.failures)} FAILED, {wrong} wrong results")
    return 1 if kept.failures or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
