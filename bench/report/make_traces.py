#!/usr/bin/env python3
"""Writes the traces of a large job, for measuring how fast reports are made: `make_traces.py FOLDER --ranks 4 --events 2500000`.

A training loop on one node: per iteration two control allreduces, seven of gradients and a barrier on MPI_COMM_WORLD; a tenth of
the events are an Isend, an Irecv and their completion in a second thread. Written block by block: memory does not grow.
"""

from __future__ import annotations

import argparse
import struct
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "python"))
import trace_writer as writer

PER_ITERATION = 10  # collectives
BLOCK = 100_000  # iterations written at once
SIZES = np.array([8, 8, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 64 << 20, 27 << 20, 2 << 20, 0])
FUNCTION = np.array([writer.FUNCTIONS.index(name) for name in ["MPI_Allreduce"] * 9 + ["MPI_Barrier"]])
STEP = 20e-3  # seconds of an iteration


def collectives(rank: int, ranks: int, first: int, count: int) -> NDArray[Any]:
    """The main thread's events of iterations [first, first + count)."""
    number = np.arange(first * PER_ITERATION, (first + count) * PER_ITERATION, dtype=np.int64)
    slot = number % PER_ITERATION
    spread = [((number * 2654435761 + 977 * one) >> 5) % 1000 for one in range(ranks)]  # us, another for each rank and invocation
    late = spread[rank].astype(np.float64)
    last = np.max(np.stack(spread), axis=0)
    base = number // PER_ITERATION * STEP * 1e9 + slot * 1.9e6
    rows = np.zeros(len(number), writer.EVENT)
    rows["begin"] = base + late * 1e3 + 1e9
    rows["spent"] = (last - late) * 1e3 + 5000 + SIZES[slot] // 100
    rows["function"], rows["sequence"] = FUNCTION[slot], number
    rows["sent"] = rows["received"] = SIZES[slot]
    rows["peer"], rows["outcome"] = -1, writer.NONE8
    rows["datatype"] = np.where(slot < 2, 2, np.where(slot == 9, writer.NONE16, 0))
    rows["op"] = np.where(slot < 2, 1, np.where(slot == 9, writer.NONE8, 0))
    rows["location"] = np.where(slot == 9, 0xFF, 0)
    return rows


def messages(rank: int, ranks: int, first: int, count: int) -> NDArray[Any]:
    """The second thread's events of those iterations: Irecv, Isend, Waitall of both and its two parts, each four iterations."""
    steps = np.arange(first, first + count)
    steps = steps[steps % 4 == 0]
    rows = np.zeros((len(steps), 5), writer.EVENT)
    offsets = np.array([1e6, 1.2e6, 6e6, 6e6, 6e6])
    rows["begin"] = (steps[:, None] * STEP * 1e9 + offsets + 1e9).astype(np.uint64)
    rows["spent"] = np.array([300, 400, 900_000, 900_000, 900_000])
    names = ("MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Irecv", "MPI_Isend")
    rows["function"] = np.array([writer.FUNCTIONS.index(name) for name in names])
    rows["request"] = np.stack([2 * steps + 1, 2 * steps + 2, 0 * steps, 2 * steps + 1, 2 * steps + 2], axis=1)
    rows["flags"] = np.array([0, 0, 0, writer.PART, writer.PART])
    rows["peer"] = np.array([(rank - 1) % ranks, (rank + 1) % ranks, -1, (rank - 1) % ranks, (rank + 1) % ranks])
    rows["received"][:, 0] = rows["sent"][:, 1] = 65536
    rows["datatype"], rows["op"], rows["outcome"] = 3, writer.NONE8, writer.NONE8
    return rows.reshape(-1)


def write_rank(folder: Path, rank: int, ranks: int, iterations: int) -> int:
    """One rank's file; returns the number of its events."""
    end = iterations * STEP + 1.0
    process = writer.Process(rank=rank, size=ranks, finalize=end, reference_start=-0.1)
    process.communicator(0xC0FFEE, range(ranks), "MPI_COMM_WORLD")
    process.call("MPI_Init", -0.05, 0.0, communicator=writer.NONE16)
    path, events, size = folder / f"rank-{1000 + rank}.trace", 0, 0
    with path.open("wb") as file:
        file.write(bytes(writer.PAGE))
        for one in process.sections():
            file.write(one)
        for first in range(0, iterations, BLOCK):
            count = min(BLOCK, iterations - first)
            for thread, rows in ((0, collectives(rank, ranks, first, count)), (1, messages(rank, ranks, first, count))):
                _write_section(file, thread, rows)
                events += len(rows)
        cells = [writer.section(writer.SECTIONS["cells"], cell, 64, 0) for cell in _cells(iterations, end)]
        file.write(b"".join(cells))
        size = file.tell()
        file.seek(0)
        file.write(process.header(size))
    return events


def _write_section(file: BinaryIO, thread: int, rows: NDArray[Any]) -> None:
    used = 64 + rows.nbytes
    total = -(-used // writer.PAGE) * writer.PAGE
    head = struct.pack("<IHHIIQQ4Q", 0x54434553, writer.SECTIONS["events"], thread, 48, 0, total, len(rows), 0, 0, 0, 0)
    file.write(head)
    rows.tofile(file)
    file.write(bytes(total - used))


def _cells(iterations: int, end: float) -> list[bytes]:
    """Sums of one thread: about what the events add up to."""
    bins = writer.size_bin(SIZES)
    cells = []
    for slot in range(PER_ITERATION):
        kind = (2, 1, 0) if slot < 2 else (writer.NONE16, writer.NONE8, 0xFF) if slot == 9 else (0, 0, 0)
        key = struct.pack("<HHHBBBB6x", FUNCTION[slot], 0, kind[0], kind[1], kind[2], bins[slot], writer.NONE8)
        size = int(SIZES[slot]) * iterations
        cells.append(key + struct.pack("<6Q", iterations, size, size, iterations * 800_000, 10**9, int(end * 1e9)))
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--events", type=int, default=2_500_000, help="per rank, about")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    iterations = max(1, round(options.events / (PER_ITERATION + 5 / 4)))
    events = sum(write_rank(options.folder, rank, options.ranks, iterations) for rank in range(options.ranks))
    writer.write_job(options.folder, wall_seconds=iterations * STEP + 2, command="made by bench/report/make_traces.py")
    print(f"{events} events in {options.folder}")


if __name__ == "__main__":
    main()
