"""What the commands' options have in common."""

from __future__ import annotations

import json
import os
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from stretto.errors import StrettoError


class WithLauncher(TyperCommand):
    """Its usage ends with the launcher's command, which main() takes off before."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*(piece for piece in super().collect_usage_pieces(ctx) if "LAUNCHER" not in piece), "--", "LAUNCHER", "..."]


class Switch(str, Enum):
    on = "on"
    off = "off"


class Abi(str, Enum):
    ompi = "ompi"
    ompi4 = "ompi4"
    mpich = "mpich"
    mpich3 = "mpich3"
    abi = "abi"


class Order(str, Enum):
    ranks = "ranks"
    domains = "domains"
    arrival = "arrival"


OrderOption = Annotated[
    Order | None,
    typer.Option(
        "--order",
        help="Order of sums: by rank, the same bits in every run; the ranks of a domain first; or as they arrive, other bits "
        "(large sums with --arena).",
    ),
]
MpiOption = Annotated[
    Abi | None,
    typer.Option(
        "--mpi",
        help="The program's MPI, where it cannot be found out: Open MPI 5 or 4, MPICH or Intel MPI, the MPI standard ABI.",
    ),
]
LibraryOption = Annotated[
    Path | None, typer.Option("--library", metavar="FILE", help="Preload this library instead of the installed one.")
]
ArenaOption = Annotated[
    bool | None,
    typer.Option("--arena/--no-arena", help="Large blocks of memory come from an arena that peers read in place."),
]
Stray = Annotated[list[str] | None, typer.Argument(hidden=True, metavar="LAUNCHER")]


def command_after_dashes(context: typer.Context, stray: list[str] | None, name: str) -> list[str]:
    """The launcher's command. StrettoError: there is none, or it stands before the dashes."""
    command: list[str] = context.obj or []
    if stray:
        raise dashes_missing(name)
    if not command:
        raise StrettoError(f"nothing after --: write stretto {name} [OPTIONS] -- {_example(name)}")
    return command


def dashes_missing(name: str) -> StrettoError:
    return StrettoError(f"put -- before the launcher: stretto {name} [OPTIONS] -- {_example(name)}")


def _example(name: str) -> str:
    return "mpirun -n 4" if name in ("bench", "tune") else "mpirun -n 4 PROGRAM"


def check_writable(path: Path | None) -> None:
    """Before a long run rather than after it."""
    if path is None:
        return
    place = Path(os.path.realpath(path))  # a link stays, also one to what is still to be
    try:
        if place.is_fifo():  # its reader would take this for all of it
            return
        existed = place.exists()
        place.open("a").close()
    except OSError as error:
        raise StrettoError(f"cannot write {path}: {error.strerror}") from None
    if not existed:
        place.unlink()


def write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StrettoError(f"cannot write {path}: {error.strerror}") from None


def write_json(path: Path | None, value: dict[str, Any]) -> None:
    if path is not None:
        write_text(path, json.dumps(value, indent=2) + "\n")
