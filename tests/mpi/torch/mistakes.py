"""What a program may do wrong. Usage: mistakes.py exception|alone"""

import sys

import torch
import torch.distributed as dist

import stretto.torch

if sys.argv[1] == "exception":
    stretto.torch.init_process_group()
    if dist.get_rank() == 1:
        raise ValueError("of this rank alone")
    dist.all_reduce(torch.ones(1))
else:
    try:
        dist.init_process_group("stretto")
    except RuntimeError as error:
        print(error)
    else:
        sys.exit("no error")
