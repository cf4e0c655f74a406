"""The command that chooses: tune. What is heavy is imported when it is needed."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto import preload, report, session
from stretto.bench_options import Arena, Budget, MpiLibrary, Sizes, block_sizes, check_names, without_program
from stretto.benchmark import program, tables
from stretto.cli_options import LibraryOption, MpiOption, check_writable, write_json
from stretto.errors import StrettoError

if TYPE_CHECKING:
    from stretto.benchmark.model import Point, Results

_MOST_RANKS = 1 << 20


def tune(
    context: typer.Context,
    collectives: Annotated[
        list[str] | None,
        typer.Argument(metavar="COLLECTIVE", help="Such as allreduce bcast. Default: all. With --explain: one, and a size."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Tell what will run and why: --explain allreduce 64K.")] = False,
    ranks: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--ranks",
            metavar="N",
            min=1,
            max=_MOST_RANKS,
            help="With --explain: ranks on all nodes. Default: one per CPU of a node.",
        ),
    ] = None,
    nodes: Annotated[
        int,
        typer.Option(
            "--nodes", metavar="N", min=1, max=_MOST_RANKS, help="With --explain: over which the ranks are spread evenly."
        ),
    ] = 1,
    sizes: Sizes = "8:16M:2",
    budget: Budget = 300,
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write the rules there.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Measure and print the rules, write none.")] = False,
    results_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the measurements as JSON too.")
    ] = None,
    arena: Arena = None,
    mpi: MpiOption = None,
    library: LibraryOption = None,
    mpi_library: MpiLibrary = None,
) -> None:
    """Measure all algorithms here, and choose by that from now on.

    stretto tune -- mpirun -n 4

    The launcher's command ends before the program, which Stretto brings. Tune once for each number of ranks, and of nodes, that
    matters.
    """
    arena = session.wants_arena(arena)
    if explain:
        return _explain(context, collectives or [], ranks, nodes, arena, library)
    command = without_program(context, "tune")
    return _tune(
        command,
        collectives or [],
        _Tuning(sizes, budget, output, dry_run, results_file, arena),
        _choice(mpi, library, arena, mpi_library),
    )


@dataclass(frozen=True, slots=True)
class _Tuning:
    sizes: str
    budget: float
    output: Path | None
    dry_run: bool
    json: Path | None
    arena: bool


def _choice(mpi: Any, library: Path | None, arena: bool, mpi_library: Path | None) -> program.Choice:
    """The built-in rules hold meanwhile, so that an earlier file, good or bad, does not matter."""
    return program.Choice(mpi and mpi.value, library, arena, False, mpi_library, (("STRETTO_RULES", "builtin"),))


def _tune(command: list[str], collectives: list[str], wanted: _Tuning, choice: program.Choice) -> None:
    from stretto.benchmark import rules_file, tuning
    from stretto.benchmark.chooser import Chooser

    check_names(collectives)
    sizes = block_sizes(wanted.sizes)
    check_writable(wanted.json)
    if wanted.output and not wanted.dry_run:
        rules_file.check_writable(wanted.output)
    chooser = Chooser(choice.library or preload.any_library())
    names = collectives or [name for name in chooser.algorithms if name in program.COLLECTIVES]
    words = ["--collectives", ",".join(names), "--sizes", wanted.sizes, "--budget", f"{wanted.budget:g}", "--candidates"]
    points = sum(1 if name == "barrier" else len(sizes) for name in names)
    report.say(f"{points} points to measure" + ("" if wanted.dry_run else "; rules are written after the last one"))
    try:
        results = program.run(command, choice, words, _tuning_printer(points))
    except StrettoError as error:
        raise StrettoError(f"{error}: no rules are written", error.exit_code) from None
    write_json(wanted.json, results.as_json())
    if results.wrong:
        raise StrettoError(f"wrong results at {results.wrong} of {len(results.points)} points: no rules are written", 1)
    tuned = tuning.tune(results, chooser.built_in, wanted.arena, wanted.output, datetime.date.today())
    if not wanted.dry_run:
        tuning.write(tuned)
    if results.unshown:
        raise results.unshown
    print("\n".join(tuning.summary(results)))
    if wanted.dry_run:
        print(tuned.text)
        return
    report.say(f"rules written to {tuned.path}" + ("" if wanted.output else "; jobs use them from now on"))


def _explain(context: typer.Context, words: list[str], ranks: int | None, nodes: int, arena: bool, library: Path | None) -> None:
    from stretto.benchmark import explain as explaining
    from stretto.benchmark.chooser import Chooser, Question

    if len(words) not in (1, 2) or context.obj:
        raise StrettoError("write stretto tune --explain COLLECTIVE SIZE [-n RANKS], such as --explain allreduce 64K -n 4")
    cpus = len(os.sched_getaffinity(0))
    number = ranks or max(cpus, 2) * nodes
    if nodes > number:
        raise StrettoError(f"{number} ranks are on {number} nodes at most, not on {nodes}")
    if (words[0].lower() == "barrier") != (len(words) == 1):
        raise StrettoError(
            "a barrier has no size" if len(words) == 2 else f"{words[0]} of how many bytes? --explain {words[0]} 64K"
        )
    size = explaining.parse_bytes(words[1]) if len(words) == 2 else 0
    question = Question(words[0], size, number, -(-number // nodes) > cpus, arena, nodes=nodes)
    lines, refused = explaining.explain(Chooser(library or preload.any_library()), question, os.environ, cpus)
    print("\n".join(lines))
    if refused:
        raise typer.Exit(1)


def _tuning_printer(expected: int) -> Callable[[Results, Point | None], None]:
    from stretto.benchmark.choosing import measured

    def show(results: Results, point: Point | None) -> None:
        done = len(results.points) + len(results.skipped)
        if point is not None:
            print(f"{f'{done}/{expected}':>9} {point.collective:<21}{measured(point)}", flush=True)
        elif not done:
            print(tables.setup_line(results.setup), flush=True)

    return show
