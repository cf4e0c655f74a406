"""A program that torchrun could start, and that says nothing of MPI. Usage: plain_program.py [exit|early|other_rank]

In these only rank 1 does so, and the others wait for it; but for other_rank, of which each but rank 0 is told.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([float(index), os.getpid()])


def main() -> None:
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if what == "early" and rank == 1:
        raise ValueError("before there is a group")
    claimed = 0 if what == "other_rank" else rank
    dist.init_process_group("gloo", init_method="env://", rank=claimed, world_size=ranks)
    if what == "exit" and rank == 1:
        sys.exit(7)
    assert dist.get_backend() == "stretto", dist.get_backend()
    assert (rank, ranks) == (dist.get_rank(), dist.get_world_size())
    assert (os.environ["LOCAL_RANK"], os.environ["LOCAL_WORLD_SIZE"]) == (str(rank), str(ranks))
    assert torch.get_num_threads() <= max(1, len(os.sched_getaffinity(0)) // 2), torch.get_num_threads()
    total = torch.tensor([float(rank)])
    dist.all_reduce(total)
    assert float(total) == ranks * (ranks - 1) / 2
    for batch in DataLoader(Numbers(), batch_size=4, num_workers=1, multiprocessing_context="spawn"):
        assert os.getpid() not in batch[:, 1]
        dist.all_reduce(batch)
        assert float(batch[0, 0]) in (0, 4 * ranks)
    of_torch = dist.new_group(backend="gloo")
    dist.all_reduce(total, group=of_torch)
    assert float(total) == ranks * ranks * (ranks - 1) / 2
    dist.barrier()
    dist.destroy_process_group()
    init_device_mesh("cpu", (ranks,))  # makes the group itself
    assert dist.get_backend() == "stretto", dist.get_backend()
    dist.destroy_process_group()
    if rank == 0:
        print("right", flush=True)


if __name__ == "__main__":
    main()
