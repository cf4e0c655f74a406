#!/usr/bin/env python3
"""What the first calls on new communicators cost: time of the first one, and of the first few together.

    mpiexec -n 2 python bench/first_calls.py [--bytes 524288] [--calls 16] [--communicators 8]

It is an MPI program in mpi4py and NumPy, to be run plainly and under `stretto run`. Each communicator is a new duplicate, in
use by one collective; all are kept to the end, so that none gets memory that another has touched. Times are from a barrier to
the end of each call on rank 0, medians over the communicators.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from mpi4py import MPI

Call = Callable[[MPI.Comm], None]


def calls(size: int, count: int) -> dict[str, Call]:
    """By name. Vectors, and the blocks for all ranks together, have `count` numbers."""
    block = max(1, count // size)
    whole, other = np.ones(block * size), np.zeros(block * size)
    part = np.ones(block)
    return {
        "allreduce": lambda comm: comm.Allreduce(whole, other),
        "reduce": lambda comm: comm.Reduce(whole, other),
        "bcast": lambda comm: comm.Bcast(whole),
        "gather": lambda comm: comm.Gather(part, other),
        "scatter": lambda comm: comm.Scatter(whole, part),
        "allgather": lambda comm: comm.Allgather(part, other),
        "alltoall": lambda comm: comm.Alltoall(whole, other),
        "gatherv": lambda comm: comm.Gatherv(part, (other, [block] * size)),
        "alltoallv": lambda comm: comm.Alltoallv((whole, [block] * size), (other, [block] * size)),
    }


def timed(call: Call, comm: MPI.Comm, times: int) -> list[float]:
    """Microseconds of each."""
    took = []
    for _ in range(times):
        comm.Barrier()
        begin = time.perf_counter()
        call(comm)
        took.append((time.perf_counter() - begin) * 1e6)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=512 << 10, help="of a vector, or of the blocks of all ranks")
    parser.add_argument("--calls", type=int, default=16, help="on each communicator")
    parser.add_argument("--communicators", type=int, default=8)
    options = parser.parse_args()
    world = MPI.COMM_WORLD
    kept = []
    for name, call in calls(world.size, max(1, options.bytes // 8)).items():
        call(world)  # the library's own first time
        runs = []
        for _ in range(options.communicators):
            comm = world.Dup()
            kept.append(comm)
            runs.append(timed(call, comm, options.calls))
        first = statistics.median(run[0] for run in runs)
        together = statistics.median(sum(run) for run in runs)
        if world.rank == 0:
            what = f"{name:<10} {options.bytes:>9} B, {world.size} ranks"
            print(f"{what}: first {first:8.1f} us, first {options.calls} {together:9.1f} us", flush=True)
    for comm in kept:
        comm.Free()


if __name__ == "__main__":
    main()
