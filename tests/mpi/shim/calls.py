"""The same as calls.c, in part, from Python: mpi4py calls MPI_X_c where the MPI has it."""

import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
mine, total = numpy.full(8, world.rank + 1.0), numpy.zeros(8)
for _ in range(3):
    world.Allreduce(mine, total)
assert (total == world.size * (world.size + 1) / 2).all()
world.Bcast(total, 0)
world.Barrier()
if world.rank == 0:
    suffix = "_c" if MPI.Get_library_version().startswith("MPICH") and MPI.Get_version() >= (4, 0) else ""
    print(f"MPI_Allreduce{suffix} 3\nMPI_Bcast{suffix} 1\nMPI_Barrier 1")
