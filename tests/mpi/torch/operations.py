"""Random calls of torch.distributed with the backend stretto, against what torch makes of the inputs of all ranks.

Every rank makes the inputs of all, from the seed and the number of the call. Usage: operations.py CALLS SEED
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist

import stretto.torch

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
TYPES = (*FLOATS, *WHOLE, torch.bool, torch.complex64)
SUMS = (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT)
ORDERS = (dist.ReduceOp.MIN, dist.ReduceOp.MAX)
BITS = (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR)


@dataclass
class Call:
    """One call: what all ranks know of it, and how this one makes tensors."""

    random: random.Random
    ranks: list[int]
    group: dist.ProcessGroup
    number: int
    waits: bool

    @property
    def rank(self) -> int:
        return self.group.rank()

    @property
    def size(self) -> int:
        return len(self.ranks)

    def pick_shape(self, blocks: int = 1) -> tuple[int, ...]:
        rows = self.random.choice((0, 1, 2, 3, 7, 50)) * blocks
        return (rows, *self.random.choice(((), (1,), (3,), (17, 2), (400,))))

    def inputs(self, shape: tuple[int, ...], dtype: torch.dtype) -> list[torch.Tensor]:
        """Of all members."""
        return [tensor(f"{self.number} {rank}", shape, dtype) for rank in self.ranks]

    def strided(self, given: torch.Tensor) -> torch.Tensor:
        """The same, perhaps with gaps or in another order of dimensions, and perhaps with a history."""
        kind = self.random.randrange(4)
        if kind == 0 and given.dim() > 1:
            return given.transpose(0, 1).clone(memory_format=torch.contiguous_format).transpose(0, 1)
        if kind == 1:
            wide = torch.zeros((*given.shape, 2), dtype=given.dtype)
            wide[..., 0] = given
            return wide[..., 0]
        if kind == 2 and given.dtype in (torch.float32, torch.float64):
            return torch.complex(torch.zeros_like(given), -given).conj().imag  # of which torch keeps the negative in memory
        return given.clone()


def tensor(seed: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(hash_of(seed))
    small = torch.randint(0, 4, shape, generator=generator)
    if dtype == torch.bool:
        return small > 1
    if dtype.is_complex:
        return torch.complex(small.float(), torch.randint(0, 4, shape, generator=generator).float())
    return small.to(dtype) + (torch.rand(shape, generator=generator).to(dtype) if dtype.is_floating_point else 0)


def hash_of(text: str) -> int:
    return random.Random(text).getrandbits(62)


def pick_reduction(call: Call) -> tuple[torch.dtype, dist.ReduceOp]:
    dtype = call.random.choice(TYPES)
    if dtype.is_complex:
        return dtype, call.random.choice((dist.ReduceOp.SUM, dist.ReduceOp.AVG))  # torch refuses others
    if dtype.is_floating_point:
        return dtype, call.random.choice((*SUMS, *ORDERS, dist.ReduceOp.AVG))
    return dtype, call.random.choice((*SUMS, *ORDERS, *BITS))


def reduced(given: list[torch.Tensor], op: dist.ReduceOp) -> torch.Tensor:
    dtype = given[0].dtype
    wide = torch.stack(given)
    if dtype.is_floating_point:
        wide = wide.double()
    if op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
        result = wide.any(0) if dtype == torch.bool else wide.sum(0, dtype=None if dtype.is_floating_point else dtype)
        result = result / len(given) if op == dist.ReduceOp.AVG else result
    elif op == dist.ReduceOp.PRODUCT:
        result = wide.all(0) if dtype == torch.bool else wide.prod(0, dtype=None if dtype.is_floating_point else dtype)
    elif op in ORDERS:
        numbers = wide.to(torch.uint8) if dtype == torch.bool else wide
        result = numbers.amin(0) if op == dist.ReduceOp.MIN else numbers.amax(0)
    else:
        apply = {BITS[0]: torch.bitwise_and, BITS[1]: torch.bitwise_or, BITS[2]: torch.bitwise_xor}
        result = given[0]
        for one in given[1:]:
            result = next(function for known, function in apply.items() if known == op)(result, one)
    return result.to(dtype)


def close(found: torch.Tensor, wanted: torch.Tensor, what: str) -> None:
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-5, torch.complex64: 1e-5}.get(wanted.dtype, 1e-12)
    if not (wanted.dtype.is_floating_point or wanted.dtype.is_complex):
        tolerance = 0
    torch.testing.assert_close(found.detach(), wanted, rtol=tolerance, atol=tolerance, msg=lambda text: f"{what}: {text}")


Check = Callable[[], None]


def all_reduce(call: Call) -> tuple[dist.Work | None, Check]:
    dtype, op = pick_reduction(call)
    given = call.inputs(call.pick_shape(), dtype)
    mine = call.strided(given[call.rank])
    work = dist.all_reduce(mine, op, call.group, async_op=not call.waits)
    return work, lambda: close(mine, reduced(given, op), f"all_reduce {dtype} {op}")


def reduce(call: Call) -> tuple[dist.Work | None, Check]:
    dtype, op = pick_reduction(call)
    root = call.random.randrange(call.size)
    given = call.inputs(call.pick_shape(), dtype)
    mine = call.strided(given[call.rank])
    work = dist.reduce(mine, call.ranks[root], op, call.group, async_op=not call.waits)
    wanted = reduced(given, op) if call.rank == root else given[call.rank]
    return work, lambda: close(mine, wanted, f"reduce {dtype} {op}")


def reduce_scatter(call: Call) -> tuple[dist.Work | None, Check]:
    dtype, op = pick_reduction(call)
    shape = call.pick_shape()
    given = call.inputs((call.size, *shape), dtype)
    mine = given[call.rank]
    into = call.strided(torch.zeros(shape, dtype=dtype))
    if call.random.random() < 0.5:
        blocks = [call.strided(block) for block in mine]
        work = dist.reduce_scatter(into, blocks, op, call.group, async_op=not call.waits)
    else:
        whole = mine.reshape(call.size * shape[0], *shape[1:])
        work = dist.reduce_scatter_tensor(into, call.strided(whole), op, call.group, async_op=not call.waits)
    wanted = reduced([one[call.rank] for one in given], op)
    return work, lambda: close(into, wanted, f"reduce_scatter {dtype} {op}")


def broadcast(call: Call) -> tuple[dist.Work | None, Check]:
    root = call.random.randrange(call.size)
    given = call.inputs(call.pick_shape(), call.random.choice(TYPES))
    mine = call.strided(given[call.rank])
    work = dist.broadcast(mine, call.ranks[root], call.group, async_op=not call.waits)
    return work, lambda: close(mine, given[root], "broadcast")


def all_gather(call: Call) -> tuple[dist.Work | None, Check]:
    dtype, shape = call.random.choice(TYPES), call.pick_shape()
    given = call.inputs(shape, dtype)
    mine = call.strided(given[call.rank])
    if call.random.random() < 0.5:
        into = [call.strided(torch.zeros(shape, dtype=dtype)) for _ in given]
        work = dist.all_gather(into, mine, call.group, async_op=not call.waits)
        return work, lambda: close(torch.stack(into), torch.stack(given), "all_gather")
    whole = call.strided(torch.zeros((call.size * shape[0], *shape[1:]), dtype=dtype))
    work = dist.all_gather_into_tensor(whole, mine, call.group, async_op=not call.waits)
    return work, lambda: close(whole, torch.cat(given), "all_gather_into_tensor")


def gather(call: Call) -> tuple[dist.Work | None, Check]:
    dtype, shape, root = call.random.choice(TYPES), call.pick_shape(), call.random.randrange(call.size)
    given = call.inputs(shape, dtype)
    into = [call.strided(torch.zeros(shape, dtype=dtype)) for _ in given] if call.rank == root else None
    work = dist.gather(call.strided(given[call.rank]), into, call.ranks[root], call.group, async_op=not call.waits)
    return work, lambda: close(torch.stack(into), torch.stack(given), "gather") if into else None


def scatter(call: Call) -> tuple[dist.Work | None, Check]:
    dtype, shape, root = call.random.choice(TYPES), call.pick_shape(), call.random.randrange(call.size)
    blocks = tensor(f"{call.number} blocks", (call.size, *shape), dtype)
    into = call.strided(torch.zeros(shape, dtype=dtype))
    given = [call.strided(block) for block in blocks] if call.rank == root else None
    work = dist.scatter(into, given, call.ranks[root], call.group, async_op=not call.waits)
    return work, lambda: close(into, blocks[call.rank], "scatter")


def all_to_all(call: Call) -> tuple[dist.Work | None, Check]:
    dtype, shape = call.random.choice(TYPES), call.pick_shape()[1:]
    rows = [[call.random.choice((0, 1, 2, 9)) for _ in call.ranks] for _ in call.ranks]  # from each to each
    given = [tensor(f"{call.number} {rank}", (sum(rows[i]), *shape), dtype) for i, rank in enumerate(call.ranks)]
    wanted = [given[i].split(rows[i])[call.rank] for i in range(call.size)]
    mine = given[call.rank]
    of = [rows[i][call.rank] for i in range(call.size)]
    if call.random.random() < 0.5:
        into = call.strided(torch.zeros((sum(of), *shape), dtype=dtype))
        work = dist.all_to_all_single(into, call.strided(mine), of, rows[call.rank], call.group, async_op=not call.waits)
        return work, lambda: close(into, torch.cat(wanted), "all_to_all_single")
    parts = [call.strided(torch.zeros_like(one)) for one in wanted]
    work = dist.all_to_all(parts, [call.strided(one) for one in mine.split(rows[call.rank])], call.group, async_op=not call.waits)
    return work, lambda: close(torch.cat(parts), torch.cat(wanted), "all_to_all")


def even_all_to_all(call: Call) -> tuple[dist.Work | None, Check]:
    shape = call.pick_shape(call.size)
    given = call.inputs(shape, torch.float32)
    into = torch.zeros(shape)
    work = dist.all_to_all_single(into, given[call.rank], group=call.group, async_op=not call.waits)
    wanted = torch.cat([one.chunk(call.size)[call.rank] if len(one) else one for one in given])
    return work, lambda: close(into, wanted, "even all_to_all_single")


def barrier(call: Call) -> tuple[dist.Work | None, Check]:
    return dist.barrier(call.group, async_op=not call.waits), lambda: None


def messages(call: Call) -> tuple[dist.Work | None, Check]:
    """Around a ring, in both orders at once, so that a rank that waited for its sends first would hang it."""
    given = call.inputs((call.random.choice((1, 300000)),), torch.float32)
    to, of = (call.rank + 1) % call.size, (call.rank - 1) % call.size
    into = torch.zeros_like(given[0])
    works = [
        dist.isend(given[call.rank], call.ranks[to], call.group, tag=call.number % 100),
        dist.irecv(into, call.ranks[of], call.group, tag=call.number % 100),
    ]
    for work in works:
        work.wait()
    return None, lambda: close(into, given[of], "messages")


def any_source(call: Call) -> tuple[dist.Work | None, Check]:
    into = torch.zeros(3)
    if call.rank == 0:
        found = {}
        for _ in range(call.size - 1):
            source = dist.recv(into, group=call.group, tag=200 + call.number % 100)
            found[source] = into.clone()
        wanted = {rank: torch.full((3,), float(rank)) for rank in call.ranks[1:]}
        assert found.keys() == wanted.keys(), (found, wanted)
        assert all(torch.equal(found[rank], wanted[rank]) for rank in wanted)
    else:
        dist.send(torch.full((3,), float(call.ranks[call.rank])), call.ranks[0], call.group, tag=200 + call.number % 100)
    return None, lambda: None


KINDS = (
    *(all_reduce, reduce, reduce_scatter, broadcast, all_gather, gather, scatter, all_to_all, even_all_to_all),
    *(barrier, messages, any_source),
)


def special(rank: int, size: int) -> None:
    """What random calls do not come to."""
    small = torch.tensor([1, 60000 // size]).to(torch.uint16)
    dist.all_reduce(small)
    assert small.tolist() == [size, 60000 // size * size], small
    for dtype in (torch.float32, torch.bfloat16):
        with torch.inference_mode():
            mean = torch.full((4,), float(rank), dtype=dtype)
            dist.all_reduce(mean, dist.ReduceOp.AVG, async_op=True).wait()
            assert mean.tolist() == [(size - 1) / 2] * 4, mean
    whole = torch.tensor([rank, -rank])  # Lightning has such means, of sizes of batches
    dist.all_reduce(whole, dist.ReduceOp.AVG)
    assert whole.tolist() == [(size - 1) // 2, -((size - 1) // 2)], whole
    # A future's callback may start a collective, and wait for it.
    again = torch.ones(3)

    def twice(_: torch.futures.Future) -> torch.Tensor:
        return dist.all_reduce(again, async_op=True).get_future().wait()[0]

    done = dist.all_reduce(again, async_op=True).get_future().then(twice).wait()
    assert done.tolist() == [float(size * size)] * 3, done
    # As C++ and groups' own users call them: a tensor for a list of one, an operation or a root for options.
    group, mine = dist.group.WORLD, torch.full((2, 2), float(rank))
    group.allreduce(mine, dist.ReduceOp.MAX).wait()
    assert mine.eq(size - 1).all()
    rooms = [torch.zeros(2) for _ in range(size)]
    group.allgather(rooms, torch.full((2,), float(rank))).wait()
    assert [one.tolist() for one in rooms] == [[rank] * 2 for rank in range(size)], rooms
    block = torch.zeros(rank + 1)
    group.reduce_scatter(block, [torch.full((i + 1,), i + 1.0) for i in range(size)]).wait()  # of unequal blocks too
    assert block.tolist() == [size * (rank + 1.0)] * (rank + 1), block
    group.broadcast(block := torch.full((3,), float(rank)), size - 1).wait()
    assert block.eq(size - 1).all()
    group.reduce(block, 0).wait()
    assert rank or block.eq(size * (size - 1)).all()
    group.scatter(block, [torch.full((3,), float(i)) for i in range(size)] if rank == 0 else [], 0).wait()
    group.gather(rooms := [torch.zeros(3) for _ in range(size)] if rank == 0 else [], block, 0).wait()
    assert [one.tolist() for one in rooms] == ([[i] * 3 for i in range(size)] if rank == 0 else []), rooms
    # Nobody keeps what is returned here.
    for _ in range(20):
        dist.isend(torch.full((100000,), float(rank)), (rank + 1) % size)
    for _ in range(20):
        into = torch.zeros(100000)
        dist.recv(into, (rank - 1) % size)
        assert into.eq(float((rank - 1) % size)).all()


def refused(rank: int, size: int) -> None:
    """What cannot be done is an error before anything is sent, the same on all ranks."""
    wrong = (
        (TypeError, lambda: dist.all_reduce(torch.ones(2, dtype=torch.bool), dist.ReduceOp.AVG)),
        (TypeError, lambda: dist.all_reduce(torch.ones(2), dist.ReduceOp.BXOR)),
        (TypeError, lambda: dist.all_reduce(torch.eye(2).to_sparse())),
        (TypeError, lambda: dist.broadcast(torch.ones(2, device="meta"), 0)),
        (TypeError, lambda: dist.all_gather([torch.ones(2)] * size, torch.ones(2, device="meta"), async_op=True)),
        (ValueError, lambda: dist.all_to_all_single(torch.ones(3), torch.ones(3), [1] * size + [9])),
        (ValueError, lambda: dist.all_gather_into_tensor(torch.ones(1 + 2 * size), torch.ones(2))),
    )
    for kind, call in wrong:
        try:
            call()
        except kind as error:
            assert "stretto" in str(error), error
        else:
            raise AssertionError(f"rank {rank}: no {kind.__name__}")


def main() -> None:
    calls, seed = int(sys.argv[1]), int(sys.argv[2])
    stretto.torch.init_process_group()
    shared = random.Random(seed)
    size, rank = dist.get_world_size(), dist.get_rank()
    members = [list(range(size)), *(sorted(shared.sample(range(size), shared.randint(1, size))) for _ in range(3))]
    groups = [(ranks, dist.group.WORLD if len(ranks) == size else dist.new_group(ranks)) for ranks in members]
    refused(rank, size)
    special(rank, size)
    under_way: list[tuple[dist.Work | None, Check]] = []
    for number in range(calls):
        ranks, group = shared.choice(groups)
        kind, waits, chance = shared.choice(KINDS), shared.random() < 0.5, shared.random()
        if rank in ranks:
            call = Call(random.Random(f"{seed} {number}"), ranks, group, number + 1000 * seed, waits)
            under_way.append(kind(call))
        if chance < 0.2:  # else further calls are made before these are waited for
            for work, check in reversed(under_way):
                if work is not None:
                    work.wait()
                check()
            under_way.clear()
    for work, check in under_way:
        if work is not None:
            work.wait()
        check()
    dist.barrier()
    print("right" if rank == 0 else "", flush=True)
    if seed % 2:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
