#!/usr/bin/env python3
"""What a wrapped call costs: nanoseconds of MPI_X beyond those of PMPI_X, on one rank, where Stretto takes nothing over.

    calls.py [--preloads FOLDER [FOLDER]] [--rounds 3] [--budget 40]

With two folders of preload libraries (before, after) both are measured in turn: before, after, after, before. A figure is
the least 10th percentile over blocks of calls, of all runs of its kind: other processes only make calls slower.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "collective")]

import run  # noqa: E402

import launchers  # noqa: E402
import machine  # noqa: E402
from runs import Json  # noqa: E402

WAYS = {
    "declining": {"STRETTO_ACCELERATE": "off"},
    "sums": {"STRETTO_ACCELERATE": "off", "STRETTO_PROFILE": "aggregate"},
    "every call": {"STRETTO_ACCELERATE": "off", "STRETTO_PROFILE": "full", "STRETTO_TRACE_MIB": "4096"},
}
Figures = dict[tuple[str, str, str, int], list[tuple[float, float]]]  # MPI, call, way, which folder: MPI_X, PMPI_X


def measure(peer: launchers.Peer, way: str, preload: Path, budget_ms: float) -> list[Json]:
    program = launchers.collective_bench(peer, "--decline", "--budget", str(budget_ms))
    with tempfile.TemporaryDirectory() as folder:
        stretto = launchers.Stretto(preload, settings={**WAYS[way], "STRETTO_RECORD_DIR": folder})
        lines = launchers.run(peer, peer.configs[0], 1, machine.cores(), program, stretto=stretto)
    return [line for line in lines if line["kind"] == "decline"]


def measure_all(options: argparse.Namespace) -> Figures:
    folders = list(enumerate(options.preloads))
    figures: Figures = defaultdict(list)
    for _ in range(options.rounds):
        for number, folder in folders + folders[::-1]:
            for peer in launchers.PEERS:
                if peer.key not in options.mpi or not peer.available():
                    continue
                for way in WAYS:
                    for line in measure(peer, way, folder / peer.preload, options.budget):
                        figures[peer.title, str(line["call"]), way, number].append((line["mpi_ns"], line["pmpi_ns"]))
    return figures


def extra(runs: list[tuple[float, float]]) -> float:
    return min(mpi for mpi, _ in runs) - min(pmpi for _, pmpi in runs)


def table(figures: Figures, folders: int) -> str:
    columns = [(way, number) for way in WAYS for number in range(folders)]
    words = ("",) if folders == 1 else (", before", ", after")
    rows = ["| MPI | call | " + " | ".join(f"{way}{words[number]}" for way, number in columns) + " |"]
    rows.append("|---|---|" + "---:|" * len(columns))
    for title, call in dict.fromkeys((title, call) for title, call, _, _ in figures):
        cells = [f"{extra(figures[title, call, way, number]):.0f}" for way, number in columns]
        rows.append(f"| {title} | {call} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = launchers.ROOT / "build/release/src/shim"
    parser.add_argument("--preloads", type=Path, nargs="+", default=[default], help=f"default: {default}")
    parser.add_argument("--mpi", nargs="+", default=["openmpi", "mpich"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=40, help="ms for each call of a run")
    options = parser.parse_args()
    run.build(lambda text: print(text, flush=True))
    print(table(measure_all(options), len(options.preloads)))


if __name__ == "__main__":
    main()
