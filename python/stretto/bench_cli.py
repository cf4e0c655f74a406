"""The command that measures: bench. What is heavy is imported when it is needed."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto import launchers, preload, report
from stretto.bench_options import Arena, Budget, MpiLibrary, Sizes, block_sizes, check_names, check_word, without_program
from stretto.benchmark import program, tables
from stretto.cli_options import (
    LibraryOption,
    MpiOption,
    OrderOption,
    check_writable,
    write_json,
    write_text,
)
from stretto.errors import StrettoError

if TYPE_CHECKING:
    from stretto.benchmark.model import Point, Results

SHAPES = "balanced, ascending, descending, first-delayed, last-delayed, random, K-late (such as 2-late), half-late, node-late"


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
    command = without_program(context, "bench")
    _check_picture(picture)
    if replay and arrival:
        raise StrettoError("--arrival and --replay exclude one another")
    if spread and not arrival:
        raise StrettoError("--spread needs --arrival")
    for option, given in (("--also", also), ("--order", order)):
        if given and plain:
            raise StrettoError(f"{option} and --plain exclude one another")
    check_names(collectives or [])
    block_sizes(sizes)
    check_word("--mode", mode, "auto|single|batch|loop", "single, batch, loop or auto")
    check_word("--also", also or "slices", r"\w+(,\w+)*", "names of algorithms, such as slices,paper_small")
    check_word("--arrival", arrival or "balanced", _SHAPES, SHAPES)
    check_word("--spread", spread or "1", f"{_NUMBER}(,{_NUMBER})*", "numbers, such as 1,10")
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


_OTHER_NAMES = {"first-late": "first-delayed", "last-late": "last-delayed"}
_SHAPES = "balanced|ascending|descending|(first|last)-(delayed|late)|random|[1-9]\\d{0,5}-late|half-late|node-late"
_DEFAULT = ("barrier", "bcast", "reduce", "allreduce")
_LEAST = "3"  # samples, however long they take,
_MOST_BUDGETS = 30  # but for points of which the delays alone take so many times the budget
_NUMBER = r"\d+(\.\d*)?"


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
