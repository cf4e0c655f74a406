"""The commands that measure: bench and tune. What is heavy is imported when it is needed."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto import report
from stretto.benchmark import program, tables
from stretto.cli_options import LibraryOption, MpiOption, check_writable, command_after_dashes, write_json, write_text
from stretto.errors import StrettoError

if TYPE_CHECKING:
    from stretto.benchmark.model import Point, Results

SHAPES = "balanced, ascending, descending, first-delayed, last-delayed, random, K-late (such as 2-late), half-late"

Sizes = Annotated[
    str, typer.Option("--sizes", metavar="LIST|A:B:F", help="Bytes of a block: 8,1K,1M, or from A to B by factor F.")
]
Budget = Annotated[float, typer.Option("--budget", min=1, metavar="MS", help="Time to spend on a point.")]
MpiLibrary = Annotated[
    Path | None, typer.Option("--mpi-library", metavar="FILE", help="The MPI library, where it is not the launcher's.")
]
Arena = Annotated[bool | None, typer.Option("--arena/--no-arena", help="Buffers come from an arena that peers read in place.")]


def bench(
    context: typer.Context,
    collectives: Annotated[list[str] | None, typer.Argument(help="Such as allreduce bcast.")] = None,
    sizes: Sizes = "8:16M:4",
    output: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the results as JSON too.")] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Draw them: FILE.svg, or FILE.html with the table.")
    ] = None,
    arrival: Annotated[str, typer.Option("--arrival", metavar="SHAPE", help=f"Ranks arrive apart: {SHAPES}.")] = "",
    spread: Annotated[
        str,
        typer.Option("--spread", metavar="X,Y", help="Largest delays, as multiples of a balanced call (random: of a message)."),
    ] = "",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of random delays and places.")] = 1,
    permute: Annotated[bool, typer.Option("--permute", help="Another rank is late from call to call.")] = False,
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="DIR", help="Ranks arrive as in this profile (stretto profile --trace).")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Without Stretto: the MPI library alone.")] = False,
    mode: Annotated[str, typer.Option("--mode", help="single, batch, or auto.")] = "auto",
    budget: Budget = 200,
    root: Annotated[int, typer.Option("--root", min=0, help="Root of rooted collectives.")] = 0,
    keep_places: Annotated[bool, typer.Option("--keep-places", help="Leave the ranks where the launcher puts them.")] = False,
    arena: Arena = None,
    mpi: MpiOption = None,
    library: LibraryOption = None,
    mpi_library: MpiLibrary = None,
) -> None:
    """Measure collectives, Stretto's against the MPI library's own: stretto bench allreduce -- mpirun -n 4.

    The launcher's command ends before the program, which Stretto brings. All ranks run on one node.
    """
    command = command_after_dashes(context, None, "bench")
    check_writable(output)
    check_writable(picture)
    _check_picture(picture)
    if replay and arrival:
        raise StrettoError("--arrival and --replay exclude one another")
    if spread and not arrival:
        raise StrettoError("--spread needs --arrival")
    words = ["--sizes", sizes, "--mode", mode, "--budget", f"{budget:g}", "--root", str(root)]
    words += ["--collectives", ",".join(collectives)] if collectives else []
    words += ["--keep-places"] if keep_places else []
    words += ["--plain"] if plain else []
    if arrival:
        words += ["--arrival", arrival, "--seed", str(seed), *(["--spreads", spread] if spread else [])]
        words += ["--permute"] if permute else []
    choice = program.Choice(mpi and mpi.value, library, arena, plain, mpi_library)
    with tempfile.TemporaryDirectory(prefix="stretto-replay-") as folder:
        if replay:
            words += ["--delays", str(_delays(replay, command, collectives or [], Path(folder)))]
        printed: list[str] = []
        results = program.run(command, choice, words, _printer(printed))
    _finish(results, printed, output, picture, plain)


def _check_picture(picture: Path | None) -> None:
    if picture and picture.suffix not in (".svg", ".html"):
        raise StrettoError(f"{picture}: a picture is a .svg or a .html file")


def ranks_of(command: Sequence[str]) -> int:
    """How many ranks a launcher's command asks for. StrettoError: it does not say."""
    for word, value in itertools.pairwise(command):
        if word in ("-n", "-np", "--n", "--np", "-c", "--ntasks") and value.isdigit():
            return int(value)
    raise StrettoError("the launcher's command does not tell the number of ranks (-n N)")


def _delays(profile: Path, command: Sequence[str], collectives: Sequence[str], folder: Path) -> Path:
    from stretto.benchmark import replay

    rows = replay.delays(profile, ranks_of(command), collectives[0] if len(collectives) == 1 else "")
    path = folder / "delays"
    replay.write(path, rows)
    report.say(f"{len(rows)} recorded calls are replayed, of which the median spread is {_spread(rows)}")
    return path


def _spread(rows: Any) -> str:
    import numpy as np

    return report.seconds(float(np.median(rows.max(axis=1))) * 1e-9)


def _printer(printed: list[str]) -> Callable[[Results, Point | None], None]:
    """Prints each line as it comes, and a header before each collective."""
    shown: set[str] = set()

    def show(results: Results, point: Point | None) -> None:
        lines: list[str] = []
        if point is None:
            skipped = results.skipped[-1:] if shown else []
            lines += [f"{one['collective']} of {one['bytes']} bytes: {one['why']}" for one in skipped]
            lines += [] if shown or results.points else [tables.setup_line(results.setup)]
        else:
            lines += [] if point.collective in shown else [tables.header(point)]
            shown.add(point.collective)
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
    if not plain and not results.accelerating:
        report.say(f"Stretto did not take part ({results.setup.get('why', '')}): both columns are the MPI library")
    if results.wrong:
        raise StrettoError(f"wrong results at {results.wrong} of {len(results.points)} points", 1)


COMMANDS: dict[str, Callable[..., None]] = {"bench": bench}
