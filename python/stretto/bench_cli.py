"""The commands that measure: bench and tune. What is heavy is imported when it is needed."""

from __future__ import annotations

import datetime
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto import launchers, preload, programs, report
from stretto.benchmark import program, tables
from stretto.cli_options import (
    LibraryOption,
    MpiOption,
    OrderOption,
    check_writable,
    command_after_dashes,
    write_json,
    write_text,
)
from stretto.errors import StrettoError

if TYPE_CHECKING:
    from stretto.benchmark.model import Point, Results

SHAPES = "balanced, ascending, descending, first-delayed, last-delayed, random, K-late (such as 2-late), half-late, node-late"

Sizes = Annotated[
    str, typer.Option("--sizes", metavar="LIST|A:B:F", help="Bytes of a block, in fours: 8,1K,1M, or from A to B by factor F.")
]
_MOST_RANKS = 1 << 20
Budget = Annotated[
    float, typer.Option("--budget", min=1, metavar="MS", help="Time to spend on a point; some samples are taken anyway.")
]
MpiLibrary = Annotated[
    Path | None, typer.Option("--mpi-library", metavar="FILE", help="The MPI library, where it is not the launcher's.")
]
Arena = Annotated[bool | None, typer.Option("--arena/--no-arena", help="Buffers come from an arena that peers read in place.")]


def bench(
    context: typer.Context,
    collectives: Annotated[
        list[str] | None, typer.Argument(metavar="COLLECTIVE", help="Default: barrier bcast reduce allreduce.")
    ] = None,
    sizes: Sizes = "8:16M:4",
    output: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the results as JSON too.")] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Draw them: FILE.svg, or FILE.html with the table.")
    ] = None,
    arrival: Annotated[str, typer.Option("--arrival", metavar="SHAPE", help=f"Ranks arrive apart: {SHAPES}.")] = "",
    spread: Annotated[
        str,
        typer.Option(
            "--spread",
            metavar="X,Y",
            help="Largest delays, as multiples of a balanced call (random: of a message). Default: 0.5,1,2,10,20,50.",
        ),
    ] = "",
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Of random delays and places.")] = 1,
    permute: Annotated[bool, typer.Option("--permute", help="Another rank is late from call to call.")] = False,
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="DIR", help="Ranks arrive as in this profile (stretto profile --trace).")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Without Stretto: the MPI library alone.")] = False,
    also: Annotated[
        str, typer.Option("--also", metavar="LIST", help="Stretto's algorithms measured besides: slices,paper_small.")
    ] = "",
    mode: Annotated[str, typer.Option("--mode", metavar="MODE", help="How to sample: single, batch, loop, or auto.")] = "auto",
    budget: Budget = 200,
    root: Annotated[int, typer.Option("--root", metavar="RANK", min=0, help="Root of rooted collectives.")] = 0,
    keep_places: Annotated[bool, typer.Option("--keep-places", help="Leave the ranks where the launcher puts them.")] = False,
    arena: Arena = None,
    order: OrderOption = None,
    mpi: MpiOption = None,
    library: LibraryOption = None,
    mpi_library: MpiLibrary = None,
) -> None:
    """Time collectives against the MPI library's own.

    stretto bench allreduce -- mpirun -n 4

    The launcher's command ends before the program, which Stretto brings. Ranks may come late: --arrival, --replay.
    """
    command = _without_program(context, "bench")
    _check_picture(picture)
    if replay and arrival:
        raise StrettoError("--arrival and --replay exclude one another")
    if spread and not arrival:
        raise StrettoError("--spread needs --arrival")
    for option, given in (("--also", also), ("--order", order)):
        if given and plain:
            raise StrettoError(f"{option} and --plain exclude one another")
    _check_names(collectives or [])
    _block_sizes(sizes)
    _check_word("--mode", mode, "auto|single|batch|loop", "single, batch, loop or auto")
    _check_word("--also", also or "slices", r"\w+(,\w+)*", "names of algorithms, such as slices,paper_small")
    _check_word("--arrival", arrival or "balanced", _SHAPES, SHAPES)
    _check_word("--spread", spread or "1", f"{_NUMBER}(,{_NUMBER})*", "numbers, such as 1,10")
    arrival = _OTHER_NAMES.get(arrival, arrival)
    _check_ranks(command, root, arrival)
    if also:
        _check_algorithms(also, collectives or _DEFAULT, library)
    check_writable(output)
    check_writable(picture)
    words = ["--sizes", sizes, "--mode", mode, "--budget", f"{budget:g}", "--least", _LEAST, "--root", str(root)]
    words += ["--collectives", ",".join(collectives or _DEFAULT)]
    words += ["--keep-places"] if keep_places else []
    words += ["--plain"] if plain else []
    words += ["--also", also] if also else []
    if arrival:
        words += ["--most-point", f"{budget * _MOST_BUDGETS:g}"]
        words += ["--arrival", arrival, "--seed", str(seed), *(["--spreads", spread] if spread else [])]
        words += ["--permute"] if permute else []
    settings = (("STRETTO_ORDER", order.value),) if order else ()
    choice = program.Choice(mpi and mpi.value, library, arena, plain, mpi_library, settings)
    with tempfile.TemporaryDirectory(prefix="stretto-replay-") as folder:
        if replay:
            words += ["--delays", str(_delays(replay, command, collectives or [], Path(folder)))]
        printed: list[str] = []
        results = program.run(command, choice, words, _printer(printed))
    _finish(results, printed, output, picture, plain)


