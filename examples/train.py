#!/usr/bin/env python3
"""Data-parallel training of a convolutional network on handwritten digits, in plain mpi4py.

Each rank learns from its share of every batch; the gradients are summed over all ranks in a few large buckets, as
distributed deep-learning frameworks do. Nothing here knows of Stretto:

    mpirun -n 4 python examples/train.py
    stretto run -- mpirun -n 4 python examples/train.py
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # one core per rank, and the same order of additions in every run

import images as digits  # noqa: E402
import network  # noqa: E402
import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402


class Communicator:
    """The collectives that training needs, and the time spent in them."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm, self.rank, self.size = comm, comm.rank, comm.size
        self.seconds = 0.0

    def _timed(self, call, *arguments) -> None:
        begin = time.perf_counter()
        call(*arguments)
        self.seconds += time.perf_counter() - begin

    def broadcast(self, array: np.ndarray) -> None:
        self._timed(self.comm.Bcast, array, 0)

    def sum_in_place(self, array: np.ndarray) -> None:
        self._timed(self.comm.Allreduce, MPI.IN_PLACE, array, MPI.SUM)

    def barrier(self) -> None:
        self._timed(self.comm.Barrier)


def buckets(gradients: np.ndarray, most_bytes: int) -> list[np.ndarray]:
    """Slices of the flat gradients, at most `most_bytes` each."""
    step = max(1, most_bytes // gradients.itemsize)
    return [gradients[begin : begin + step] for begin in range(0, len(gradients), step)]


def shared_images(comm: Communicator) -> tuple[np.ndarray, np.ndarray, str]:
    """Rank 0 reads them, all get them."""
    loaded = digits.load() if comm.rank == 0 else None
    count, source = comm.comm.bcast((len(loaded[1]), loaded[2]) if loaded else None, 0)
    pictures = loaded[0] if loaded else np.empty((count, 1, digits.SIDE, digits.SIDE), np.float32)
    labels = loaded[1] if loaded else np.empty(count, np.int64)
    comm.broadcast(pictures)
    comm.broadcast(labels)
    return pictures, labels, source


class Trainer:
    """Stochastic gradient descent with momentum on all ranks alike."""

    def __init__(self, comm: Communicator, options: argparse.Namespace) -> None:
        self.comm, self.options = comm, options
        # Every rank draws other weights: the broadcast is what makes them one network.
        self.model = network.make(options.backend, options.hidden, options.seed + comm.rank)
        comm.broadcast(self.model.weights)
        self.buckets = buckets(self.model.gradients, int(options.bucket_mib * 2**20))
        self.velocity = np.zeros_like(self.model.weights)

    def step(self, pictures: np.ndarray, labels: np.ndarray) -> float:
        loss = self.model.learn(pictures, labels)
        for bucket in self.buckets:
            self.comm.sum_in_place(bucket)
        self.velocity *= np.float32(self.options.momentum)
        self.velocity += self.model.gradients
        self.model.weights -= np.float32(self.options.rate / self.comm.size) * self.velocity
        return loss

    def epoch(self, number: int, pictures: np.ndarray, labels: np.ndarray) -> tuple[float, int]:
        """Mean loss over all ranks and steps, and the number of steps."""
        order = np.random.default_rng(self.options.seed + number).permutation(len(labels))
        batch, everyone = self.options.batch, self.options.batch * self.comm.size
        steps = len(order) // everyone
        total = np.zeros(1)
        for step in range(steps):
            begin = step * everyone + self.comm.rank * batch
            mine = order[begin : begin + batch]
            total[0] += self.step(pictures[mine], labels[mine])
        self.comm.sum_in_place(total)
        return float(total[0]) / (steps * self.comm.size), steps

    def accuracy(self, pictures: np.ndarray, labels: np.ndarray) -> float:
        mine = slice(self.comm.rank, None, self.comm.size)
        right = np.array([self.model.correct(pictures[mine], labels[mine])], np.int64)
        self.comm.sum_in_place(right)
        return float(right[0]) / len(labels)


def train(comm: Communicator, options: argparse.Namespace) -> dict:
    pictures, labels, source = shared_images(comm)
    pictures, labels = pictures[: options.images], labels[: options.images]
    held_out = len(labels) // 10
    trainer = Trainer(comm, options)
    say = print if comm.rank == 0 else lambda *_, **__: None
    size = trainer.model.gradients.nbytes / 2**20
    say(f"{comm.size} ranks, {trainer.model.name}, {source}; {size:.1f} MiB of gradients in {len(trainer.buckets)} buckets")

    comm.barrier()
    comm.seconds, begin = 0.0, time.perf_counter()
    losses, accuracies, steps = [], [], 0
    for number in range(options.epochs):
        loss, more = trainer.epoch(number, pictures[held_out:], labels[held_out:])
        losses.append(loss)
        accuracies.append(trainer.accuracy(pictures[:held_out], labels[:held_out]))
        steps += more
        shown = repr(loss) if options.precise else f"{loss:.6f}"
        say(f"epoch {number + 1}: loss {shown}, accuracy {accuracies[-1]:.3f}", flush=True)
    comm.barrier()
    seconds = time.perf_counter() - begin
    communication = comm.comm.allreduce(comm.seconds) / comm.size
    say(f"{steps} steps in {seconds:.2f} s, {communication:.2f} s of it in communication (mean over ranks)")
    return {
        "ranks": comm.size,
        "model": trainer.model.name,
        "images": source,
        "mpi": " ".join(MPI.Get_library_version().split("\n")[0].split(",")[0].replace("Version:", "").split()),
        "gradient_bytes": trainer.model.gradients.nbytes,
        "steps": steps,
        "losses": losses,
        "accuracies": accuracies,
        "seconds": seconds,
        "communication_seconds": communication,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--images", type=int, default=5000, help="how many to use, a tenth of them for the accuracy")
    parser.add_argument("--batch", type=int, default=8, help="images per rank and step")
    parser.add_argument("--hidden", type=int, default=1024, help="width of the dense layers")
    parser.add_argument("--bucket-mib", type=float, default=4, help="largest bucket of gradients, in MiB")
    parser.add_argument("--rate", type=float, default=0.01, help="learning rate")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backend", choices=["auto", "torch", "numpy"], default="auto")
    parser.add_argument("--precise", action="store_true", help="print losses with all digits")
    parser.add_argument("--losses-out", type=Path, metavar="FILE", help="write losses and times as JSON")
    options = parser.parse_args()
    result = train(Communicator(MPI.COMM_WORLD), options)
    if options.losses_out and MPI.COMM_WORLD.rank == 0:
        options.losses_out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
