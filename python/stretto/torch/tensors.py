"""Tensors as buffers of MPI, and torch's operations as MPI's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from mpi4py import MPI

# As wide as an element, for what only moves.
_WORDS = {1: MPI.UINT8_T, 2: MPI.UINT16_T, 4: MPI.UINT32_T, 8: MPI.UINT64_T, 16: MPI.C_DOUBLE_COMPLEX}

# That MPI can calculate with.
_NUMBERS = {
    torch.float32: MPI.FLOAT,
    torch.float64: MPI.DOUBLE,
    torch.int8: MPI.INT8_T,
    torch.int16: MPI.INT16_T,
    torch.int32: MPI.INT32_T,
    torch.int64: MPI.INT64_T,
    torch.uint8: MPI.UINT8_T,
    torch.bool: MPI.UINT8_T,
    **{
        getattr(torch, name): kind  # in newer releases
        for name, kind in (("uint16", MPI.UINT16_T), ("uint32", MPI.UINT32_T), ("uint64", MPI.UINT64_T))
        if hasattr(torch, name)
    },
    torch.complex64: MPI.C_FLOAT_COMPLEX,
    torch.complex128: MPI.C_DOUBLE_COMPLEX,
}

# torch's, MPI's, and MPI's for bytes that are 0 or 1.
_OPERATIONS = (
    (dist.ReduceOp.SUM, MPI.SUM, MPI.MAX),
    (dist.ReduceOp.AVG, MPI.SUM, MPI.OP_NULL),  # divided afterwards; of integers towards 0, as with NCCL
    (dist.ReduceOp.PRODUCT, MPI.PROD, MPI.MIN),
    (dist.ReduceOp.MIN, MPI.MIN, MPI.MIN),
    (dist.ReduceOp.MAX, MPI.MAX, MPI.MAX),
    (dist.ReduceOp.BAND, MPI.BAND, MPI.BAND),
    (dist.ReduceOp.BOR, MPI.BOR, MPI.BOR),
    (dist.ReduceOp.BXOR, MPI.BXOR, MPI.BXOR),
)
_OF_BITS = (MPI.BAND, MPI.BOR, MPI.BXOR)
_OF_ORDER = (MPI.MIN, MPI.MAX)
_INDIVISIBLE = tuple(getattr(torch, name) for name in ("uint16", "uint32", "uint64") if hasattr(torch, name))  # by torch
_HALVES = (torch.float16, torch.bfloat16)

Buffer = list[Any]  # memory, which keeps the tensor alive, count and type, as mpi4py takes them


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor without its history, checked to be one that MPI can be handed. TypeError: it is none."""
    if tensor.device.type != "cpu":
        raise TypeError(f"the backend stretto is for tensors on the CPU, not on {tensor.device}")
    if tensor.layout != torch.strided:
        raise TypeError(f"the backend stretto is for dense tensors, not for {tensor.layout}")
    return tensor.detach()


def all_dense(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    return [dense(one) for one in tensors]


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether its memory is its elements, one behind the other."""
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor if it is plain, else a copy that is."""
    return tensor.resolve_conj().resolve_neg().contiguous()


def room(tensor: torch.Tensor) -> torch.Tensor:
    """What may be written in its place: itself if it is plain, else as much new memory."""
    return tensor if is_plain(tensor) else torch.empty(tensor.shape, dtype=tensor.dtype)


def moved(tensor: torch.Tensor, counts: int | list[int] | None = None) -> Buffer:
    """A plain tensor to be sent or received as it is; in blocks of as many elements, or of as many each."""
    return _buffer(tensor, counts, _WORDS[tensor.itemsize])


def _buffer(tensor: torch.Tensor, counts: int | list[int] | None, kind: MPI.Datatype) -> Buffer:
    memory = tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8).numpy()
    return [memory, tensor.numel() if counts is None else counts, kind]


def flat(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    """Their elements, one behind the other, in new memory."""
    return plain(torch.cat([one.reshape(-1) for one in tensors]))


def unflatten(whole: torch.Tensor, into: Iterable[torch.Tensor]) -> None:
    """The reverse of flat()."""
    at = 0
    for one in into:
        one.copy_(whole[at : at + one.numel()].view(one.shape))
        at += one.numel()


@dataclass(frozen=True, slots=True)
class Reduction:
    """How MPI is to reduce tensors of a type. MPI has no arithmetic for halves: they are reduced as float32, and rounded once."""

    operation: MPI.Op
    number: MPI.Datatype
    widened: bool
    is_mean: bool

    @classmethod
    def of(cls, op: Any, dtype: torch.dtype) -> Reduction:
        """TypeError: MPI cannot do this."""
        found = next(((mpi, of_truth) for torchs, mpi, of_truth in _OPERATIONS if op == torchs), (MPI.OP_NULL, MPI.OP_NULL))
        operation = found[dtype == torch.bool]
        widened = dtype in _HALVES
        number = _NUMBERS.get(torch.float32 if widened else dtype)
        is_mean = bool(op == dist.ReduceOp.AVG)
        real, complex_ = dtype.is_floating_point, dtype.is_complex
        if (
            operation == MPI.OP_NULL
            or number is None
            or (is_mean and dtype in _INDIVISIBLE)
            or (operation in _OF_BITS and (real or complex_))
            or (operation in _OF_ORDER and complex_)
        ):
            raise TypeError(f"the backend stretto cannot reduce {dtype} by {getattr(op, 'op', op)}")
        return cls(operation, number, widened, is_mean)

    def opened(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor, or a copy that MPI can calculate with."""
        return plain(tensor.float() if self.widened else tensor)

    def room(self, tensor: torch.Tensor) -> torch.Tensor:
        """Where the result of as many elements may go: the tensor itself if it may."""
        return torch.empty(tensor.shape, dtype=torch.float32) if self.widened else room(tensor)

    def buffer(self, tensor: torch.Tensor, count: int | None = None) -> Buffer:
        """Of what opened() or room() gave; in blocks of `count` elements."""
        return _buffer(tensor, count, self.number)

    def close(self, result: torch.Tensor, into: torch.Tensor, ranks: int) -> None:
        if self.is_mean:
            result.div_(ranks, rounding_mode=None if result.is_floating_point() or result.is_complex() else "trunc")
        if result is not into:
            into.copy_(result)
