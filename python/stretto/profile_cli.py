"""The commands around a profile: profile, report, dump, export. What is heavy is imported when it is needed."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto import analysis, profiling, report, running, session
from stretto.cli_options import LibraryOption, MpiOption, OrderOption, Stray, Switch, command_after_dashes, write_json, write_text
from stretto.errors import StrettoError

if TYPE_CHECKING:
    from stretto.profile_model import Profile

Iterations = Annotated[str, typer.Option("--iterations", metavar="A:B", help="Only the iterations A to B.")]


def profile(
    context: typer.Context,
    stray: Stray = None,
    trace: Annotated[bool, typer.Option("--trace", help="Record every call, not only sums and a sample.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="The profile's folder. Default: stretto-profile-1, or the next free number."
        ),
    ] = None,
    iterations: Iterations = "",
    iteration_calls: Annotated[
        int,
        typer.Option(
            "--iteration-calls",
            min=0,
            metavar="N",
            help="An iteration begins at every N-th collective on MPI_COMM_WORLD, not at MPI_Pcontrol(3).",
        ),
    ] = 0,
    accelerate: Annotated[Switch, typer.Option("--accelerate", help="on: profile Stretto's own collectives.")] = Switch.off,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="MIB", help="No rank's trace grows beyond this. Default: 512.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the rewritten command and do not run it.")] = False,
    mpi: MpiOption = None,
    library: LibraryOption = None,
    order: OrderOption = None,
) -> None:
    """Record an MPI command's communication; a verdict at the end.

    stretto profile --trace -- mpirun -n 4 PROGRAM

    Nothing is accelerated: the MPI library works as always. stretto report DIR shows what was recorded. The exit code is the
    launcher's.
    """
    command = command_after_dashes(context, stray, "profile")
    options = profiling.Options(trace, iterations, iteration_calls, limit)
    plan = profiling.with_profile(
        session.plan(command, accelerate.value, mpi and mpi.value, library, order=order and order.value), options
    )
    if plan.warning:
        report.say(plan.warning)
    if dry_run:
        print(plan.shown())
        return
    theirs = output is not None and output.exists()
    folder = profiling.make_folder(output)
    try:
        plan.rewritten(folder)  # a name that the launcher cannot be given
    except StrettoError:
        profiling.drop_empty(folder, keep_folder=theirs)
        raise
    outcome = profiling.execute(plan, options, folder)
    _end_of_run(folder, outcome.end_ns, outcome.exit_code)
    profiling.drop_empty(folder, keep_folder=theirs)
    raise typer.Exit(outcome.exit_code)


def _end_of_run(folder: Path, end_ns: int, exit_code: int) -> None:
    """The short page, on standard error. Whatever goes wrong here is one line: the job's exit code stays."""
    from stretto.profile_report import terminal

    try:
        found = _analyse(folder)
    except StrettoError as error:
        records, problems = analysis.read_folder(folder)
        summary = analysis.summarise(records, problems, end_ns)
        for line in [
            *report.warnings(summary, exit_code),
            *([str(error)] if summary.calls or profiling.has_traces(folder) else []),
        ]:
            report.say(line)
        return
    except KeyboardInterrupt:
        report.say(f"the report is left out: stretto report {_relative(folder)} shows it")
        return
    except Exception as error:  # a defect of the report: the run is over and must end as the job did
        report.say(f"the report failed ({type(error).__name__}: {error}); the profile is in {_relative(folder)}")
        return
    short = _relative(folder)
    more = f"stretto report {short}  shows the whole page and writes {short}/report.html"
    terminal.print_short(found, sys.stderr, more)


def _relative(folder: Path) -> str:
    """As short as it can be typed from here."""
    try:
        return shlex.quote(str(folder.relative_to(Path.cwd())))
    except (ValueError, OSError):
        return shlex.quote(str(folder))


@contextlib.contextmanager
def _progress(folder: Path, what: str, bytes_per_second: int) -> Iterator[Callable[[float], None] | None]:
    """A bar on standard error that is told the share done; None where the work is short or nobody looks."""
    waiting = sum(path.stat().st_size for path in folder.glob("rank-*.trace") if path.is_file()) if folder.is_dir() else 0
    if waiting < bytes_per_second or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{what} {report.size(waiting)} of traces", total=1.0)
        yield lambda share: bar.update(task, completed=share)


def _analyse(folder: Path) -> Profile:
    with _progress(folder, "reading", 128 << 20) as progress:
        from stretto.profile import analyse

        return analyse(folder, progress)


Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The profile's folder.")]


