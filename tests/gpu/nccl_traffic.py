#!/usr/bin/env python3
"""A rank that makes known traffic with torch.distributed, and says in a file what it did and when.

Usage, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set (tests/gpu/run does so):
nccl_traffic.py known|graph|times LOG [--backend nccl|gloo] [--device cuda|cpu]

LOG becomes JSON: rank, size, pid, versions, and
  steps   what NCCL was asked for, each with the ns of CLOCK_MONOTONIC before the call and after all of it was done on the
          GPU; a call is [function without "nccl", bytes sent, bytes received, datatype, op, root or peer]
  times   with `times`: what a small all_reduce takes
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
NAMES = {
    torch.uint8: "ncclUint8",
    torch.int32: "ncclInt32",
    torch.int64: "ncclInt64",
    torch.float16: "ncclFloat16",
    torch.bfloat16: "ncclBfloat16",
    torch.float32: "ncclFloat32",
    torch.float64: "ncclFloat64",
}
PAUSE = 0.02  # between steps, so that it is clear which an event belongs to
REPLAYS = 3
DEVICE = torch.device("cpu")
Call = list[Any]


def ready() -> None:
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def ones(count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    tensor = torch.ones(count, dtype=dtype, device=DEVICE)
    ready()
    return tensor


def call(function: str, count: int, dtype: torch.dtype, shares: tuple[int, int], op: str = "", peer: int = -1) -> Call:
    unit = count * torch.empty(0, dtype=dtype).element_size()
    return [function, unit * shares[0], unit * shares[1], NAMES[dtype], op, peer]


class Traffic:
    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []

    def step(self, name: str, calls: list[Call], act: Callable[[], Any]) -> None:
        time.sleep(PAUSE)
        entry: dict[str, Any] = {"name": name, "calls": calls, "begin": time.monotonic_ns(), "problem": ""}
        try:
            act()
            ready()
        except (RuntimeError, ValueError, TypeError, AttributeError, NotImplementedError) as problem:
            entry["problem"] = f"{type(problem).__name__}: {str(problem).splitlines()[0]}"
        entry["end"] = time.monotonic_ns()
        self.steps.append(entry)

    def all_reduce(self, count: int, dtype: torch.dtype, op: str) -> None:
        tensor = ones(count, dtype)
        named = call("AllReduce", count, dtype, (1, 1), f"nccl{op.capitalize()}")
        self.step(f"all_reduce {op}", [named], lambda: dist.all_reduce(tensor, getattr(dist.ReduceOp, op.upper())))
        wanted = SIZE if op == "sum" else 1
        if not self.steps[-1]["problem"] and not bool((tensor == wanted).all()):
            self.steps[-1]["problem"] = f"wrong numbers: {tensor[0].item()}, not {wanted}"

    def broadcast(self, count: int, dtype: torch.dtype, root: int) -> None:
        tensor = ones(count, dtype)
        mine = root == RANK
        named = call("Bcast", count, dtype, (int(mine), int(not mine)), "", root)
        self.step("broadcast", [named], lambda: dist.broadcast(tensor, root))

    def reduce(self, count: int, dtype: torch.dtype, root: int) -> None:
        tensor = ones(count, dtype)
        named = call("Reduce", count, dtype, (1, int(root == RANK)), "ncclSum", root)
        self.step("reduce", [named], lambda: dist.reduce(tensor, root))

    def all_gather(self, count: int, dtype: torch.dtype) -> None:
        tensor, result = ones(count, dtype), ones(count * SIZE, dtype)
        named = call("AllGather", count, dtype, (1, SIZE))
        self.step("all_gather_into_tensor", [named], lambda: dist.all_gather_into_tensor(result, tensor))

    def reduce_scatter(self, count: int, dtype: torch.dtype) -> None:
        tensor, result = ones(count * SIZE, dtype), ones(count, dtype)
        named = [call("ReduceScatter", count, dtype, (SIZE, 1), "ncclSum")] if SIZE > 1 else []  # torch copies
        self.step("reduce_scatter_tensor", named, lambda: dist.reduce_scatter_tensor(result, tensor))

    def all_to_all(self, count: int, dtype: torch.dtype) -> None:
        tensor, result = ones(count * SIZE, dtype), ones(count * SIZE, dtype)
        named = call("AlltoAll", count, dtype, (SIZE, SIZE))
        self.step("all_to_all_single", [named], lambda: dist.all_to_all_single(result, tensor))

    def message(self, count: int, dtype: torch.dtype, source: int) -> None:
        tensor, other = ones(count, dtype), 1 - RANK
        if source == RANK:
            self.step("send", [call("Send", count, dtype, (1, 0), "", other)], lambda: dist.send(tensor, other))
        else:
            self.step("recv", [call("Recv", count, dtype, (0, 1), "", other)], lambda: dist.recv(tensor, other))

    def exchange(self, count: int, dtype: torch.dtype) -> None:
        tensor, result, other = ones(count, dtype), ones(count, dtype), 1 - RANK
        named = [call("Send", count, dtype, (1, 0), "", other), call("Recv", count, dtype, (0, 1), "", other)]

        def act() -> None:
            operations = [dist.P2POp(dist.isend, tensor, other), dist.P2POp(dist.irecv, result, other)]
            for work in dist.batch_isend_irecv(operations):
                work.wait()

        self.step("batch_isend_irecv", named, act)

    def coalesced(self, counts: tuple[int, ...], dtype: torch.dtype) -> None:
        tensors = [ones(count, dtype) for count in counts]
        named = [call("AllReduce", count, dtype, (1, 1), "ncclSum") for count in counts]

        def act() -> None:
            with dist._coalescing_manager(device=DEVICE, async_ops=False):
                for tensor in tensors:
                    dist.all_reduce(tensor)

        self.step("coalesced all_reduce", named, act)


def known(traffic: Traffic) -> None:
    f32 = torch.float32
    for _ in range(2):  # the first of each sort makes connections
        traffic.all_reduce(1024, f32, "sum")
        traffic.all_reduce(7, torch.int64, "max")
        traffic.broadcast(500, f32, 0)
        traffic.reduce(250, torch.float64, 0)
        traffic.all_gather(300, torch.int32)
        traffic.reduce_scatter(2048, f32)
        traffic.all_to_all(600, f32)
    traffic.all_reduce(4096, torch.bfloat16, "sum")
    traffic.all_reduce(1000, torch.float16, "avg")
    traffic.all_reduce(1 << 20, f32, "sum")
    traffic.all_reduce(8 << 20, f32, "sum")
    traffic.broadcast(3001, torch.uint8, SIZE - 1)
    traffic.coalesced((10, 20, 30), f32)
    if SIZE == 2:
        traffic.message(123, f32, 0)
        traffic.message(77, torch.int32, 1)
        traffic.exchange(4096, f32)


def graph(traffic: Traffic) -> None:
    """An all_reduce captured in a CUDA graph, and the graph's launches."""
    tensor, count = ones(1000), 1000
    traffic.all_reduce(64, torch.float32, "sum")
    captured = torch.cuda.CUDAGraph()

    def capture() -> None:
        with torch.cuda.graph(captured, capture_error_mode="thread_local"):
            dist.all_reduce(tensor)

    traffic.step("capture", [call("AllReduce", count, torch.float32, (1, 1), "ncclSum")], capture)
    if traffic.steps[-1]["problem"]:
        return
    for _ in range(REPLAYS):
        traffic.step("replay", [], captured.replay)
    traffic.all_reduce(64, torch.float32, "sum")
    if not bool((tensor == SIZE**REPLAYS).all()):
        traffic.steps[-1]["problem"] = f"wrong numbers after the replays: {tensor[0].item()}"
    captured.reset()  # NCCL's communicator waits for its graphs when it ends


