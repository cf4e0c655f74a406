"""A process group of torch.distributed whose collectives are MPI's.

Each collective of a group is done by a thread of the group's, in the order of the calls, so that a backward pass goes on
meanwhile; one that its caller waits for is done where it is called if nothing is under way. Messages between two ranks are
nonblocking and are waited for by their caller, as a rank may start them in any order.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from mpi4py import MPI

from stretto.torch import OTHER_RANKS
from stretto.torch.tensors import Reduction, all_dense, dense, flat, is_plain, moved, plain, room, unflatten
from stretto.torch.worker import Worker
from stretto.torch.works import Deed, Message

Tensors = Sequence[torch.Tensor]
OneOrMore = Any  # a tensor, or several
_TAGS = 32767  # every MPI has as many


class MpiGroup(dist.ProcessGroup):
    """Tensors are on the CPU, of any shape, strides and type; what MPI cannot reduce raises TypeError.

    As torch's groups take them, a tensor may stand for a list of one, and an operation or a root for the options.
    """

    def __init__(self, rank: int, ranks: Sequence[int], name: str) -> None:
        """The group of these ranks of torch, of which this process is number `rank`. Collective over them.

        RuntimeError: MPI has other ranks, or is not for several threads.
        """
        super().__init__(rank, len(ranks))
        self._name = name
        self._communicator = _communicator(ranks, rank, name)
        self._worker = Worker("stretto.torch")
        self._messages: list[Message] = []

    @property
    def group_name(self) -> str:
        return self._name

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device("cpu")]

    def getBackendName(self) -> str:
        return "stretto"

    def shutdown(self) -> None:
        """Frees the communicator, when all is done that was started. Collective."""
        self._worker.end()
        self._communicator.Free()

    def _collective(self, opts: Any, result: Any, task: Callable[[], None]) -> dist.Work:
        def whole() -> Any:
            with torch.inference_mode():  # the caller may be in it, and only there may its tensors be written
                task()
            return result

        # Options of torch before 2.8 do not tell whether the caller waits.
        act = self._worker.start if getattr(opts, "asyncOp", True) else self._worker.do
        return Deed(act(whole))

    # Reductions

    def allreduce(self, tensors: OneOrMore, opts: Any = None, timeout: Any = None, *, op: Any = None) -> dist.Work:  # noqa: ARG002
        how_all, mpi = _operation(opts if op is None else op), self._communicator
        tensors = _listed(tensors)
        todo = [(dense(tensor), Reduction.of(how_all, tensor.dtype)) for tensor in tensors]

        def task() -> None:
            for tensor, how in todo:
                result = how.room(tensor)
                if result is tensor:
                    mpi.Allreduce(MPI.IN_PLACE, how.buffer(result), how.operation)
                else:
                    mpi.Allreduce(how.buffer(how.opened(tensor)), how.buffer(result), how.operation)
                how.close(result, tensor, mpi.size)

        return self._collective(opts, list(tensors), task)

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> dist.Work:
        return self.allreduce(tensors, opts)

    def reduce(self, tensors: OneOrMore, opts: Any, op: Any = None, timeout: Any = None) -> dist.Work:  # noqa: ARG002
        root, mpi, tensors = _root(opts), self._communicator, _listed(tensors)
        tensor = dense(_only(tensors))
        how = Reduction.of(_operation(opts if op is None else op), tensor.dtype)

        def task() -> None:
            given = how.opened(tensor)
            if mpi.rank == root:
                result = how.room(tensor)
                mpi.Reduce(MPI.IN_PLACE if given is result else how.buffer(given), how.buffer(result), how.operation, root)
                how.close(result, tensor, mpi.size)
            else:
                mpi.Reduce(how.buffer(given), None, how.operation, root)

        return self._collective(opts, list(tensors), task)

    def reduce_scatter_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> dist.Work:
        return self._reduce_scatter(_operation(opts), [(output, [given])], opts, output)

    def reduce_scatter_single_coalesced(self, outputs: Tensors, given: Tensors, opts: Any = None) -> dist.Work:
        todo = ((output, [one]) for output, one in zip(outputs, given, strict=True))
        return self._reduce_scatter(_operation(opts), todo, opts, list(outputs))

    def reduce_scatter(
        self,
        outputs: OneOrMore,
        given: Any,
        opts: Any = None,
        timeout: Any = None,  # noqa: ARG002
    ) -> dist.Work:
        """given: for each output blocks for all ranks; for a single tensor, its blocks."""
        if isinstance(outputs, torch.Tensor):
            outputs, given = [outputs], [given]
        return self._reduce_scatter(_operation(opts), zip(outputs, given, strict=True), opts, list(outputs))

    def _reduce_scatter(self, op: Any, todo: Iterable[tuple[torch.Tensor, Tensors]], opts: Any, result: Any) -> dist.Work:
        """Each output from blocks for all ranks: one tensor that holds equal ones, or one for each rank, equal or not."""
        mpi = self._communicator
        planned = [(dense(output), all_dense(blocks), Reduction.of(op, output.dtype)) for output, blocks in todo]
        for output, blocks, _ in planned:
            whole = len(blocks) == 1 and blocks[0].numel() == output.numel() * mpi.size
            mine = len(blocks) == mpi.size and blocks[mpi.rank].numel() == output.numel()
            _check(whole or mine, "a block for each rank to reduce_scatter")
            _check(all(block.dtype == output.dtype for block in blocks), "tensors of one type to reduce_scatter")

        def task() -> None:
            for output, blocks, how in planned:
                whole = how.opened(blocks[0] if len(blocks) == 1 else flat(blocks))
                into = how.room(output)
                counts = [block.numel() for block in blocks]
                if len(set(counts)) == 1:
                    mpi.Reduce_scatter_block(how.buffer(whole, into.numel()), how.buffer(into), how.operation)
                else:
                    mpi.Reduce_scatter(how.buffer(whole), how.buffer(into), counts, how.operation)
                how.close(into, output, mpi.size)

        return self._collective(opts, result, task)

    # Movements

    def broadcast(self, tensors: OneOrMore, opts: Any, timeout: Any = None) -> dist.Work:  # noqa: ARG002
        root, mpi, tensors = _root(opts), self._communicator, _listed(tensors)
        todo = [dense(tensor) for tensor in tensors]

        def task() -> None:
            for tensor in todo:
                whole = plain(tensor)
                mpi.Bcast(moved(whole), root)
                if whole is not tensor and mpi.rank != root:
                    tensor.copy_(whole)

        return self._collective(opts, list(tensors), task)

    def all_gather_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> dist.Work:
        return self._allgather([([output], given)], opts, output)

    def all_gather_single_coalesced(self, outputs: Tensors, given: Tensors, opts: Any = None) -> dist.Work:
        return self._allgather((([output], one) for output, one in zip(outputs, given, strict=True)), opts, list(outputs))

    def allgather(self, outputs: Any, given: OneOrMore, opts: Any = None) -> dist.Work:
        """outputs: for each tensor that is given room for all ranks; for a single one, its room."""
        if isinstance(given, torch.Tensor):
            outputs, given = [outputs], [given]
        return self._allgather(zip(outputs, given, strict=True), opts, [list(one) for one in outputs])

    def allgather_coalesced(self, outputs: Sequence[Tensors], given: Tensors, opts: Any = None) -> dist.Work:
        """outputs: of each rank, what it gave."""
        by_tensor = zip(*outputs, strict=True)
        return self._allgather(zip(by_tensor, given, strict=True), opts, [list(one) for one in outputs])

    def _allgather(self, todo: Iterable[tuple[Tensors, torch.Tensor]], opts: Any, result: Any) -> dist.Work:
        """Into one tensor with room for all blocks, or into one for each."""
        mpi = self._communicator
        planned = [(all_dense(outputs), dense(given)) for outputs, given in todo]
        for outputs, given in planned:
            _check(sum(one.numel() for one in outputs) == given.numel() * mpi.size, "room for a block of each rank in allgather")
            _check(all(one.dtype == given.dtype for one in outputs), "tensors of one type to allgather")

        def task() -> None:
            for outputs, given in planned:
                block = plain(given)
                with _Whole(outputs) as whole:
                    mpi.Allgather(moved(block), moved(whole, block.numel()))

        return self._collective(opts, result, task)

    def gather(self, outputs: Any, given: OneOrMore, opts: Any, timeout: Any = None) -> dist.Work:  # noqa: ARG002
        if isinstance(given, torch.Tensor):
            outputs, given = [outputs], [given]
        root, mpi = _root(opts), self._communicator
        block = dense(_only(given))
        into = all_dense(_only(outputs)) if mpi.rank == root else []
        if mpi.rank == root:
            _check(sum(one.numel() for one in into) == block.numel() * mpi.size, "room for a block of each rank to gather")

        def task() -> None:
            whole_block = plain(block)
            if mpi.rank != root:
                mpi.Gather(moved(whole_block), None, root)
                return
            with _Whole(into) as whole:
                mpi.Gather(moved(whole_block), moved(whole, block.numel()), root)

        return self._collective(opts, [list(one) for one in outputs], task)

    def scatter(self, outputs: OneOrMore, given: Any, opts: Any, timeout: Any = None) -> dist.Work:  # noqa: ARG002
        if isinstance(outputs, torch.Tensor):
            outputs, given = [outputs], [given]
        root, mpi = _root(opts), self._communicator
        block = dense(_only(outputs))
        blocks = all_dense(_only(given)) if mpi.rank == root else []
        if mpi.rank == root:
            _check(sum(one.numel() for one in blocks) == block.numel() * mpi.size, "a block for each rank to scatter")

        def task() -> None:
            into = room(block)
            whole = flat(blocks) if mpi.rank == root else None
            mpi.Scatter(None if whole is None else moved(whole, block.numel()), moved(into), root)
            if into is not block:
                block.copy_(into)

        return self._collective(opts, list(outputs), task)

    def alltoall(self, outputs: Tensors, given: Tensors, opts: Any = None) -> dist.Work:
        mpi = self._communicator
        _check(len(outputs) == len(given) == mpi.size, "a tensor for each rank to alltoall")
        to, of = [one.numel() for one in given], [one.numel() for one in outputs]
        leaving, coming = all_dense(given), all_dense(outputs)

        def task() -> None:
            sent = flat(leaving)
            with _Whole(coming) as whole:
                mpi.Alltoallv(moved(sent, to), moved(whole, of))

        return self._collective(opts, list(outputs), task)

    def all_to_all_single(
        self, output: torch.Tensor, given: torch.Tensor, of: Sequence[int], to: Sequence[int], opts: Any = None
    ) -> dist.Work:
        """of, to: rows received from and sent to each rank; none: as many for all."""
        mpi = self._communicator

        def counts(tensor: torch.Tensor, rows: Sequence[int]) -> list[int]:
            length = tensor.size(0) if tensor.dim() else 1
            _check(sum(rows) == length if rows else length % mpi.size == 0, "as many rows as alltoall is to split")
            a_row = tensor.numel() // max(length, 1)
            return [one * a_row for one in rows or [length // mpi.size] * mpi.size]

        from_each, to_each = counts(output, of), counts(given, to)
        leaving, coming = dense(given), dense(output)

        def task() -> None:
            sent = plain(leaving)
            with _Whole([coming]) as whole:
                mpi.Alltoallv(moved(sent, to_each), moved(whole, from_each))

        return self._collective(opts, output, task)

    def barrier(self, opts: Any = None) -> dist.Work:
        return self._collective(opts, [], self._communicator.Barrier)

    # Older names of the same

    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

    # Messages

    def send(self, tensors: OneOrMore, to: int, tag: int) -> dist.Work:
        tensor = plain(dense(_only(_listed(tensors))))
        return self._message(self._communicator.Isend(moved(tensor), to, tag), tensor)

    def recv(self, tensors: OneOrMore, of: int, tag: int) -> dist.Work:
        tensor = dense(_only(_listed(tensors)))
        into = room(tensor)
        return self._message(self._communicator.Irecv(moved(into), of, tag), into, tensor)

    def recv_anysource(self, tensors: OneOrMore, tag: int) -> dist.Work:
        return self.recv(tensors, MPI.ANY_SOURCE, tag)

    def _message(self, *parts: Any) -> Message:
        """MPI has its memory until it has come, also where nobody keeps what is returned."""
        self._messages = [one for one in self._messages if not one.is_completed()]
        self._messages.append(Message(*parts))
        return self._messages[-1]


class _Whole:
    """Plain room for what goes into tensors: a single one itself if it is, else new memory that is copied to them."""

    def __init__(self, tensors: Tensors) -> None:
        self._tensors = tensors

    def __enter__(self) -> torch.Tensor:
        first = self._tensors[0]
        if len(self._tensors) == 1 and is_plain(first):
            self._room = first
        else:
            self._room = torch.empty(sum(one.numel() for one in self._tensors), dtype=first.dtype)
        return self._room

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._room is not self._tensors[0]:
            unflatten(self._room, self._tensors)


def _communicator(ranks: Sequence[int], rank: int, name: str) -> MPI.Intracomm:
    world = MPI.COMM_WORLD
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise RuntimeError("the backend stretto needs MPI_THREAD_MULTIPLE, which this MPI library does not give")
    known = max(ranks) < world.size and ranks[rank] == world.rank
    if len(ranks) == world.size:
        known = world.allreduce(known, MPI.LAND)
    if not known:
        raise RuntimeError(f"torch.distributed has other ranks than MPI, which has {world.size}: {OTHER_RANKS}")
    everybody = world.Get_group()
    members = everybody.Incl(ranks)
    try:
        return world.Create_group(members, zlib.crc32(name.encode()) % _TAGS)
    finally:
        members.Free()
        everybody.Free()


def _listed(tensors: OneOrMore) -> Tensors:
    return [tensors] if isinstance(tensors, torch.Tensor) else tensors


def _operation(opts: Any) -> Any:
    if opts is None or isinstance(opts, int):  # a root alone
        return dist.ReduceOp.SUM
    return getattr(opts, "reduceOp", opts)


def _root(opts: Any) -> int:
    return int(getattr(opts, "rootRank", opts))


def _only(tensors: Sequence[Any]) -> Any:
    _check(len(tensors) == 1, "one tensor")
    return tensors[0]


def _check(good: bool, wanted: str) -> None:
    if not good:
        raise ValueError(f"the backend stretto wants {wanted}")
