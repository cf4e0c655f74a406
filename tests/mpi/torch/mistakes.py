"""What a program may do wrong, or leave undone. Usage: mistakes.py exception|framework|start|child|unfinished|old|alone"""

import os
import socket
import sys
import threading
import time

import torch
import torch.distributed as dist
from mpi4py import MPI

import stretto.torch


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


match sys.argv[1]:
    case "exception":
        stretto.torch.init_process_group()
        if dist.get_rank() == 1:
            raise ValueError("of this rank alone")
        dist.all_reduce(torch.ones(1))
    case "framework":  # which calls torch's own init_process_group
        port = MPI.COMM_WORLD.bcast(free_port() if MPI.COMM_WORLD.rank == 0 else None)
        rank, size = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
        dist.init_process_group("stretto", f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
        if dist.get_rank() == 1:
            raise ValueError("of this rank alone")
        dist.all_reduce(torch.ones(1))
    case "start":  # one rank fails to come
        if MPI.COMM_WORLD.rank == 0:
            dist.TCPStore = None
        stretto.torch.init_process_group()
    case "child":  # of a rank, and nothing of the job
        stretto.torch.init_process_group()
        child = os.fork()
        if child == 0:
            try:
                raise ValueError("of a child")
            except ValueError:
                sys.excepthook(*sys.exc_info())
            os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        dist.all_reduce(torch.ones(1))
        if dist.get_rank() == 0:
            print("right")
    case "unfinished":  # the program ends while a future's callback, which torch calls from C++, has not
        stretto.torch.init_process_group()
        begun = threading.Event()

        def callback(_: torch.futures.Future) -> None:
            begun.set()
            time.sleep(0.5)

        dist.all_reduce(torch.ones(1), async_op=True).get_future().add_done_callback(callback)
        begun.wait()
        if dist.get_rank() == 0:
            print("right")
    case "old":
        torch.__version__ = torch.torch_version.TorchVersion("2.6.0+cpu")
        stretto.torch.init_process_group()
    case "alone":
        for start in (stretto.torch.init_process_group, lambda: dist.init_process_group("stretto")):
            try:
                start()
            except RuntimeError as error:
                print(error)
            else:
                sys.exit("no error")
