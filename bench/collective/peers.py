#!/usr/bin/env python3
"""Measures Open MPI, MPICH and Intel MPI, each at several settings, and Stretto under the first two, side by side.

Runs take turns: each repeat goes through all of them once, so that a machine's moods meet all alike.
Writes bench/results/<machine>/collectives.md and .json (peers.md and .json with --peers-only).
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import goals
import launchers
import machine
import tables
from tables import Json

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


def measure(options: Options) -> tuple[list[tables.Run], list[str]]:
    """All runs that ended well, and a line for each that did not. An interrupt ends the series early."""
    runs: list[tables.Run] = []
    failures: list[str] = []
    jobs = [job for _ in range(options.repeats) for job in plan(options)]
    for number, job in enumerate(jobs, 1):
        began = time.monotonic()
        try:
            lines = launchers.run(job.peer, job.config, job.ranks, machine.cores(), arguments(job, options), stretto=job.preload)
            runs.append(tables.Run(job.peer.key, job.config.name, job.preload is not None, lines))
            outcome = f"{time.monotonic() - began:.1f} s"
        except launchers.RunFailed as why:
            failures.append(f"{job.title()}: {why}")
            outcome = f"FAILED: {why}"
        except KeyboardInterrupt:
            failures.append(f"interrupted after {number - 1} of {len(jobs)} runs")
            options.say(failures[-1])
            break
        options.say(f"[{number}/{len(jobs)}] {job.title()}: {outcome}")
    return runs, failures


def _versions(runs: list[tables.Run]) -> dict[str, str]:
    found = {run.peer: run.lines[0]["library"].split(" for ")[0].split(", package")[0] for run in runs}
    return {peer: " ".join(text.replace("Version:", "").replace("Library ", "").split()) for peer, text in found.items()}


def _settings_used(cells: list[tables.Cell], peers: dict[str, str]) -> str:
    """How often each peer's settings were its best."""
    lines = []
    for peer, title in peers.items():
        counts: dict[str, int] = {}
        for cell in cells:
            if peer in cell.peers:
                name = cell.peers[peer].settings
                counts[name] = counts.get(name, 0) + 1
        lines.append(f"- {title}: " + ", ".join(f"{name} ({count} points)" for name, count in counts.items()))
    return "\n".join(lines) + "\n"


METHOD = """\
Times are microseconds: medians over {repeats} run(s), each the median over its samples; **bold** is the best peer. Inputs are
rewritten before every call. *Calls from a common start*: all ranks leave a barrier of the benchmark's own together; the
time is from the last entry to the last exit (with more ranks than cores: from the first entry). *Back to back*: time per
call of a batch with the root moving on, rewriting the inputs included. "/ best peer" is Stretto's time divided by the best
peer's at its best settings; "/ PMPI in run" compares MPI_X with PMPI_X, called in turn within one run.
"""


def report(
    options: Options, runs: list[tables.Run], failures: list[str], declining: list[Json], command: str
) -> tuple[str, Json]:
    """The Markdown page and the JSON document. `declining`: decline lines of collective_bench, with "host" and "how"."""
    cells = tables.merge(runs)
    versions = _versions(runs)
    described = machine.describe()
    hops = [hop for run in runs for hop in run.hops()]
    if hops:
        described["cache line from core to core"] = f"{min(hops):.0f} to {max(hops):.0f} ns during the runs"
    verdicts = goals.judge(cells, declining) if options.preloads else []
    page = ["# Collectives on one node" if options.preloads else "# The peers' collectives on one node", ""]
    page += [f"- {key}: {value}" for key, value in described.items()]
    page += [f"- command: `{command}`", "", METHOD.format(repeats=options.repeats)]
    if verdicts:
        page += ["## Goals", "", goals.markdown(verdicts)]
    page += ["## Times", "", tables.markdown(cells, versions)]
    if declining:
        page += ["## What loaded but declining costs", "", declining_table(declining)]
    page += ["## Settings that were best", "", _settings_used(cells, versions)]
    if failures:
        page += ["## Runs that failed", "", *[f"- {line}" for line in failures], ""]
    document = {
        "machine": described,
        "command": command,
        "versions": versions,
        "repeats": options.repeats,
        "goals": [verdict.as_json() for verdict in verdicts],
        "cells": [cell.as_json() for cell in cells],
        "declining": declining,
        "failures": failures,
    }
    return "\n".join(page), document


def declining_table(declining: list[Json]) -> str:
    rows = [
        f"| {d['host']} | {d['how']} | {d['call']} | {d['mpi_ns']:.0f} | {d['pmpi_ns']:.0f} | {d['extra_ns']:.0f} |"
        for d in declining
    ]
    return "\n".join(["| MPI | ranks | call | MPI_X ns | PMPI_X ns | extra ns |", "|---|---|---|---:|---:|---:|", *rows]) + "\n"


def _compact(document: Json) -> str:
    """JSON with a line per cell, so that two results can be compared line by line."""
    parts = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            body = "[\n  " + ",\n  ".join(json.dumps(item) for item in value) + "\n ]"
        else:
            body = json.dumps(value)
        parts.append(f' "{key}": {body}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def write(folder: Path, stem: str, page: str, document: Json) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{stem}.md", folder / f"{stem}.json"]
    paths[0].write_text(page)
    paths[1].write_text(_compact(document))
    return paths


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
    page, document = report(options, runs, failures, [], "bench/collective/peers.py " + " ".join(sys.argv[1:]))
    for path in write(results_folder(), "peers" if args.peers_only else "collectives", page, document):
        print(path.relative_to(launchers.ROOT))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
