#!/usr/bin/env python3
"""Collectives of mpi4py on torch tensors on a GPU, as a rank of an MPI job that has Stretto preloaded: results against torch's
own arithmetic, in mixtures of host and device across ranks; or times, beside the same done by hand through host memory.

Usage, under an MPI launcher (tests/gpu/run does so): tensors.py [--device cuda|cpu] [--times [--by-hand]]

Rank 0 prints a line `right NAME` for each section that is right on all ranks, else `wrong NAME: what`; with --times one line of
JSON (--by-hand: without what hands device buffers to MPI, as plain MPI needs it).

The sections are collectives that Stretto takes over within a node where every rank has a core. Left out is what goes to MPI, that
knows no device memory in builds without CUDA: neighbourhood collectives, intercommunicators, point-to-point and one-sided
messages; nonblocking and persistent reductions with a program's own operations; nonblocking collectives on communicators on which
Stretto has made nothing yet, and those that want staging memory before a blocking one has made it (so these come last).
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import statistics
import sys
import time
import traceback
from collections.abc import Callable

import torch
from mpi4py import MPI

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()
SIZES = (1, 3, 1000, 1 << 16, 1 << 20)
LARGE = 16 << 20  # 64 MiB of float32
TYPES = (torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8)
MIXTURES: dict[str, Callable[[int], bool]] = {  # which ranks have their buffers on the device
    "device": lambda _: True,
    "odd ranks": lambda rank: rank % 2 == 1,
    "rank 0": lambda rank: rank == 0,
}
TIMED = {"4 B": 1, "4 KiB": 1 << 10, "256 KiB": 1 << 16, "4 MiB": 1 << 20, "64 MiB": 16 << 20}  # in float32
DEVICE = torch.device("cpu")


class Wrong(Exception):
    pass


def ready() -> None:
    """MPI wants buffers whose contents are there when it is called."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def values(rank: int, count: int, dtype: torch.dtype = torch.float32, first: int = 0) -> torch.Tensor:
    """Whole numbers so small that sums are exact in every type."""
    return ((torch.arange(first, first + count, device=DEVICE) * 7 + rank * 13) % 50).to(dtype)


def total(count: int, dtype: torch.dtype = torch.float32, ranks: int = SIZE, first: int = 0) -> torch.Tensor:
    return torch.stack([values(rank, count, dtype, first) for rank in range(ranks)]).sum(0).to(dtype)


def put(tensor: torch.Tensor, device: bool) -> torch.Tensor:
    """A copy where the mixture wants it, complete."""
    copy = tensor.clone() if device else tensor.cpu().clone()
    ready()
    return copy


