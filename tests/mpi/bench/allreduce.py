"""A program for the tests: allreduces of 64 KiB, with a rank that comes late. Usage: allreduce.py [HOW_MANY]"""

import sys
import time

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
given, result = np.full(1 << 14, world.rank + 1, "f"), np.empty(1 << 14, "f")
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 20):
    if world.rank == world.size - 1:
        time.sleep(0.002)
    world.Allreduce(given, result)
assert (result == world.size * (world.size + 1) / 2).all()
