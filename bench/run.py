#!/usr/bin/env python3
"""What ./dev bench does: builds the benchmark for each MPI, measures Stretto against the peers and what declining costs,
and writes bench/results/<machine>/, with a verdict on every speed goal inside a node. Quiet the machine first; the full run
takes an hour or two, --quick ten minutes. Every run is kept in a file as soon as it has ended: a series that was cut goes on
with --resume, and several partial ones become one page with --merge.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "collective"))

import launchers  # noqa: E402
import machine  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import tables  # noqa: E402
from kept import Kept, merged, resumed  # noqa: E402


def make_say() -> Callable[[str], None]:
    """Prints a line of progress; in colour where rich is installed."""
    try:
        from rich.console import Console
    except ImportError:
        return lambda text: print(text, flush=True)
    console = Console(highlight=False)
    return lambda text: console.print(text, style="red" if "FAILED" in text else None, markup=False, soft_wrap=True)


def build(say: Callable[[str], None]) -> None:
    """build/bench/<mpi>/collective_bench for each MPI with a compiler; Intel MPI runs MPICH's."""
    sources = sorted((HERE / "collective").glob("*.c"))
    newest = max(path.stat().st_mtime for path in (HERE / "collective").glob("*.[ch]"))
    for peer in launchers.PEERS:
        compiler = peer.home / "bin/mpicc"
        program = launchers.ROOT / "build/bench" / peer.binary / "collective_bench"
        if not compiler.exists() or (program.exists() and program.stat().st_mtime > newest):
            continue
        program.parent.mkdir(parents=True, exist_ok=True)
        say(f"building {program.relative_to(launchers.ROOT)}")
        flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wshadow"]
        subprocess.run([compiler, *flags, *sources, "-ldl", "-o", program], check=True)


def measure_declining(folder: Path, budget_ms: float, kept: Kept, say: Callable[[str], None]) -> None:
    """What calls cost that Stretto sees and leaves to MPI: on one rank, and on two with acceleration off."""
    for peer in launchers.PEERS:
        preload = folder / peer.preload
        if peer.key not in tables.HOSTS or not peer.available() or not preload.exists():
            continue
        off = {"STRETTO_ACCELERATE": "off"}
        for how, ranks, settings in (("1 rank", 1, dict[str, str]()), ("2 ranks, acceleration off", 2, off)):
            program = launchers.collective_bench(peer, "--decline", "--budget", str(budget_ms))
            stretto = launchers.Stretto(preload, settings=settings)
            try:
                lines = launchers.run(peer, peer.configs[0], ranks, machine.cores(), program, stretto=stretto)
            except launchers.RunFailed as why:
                say(f"declining, {peer.title}, {how}: FAILED: {why}")
                continue
            for line in lines:
                if line["kind"] == "decline":
                    kept.decline({**line, "host": peer.title, "how": how})
            say(f"declining, {peer.title}, {how}: done")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few sizes, one repeat: about ten minutes")
    parser.add_argument("--collectives", default=",".join(tables.COLLECTIVES), metavar="LIST", help="(default: all)")
    parser.add_argument("--ranks", default="2,4,8", help="rank counts (default: 2,4,8)")
    parser.add_argument("--repeats", type=int, help="how often each run is repeated (default: 3; --quick: 1)")
    parser.add_argument("--sizes", help="bytes, with K or M, separated by commas")
    parser.add_argument("--budget", type=float, help="ms for each point of a run (default: 100; --quick: 20)")
    parser.add_argument("--limit", type=float, help="s after which a run is cut off (default: 300; --quick: 60)")
    parser.add_argument("--peers-only", action="store_true", help="measure the peers without Stretto, into peers.md")
    parser.add_argument("--preloads", type=Path, help="folder with the preload libraries (default: the newest build)")
    parser.add_argument("--output", type=Path, help="folder for the results (default: bench/results/<machine>)")
    parser.add_argument("--resume", type=Path, metavar="RUNS", help="go on with the series of this file, or begin it")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="RUNS", help="measure nothing: one page of these files")
    args = parser.parse_args()
    args.collectives = tuple(args.collectives.split(","))
    if unknown := set(args.collectives) - set(tables.COLLECTIVES):
        parser.error(f"cannot measure {', '.join(sorted(unknown))}: choose of {', '.join(tables.COLLECTIVES)}")
    return args


def options_from(args: argparse.Namespace, say: Callable[[str], None]) -> peers.Options:
    options = peers.Options([int(r) for r in args.ranks.split(",")], args.repeats or (1 if args.quick else 3), say=say)
    options.tries, options.collectives = options.repeats + 1, args.collectives
    if args.quick:
        options.sizes, options.budget_ms, options.limit_s = peers.QUICK_SIZES, 20, 60
        options.most, options.most_shared, options.batches, options.tries = 16 << 20, 8 << 20, False, 1
    options.sizes = args.sizes or options.sizes
    options.budget_ms, options.limit_s = args.budget or options.budget_ms, args.limit or options.limit_s
    if not args.peers_only:
        options.preloads = args.preloads or launchers.find_preloads()
        if not options.preloads:
            sys.exit("bench: no preload libraries: run ./dev build first, or measure the peers alone with --peers-only")
    return options


def measured(args: argparse.Namespace, stem: str, say: Callable[[str], None]) -> Kept:
    """The series, measured now."""
    if not any(peer.available() for peer in launchers.PEERS):
        sys.exit("bench: no MPI under .mpi: run ./dev setup first")
    if os.getloadavg()[0] > 0.5 * machine.cores():
        say(f"note: the machine is busy (load {os.getloadavg()[0]:.1f}); results will be noisy")
    launchers.ensure_intel(say)
    build(say)
    options = options_from(args, say)
    kept = resumed(args.resume or launchers.ROOT / f"build/bench/{stem}-{time.strftime('%Y%m%d-%H%M%S')}.runs")
    say(f"runs are kept in {kept.path}")
    kept.command(" ".join(["bench/run.py", *sys.argv[1:]]))
    if options.preloads and not kept.declining:
        measure_declining(options.preloads, 20 if args.quick else 200, kept, say)
    peers.measure(options, kept)
    return kept


def main() -> int:
    peers.interrupt_on_termination()
    args, say = parse(), make_say()
    began = time.monotonic()
    stem = ("peers" if args.peers_only else "collectives") + ("-quick" if args.quick else "")
    kept = merged(args.merge) if args.merge else measured(args, stem, say)
    if not kept.runs:
        sys.exit("bench: no run succeeded")
    page, document = report.make(kept)
    folder = (args.output or peers.results_folder()).resolve()
    for path in report.write(folder, stem, page, document):
        say(f"wrote {path.relative_to(launchers.ROOT) if path.is_relative_to(launchers.ROOT) else path}")
    failures = kept.failures
    say(f"{len(kept.runs)} runs in {time.monotonic() - began:.0f} s" + (f", {len(failures)} FAILED" if failures else ""))
    wrong = sum(cell["wrong"] for cell in document["cells"])
    if wrong:
        say(f"FAILED: {wrong} wrong result elements; see the JSON file")
    return 1 if failures or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