def _without_program(context: typer.Context, name: str) -> list[str]:
    """The launcher's command. StrettoError: it names a program. A shell script may stand there: it may bind the ranks."""
    command = command_after_dashes(context, None, name)
    found = programs.certain_program(command[1:], letters=launchers.is_srun(command[0]))
    if found is not None and found.name not in _SHELLS:
        raise StrettoError(
            f"no program belongs there ({found.name}): stretto {name} brings its own; end with the launcher's options"
        )
    return command


_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_SIZE = r"\d+[KMkm]?"
_OTHER_NAMES = {"first-late": "first-delayed", "last-late": "last-delayed"}
_SHAPES = "balanced|ascending|descending|(first|last)-(delayed|late)|random|[1-9]\\d{0,5}-late|half-late|node-late"
_DEFAULT = ("barrier", "bcast", "reduce", "allreduce")
_LEAST = "3"  # samples, however long they take,
_MOST_BUDGETS = 30  # but for points of which the delays alone take so many times the budget
_NUMBER = r"\d+(\.\d*)?"


def _check_word(option: str, value: str, pattern: str, expected: str) -> None:
    """Here rather than on every rank."""
    if not re.fullmatch(pattern, value):
        raise StrettoError(f"cannot use {option} {value}: {expected}")


def _block_sizes(sizes: str) -> list[int]:
    """Those that --sizes asks for."""
    from stretto.benchmark.explain import parse_bytes

    pattern = f"{_SIZE}(,{_SIZE})*|{_SIZE}:{_SIZE}:{_SIZE}"
    _check_word("--sizes", sizes, pattern, "write 8,1K,1M or FROM:TO:FACTOR, such as 8:1M:4")
    named, factor = [parse_bytes(word) for word in re.split("[,:]", sizes)], 2
    if ":" in sizes:
        factor = named.pop()
    if not all(4 <= size <= 1 << 30 for size in named) or factor < 2:
        raise StrettoError(f"cannot use --sizes {sizes}: blocks have 4 bytes to 1024M, the factor is at least 2")
    if ":" not in sizes:
        return named
    first, last = named
    return [first * factor**i for i in range(31) if first * factor**i <= last]


def _check_names(collectives: Sequence[str]) -> None:
    unknown = [name for name in collectives if name not in program.COLLECTIVES]
    if unknown:
        raise StrettoError(f"{unknown[0]} cannot be measured: choose of {', '.join(program.COLLECTIVES)}")


def _check_ranks(command: Sequence[str], root: int, arrival: str) -> None:
    """As the program would say on each rank, where the command tells how many there are."""
    try:
        ranks = launchers.ranks_of(command)
    except StrettoError:
        return
    late = re.match(r"\d+", arrival)
    if root >= ranks:
        raise StrettoError(f"--root {root}: there are ranks 0 to {ranks - 1}")
    if late and int(late[0]) >= ranks:
        raise StrettoError(f"--arrival {arrival}: of {ranks} ranks at most {ranks - 1} can be late")


def _check_algorithms(also: str, collectives: Sequence[str], library: Path | None) -> None:
    from stretto.benchmark.chooser import Chooser

    algorithms = Chooser(library or preload.any_library()).algorithms
    known = dict.fromkeys(name for one in collectives for name in algorithms.get(one, []))
    for name in also.split(","):
        if name not in known:
            raise StrettoError(f"--also {name}: no algorithm for {', '.join(collectives)}; choose of {', '.join(known)}")


