"""The training of examples/train.py, whose gradients are summed by MPI_Allreduce and by PMPI_Allreduce, step by step in turn.

A profile sees the former alone: so in one run, and on one machine in one mood, steps with it are compared with steps without.
Writes {"steps": [...]}: seconds of each step on rank 0, of which the second and the third of each four are PMPI's.

    mpirun -n 4 python overhead_training.py --steps 400 --out steps.json
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import numpy as np
import train
from mpi4py import MPI

POINTERS = MPI._sizeof(MPI.COMM_WORLD) == ctypes.sizeof(ctypes.c_void_p)  # handles: Open MPI's are addresses, MPICH's numbers
Handle = ctypes.c_void_p if POINTERS else ctypes.c_int
IN_PLACE = ctypes.c_void_p(1 if POINTERS else -1)


def mapped(part: str) -> list[str]:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return list(dict.fromkeys(line.split()[-1] for line in lines if part in line.rpartition("/")[2]))


class Summation(train.Communicator):
    """Sums float vectors by either name of the function."""

    plain = False

    def __init__(self, comm: MPI.Intracomm) -> None:
        super().__init__(comm)
        library = ctypes.CDLL(mapped("libmpi.so")[0])
        preloads = [ctypes.CDLL(path) for path in mapped("libstretto_")]  # of which one is MPI's, others the arena's and NCCL's
        self.by_mpi = next((one for one in preloads if hasattr(one, "MPI_Allreduce")), library).MPI_Allreduce
        self.by_pmpi = library.PMPI_Allreduce
        self.handles = [Handle.from_address(MPI._addressof(one)) for one in (MPI.FLOAT, MPI.SUM, comm)]

    def sum_in_place(self, array: np.ndarray) -> None:
        if array.dtype != np.float32:
            super().sum_in_place(array)
            return
        call = self.by_pmpi if self.plain else self.by_mpi
        code = call(IN_PLACE, ctypes.c_void_p(array.ctypes.data), ctypes.c_int(array.size), *self.handles)
        if code != 0:
            self.comm.Abort(code)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    comm = Summation(MPI.COMM_WORLD)
    pictures, labels, _ = train.shared_images(comm)
    settings = argparse.Namespace(backend="auto", hidden=1024, seed=1, bucket_mib=4.0, momentum=0.9, rate=0.01)
    trainer = train.Trainer(comm, settings)
    steps = []
    for number in range(options.steps + 8):
        comm.plain = number % 4 in (1, 2)
        batch = np.random.default_rng(comm.size * number + comm.rank).integers(0, len(labels), 8)
        begin = time.perf_counter()
        trainer.step(pictures[batch], labels[batch])
        steps.append(time.perf_counter() - begin)
    if comm.rank == 0:
        options.out.write_text(json.dumps({"steps": steps[8:]}))


if __name__ == "__main__":
    main()