def times(wanted: int = 1000, batch: int = 20) -> dict[str, Any]:
    """us of a small all_reduce: of the call on the host, and of calls with their work on the GPU, per call."""
    tensor, host, whole = ones(4), [], []
    for _ in range(batch):
        dist.all_reduce(tensor)
    ready()
    begin = time.perf_counter()
    for _ in range(batch):
        dist.all_reduce(tensor)
    ready()
    per_call = (time.perf_counter() - begin) / batch
    limit = torch.tensor([min(wanted, max(2 * batch, int(4 / per_call)))], device=DEVICE)
    dist.broadcast(limit, 0)
    for _ in range(int(limit.item()) // batch):
        begin_batch = time.perf_counter_ns()
        for _ in range(batch):
            before = time.perf_counter_ns()
            dist.all_reduce(tensor)
            host.append(time.perf_counter_ns() - before)
        ready()
        whole.append((time.perf_counter_ns() - begin_batch) / batch)
    return {
        "calls": len(host),
        "host_us": round(statistics.median(host) / 1e3, 2),
        "whole_us": round(statistics.median(whole) / 1e3, 2),
    }


def join(backend: str) -> None:
    if DEVICE.type == "cuda":
        torch.cuda.set_device(DEVICE)
    more = {"device_id": DEVICE} if backend == "nccl" else {}
    dist.init_process_group(backend, rank=RANK, world_size=SIZE, timeout=timedelta(seconds=25), **more)


def main() -> int:
    global DEVICE
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("known", "graph", "times"))
    parser.add_argument("log", type=Path)
    parser.add_argument("--backend", default="nccl")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    DEVICE = torch.device("cuda", 0) if arguments.device == "cuda" else torch.device("cpu")
    join(arguments.backend)
    traffic = Traffic()
    told: dict[str, Any] = {"rank": RANK, "size": SIZE, "pid": os.getpid(), "torch": torch.__version__}
    told["nccl"] = ".".join(map(str, torch.cuda.nccl.version())) if arguments.backend == "nccl" else ""
    try:
        if arguments.what == "times":
            told["times"] = times()
        else:
            (known if arguments.what == "known" else graph)(traffic)
    finally:
        arguments.log.write_text(json.dumps({**told, "steps": traffic.steps}))
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
