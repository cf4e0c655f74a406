#!/usr/bin/env python3
"""Every rank computes for a while, then come some Allreduces: mean time of a step.

    mpirun -n 4 python bench/steps.py [--compute 3] [--calls 10] [--bytes 8] [--nonblocking] [--long BYTES] [--window] [--busy 2]

It is an MPI program in mpi4py and NumPy, to be run plainly and under `stretto run`. A rank computes for so many ms of CPU time,
at random 0.5 to 1.5 times as long, the same in every run. With --long, four Allreduces of so many bytes come next. With --busy,
so many processes that compute run beside the ranks.
"""

from __future__ import annotations

import argparse
import contextlib
import time

import numpy as np
from beside_others import busy
from mpi4py import MPI


def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compute", type=float, default=3, help="ms of each rank and step")
    parser.add_argument("--calls", type=int, default=10, help="Allreduces of a step")
    parser.add_argument("--bytes", type=int, default=8, help="of an Allreduce")
    parser.add_argument("--nonblocking", action="store_true", help="Iallreduce and Wait")
    parser.add_argument(
        "--long", type=int, default=0, help="bytes of four Allreduces before the others, which are timed alone then"
    )
    parser.add_argument("--window", action="store_true", help="have a window of one-sided communication")
    parser.add_argument("--busy", type=int, default=0, help="processes that compute beside, started by rank 0")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    comm = MPI.COMM_WORLD
    ours, total = np.ones(max(1, options.bytes // 8)), np.zeros(max(1, options.bytes // 8))
    random = np.random.default_rng(comm.rank)

    def add() -> None:
        if options.nonblocking:
            comm.Iallreduce(ours, total).Wait()
        else:
            comm.Allreduce(ours, total)

    long_ours, long_total = np.ones(options.long // 8), np.zeros(options.long // 8)
    window = MPI.Win.Create(np.zeros(1), comm=comm) if options.window else None

    def step() -> float:
        """Seconds of what is timed."""
        begin = time.perf_counter()
        if options.compute:
            compute(options.compute * 1e-3 * random.uniform(0.5, 1.5))
        if options.long:
            for _ in range(4):
                comm.Allreduce(long_ours, long_total)
            begin = time.perf_counter()
        for _ in range(options.calls):
            add()
        return time.perf_counter() - begin

    with busy(options.busy) if comm.rank == 0 else contextlib.nullcontext():
        for _ in range(5):
            step()
        mean = sum(step() for _ in range(options.steps)) / options.steps
        comm.Barrier()
    if window:
        window.Free()
    if not np.all(total == comm.size):
        comm.Abort(1)
    if comm.rank == 0:
        alone = options.long or not options.compute
        print(
            f"{comm.size} ranks: a step takes {mean * 1e3:.3f} ms"
            + (f", a call {mean / options.calls * 1e6:.3g} us" if alone else "")
        )


if __name__ == "__main__":
    main()
