#!/usr/bin/env python3
"""One rank after the other computes while the others wait for it in an Allreduce: time of a step, and of its computing.

    mpiexec -n 8 python bench/late_rank.py [--bytes 1024] [--nonblocking]

It is an MPI program in mpi4py and NumPy, to be run plainly and under `stretto run`. Where ranks share cores, the two times differ
by what the waiting of the others takes from the one that computes, and by the Allreduce.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from mpi4py import MPI

NUMBERS = 1 << 18  # to be sorted: some ten milliseconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=1024, help="of the Allreduce")
    parser.add_argument("--nonblocking", action="store_true", help="Iallreduce and Wait")
    parser.add_argument("--steps", type=int, default=48)
    options = parser.parse_args()
    comm = MPI.COMM_WORLD
    numbers = np.random.default_rng(1).random(NUMBERS)
    ours, total = np.ones(max(1, options.bytes // 8)), np.zeros(max(1, options.bytes // 8))

    def compute() -> float:
        """CPU time."""
        begin = time.process_time()
        np.sort(numbers)
        return time.process_time() - begin

    def add() -> None:
        if options.nonblocking:
            comm.Iallreduce(ours, total).Wait()
        else:
            comm.Allreduce(ours, total)

    compute()
    for _ in range(5):
        add()
    steps, computing = [], []
    for step in range(options.steps):
        begin = time.perf_counter()
        if step % comm.size == comm.rank:
            computing.append(compute())
        add()
        steps.append(time.perf_counter() - begin)
    alone = [one for many in comm.allgather(computing) for one in many]
    if comm.rank == 0:
        step_ms, of_that = statistics.median(steps) * 1e3, statistics.median(alone) * 1e3
        print(f"{comm.size} ranks, {options.bytes} bytes: a step takes {step_ms:.2f} ms, its computing {of_that:.2f} of CPU time")


if __name__ == "__main__":
    main()
