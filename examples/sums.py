#!/usr/bin/env python3
"""The smallest program worth accelerating: sums over all ranks, in plain mpi4py."""

import time

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
for count in (1, 128, 4096, 262144):
    mine, total = np.full(count, comm.rank + 1.0), np.empty(count)
    repeats = 2000 if count < 10000 else 100
    comm.Barrier()
    begin = time.perf_counter()
    for _ in range(repeats):
        comm.Allreduce(mine, total)
    seconds = (time.perf_counter() - begin) / repeats
    assert np.all(total == comm.size * (comm.size + 1) / 2)
    if comm.rank == 0:
        print(f"Allreduce of {total.nbytes:8} bytes over {comm.size} ranks: {seconds * 1e6:9.1f} us")
