"""Known traffic from Python: objects, arrays, threads, communicators. Prints what was done as the C programs do (truth.h)."""

import os
import threading
from pathlib import Path

import mpi4py

mpi4py.rc.thread_level = "multiple"
from mpi4py import MPI  # noqa: E402

ROUNDS = 100
world = MPI.COMM_WORLD
rank, size = world.rank, world.size
right, left = (rank + 1) % size, (rank - 1) % size
said: list[str] = []
lock = threading.Lock()


def say(*lines: str) -> None:
    with lock:
        said.extend(lines)


def exchange(comm: MPI.Comm, me: int) -> None:
    out, back = bytearray(1000), bytearray(1000)
    for i in range(ROUNDS):
        count = 1 + i * (me + 1)
        request = comm.Irecv([back, 1000, MPI.BYTE], MPI.ANY_SOURCE, 5)
        comm.Send([out, count, MPI.BYTE], right, 5)
        request.Wait()
        say(
            "call MPI_Irecv - 0 1000 0 0",
            f"call MPI_Send - {count} 0 0 0",
            "call MPI_Wait - 0 0 0 0",
            f"traffic sent {right} {count}",
            f"traffic received {left} {count}",
        )


comms = [world.Dup() for _ in range(3)]
say(*["call MPI_Comm_dup - 0 0 0 0"] * 3)
threads = [threading.Thread(target=exchange, args=(comm, i)) for i, comm in enumerate(comms)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for comm in comms:
    comm.Free()
say(*["call MPI_Comm_free - 0 0 0 0"] * 3)
ones, total = bytearray(8 * 10), bytearray(8 * 10)
for _ in range(ROUNDS):
    world.Allreduce([ones, MPI.DOUBLE], [total, MPI.DOUBLE])
say(*["call MPI_Allreduce - 80 80 0 0"] * ROUNDS)
said.append("end")
Path(os.environ["TRUTH"], str(rank)).write_text("\n".join(said) + "\n")
