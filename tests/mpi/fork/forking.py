"""Ranks that fork in the middle of collectives: subprocesses, children that only leave, a pool of worker processes that
read and write the parent's arrays. Prints "right" on rank 0."""

import multiprocessing
import os
import subprocess
import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
data = np.empty(100_000)
wrong = []


def collectives(when: str) -> None:
    """All four, small and large, on buffers that children have seen."""
    for count in (1, 60, 2000, len(data)):
        data[:count] = rank + np.arange(count) % 5
        total = np.empty(count)
        comm.Allreduce(data[:count], total)
        expected = size * (size - 1) / 2 + size * (np.arange(count) % 5)
        if not np.array_equal(total, expected):
            wrong.append(f"Allreduce of {count} {when}")
        comm.Reduce(MPI.IN_PLACE if rank == 0 else total, total if rank == 0 else None, MPI.MAX, 0)
        if rank == 0 and not np.array_equal(total, expected):
            wrong.append(f"Reduce of {count} {when}")
        comm.Bcast(total, size - 1)
        if not np.array_equal(total, expected):
            wrong.append(f"Bcast of {count} {when}")
        comm.Barrier()


def leave_at_once() -> None:
    child = os.fork()
    if child == 0:
        data[:] = -1  # the child's copy
        os._exit(7)
    collectives("while a child leaves")
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 7:
        wrong.append("the child's exit code")


def run_program() -> None:
    """A program that is no MPI program inherits the preload."""
    done = subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True)
    if (done.returncode, done.stdout, done.stderr) != (0, "42\n", ""):
        wrong.append(f"a subprocess: {done}")


def batch(number: int) -> float:
    data[:] = number
    return float(data.sum())


def load_with_workers() -> None:
    """As a data loader does: workers prepare batches while the ranks communicate."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pending = [pool.apply_async(batch, (number,)) for number in range(6)]
        collectives("while workers run")
        if [p.get(30) for p in pending] != [number * len(data) for number in range(6)]:
            wrong.append("the workers' batches")


collectives("before any fork")
for _ in range(3):
    leave_at_once()
    run_program()
    collectives("after a subprocess")
    load_with_workers()
    if rank == 0:
        leave_early = os.fork()  # on one rank only, alive until after the last collective
        if leave_early == 0:
            os.execvp("sleep", ["sleep", "0.2"])
    collectives("while one rank has a child")
    if rank == 0:
        os.waitpid(leave_early, 0)

problems = comm.allreduce(wrong)
if rank == 0:
    print("right" if not problems else "\n".join(problems))
