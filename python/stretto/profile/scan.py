"""Reads the events of all processes once, in blocks, about in the order of time, and shows each block to the analyses.

The stream that is behind is read next, so that what must be kept of the others stays small. Two threads read ahead; blocks are as
long as the number of streams allows, and all of them together hold at most `IN_FLIGHT` events.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stretto.profile.job import Job, Process
from stretto.trace import Batch

Array = NDArray[Any]

IN_FLIGHT = 1 << 22  # events
LONGEST, SHORTEST = 1 << 17, 1 << 10  # events of one block


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive events of one thread, in the order of their ends; times are seconds of the job."""

    process: int  # index in the job's processes
    thread: int
    rows: Array
    begin: Array
    end: Array
    sent: Array
    received: Array


class Consumer(Protocol):
    """What looks at events. `reached[p]`: process p shows no more event that begins before it."""

    def take(self, block: Block) -> None: ...
    def settle(self, process: int, reached: Array) -> None: ...


@dataclass(slots=True)
class _Stream:
    process: int
    thread: int
    batches: Iterator[Batch]
    recorded: bool = False  # no event before a reset is to come
    ahead: Future[Block | None] | None = None


def scan(job: Job, consumers: list[Consumer], progress: Callable[[float], None] | None = None) -> None:
    """Every event of the job, once. `progress`: the share that is done."""
    streams = _streams(job)
    total = sum(process.trace.event_count() for process in job.processes)
    behind = {number: _starts(streams, number) for number in range(len(job.processes))}
    reached = np.array([min(behind[number].values(), default=math.inf) for number in range(len(job.processes))])
    done = 0
    with ThreadPoolExecutor(2) as pool:
        for stream in streams:
            stream.ahead = pool.submit(_next, job, stream)
        queue = [(-math.inf, number) for number in range(len(streams))]
        heapq.heapify(queue)
        while queue:
            _, number = heapq.heappop(queue)
            stream = streams[number]
            block = stream.ahead.result() if stream.ahead else None
            at = math.inf
            if block is not None:
                stream.ahead = pool.submit(_next, job, stream)
                at = float(block.end[-1])
                heapq.heappush(queue, (at, number))
                for consumer in consumers:
                    consumer.take(block)
                done += len(block.rows)
            mine = behind[stream.process]
            mine[stream.thread] = max(at, mine[stream.thread])
            reached[stream.process] = min(mine.values())
            for consumer in consumers:
                consumer.settle(stream.process, reached)
            if progress:
                progress(min(1.0, done / total) if total else 1.0)


def _starts(streams: list[_Stream], process: int) -> dict[int, float]:
    return {stream.thread: -math.inf for stream in streams if stream.process == process}


def _streams(job: Job) -> list[_Stream]:
    threads = [(number, thread) for number, process in enumerate(job.processes) for thread in process.trace.event_threads()]
    length = min(LONGEST, max(SHORTEST, IN_FLIGHT // max(1, len(threads))))
    return [_Stream(number, thread, job.processes[number].trace.batches(thread, length)) for number, thread in threads]


def _next(job: Job, stream: _Stream) -> Block | None:
    process = job.processes[stream.process]
    while True:
        try:
            batch = next(stream.batches, None)
        except OSError as error:
            job.problems.append(f"{process.trace.path.name}: not all of its calls could be read: {error.strerror or error}")
            return None
        if batch is None:
            return None
        kept = slice(0 if stream.recorded else _reset(process, batch), None)
        rows = batch.rows[kept]
        if len(rows):
            stream.recorded = True
            begin = process.line.at(rows["begin"])
            end = begin + batch.spent[kept] * process.line.tick
            return Block(stream.process, stream.thread, rows, begin, end, batch.sent[kept], batch.received[kept])


def _reset(process: Process, batch: Batch) -> int:
    """Where the events begin that are no older than the last MPI_Pcontrol(2), as are the sums."""
    since = np.flatnonzero(batch.rows["begin"] >= process.reset)
    return int(since[0]) if len(since) else len(batch.rows)