def _check_picture(picture: Path | None) -> None:
    if picture and picture.suffix not in (".svg", ".html"):
        raise StrettoError(f"{picture}: a picture is a .svg or a .html file")


def _delays(profile: Path, command: Sequence[str], collectives: Sequence[str], folder: Path) -> Path:
    from stretto.benchmark import replay

    rows = replay.delays(profile, launchers.ranks_of(command), collectives[0] if len(collectives) == 1 else "")
    path = folder / "delays"
    replay.write(path, rows)
    report.say(f"{len(rows)} recorded calls are replayed, of which the median spread is {_spread(rows)}")
    return path


def _spread(rows: Any) -> str:
    import numpy as np

    return report.seconds(float(np.median(rows.max(axis=1))) * 1e-9)


def _printer(printed: list[str]) -> Callable[[Results, Point | None], None]:
    """Prints each line as it comes, and a header before each collective, and where an algorithm is not there for all sizes."""
    shown: tuple[str, ...] = ()

    def show(results: Results, point: Point | None) -> None:
        nonlocal shown
        lines: list[str] = []
        if point is None:
            skipped = results.skipped[-1:] if shown else []
            lines += [f"{one['collective']} of {one['bytes']} bytes: {one['why']}" for one in skipped]
            lines += [] if shown or results.points else [tables.setup_line(results.setup)]
        else:
            point = point.as_run(results.accelerating)
            columns = (point.collective, *tables.names(point))
            lines += [] if columns == shown else [tables.header(point)]
            shown = columns
            lines.append(tables.row(point))
        for line in lines:
            printed.append(line)
            print(line, flush=True)

    return show


def _tuning_printer(expected: int) -> Callable[[Results, Point | None], None]:
    from stretto.benchmark.choosing import measured

    def show(results: Results, point: Point | None) -> None:
        done = len(results.points) + len(results.skipped)
        if point is not None:
            print(f"{f'{done}/{expected}':>9} {point.collective:<21}{measured(point)}", flush=True)
        elif not done:
            print(tables.setup_line(results.setup), flush=True)

    return show


def _finish(results: Results, printed: list[str], output: Path | None, picture: Path | None, plain: bool) -> None:
    write_json(output, results.as_json())
    if picture:
        from stretto.benchmark import pictures

        text = pictures.as_svg(results) if picture.suffix == ".svg" else pictures.as_html(results, printed)
        if text:
            write_text(picture, text)
        else:
            report.say(f"too little was measured to draw anything: {picture} is not written")
    if results.unshown:
        raise results.unshown
    if not plain and not results.accelerating:
        report.say(f"Stretto did not take part ({results.setup.get('why', '')}): these are the MPI library's own times")
    if results.wrong:
        raise StrettoError(f"wrong results at {results.wrong} of {len(results.points)} points", 1)


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
    if explain:
        return _explain(context, collectives or [], ranks, nodes, bool(arena), library)
    command = _without_program(context, "tune")
    return _tune(
        command,
        collectives or [],
        _Tuning(sizes, budget, output, dry_run, results_file, bool(arena)),
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


def _choice(mpi: Any, library: Path | None, arena: bool | None, mpi_library: Path | None) -> program.Choice:
    """The built-in rules hold meanwhile, so that an earlier file, good or bad, does not matter."""
    return program.Choice(mpi and mpi.value, library, arena, False, mpi_library, (("STRETTO_RULES", "builtin"),))


def _tune(command: list[str], collectives: list[str], wanted: _Tuning, choice: program.Choice) -> None:
    from stretto.benchmark import rules_file, tuning
    from stretto.benchmark.chooser import Chooser

    _check_names(collectives)
    sizes = _block_sizes(wanted.sizes)
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
    size = explaining.parse_bytes(words[1]) if len(words) == 2 else 0
    question = Question(words[0], size, number, -(-number // nodes) > cpus, arena, nodes=nodes)
    lines, refused = explaining.explain(Chooser(library or preload.any_library()), question, os.environ, cpus)
    print("\n".join(lines))
    if refused:
        raise typer.Exit(1)


COMMANDS: dict[str, Callable[..., None]] = {"bench": bench, "tune": tune}
