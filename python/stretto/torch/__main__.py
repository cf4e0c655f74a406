"""Runs a program that torchrun could start, as it is, with MPI's ranks: torch.distributed's gloo is MPI then, and so Stretto.

    stretto run -- mpirun -n 4 python -m stretto.torch train.py ...
    stretto run -- mpirun -n 4 python -m stretto.torch -m package.train ...

instead of `torchrun --nproc-per-node 4 train.py ...`. The environment is torchrun's (RANK, WORLD_SIZE, LOCAL_RANK, ...), and a
rank that ends by an exception or with an exit code ends the job. docs/pytorch.md has the details.
"""

from __future__ import annotations

import functools
import inspect
import os
import runpy
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

import stretto.torch

if TYPE_CHECKING:
    from mpi4py import MPI

USAGE = "Usage: mpirun ... python -m stretto.torch [-m MODULE | FILE] [ARGUMENTS]"
ALWAYS = ("gloo", "mpi", "cpu:gloo", "cpu:mpi", stretto.torch.BACKEND)
WITHOUT_GPUS = ("", "cpu:gloo,cuda:nccl")  # what torch takes for these depends on the machine


def goes_by_mpi(backend: str | None) -> bool:
    """Whether this is a backend for tensors in the host's memory."""
    name = str(backend or "").lower().replace(" ", "")
    return name in ALWAYS or (name in WITHOUT_GPUS and not torch.cuda.is_available())


def take_over_init_process_group(world: MPI.Intracomm) -> None:
    """torch.distributed.init_process_group makes a group of MPI's wherever one for tensors in the host's memory is asked for.

    ValueError: it is called with a rank or a number of ranks that is not MPI's.
    """
    torch_s = dist.init_process_group
    signature = inspect.signature(torch_s)

    @functools.wraps(torch_s)
    def init_process_group(*args: Any, **options: Any) -> None:
        given = signature.bind(*args, **options).arguments
        backend = given.pop("backend", None)
        if not goes_by_mpi(backend):
            if world.rank == 0:
                tell(f"backend {backend or 'nccl'} is torch's own, and does not go by MPI")
            torch_s(*args, **options)
            return
        for name, of_mpi in (("rank", world.rank), ("world_size", world.size)):
            told = given.pop(name, -1)
            if told not in (-1, of_mpi):
                raise ValueError(f"init_process_group: {name} is {told} here, and {of_mpi} in MPI")
        for elsewhere in ("init_method", "store"):  # where the ranks would meet
            given.pop(elsewhere, None)
        stretto.torch.init_process_group(**given)

    for module in list(sys.modules.values()):
        if vars(module).get("init_process_group") is torch_s:
            module.init_process_group = init_process_group  # type: ignore[attr-defined]


def tell_as_torchrun(world: MPI.Intracomm) -> None:
    """Sets the variables that programs look at, and how many threads torch takes where nobody has said so. Collective."""
    from mpi4py import MPI

    node = world.Split_type(MPI.COMM_TYPE_SHARED)
    leaders = world.allgather(world.rank - node.rank if node.rank == 0 else None)
    first = node.bcast(world.rank)
    nodes = [rank for rank in leaders if rank is not None]
    own_cpus = os.sched_getaffinity(0)
    sharing = sum(bool(own_cpus & cpus) for cpus in node.allgather(own_cpus))
    host = "127.0.0.1" if len(nodes) == 1 else os.environ.get("MASTER_ADDR") or socket.gethostname()
    os.environ.update(
        {
            "RANK": str(world.rank),
            "WORLD_SIZE": str(world.size),
            "LOCAL_RANK": str(node.rank),
            "LOCAL_WORLD_SIZE": str(node.size),
            "GROUP_RANK": str(nodes.index(first)),
            "GROUP_WORLD_SIZE": str(len(nodes)),
            "MASTER_ADDR": world.bcast(host),
            "MASTER_PORT": str(world.bcast(free_port() if world.rank == 0 else None)),
        }
    )
    node.Free()
    if "OMP_NUM_THREADS" not in os.environ:
        threads = max(1, len(own_cpus) // sharing)
        os.environ["OMP_NUM_THREADS"] = str(threads)  # of children
        torch.set_num_threads(threads)


def free_port() -> int:
    """For groups that are torch's own."""
    with socket.socket() as one:
        one.bind(("", 0))
        return int(one.getsockname()[1])


def tell(text: str) -> None:
    print(f"stretto.torch: {text}", file=sys.stderr, flush=True)


def main() -> None:
    words = sys.argv[1:]
    is_module = words[:1] == ["-m"]
    words = words[is_module:]
    if not words or words[0].startswith("-"):
        print(USAGE, file=sys.stderr)
        sys.exit(words[:1] not in (["-h"], ["--help"]) and 2)
    if not is_module and not Path(words[0]).exists():
        sys.exit(f"stretto.torch: there is no {words[0]}")
    world = stretto.torch.ranks_of_mpi()
    stretto.torch.end_the_job_where_an_exception_ends_a_rank()
    tell_as_torchrun(world)
    take_over_init_process_group(world)
    sys.argv = words
    try:
        if is_module:
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(words[0]).resolve().parent)
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        if world.size > 1 and end.code:  # the others may wait for this one
            if not isinstance(end.code, int):
                print(end.code, file=sys.stderr)
            sys.stderr.flush()
            sys.stdout.flush()
            world.Abort(end.code if isinstance(end.code, int) else 1)
        raise


if __name__ == "__main__":
    main()
