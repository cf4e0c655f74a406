"""What bench and tune have in common: options, and what is checked here rather than on every rank."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from stretto import launchers, programs
from stretto.benchmark import program
from stretto.cli_options import command_after_dashes
from stretto.errors import StrettoError

Sizes = Annotated[
    str, typer.Option("--sizes", metavar="LIST|A:B:F", help="Bytes of a block, in fours: 8,1K,1M, or from A to B by factor F.")
]
Budget = Annotated[
    float, typer.Option("--budget", min=1, metavar="MS", help="Time to spend on a point; some samples are taken anyway.")
]
MpiLibrary = Annotated[
    Path | None, typer.Option("--mpi-library", metavar="FILE", help="The MPI library, where it is not the launcher's.")
]
Arena = Annotated[bool | None, typer.Option("--arena/--no-arena", help="Buffers come from an arena that peers read in place.")]

_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_SIZE = r"\d+[KMkm]?"


def without_program(context: typer.Context, name: str) -> list[str]:
    """The launcher's command. StrettoError: it names a program. A shell script may stand there: it may bind the ranks."""
    command = command_after_dashes(context, None, name)
    found = programs.certain_program(command[1:], letters=launchers.is_srun(command[0]))
    if found is not None and found.name not in _SHELLS:
        raise StrettoError(
            f"no program belongs there ({found.name}): stretto {name} brings its own; end with the launcher's options"
        )
    return command


def check_word(option: str, value: str, pattern: str, expected: str) -> None:
    """Here rather than on every rank."""
    if not re.fullmatch(pattern, value):
        raise StrettoError(f"cannot use {option} {value}: {expected}")


def block_sizes(sizes: str) -> list[int]:
    """Those that --sizes asks for."""
    from stretto.benchmark.explain import parse_bytes

    pattern = f"{_SIZE}(,{_SIZE})*|{_SIZE}:{_SIZE}:{_SIZE}"
    check_word("--sizes", sizes, pattern, "write 8,1K,1M or FROM:TO:FACTOR, such as 8:1M:4")
    named, factor = [parse_bytes(word) for word in re.split("[,:]", sizes)], 2
    if ":" in sizes:
        factor = named.pop()
    if not all(4 <= size <= 1 << 30 for size in named) or factor < 2:
        raise StrettoError(f"cannot use --sizes {sizes}: blocks have 4 bytes to 1024M, the factor is at least 2")
    if ":" not in sizes:
        return named
    first, last = named
    return [first * factor**i for i in range(31) if first * factor**i <= last]


def check_names(collectives: Sequence[str]) -> None:
    unknown = [name for name in collectives if name not in program.COLLECTIVES]
    if unknown:
        raise StrettoError(f"{unknown[0]} cannot be measured: choose of {', '.join(program.COLLECTIVES)}")
