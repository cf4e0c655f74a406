#!/usr/bin/env python3
"""Training with ranks that come late: plain MPI, Stretto's balanced algorithms, and Stretto, in turn.

    .mpi/openmpi/bin/python examples/stragglers.py --late slow
    .mpi/mpich/bin/python examples/stragglers.py --mpi mpich --late random --repeats 5

It is the training of examples/train.py, whose steps are lengthened on some ranks: `slow`, the last rank takes 30 % longer for
each step; `random`, each rank takes twice as long for one step in ten, which are drawn by itself; `even`, nobody. The
table has medians over the runs of each kind: the time of a step, and its time *after the last arrival*, from when the last rank
comes to the first bucket of gradients until the last one has left the last bucket (docs/arrival.md). What remains of a step is
computing, and waiting that no collective can spare.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SLOWER, RANDOM_SHARE = 0.3, 0.1

# What the built-in rules choose for these sizes, but for the algorithms that go by arrival.
BALANCED = """\
barrier flat
bcast bytes=..1072 flat
bcast staged
allreduce bytes=..1072 flat
allreduce bytes=8K.. arena=yes direct
allreduce bytes=..4K gather
allreduce slices
"""


class Straggling:
    """A model whose learning takes longer now and then; the extra time is spent busily, as computing would be."""

    def __init__(self, model, late: str, rank: int, size: int) -> None:
        import numpy as np

        self.model, self.late, self.is_last = model, late, rank == size - 1
        self.random = np.random.default_rng([20261122, rank])

    def __getattr__(self, name: str):
        return getattr(self.model, name)

    def learn(self, pictures, labels) -> float:
        begin = time.perf_counter()
        loss = self.model.learn(pictures, labels)
        end = time.perf_counter()
        until = end + self._longer() * (end - begin)
        while time.perf_counter() < until:
            pass
        return loss

    def _longer(self) -> float:
        if self.late == "slow":
            return SLOWER if self.is_last else 0.0
        return 1.0 if self.late == "random" and self.random.random() < RANDOM_SHARE else 0.0


def work(options: argparse.Namespace) -> None:
    """One rank's part. Rank 0 writes the times of each step, in seconds."""
    import train
    from mpi4py import MPI

    class Stepping(train.Trainer):
        """Notes when each step came to its first bucket and left its last one, by the clock that all ranks of a node share."""

        def __init__(self, *arguments) -> None:
            super().__init__(*arguments)
            self.model = Straggling(self.model, options.late, self.comm.rank, self.comm.size)
            self.arrived: list[float] = []
            self.left: list[float] = []

        def step(self, pictures, labels) -> float:
            calls, sum_in_place = 0, self.comm.sum_in_place

            def noted(array) -> None:
                nonlocal calls
                if calls == 0:
                    self.arrived.append(time.clock_gettime(time.CLOCK_MONOTONIC))
                sum_in_place(array)
                calls += 1
                if calls == len(self.buckets):
                    self.left.append(time.clock_gettime(time.CLOCK_MONOTONIC))

            self.comm.sum_in_place = noted
            try:
                return super().step(pictures, labels)
            finally:
                self.comm.sum_in_place = sum_in_place

    comm = train.Communicator(MPI.COMM_WORLD)
    MPI.Pcontrol(0)  # a profile is to tell of the training alone: before it all wait for rank 0, which reads the images
    settings = argparse.Namespace(
        backend="numpy",
        hidden=options.hidden,
        seed=1,
        bucket_mib=options.bucket_mib,
        momentum=0.9,
        rate=0.01,
        batch=options.batch,
    )
    pictures, labels, _ = train.shared_images(comm)
    trainer = Stepping(comm, settings)
    comm.barrier()
    MPI.Pcontrol(1)
    images = options.steps * options.batch * comm.size
    trainer.epoch(0, pictures[:images], labels[:images])
    times = comm.comm.gather((trainer.arrived, trainer.left), 0)
    if comm.rank == 0:
        arrived, left = zip(*times, strict=True)
        last_in, last_out = ([max(ranks) for ranks in zip(*many, strict=True)] for many in (arrived, left))
        first_in = [min(ranks) for ranks in zip(*arrived, strict=True)]
        skip = len(last_in) // 5  # while caches and memory settle
        result = {
            "step": [b - a for a, b in zip(last_out[skip:], last_out[skip + 1 :], strict=False)],
            "after": [b - a for a, b in zip(last_in[skip:], last_out[skip:], strict=True)],
            "spread": [b - a for a, b in zip(first_in[skip:], last_in[skip:], strict=True)],
        }
        options.out.write_text(json.dumps(result))


