"""Very many communicators, then very many buffers of which none is used twice. Rank 0 prints one line of JSON: what this process
holds after a tenth of them and after all (bytes, mappings, descriptors), and how long the calls in the beginning and at the end
took (medians of a hundred, seconds).

Usage: many.py COMMUNICATORS BUFFERS
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
ELEMENTS = 256  # 2 KiB: more than what travels in a slot
LIVE = 50


def held() -> dict[str, int]:
    """Memory by proportional share: what ranks map of each other's is nobody's more."""
    memory = dict(line.split(":", 1) for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
    return {
        "bytes": int(memory["Pss"].split()[0]) << 10,
        "mappings": len(Path("/proc/self/maps").read_text().splitlines()),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
    }


def expect(found: np.ndarray, total: float) -> None:
    if not (found == total).all():
        sys.exit(f"rank {comm.rank}: wrong numbers")


def repeat(count: int, call) -> dict[str, object]:
    """call(i) for i below count. What is held is looked at after a tenth, when all that is pooled has been made."""
    seconds, early = np.empty(count), {}
    for i in range(count):
        if i == count // 10:
            early = held()
        begin = time.perf_counter()
        call(i)
        seconds[i] = time.perf_counter() - begin
    first, last = np.median(seconds[10:110]), np.median(seconds[-100:])
    return {"early": early, "late": held(), "first": float(first), "last": float(last)}


def communicators(count: int) -> dict[str, object]:
    live: list[MPI.Comm] = []
    out = np.empty(ELEMENTS)

    def one(i: int) -> None:
        made = comm.Dup()
        made.Allreduce(np.full(ELEMENTS, float(i)), out)
        expect(out, comm.size * float(i))
        live.append(made)
        if len(live) > LIVE:
            live.pop(0).Free()

    result = repeat(count, one)
    for made in live:
        made.Free()
    return result


def buffers(count: int) -> dict[str, object]:
    room = np.full((count, ELEMENTS), float(comm.rank))  # touched before anything is counted
    total = comm.size * (comm.size - 1) / 2

    def one(i: int) -> None:
        comm.Allreduce(MPI.IN_PLACE, room[i])
        expect(room[i], total)

    return repeat(count, one)


numbers = {"communicators": communicators(int(sys.argv[1])), "buffers": buffers(int(sys.argv[2]))}
everybody = comm.gather(numbers)
if comm.rank == 0:
    print(json.dumps(everybody))
