"""Training with sharded parameters and optimizer state, and with uneven steps: what torch asks of groups, in C++ and in Python.

Usage: as examples/ddp.py
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer


def losses(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> list[float]:
    generator = torch.Generator().manual_seed(dist.get_rank())
    found = []
    for _ in range(steps):
        given = torch.randn(16, 20, generator=generator)
        loss = (model(given).sum(1) - given[:, 0]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        average = dist.get_backend() == "stretto"
        dist.all_reduce(total, dist.ReduceOp.AVG if average else dist.ReduceOp.SUM)
        found.append(float(total) / (1 if average else dist.get_world_size()))
    return found


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(20, 33), nn.Tanh(), nn.Linear(33, 7))


def uneven() -> list[float]:
    """Ranks with fewer steps than others, which stand in for them, and parameters that are not used."""
    model = nn.parallel.DistributedDataParallel(network(), find_unused_parameters=True)
    with model.join():
        for i in range(2 + 2 * dist.get_rank()):
            model(torch.full((4, 20), 0.1 * i)).sum().backward()
    return [float(parameter.grad.sum()) / 1000 for parameter in model.parameters()]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    sharded = network()
    for part in (sharded[0], sharded[2], sharded):
        fully_shard(part, mesh=mesh)
    found = losses(sharded, torch.optim.SGD(sharded.parameters(), lr=0.05), options.steps)
    copied = nn.parallel.DistributedDataParallel(network(), gradient_as_bucket_view=True)
    zero = ZeroRedundancyOptimizer(copied.parameters(), torch.optim.Adam, lr=0.01)
    found += losses(copied, zero, options.steps)
    found += uneven()
    objects = [None] * dist.get_world_size()
    dist.all_gather_object(objects, {"rank": dist.get_rank()})
    assert [one["rank"] for one in objects] == list(range(dist.get_world_size()))
    if dist.get_rank() == 0:
        options.json.write_text(json.dumps({"losses": found}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