class Runner:
    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        import demo

        self.options, self.folder = options, folder
        self.mpi, self.stretto = demo.find_mpi(options.mpi), demo.find_stretto()
        rules = folder / "balanced.rules"
        rules.write_text(BALANCED)
        self.kinds = {
            "plain MPI": ([], {}),
            "Stretto, balanced algorithms": ([self.stretto, "run", "--arena", "--"], {"STRETTO_RULES": str(rules)}),
            "Stretto": ([self.stretto, "run", "--arena", "--"], {}),
        }

    def run(self, kind: str) -> dict:
        out, log = self.folder / "times.json", self.folder / "log"
        out.unlink(missing_ok=True)
        o = self.options
        words = [str(HERE / "stragglers.py"), "--work", "--out", str(out), "--late", o.late, "--steps", str(o.steps)]
        words += ["--batch", str(o.batch), "--hidden", str(o.hidden), "--bucket-mib", str(o.bucket_mib)]
        before, settings = self.kinds[kind]
        command = [*before, *self.mpi.launch(o.ranks, *words)]
        with log.open("w") as file:
            code = subprocess.run(command, env={**os.environ, **settings}, stdout=file, stderr=subprocess.STDOUT).returncode
        if code or not out.exists():
            sys.exit(f"stragglers: exit code {code}: {' '.join(command)}\n{log.read_text()}")
        return json.loads(out.read_text())


def compare(options: argparse.Namespace) -> dict:
    """All kinds in turn, so that they meet the same weather."""
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(options, Path(folder))
        runs: dict[str, list[dict]] = {kind: [] for kind in runner.kinds}
        for _ in range(options.repeats):
            for kind, found in runs.items():
                found.append(runner.run(kind))
    result = {}
    for kind, found in runs.items():
        step, after, spread = (
            statistics.median(statistics.median(run[key]) for run in found) for key in ("step", "after", "spread")
        )
        share = statistics.median(sum(run["after"][1:]) / sum(run["step"]) for run in found)
        result[kind] = {"step_seconds": step, "after_seconds": after, "spread_seconds": spread, "after_share": share}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--late", choices=["even", "slow", "random"], default="slow")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each kind")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=8, help="images per rank and step")
    parser.add_argument("--hidden", type=int, default=1024, help="width of the dense layers")
    parser.add_argument("--bucket-mib", type=float, default=4, help="largest bucket of gradients, in MiB")
    parser.add_argument("--mpi", choices=["openmpi", "mpich"])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table as JSON too")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options)
    result = compare(options)
    print(f"{options.ranks} ranks, late: {options.late}; medians over {options.repeats} runs of {options.steps} steps, ms")
    print(f"  {'':30}{'step':>8}{'after the last':>16}{'share':>8}{'spread':>9}")
    for kind, one in result.items():
        step, after, spread = (1e3 * one[f"{key}_seconds"] for key in ("step", "after", "spread"))
        print(f"  {kind:30}{step:8.2f}{after:16.2f}{one['after_share']:8.0%}{spread:9.2f}")
    if options.json:
        options.json.write_text(
            json.dumps({"options": {"late": options.late, "ranks": options.ranks}, **result}, indent=2) + "\n"
        )
    return None


if __name__ == "__main__":
    main()
