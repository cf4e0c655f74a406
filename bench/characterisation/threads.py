#!/usr/bin/env python3
"""An mpi4py program with threads, to be characterised: one thread computes and sums gradients, one exchanges borders with the
neighbours, one hands out work, each on a communicator of its own.
"""

from __future__ import annotations

import argparse
import os
import threading

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from mpi4py import MPI


def learn(comm: MPI.Intracomm, steps: int) -> None:
    """Computes, then sums gradients of 4 MiB in buckets of 1 MiB, after 8 bytes that say whether all are ready."""
    random = np.random.default_rng(comm.rank)
    matrix, gradients = random.random((160, 160)), np.zeros(1 << 20, np.float32)
    ready = np.ones(1, np.int64)
    for _ in range(steps):
        matrix = np.tanh(matrix @ matrix.T / 160)
        comm.Allreduce(MPI.IN_PLACE, ready, MPI.BAND)
        for begin in range(0, len(gradients), 1 << 18):
            comm.Allreduce(MPI.IN_PLACE, gradients[begin : begin + (1 << 18)], MPI.SUM)


def exchange(comm: MPI.Intracomm, steps: int) -> None:
    """Borders of 64 KiB to both neighbours in a ring, by nonblocking calls."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    out, into = np.zeros(1 << 13), [np.zeros(1 << 13) for _ in range(2)]
    for _ in range(steps):
        requests = [comm.Irecv(into[0], left, 1), comm.Irecv(into[1], right, 2)]
        requests += [comm.Isend(out, right, 1), comm.Isend(out, left, 2)]
        MPI.Request.Waitall(requests)


def serve(comm: MPI.Intracomm, steps: int) -> None:
    """Rank 0 hands out work to whoever asks; the others ask for some."""
    piece = np.zeros(128)
    status = MPI.Status()
    if comm.rank == 0:
        for _ in range(steps * (comm.size - 1)):
            comm.Recv(piece, MPI.ANY_SOURCE, MPI.ANY_TAG, status)
            comm.Send(piece, status.Get_source(), 4)
        return
    for _ in range(steps):
        comm.Send(piece, 0, 3)
        comm.Recv(piece, 0, 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise SystemExit("this MPI does not allow several threads")
    roles = {"learning": learn, "borders": exchange, "work": serve}
    comms = {}
    for name in roles:
        comms[name] = MPI.COMM_WORLD.Dup()
        comms[name].Set_name(name)
    threads = [threading.Thread(target=run, args=(comms[name], options.steps), name=name) for name, run in roles.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for comm in comms.values():
        comm.Free()
    if MPI.COMM_WORLD.rank == 0:
        print(f"{MPI.COMM_WORLD.size} ranks, {options.steps} steps, {len(roles)} threads each")


if __name__ == "__main__":
    main()
