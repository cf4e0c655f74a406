"""`torch.distributed` over MPI: the backend "stretto" for tensors in the memory of the host.

PyTorch's packages bring no MPI. With this backend the collectives of DistributedDataParallel and its like are those of the MPI
library that mpi4py was built for, and so Stretto's where the program runs under `stretto run`:

    import stretto.torch
    stretto.torch.init_process_group()      # instead of torch.distributed.init_process_group("gloo")

    stretto run -- mpirun -n 4 python train.py

Needs torch and mpi4py, and nothing else of Stretto. docs/pytorch.md has the details.
"""

from __future__ import annotations

import os
import socket
import sys
from types import TracebackType
from typing import Any

import torch.distributed as dist
from mpi4py import MPI

from stretto.torch.group import MpiGroup

__all__ = ["BACKEND", "MpiGroup", "init_process_group"]

BACKEND = "stretto"


def init_process_group(**options: Any) -> None:
    """`torch.distributed.init_process_group` for the ranks of MPI_COMM_WORLD, which torch's ranks are then. Collective.

    options: what torch.distributed.init_process_group takes besides the backend, store, rank and world_size.
    A rank that ends by an exception ends the job from now on, as the others would wait for it.
    """
    world = MPI.COMM_WORLD
    dist.init_process_group(BACKEND, store=_store(world), rank=world.rank, world_size=world.size, **options)
    if world.size > 1:
        _abort_where_an_exception_ends_a_rank()  # torch's hook, which tells the rank too, is within


def _store(world: MPI.Intracomm) -> dist.Store:
    """Of rank 0, which all reach; torch's own business needs one."""
    node = world.Split_type(MPI.COMM_TYPE_SHARED)
    host = "127.0.0.1" if node.size == world.size else os.environ.get("MASTER_ADDR") or socket.gethostname()
    node.Free()
    mine = dist.TCPStore(host, 0, world.size, True, wait_for_workers=False) if world.rank == 0 else None
    host, port = world.bcast((host, mine.port) if mine else None)
    return mine or dist.TCPStore(host, port, world.size, False, wait_for_workers=False)


def _abort_where_an_exception_ends_a_rank() -> None:
    before = sys.excepthook

    def tell_and_abort(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        before(kind, error, trace)
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)

    sys.excepthook = tell_and_abort


def _group(options: Any, _: Any) -> MpiGroup:
    """What torch calls on the members of a new group."""
    ranks = list(options.global_ranks_in_group) or list(range(options.group_size))
    return MpiGroup(options.group_rank, ranks, options.group_id)


dist.Backend.register_backend(BACKEND, _group, extended_api=True, devices=["cpu"])
