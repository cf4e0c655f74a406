"""Collectives on NumPy arrays that lie in the arena on some ranks and elsewhere on others, that come and go between calls, and
what becomes of the memory of those that went. Prints "right" on rank 0."""

import contextlib
import gc
import mmap
import os
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
random = np.random.default_rng(rank)  # differs from rank to rank: so does where its buffers are
shared = np.random.default_rng(5)
wrong: list[str] = []


def arena() -> tuple[int, int]:
    """Where the own arena begins and ends. Other libraries' calls (mbind, madvise) may have cut its mapping into several lines,
    of which each says how far into the arena it begins; the peers' arenas are mapped with the same name."""
    block = np.empty(1 << 17)
    with Path("/proc/self/maps").open() as maps:
        lines = [line.split() for line in maps if "memfd:stretto-arena" in line]
    ranges = [(*(int(part, 16) for part in line[0].split("-")), int(line[2], 16), line[4]) for line in lines]
    for first, last, offset, inode in ranges:
        if first <= block.ctypes.data < last:
            return first - offset, max(end for _, end, _, other in ranges if other == inode)
    sys.exit("no arena")


FIRST, LAST = arena()
HUGE = 2 << 20


def inside(array: np.ndarray) -> bool:
    return FIRST <= array.ctypes.data < LAST


def elsewhere(count: int) -> np.ndarray:
    array = np.frombuffer(mmap.mmap(-1, 8 * count), dtype=np.float64)
    assert not inside(array)
    return array


def in_arena(count: int) -> np.ndarray:
    array = np.empty(count)
    assert count * 8 < 65536 or inside(array)
    return array


def anywhere(count: int) -> np.ndarray:
    kind = random.integers(4)
    if kind == 0:
        return elsewhere(count)
    whole = in_arena(count + 1000)
    begin = int(random.integers(1000))
    return whole[begin : begin + count] if kind < 3 else in_arena(count)


def check(what: str, found: np.ndarray, expected: np.ndarray) -> None:
    if not np.array_equal(found, expected):
        wrong.append(f"{what}: rank {rank}, {np.count_nonzero(found != expected)} of {len(found)} elements")


def one_round(place: object) -> None:
    count = int(2 ** shared.uniform(8, 19))
    root = int(shared.integers(size))
    pattern = np.arange(count) % 11
    total = size * (size - 1) / 2 + size * pattern
    given, taken = place(count), place(count)
    given[:] = rank + pattern
    taken[:] = -1
    comm.Allreduce(given, taken)
    check("Allreduce", taken, total)
    check("the input of Allreduce", given, rank + pattern)
    taken[:] = rank + pattern
    comm.Allreduce(MPI.IN_PLACE, taken)
    check("Allreduce in place", taken, total)
    taken[:] = -1
    comm.Reduce(given, taken if rank == root else None, root=root)
    check("Reduce", taken, total if rank == root else np.full(count, -1.0))
    taken[:] = given if rank == root else -1
    comm.Bcast(taken, root)
    check("Bcast", taken, root + pattern)


def rounds() -> None:
    for _ in range(12):
        for place in (in_arena, anywhere, elsewhere):
            one_round(place)


def freed_memory_stays_free() -> None:
    """A peer that reads a hole of shared memory gives it a page. So what was freed and returned must have none later."""
    array = in_arena(50_000_000)  # more than the arena keeps
    array[:] = rank
    # Huge pages that reach beyond the ends may stay.
    offset = (array.ctypes.data - FIRST + HUGE - 1) // HUGE * HUGE
    length = array.nbytes - 2 * HUGE
    comm.Allreduce(MPI.IN_PLACE, array)
    check("Allreduce of 400 MB", array[::4096], np.full(len(array[::4096]), size * (size - 1) / 2))
    kept = [in_arena(300_000) for _ in range(4)]
    del array
    gc.collect()
    if pages_in(offset, length):
        wrong.append("freed memory was not returned")
    comm.Barrier()
    for mine in kept:
        mine[:] = rank
        comm.Allreduce(MPI.IN_PLACE, mine)
        comm.Bcast(mine, 0)
    comm.Barrier()
    if pages_in(offset, length):
        wrong.append("a peer has touched freed memory")


def descriptor() -> int:
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the listing's own
            if "stretto-arena" in str(link.readlink()):
                return int(link.name)
    sys.exit("the arena's descriptor is gone")


def pages_in(offset: int, length: int) -> bool:
    try:
        return os.lseek(descriptor(), offset, os.SEEK_DATA) < offset + length
    except OSError:
        return False  # no data behind


def torch_tensors() -> None:
    try:
        import torch
    except ImportError:
        return
    tensor = torch.full((200_000,), float(rank))
    array = tensor.numpy()
    if not inside(array):
        wrong.append("a tensor lies outside the arena")
    comm.Allreduce(MPI.IN_PLACE, array)
    if not bool((tensor == size * (size - 1) / 2).all()):
        wrong.append("Allreduce of a tensor")


rounds()
torch_tensors()
freed_memory_stays_free()
rounds()
problems = comm.allreduce(wrong)
if rank == 0:
    print("right" if not problems else "\n".join(problems[:20]))