def show(
    folder: Folder,
    other: Annotated[
        Path | None,
        typer.Argument(metavar="OTHER", help="Another run's folder, to be compared with the first.", show_default=False),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Where the HTML page goes, if not to DIR/report.html.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the figures as JSON too.")] = None,
    browse: Annotated[bool, typer.Option("--open", help="Open the HTML page in the browser.")] = False,
) -> None:
    """Show a profile: one page here, one HTML file with the figures.

    The HTML file opens offline, anywhere. With two folders: what differs.
    """
    from stretto.profile_report import as_json, page, terminal

    _check_folder(folder)
    if other is not None:
        if html is not None or browse:
            raise StrettoError("two runs are compared here and with --json: --html and --open show a single one")
        _check_folder(other)
        return _show_both(folder, other, output)
    found = _analyse(folder)
    write_json(output, as_json.as_json(found) if output else {})
    written = _write_page(html, folder, page.html_page(found))
    terminal.print_page(found, sys.stdout)
    if written:
        print(f"\nwith figures: {written}")
        if browse:
            _open(written)
    return None


def _show_both(first: Path, second: Path, output: Path | None) -> None:
    from stretto.profile.comparison import compare
    from stretto.profile_report.comparison import as_json, print_comparison

    found = compare(_analyse(first), _analyse(second))
    write_json(output, as_json(found) if output else {})
    print_comparison(found, sys.stdout)


def top(
    job: Annotated[
        str, typer.Argument(metavar="JOB", help="A profile folder, a job's identity, or the pid of its launcher.")
    ] = "",
    every: Annotated[float, typer.Option("--every", min=0.2, metavar="SECONDS", help="How often it is drawn anew.")] = 2.0,
    times: Annotated[int, typer.Option("--times", min=0, metavar="N", help="End after N pictures; 0: with the job.")] = 0,
) -> None:
    """A running profile's rates, sizes and late ranks, drawn anew.

    Without JOB: the one job that runs under Stretto on this machine. Ctrl-C ends it; the job goes on.
    """
    folder = running.find(job) if job else running.only_one()
    if not any(folder.glob("rank-*.trace")):
        raise StrettoError(f"{folder}: this job keeps counts only (stretto run); stretto dump shows them")
    from stretto.profile_report.top import watch

    watch(folder, sys.stdout, every, times)


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise StrettoError(f"{folder}: no such folder" if not folder.exists() else f"{folder} is no folder")


def _write_page(wanted: Path | None, folder: Path, text: str) -> Path | None:
    """Where it was written. A folder that cannot be written costs the page only where it was not asked for by name."""
    if wanted is not None:
        write_text(wanted, text)
        return wanted
    try:
        write_text(folder / "report.html", text)
    except StrettoError as error:
        report.say(f"{error}: name a place with --html FILE")
        return None
    return folder / "report.html"


def _open(page: Path) -> None:
    import webbrowser

    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("BROWSER")):
        report.say(f"no display here: open {page} in a browser")
    elif not webbrowser.open(page.resolve().as_uri()):
        report.say(f"no browser could be started: open {page}")


def dump(
    job: Annotated[
        str, typer.Argument(metavar="JOB", help="A profile folder, a job's identity, or the pid of its launcher.")
    ] = "",
) -> None:
    """Where a running or hung job's ranks are, and whom they wait for.

    Of a job under stretto profile: which call each rank is in, and who has not come to which collective; then the page of
    stretto report. Of one under stretto run: its counts so far.

    Without JOB: the one job that runs under Stretto on this machine.
    """
    folder = running.find(job) if job else running.only_one()
    if not any(folder.glob("rank-*.trace")):
        return _dump_counts(folder)
    from stretto import live
    from stretto.profile_report import terminal
    from stretto.profile_report.live import print_live

    print_live(live.look(folder), str(folder), sys.stdout)
    terminal.print_page(_analyse(folder), sys.stdout)
    return None


def _dump_counts(folder: Path) -> None:
    """A job under stretto run: it keeps counts."""
    records, problems = analysis.read_folder(folder)
    if not records:
        raise StrettoError(f"{folder}: no rank has left anything here yet")
    import time

    now = time.monotonic_ns()
    begin = min(one.start_ns for one in records)
    report.say("this job keeps counts only (stretto run): which call a rank is in, stretto profile would tell", sys.stdout)
    summary = analysis.summarise(records, problems, now)
    accelerate = "on" if any(one.accelerating for one in records) else ""
    report.print_summary(summary, max(now - begin, 0) * 1e-9, None, accelerate, sys.stdout)


def export(
    folder: Folder,
    parquet: Annotated[
        Path | None,
        typer.Option("--parquet", metavar="OUT", help="One row per call, in OUT.parquet or a folder OUT."),
    ] = None,
    perfetto: Annotated[
        Path | None,
        typer.Option("--perfetto", metavar="FILE", help="A time line for ui.perfetto.dev; FILE.json: also for chrome://tracing."),
    ] = None,
    otf2: Annotated[
        Path | None,
        typer.Option("--otf2", metavar="FOLDER", help="An OTF2 archive, for Vampir or Scalasca; needs the package otf2."),
    ] = None,
    iterations: Iterations = "",
) -> None:
    """Write the calls of a profile made with --trace in other formats."""
    if parquet is None and perfetto is None and otf2 is None:
        raise StrettoError("nothing to write: add --parquet OUT.parquet, --perfetto FILE or --otf2 FOLDER")
    wanted = profiling.parse_iterations(iterations) if iterations else None
    _check_folder(folder)
    from stretto import exports, otf2_archive, timeline

    if parquet is not None:
        with _progress(folder, "exporting", 64 << 20) as progress:
            calls = exports.to_parquet(folder, parquet, wanted, progress)
        print(f"{calls} calls in {parquet}")
    if otf2 is not None:
        with _progress(folder, "exporting", 4 << 20) as progress:
            calls = otf2_archive.to_otf2(folder, otf2, wanted, progress)
        print(f"{calls} calls in {otf2 / 'traces.otf2'}")
    if perfetto is not None:
        with _progress(folder, "exporting", 64 << 20) as progress:
            written, there = timeline.to_timeline(folder, perfetto, wanted, progress)
        rest = f", the first of {there}: choose others with --iterations A:B" if written < there else ""
        print(f"{written} calls in {perfetto}{rest}")


COMMANDS: dict[str, Callable[..., Any]] = {"profile": profile, "report": show, "dump": dump, "top": top, "export": export}
