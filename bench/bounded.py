#!/usr/bin/env python3
"""Whether calls become slower: the last hundred of 10,000 communicators, and of 100,000 buffers of which none is used twice, must
not take more than twice as long as the first hundred (medians, of the slower rank).

    .venv/bin/python bench/bounded.py [--mpi NAME] [--tries 3]

Two ranks of each MPI of the checkout, by every way to read buffers. What is beyond is tried again, as the machine may have been
busy with something else; exit code 1 where it never was within.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "mpi" / name) for name in ("bounded", "common")]

from many_job import WAYS, run_many  # noqa: E402
from mpi_job import Mpi, installations  # noqa: E402

COMMUNICATORS, BUFFERS = 10_000, 100_000
MOST = 2.0


class Slowing(NamedTuple):
    first: float  # seconds
    last: float

    @property
    def ratio(self) -> float:
        return self.last / self.first


def measure(mpi: Mpi, way: str) -> dict[str, Slowing]:
    """By what there were many of."""
    ranks, problem = run_many(mpi, way, COMMUNICATORS, BUFFERS)
    if problem:
        sys.exit(f"{mpi.name}, {way}:\n{problem}")
    return {
        what: Slowing(*(max(rank[what][when] for rank in ranks) for when in ("first", "last")))
        for what in ("communicators", "buffers")
    }


def measure_often(mpi: Mpi, way: str, tries: int) -> dict[str, Slowing]:
    """Of each, the try in which it slowed down least; no more tries than needed."""
    best: dict[str, Slowing] = {}
    for _ in range(tries):
        for what, slowing in measure(mpi, way).items():
            best[what] = min(best.get(what, slowing), slowing, key=lambda one: one.ratio)
        if all(slowing.ratio <= MOST for slowing in best.values()):
            break
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", help="only this installation")
    parser.add_argument("--tries", type=int, default=3)
    words = parser.parse_args()
    slow = False
    print("| | of | first hundred | last hundred | ratio |\n| --- | --- | --- | --- | --- |")
    for mpi in installations():
        for way in WAYS if words.mpi in (None, mpi.name) else ():
            for what, one in measure_often(mpi, way, words.tries).items():
                slow = slow or one.ratio > MOST
                print(
                    f"| {mpi.name}, {way} | {what} | {1e6 * one.first:.1f} us | {1e6 * one.last:.1f} us | {one.ratio:.2f} |",
                    flush=True,
                )
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
