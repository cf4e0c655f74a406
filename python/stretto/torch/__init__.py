"""`torch.distributed` over MPI: the backend "stretto" for tensors in the memory of the host.

PyTorch's packages bring no MPI. With this backend the collectives of DistributedDataParallel and its like are those of the MPI
library that mpi4py was built for, and so Stretto's where the program runs under `stretto run`:

    import stretto.torch
    stretto.torch.init_process_group()      # instead of torch.distributed.init_process_group("gloo")

    stretto run -- mpirun -n 4 python train.py

A program that says nothing of it, as torchrun starts it, is run with it by `mpirun -n 4 python -m stretto.torch train.py`.
Needs torch and mpi4py, and nothing else of Stretto. docs/pytorch.md has the details.
"""

from __future__ import annotations

import os
import socket
import sys
import traceback
from contextlib import redirect_stderr
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.distributed import init_process_group as of_torch  # `python -m stretto.torch` puts another in its place

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["BACKEND", "init_process_group"]

BACKEND = "stretto"
# Before it, C++ that waited for a work whose Python half nobody kept, as DistributedDataParallel does, waited for ever.
LEAST_TORCH = (2, 7)
OTHER_RANKS = (
    "start the program by the mpirun of the MPI that mpi4py was built for, and let stretto.torch.init_process_group() tell torch"
)


def init_process_group(**options: Any) -> None:
    """`torch.distributed.init_process_group` for the ranks of MPI_COMM_WORLD, which torch's ranks are then. Collective.

    options: what torch.distributed.init_process_group takes besides the backend, store, rank and world_size.
    From the first group of the backend on, a rank that ends by an exception ends the job, as the others would wait for it.
    RuntimeError: the launcher has started more processes than MPI knows of; PyTorch is older than LEAST_TORCH.
    """
    world = ranks_of_mpi()
    try:
        of_torch(BACKEND, store=_store(world), rank=world.rank, world_size=world.size, **options)
    except Exception:
        if world.size > 1:  # the others may wait for this one already
            traceback.print_exc()
            sys.stderr.flush()
            world.Abort(1)
        raise


def ranks_of_mpi() -> MPI.Intracomm:
    """MPI_COMM_WORLD. RuntimeError: the launcher has started more processes than MPI knows of; PyTorch is too old."""
    _check_torch()
    from mpi4py import MPI  # which calls MPI_Init: not in processes that only import the program, such as loaders of data

    world = MPI.COMM_WORLD
    for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):  # of an outer launcher too: they tell of more, not of fewer
        if world.size == 1 and os.environ.get(name, "") not in ("", "0", "1"):
            raise RuntimeError(f"{name} is {os.environ[name]}, and MPI has one process here: {OTHER_RANKS}")
    return world


def _check_torch() -> None:
    if tuple(map(int, torch.__version__.split(".")[:2])) < LEAST_TORCH:
        least = ".".join(map(str, LEAST_TORCH))
        raise RuntimeError(f"the backend stretto needs PyTorch {least} or later, and this is {torch.__version__}")


def _store(world: MPI.Intracomm) -> dist.Store:
    """Of rank 0, which all reach; torch's own business needs one."""
    from mpi4py import MPI

    node = world.Split_type(MPI.COMM_TYPE_SHARED)
    host = "127.0.0.1" if node.size == world.size else os.environ.get("MASTER_ADDR") or socket.gethostname()
    node.Free()
    mine = dist.TCPStore(host, 0, world.size, True, wait_for_workers=False) if world.rank == 0 else None
    host, port = world.bcast((host, mine.port) if mine else None)
    return mine or dist.TCPStore(host, port, world.size, False, wait_for_workers=False)


@cache
def end_the_job_where_an_exception_ends_a_rank() -> None:
    """Here too where torch.distributed.init_process_group("stretto") was called, as frameworks do.

    torch puts a hook around this one, which catches what is written to print it afterwards, when the job is no more.
    """
    from mpi4py import MPI

    if MPI.COMM_WORLD.size == 1:
        return

    tell, process = sys.excepthook, os.getpid()

    def tell_and_abort(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if os.getpid() != process or MPI.Is_finalized():  # a child's
            tell(kind, error, trace)
            return
        with redirect_stderr(sys.__stderr__):
            print(f"rank {MPI.COMM_WORLD.rank} ends the job by an exception", file=sys.stderr)
            tell(kind, error, trace)
            sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)

    sys.excepthook = tell_and_abort


def _group(options: Any, _: Any) -> dist.ProcessGroup:
    """What torch calls on the members of a new group."""
    _check_torch()
    from stretto.torch.group import MpiGroup

    ranks = list(options.global_ranks_in_group) or list(range(options.group_size))
    group = MpiGroup(options.group_rank, ranks, options.group_id)
    end_the_job_where_an_exception_ends_a_rank()
    return group


dist.Backend.register_backend(BACKEND, _group, extended_api=True, devices=["cpu"])
