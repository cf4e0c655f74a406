#!/usr/bin/env python3
"""What Horovod's background thread does to a rank that computes, without Horovod: an mpi4py program.

One thread of each rank asks all ranks once a millisecond whether they are ready (an Allreduce of 8 bytes, MPI_BAND); the other
multiplies matrices. Where the launcher binds ranks to cores, as Open MPI does, both share one: a thread that waits in a loop
keeps it from the other.
"""

from __future__ import annotations

import os
import sys
import threading
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import mpi4py
import numpy as np

mpi4py.rc.thread_level = "multiple"

from mpi4py import MPI  # noqa: E402


class Asking(threading.Thread):
    def __init__(self, comm: MPI.Comm) -> None:
        super().__init__()
        self.comm, self.has_ended, self.cpu_seconds = comm, False, 0.0
        self.waits: list[float] = []

    def run(self) -> None:
        ended = np.zeros(1, np.int64)
        while not ended[0]:
            time.sleep(1e-3)
            begin = time.perf_counter()
            self.comm.Allreduce(np.array([self.has_ended], np.int64), ended, MPI.BAND)
            self.waits.append(time.perf_counter() - begin)
        self.cpu_seconds = time.thread_time()


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 6.0
    asking = Asking(MPI.COMM_WORLD.Dup())
    matrix = np.random.default_rng(1).random((300, 300), np.float32)
    MPI.COMM_WORLD.Barrier()
    begin, products = time.perf_counter(), 0
    computed = time.thread_time()
    asking.start()
    while time.perf_counter() - begin < seconds:
        matrix @ matrix
        products += 1
    wall, computed = time.perf_counter() - begin, time.thread_time() - computed
    asking.has_ended = True
    asking.join()
    waits = np.array(asking.waits)
    mine = (products / wall, computed / wall, asking.cpu_seconds / wall, len(waits) / wall, 1e6 * float(np.median(waits)))
    everyone = MPI.COMM_WORLD.gather(mine)
    if everyone:
        made, computes, asks, number, wait = np.mean(everyone, axis=0)
        print(
            f"{len(everyone)} ranks: {made:.0f} products/s; CPU time {computes:.2f} computing, {asks:.2f} asking; "
            f"{number:.0f} questions/s, {wait:.0f} us each"
        )


if __name__ == "__main__":
    main()
