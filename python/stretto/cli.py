"""The `stretto` command."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, NoReturn, TextIO

import typer

from stretto import __version__, preload, profile_cli, report, session
from stretto.bench_cli import bench
from stretto.cli_options import (
    ArenaOption,
    LibraryOption,
    MpiOption,
    OrderOption,
    Stray,
    Switch,
    WithLauncher,
    check_writable,
    command_after_dashes,
    dashes_missing,
    write_json,
)
from stretto.comparison import compare as compare_runs
from stretto.comparison import turns_taken
from stretto.errors import StrettoError
from stretto.launchers import Style
from stretto.machine import examine
from stretto.tune_cli import tune

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 100},
    pretty_exceptions_enable=False,
    help="Speeds up the collectives of unmodified MPI programs and shows where their communication time goes.",
)


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    settings: Annotated[bool, typer.Option("--settings", help="Print the environment variables Stretto reads and exit.")] = False,
) -> None:
    if version:
        print(f"stretto {__version__}")
    elif settings:
        show_settings()
    elif context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(2)


def _explain_root(result: session.Result) -> None:
    plan = result.plan
    allowed = "--allow-run-as-root" in plan.command or "OMPI_ALLOW_RUN_AS_ROOT" in os.environ
    if plan.launcher.style is Style.OPENMPI and os.geteuid() == 0 and not allowed and not result.summary.ranks:
        report.say(
            "Open MPI does not start programs as root unless told so: add --allow-run-as-root to its command, "
            "or set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
        )


def _report(result: session.Result, summary: Path | None) -> None:
    """What cannot be written is one line where that can be read: the job's exit code stays."""
    outcome = result.outcome
    failed = ""
    try:
        write_json(summary, result.as_json())
    except StrettoError as error:
        failed = str(error)
    try:
        if failed:
            report.say(failed)
        _explain_root(result)
        report.print_summary(result.summary, outcome.wall_seconds, outcome.exit_code, result.plan.accelerate, sys.stderr)
    except OSError:
        _drop_output(sys.stderr)


@app.command(cls=WithLauncher)
def run(
    context: typer.Context,
    stray: Stray = None,
    summary: Annotated[Path | None, typer.Option("--summary", metavar="FILE", help="Write the summary as JSON too.")] = None,
    accelerate: Annotated[Switch | None, typer.Option("--accelerate", help="off: count the calls, take over none.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the rewritten command and do not run it.")] = False,
    mpi: MpiOption = None,
    library: LibraryOption = None,
    arena: ArenaOption = None,
    order: OrderOption = None,
) -> None:
    """Run an MPI command under Stretto; a summary at the end.

    stretto run -- mpirun -n 4 PROGRAM

    The launcher is mpirun, mpiexec or srun, of Open MPI, MPICH, Intel MPI or Slurm. The exit code is the launcher's.
    """
    command = command_after_dashes(context, stray, "run")
    plan = session.plan(command, accelerate and accelerate.value, mpi and mpi.value, library, arena, order and order.value)
    if plan.warning:
        report.say(plan.warning)
    if dry_run:
        print(plan.shown())
        return
    check_writable(summary)
    result = session.execute(plan)
    _report(result, summary)
    raise typer.Exit(result.outcome.exit_code)


@app.command(cls=WithLauncher)
def compare(
    context: typer.Context,
    stray: Stray = None,
    repeats: Annotated[
        int | None, typer.Option("-n", "--repeats", metavar="N", min=1, help="Runs of each kind. Default: 3.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the comparison as JSON too.")] = None,
    one_run: Annotated[
        bool, typer.Option("--one-run", help="One run in which Stretto and MPI take turns: for machines whose speed varies.")
    ] = False,
    turn: Annotated[
        int | None,
        typer.Option("--turn", metavar="N", min=1, help="With --one-run: collectives of a communicator in a turn. Default: 11."),
    ] = None,
    mpi: MpiOption = None,
    library: LibraryOption = None,
    arena: ArenaOption = None,
    order: OrderOption = None,
) -> None:
    """Run an MPI command plainly and under Stretto, and compare.

    stretto compare -n 5 -- mpirun -n 4 PROGRAM

    The plain runs are observed (as by run --accelerate off), so that their time in communication is known.
    """
    command = command_after_dashes(context, stray, "compare")
    if turn and not one_run:
        raise StrettoError("--turn needs --one-run")
    if repeats and one_run:
        raise StrettoError("--one-run makes one run: leave out -n")
    check_writable(output)

    def one(accelerate: str, turns: int = 0) -> session.Result:
        chosen = session.plan(command, accelerate, mpi and mpi.value, library, arena, order and order.value, turns)
        return session.execute(chosen)

    if one_run:
        _compare_in_one_run(one("on", turn or 11), output)

    comparison, last = compare_runs(command, repeats or 3, one)
    if last.outcome.exit_code:
        _report(last, None)
        report.say(f"run {len(comparison.runs)} ({comparison.runs[-1].mode}) failed with exit code {last.outcome.exit_code}")
    elif not last.summary.calls:
        _nothing_to_compare(last)
    else:
        report.print_comparison(comparison, sys.stdout)
        for line in report.warnings(last.summary, 0):
            report.say(line)
    write_json(output, comparison.as_json())
    raise typer.Exit(last.outcome.exit_code)


