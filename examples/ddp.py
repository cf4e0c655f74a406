#!/usr/bin/env python3
"""Data-parallel training of a convolutional network with PyTorch's DistributedDataParallel, on the CPU.

A program like any other that torchrun starts, with gloo; with MPI in gloo's place, and so Stretto:

    torchrun --nproc-per-node 4 examples/ddp.py
    stretto run -- mpirun -n 4 python -m stretto.torch examples/ddp.py
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core per rank

import images as digits  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402


def network(width: int) -> nn.Module:
    side = digits.SIDE // 4
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * side * side, width),
        nn.ReLU(),
        nn.Linear(width, 10),
    )


def train(options: argparse.Namespace) -> dict[str, object]:
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(network(options.width))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    pictures, labels, _ = digits.load()
    pictures, labels = torch.as_tensor(pictures), torch.as_tensor(labels).long()
    rank, ranks, batch = dist.get_rank(), dist.get_world_size(), options.batch
    losses, seconds = [], []
    for step in range(options.steps):
        begin = time.perf_counter()
        mine = (torch.arange(batch) + (step * ranks + rank) * batch) % len(labels)
        loss = nn.functional.cross_entropy(model(pictures[mine]), labels[mine])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        losses.append(float(total) / ranks)
        seconds.append(time.perf_counter() - begin)
    middle = sorted(seconds[len(seconds) // 5 :])
    return {"ranks": ranks, "losses": losses, "step_seconds": middle[len(middle) // 2]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=32, help="Pictures of a rank in a step.")
    parser.add_argument("--width", type=int, default=1024, help="Neurons of the hidden layer: how much there is to sum.")
    parser.add_argument("--json", type=Path, help="Where rank 0 writes losses and seconds.")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    backend = dist.get_backend()
    result = {"backend": backend, **train(options)}
    if dist.get_rank() == 0:
        print(f"{backend}: last loss {result['losses'][-1]:.6f}, a step takes {result['step_seconds'] * 1e3:.1f} ms")
        if options.json:
            options.json.write_text(json.dumps(result))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