def blank(count: int, device: bool, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return put(torch.full((count,), 99, dtype=dtype, device=DEVICE), device)


def need(found: torch.Tensor, wanted: torch.Tensor, what: str) -> None:
    found = found.to(DEVICE)
    if torch.equal(found, wanted):
        return
    bad = (found != wanted).nonzero().flatten()
    at = int(bad[0])
    raise Wrong(f"{what}: {len(bad)} of {len(wanted)} elements, the first {at}: {found[at].item()}, not {wanted[at].item()}")


# --- sections -------------------------------------------------------------------------------------------------------------


def bcast(here: bool) -> None:
    for count in (*SIZES, LARGE):
        root = count % SIZE
        buffer = put(values(RANK, count), here)
        COMM.Bcast(buffer, root=root)
        need(buffer, values(root, count), f"{count}")


def reduce(here: bool) -> None:
    for count in SIZES:
        root = (count + 1) % SIZE
        send, receive = put(values(RANK, count), here), blank(count, here)
        COMM.Reduce(send, receive if root == RANK else None, op=MPI.SUM, root=root)
        need(receive, total(count) if root == RANK else torch.full_like(values(0, count), 99), f"{count}")
        need(send, values(RANK, count), f"the input of {count}")


def allreduce(here: bool) -> None:
    for count in (*SIZES, LARGE):
        send, receive = put(values(RANK, count), here), blank(count, here)
        COMM.Allreduce(send, receive, op=MPI.SUM)
        need(receive, total(count), f"{count}")
        need(send, values(RANK, count), f"the input of {count}")


def allreduce_types(here: bool) -> None:
    for dtype in TYPES:
        for count in (1, 1000, 1 << 18):
            send, receive = put(values(RANK, count, dtype), here), blank(count, here, dtype)
            COMM.Allreduce(send, receive, op=MPI.SUM)
            need(receive, total(count, dtype), f"sum of {count} {dtype}")
            COMM.Allreduce(send, receive, op=MPI.MAX)
            most = torch.stack([values(rank, count, dtype) for rank in range(SIZE)]).amax(0)
            need(receive, most, f"max of {count} {dtype}")


def allreduce_in_place(here: bool) -> None:
    for count in SIZES:
        buffer = put(values(RANK, count), here)
        COMM.Allreduce(MPI.IN_PLACE, buffer, op=MPI.SUM)
        need(buffer, total(count), f"{count}")


def allgather(here: bool) -> None:
    for count in SIZES:
        send, receive = put(values(RANK, count), here), blank(count * SIZE, here)
        COMM.Allgather(send, receive)
        need(receive, torch.cat([values(rank, count) for rank in range(SIZE)]), f"{count}")


def alltoall(here: bool) -> None:
    for count in SIZES:
        send, receive = put(values(RANK, count * SIZE), here), blank(count * SIZE, here)
        COMM.Alltoall(send, receive)
        need(receive, torch.cat([values(rank, count, first=RANK * count) for rank in range(SIZE)]), f"{count}")


def gather(here: bool) -> None:
    for count in SIZES:
        root = count % SIZE
        send, receive = put(values(RANK, count), here), blank(count * SIZE, here)
        COMM.Gather(send, receive if root == RANK else None, root=root)
        if root == RANK:
            need(receive, torch.cat([values(rank, count) for rank in range(SIZE)]), f"{count}")


def scatter(here: bool) -> None:
    for count in SIZES:
        root = count % SIZE
        send, receive = put(values(root, count * SIZE), here), blank(count, here)
        COMM.Scatter(send if root == RANK else None, receive, root=root)
        need(receive, values(root, count, first=RANK * count), f"{count}")


def reduce_scatter_block(here: bool) -> None:
    for count in SIZES:
        send, receive = put(values(RANK, count * SIZE), here), blank(count, here)
        COMM.Reduce_scatter_block(send, receive, op=MPI.SUM)
        need(receive, total(count, first=RANK * count), f"{count}")


def scan(here: bool) -> None:
    for count in SIZES:
        send, receive = put(values(RANK, count), here), blank(count, here)
        COMM.Scan(send, receive, op=MPI.SUM)
        need(receive, total(count, ranks=RANK + 1), f"{count}")


def slices(here: bool) -> None:
    """Tensors within a larger block of torch's allocator, at odd addresses; their surroundings stay."""
    for count, offset in ((5, 3), (1000, 17), (100_000, 4097)):
        base, target = put(values(RANK, count + 2 * offset), here), blank(count + 2 * offset, here)
        COMM.Allreduce(base[offset : offset + count], target[offset : offset + count], op=MPI.SUM)
        wanted = torch.full_like(values(0, count + 2 * offset), 99)
        wanted[offset : offset + count] = total(count, first=offset)
        need(target, wanted, f"{count} from {offset} on")


def queued(here: bool) -> None:
    """What torch has queued just before a call, and queues just after it."""
    for count in (1000, 1 << 20):
        buffer, result = put(values(RANK, count), here), blank(count, here)
        for _ in range(20):
            buffer = buffer + 1
        ready()
        COMM.Allreduce(buffer, result, op=MPI.SUM)
        need(result * 2, (total(count) + 20 * SIZE) * 2, f"{count}")


def busy_stream(here: bool) -> None:
    """A kernel on a blocking stream, as one of NCCL that waits for a rank which waits in MPI: the call ends before it does."""
    if DEVICE.type != "cuda":
        return
    cudart, handle = torch.cuda.cudart(), ctypes.c_void_p()
    cudart.cudaStreamCreate(ctypes.addressof(handle))
    send, receive = put(values(RANK, 1000), here), blank(1000, here)
    with torch.cuda.stream(torch.cuda.ExternalStream(handle.value)):
        torch.cuda._sleep(4_000_000_000)  # cycles: seconds, where the call takes far less than one
        ended = torch.cuda.Event()
        ended.record()
    COMM.Allreduce(send, receive, op=MPI.SUM)
    waited = ended.query()
    ready()
    cudart.cudaStreamDestroy(handle.value)
    need(receive, total(1000), "the sum")
    if waited:
        raise Wrong("the call waited for another stream")


def other_communicator(here: bool) -> None:
    twin = COMM.Dup()
    half = COMM.Split(RANK % 2, RANK) if SIZE > 2 else twin
    for count in (10, 100_000):
        receive = blank(count, here)
        twin.Allreduce(put(values(RANK, count), here), receive, op=MPI.SUM)
        need(receive, total(count), f"{count}, duplicate")
        if half is not twin:
            half.Allreduce(put(values(RANK, count), here), receive, op=MPI.SUM)
            need(receive, torch.stack([values(rank, count) for rank in range(RANK % 2, SIZE, 2)]).sum(0), f"{count}, half")
    if half is not twin:
        half.Free()
    twin.Free()


def nonblocking(here: bool) -> None:
    for count in (1, 1000, 1 << 20):
        send, sums, root = put(values(RANK, count), here), blank(count, here), count % SIZE
        moved = put(values(RANK, count), here)
        requests = [COMM.Iallreduce(send, sums, op=MPI.SUM), COMM.Ibcast(moved, root=root)]
        time.sleep(0.003 * RANK)
        MPI.Request.Waitall(requests)
        need(sums, total(count), f"sum of {count}")
        need(moved, values(root, count), f"broadcast of {count}")


def persistent(here: bool) -> None:
    for count in (1, 1000, 1 << 18):
        send, sums = put(values(RANK, count), here), blank(count, here)
        request = COMM.Allreduce_init(send, sums, op=MPI.SUM)
        for step in range(4):
            send.copy_(values(RANK, count) + step)
            ready()
            request.Start()
            request.Wait()
            need(sums, total(count) + step * SIZE, f"{count}, start {step}")
        request.Free()


SECTIONS = (
    bcast,
    reduce,
    allreduce,
    allreduce_types,
    allreduce_in_place,
    allgather,
    alltoall,
    gather,
    scatter,
    reduce_scatter_block,
    scan,
    slices,
    queued,
    busy_stream,
    other_communicator,
    nonblocking,
    persistent,
)


def check(name: str, section: Callable[[bool], None], here: bool) -> bool:
    problem = ""
    try:
        section(here)
    except Wrong as wrong:
        problem = str(wrong)
    except Exception:  # MPI's or torch's: the other ranks may wait for this one, so all end
        print(f"wrong {name}: rank {RANK}: {traceback.format_exc()}", file=sys.stderr, flush=True)
        COMM.Abort(3)
    problems = [f"rank {rank}: {what}" for rank, what in enumerate(COMM.allgather(problem)) if what]
    if RANK == 0:
        print(f"wrong {name}: {'; '.join(problems)}" if problems else f"right {name}", flush=True)
    return not problems


def check_all() -> bool:
    good = True
    for mixture, chosen in MIXTURES.items():
        for section in SECTIONS:
            good &= check(f"{section.__name__}, {mixture}", section, chosen(RANK))
    return good


# --- times ----------------------------------------------------------------------------------------------------------------


def measure(step: Callable[[], None]) -> float:
    """Median in microseconds of the slowest rank's time, all beginning together."""
    spent: list[float] = []
    step()
    step()
    repeats, begin = 100, time.perf_counter()
    while len(spent) < repeats:
        COMM.Barrier()
        before = time.perf_counter()
        step()
        spent.append(time.perf_counter() - before)
        if len(spent) == 5:  # about half a second
            repeats = COMM.bcast(max(5, min(100, int(2.5 / (time.perf_counter() - begin)))))
    slowest = [max(column) for column in zip(*COMM.allgather(spent), strict=True)]
    return float(round(statistics.median(slowest) * 1e6, 1))


def variants(count: int) -> dict[str, Callable[[], None]]:
    send, receive = put(values(RANK, count), True), blank(count, True)
    pinned_in, pinned_out = (torch.empty(count, dtype=torch.float32, pin_memory=DEVICE.type == "cuda") for _ in range(2))
    host_in, host_out = torch.zeros(count), torch.zeros(count)

    def by_hand() -> None:
        host = send.cpu()
        COMM.Allreduce(MPI.IN_PLACE, host, op=MPI.SUM)
        receive.copy_(host)
        ready()

    def by_hand_pinned() -> None:
        pinned_in.copy_(send)
        COMM.Allreduce(pinned_in, pinned_out, op=MPI.SUM)
        receive.copy_(pinned_out, non_blocking=True)
        ready()

    def move_by_hand() -> None:
        host = send.cpu() if RANK == 0 else host_in
        COMM.Bcast(host)
        if RANK:
            receive.copy_(host)
        ready()

    def move_by_hand_pinned() -> None:
        if RANK == 0:
            pinned_in.copy_(send)
        COMM.Bcast(pinned_in)
        if RANK:
            receive.copy_(pinned_in, non_blocking=True)
        ready()

    def copies(host: torch.Tensor) -> None:
        host.copy_(send)
        receive.copy_(host)
        ready()

    return {
        "Allreduce on the device": lambda: COMM.Allreduce(send, receive, op=MPI.SUM),
        "Allreduce by hand": by_hand,
        "Allreduce by hand, pinned": by_hand_pinned,
        "Allreduce on the host": lambda: COMM.Allreduce(host_in, host_out, op=MPI.SUM),
        "Bcast on the device": lambda: COMM.Bcast(send if RANK == 0 else receive),
        "Bcast by hand": move_by_hand,
        "Bcast by hand, pinned": move_by_hand_pinned,
        "out and in, no MPI": lambda: copies(host_in),
        "out and in, no MPI, pinned": lambda: copies(pinned_in),
    }


def column_variants(count: int) -> dict[str, Callable[[], None]]:
    """One column of a square matrix of `count` elements."""
    side = math.isqrt(count)
    send, receive = put(values(RANK, count), True), blank(count, True)
    column, host_column = (send if RANK == 0 else receive).view(side, side)[:, 0], torch.zeros(side)
    datatype = MPI.FLOAT.Create_vector(side, 1, side).Commit()

    def by_hand() -> None:
        host = column.cpu().contiguous() if RANK == 0 else host_column
        COMM.Bcast(host)
        if RANK:
            column.copy_(host)
        ready()

    return {
        "Bcast of a column on the device": lambda: COMM.Bcast([send if RANK == 0 else receive, 1, datatype]),
        "Bcast of a column by hand": by_hand,
    }


def measure_all(by_hand: bool) -> None:
    rows: dict[str, dict[str, float]] = {}
    for size, count in TIMED.items():
        for name, step in (variants(count) | (column_variants(count) if count == LARGE else {})).items():
            if by_hand and name.endswith("on the device"):
                continue
            rows.setdefault(name, {})[size] = measure(step)
            if RANK == 0:
                print(f"timed {name}, {size}", file=sys.stderr, flush=True)
    if RANK == 0:
        print(json.dumps({"library": MPI.Get_library_version().split("\n")[0][:40], "ranks": SIZE, "us": rows}), flush=True)


def main() -> int:
    global DEVICE
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--by-hand", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.device == "cuda":
        torch.cuda.set_device(0)
    DEVICE = torch.device(arguments.device)
    if arguments.times:
        measure_all(arguments.by_hand)
        return 0
    return 0 if check_all() else 1


if __name__ == "__main__":
    sys.exit(main())