def _nothing_to_compare(result: session.Result) -> NoReturn:
    """Of a program that called no MPI there is no ratio to tell."""
    for line in report.warnings(result.summary, 0):
        report.say(line)
    raise typer.Exit(1)


def _compare_in_one_run(result: session.Result, output: Path | None) -> None:
    """Prints what the turns of both took, writes it, and exits."""
    code = result.outcome.exit_code
    if not code and not result.summary.calls:
        _nothing_to_compare(result)
    taken = turns_taken(result)
    if code or taken is None:
        _report(result, None)
    if taken is None:
        report.say("no turns to compare: too few collectives on one communicator (see --turn), or none that Stretto takes over")
        raise typer.Exit(code or 1)
    report.print_turns(taken, sys.stdout)
    write_json(output, taken.as_json())
    raise typer.Exit(code)


_LAUNCHING = ("run", "compare", "profile", "bench", "tune")
_ELSEWHERE: dict[str, Callable[..., None]] = {**profile_cli.COMMANDS, "bench": bench, "tune": tune}
for name, command in _ELSEWHERE.items():
    app.command(name, cls=WithLauncher if name in _LAUNCHING else None)(command)


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    prefix: Annotated[
        list[Path] | None, typer.Option("--prefix", metavar="FOLDER", help="Look for an MPI here too (repeat freely).")
    ] = None,
) -> None:
    """What this machine offers, and what to do about what is missing."""
    for folder in prefix or []:
        if not folder.is_dir():
            raise StrettoError(f"{folder} is no folder")
    findings = examine(prefix or [])
    if as_json:
        print(json.dumps({"schema": 1, "findings": [one.as_json() for one in findings]}, indent=2))
    else:
        report.print_findings(findings, sys.stdout)


@app.command("settings")
def show_settings() -> None:
    """The environment variables that Stretto reads."""
    report.print_settings(preload.settings(), sys.stdout)


_COMMANDS = frozenset(one.name or (one.callback.__name__ if one.callback else "") for one in app.registered_commands)


def _open_closed_streams() -> None:
    """A standard stream that is closed leads nowhere: else the next file that is opened would take its number."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _spell_out() -> None:
    """What a stream's encoding has no letter for is written as \\xe4."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output(stream: TextIO) -> None:
    """What is not written yet has nowhere to go: no second error when Python ends."""
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; what stands after the first -- is the user's, untouched. Every failure is one line."""
    _open_closed_streams()
    _spell_out()
    words = list(sys.argv[1:] if arguments is None else arguments)
    dashes = words.index("--") if "--" in words else len(words)
    own, command = words[:dashes], words[dashes + 1 :]
    try:
        if own and own[0] in _LAUNCHING and dashes == len(words) and not {"--help", "--explain"} & set(own):
            raise dashes_missing(own[0])
        code = int(app(args=own, obj=command, prog_name="stretto", standalone_mode=False) or 0)
        sys.stdout.flush()
        return code
    except StrettoError as error:
        report.say(str(error))
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return 128 + signal.SIGINT
    except OSError as error:  # standard output is on a full disk, or is a pipe that nobody reads any more; or a name was wrong
        _drop_output(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            report.say(f"{error.filename or 'standard output'}: {error.strerror or error}")
        return 2 if error.filename else 1
    except Exception as error:
        # A wrong option or value: typer's own exceptions, which have no common public base class.
        explain = getattr(error, "format_message", None)
        if explain is None:
            raise
        named = own[0] if own and own[0] in _COMMANDS else ""
        said = explain().replace("Value error, ", "")
        report.say(f"{said} (stretto {named + ' ' if named else ''}--help)")
        return 2


if __name__ == "__main__":
    sys.exit(main())
