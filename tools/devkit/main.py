"""The commands of `./dev` in one table, which yields their help as well."""

from __future__ import annotations

import importlib
import sys
from typing import NamedTuple

from devkit.common import DevError


class Command(NamedTuple):
    arguments: str
    module: str
    function: str
    most_arguments: int
    help: str


COMMANDS = {
    "setup": Command(
        "", "setup", "setup", 0, "make .venv (the stretto command, tools) and .mpi/openmpi, .mpi/mpich; repeat freely"
    ),
    "build": Command(
        "[PRESET]",
        "build",
        "build",
        1,
        "configure and compile (release, debug, asan, ubsan, tsan); release is what .venv/bin/stretto uses",
    ),
    "test": Command(
        "[quick]",
        "test",
        "test",
        1,
        "build, then unit, sanitizer, Python and MPI tests; quick leaves out the sanitizers and the long MPI runs",
    ),
    "check": Command(
        "[static]",
        "check",
        "check",
        1,
        "formatting, lint, types and layers, then the quick tests; static stops before the tests",
    ),
    "format": Command("", "check", "reformat", 0, "lay out C++ and Python as check wants it"),
    "demo": Command("", "show", "demo", 0, "train a small network with 4 ranks, plainly and under Stretto, and compare"),
    "bench": Command("[ARGUMENT ...]", "show", "bench", 99, "run the benchmarks (bench/run.py) and write their table"),
    "device-check": Command(
        "",
        "device",
        "device_check",
        0,
        "collect in build/device what a machine without network needs to run the benchmarks",
    ),
    "help": Command("", "main", "show_help", 0, "this list"),
}


def show_help() -> None:
    print("./dev COMMAND: everything a Stretto checkout can do for itself\n")
    for name, row in COMMANDS.items():
        print(f"  {(name + ' ' + row.arguments).strip():24}{row.help}")
    print("\nFirst time: ./dev demo, which sets up and builds before; so do build, test and bench")


def main(words: list[str]) -> int:
    name, *rest = words or ["help"]
    name = "help" if name in ("-h", "--help") else name
    row = COMMANDS.get(name)
    if row is None:
        print(f"dev: no command {name}; ./dev help lists them", file=sys.stderr)
        return 2
    if {"-h", "--help"} & set(rest):
        print(f"./dev {name} {row.arguments}".rstrip() + f": {row.help}")
        return 0
    if len(rest) > row.most_arguments:
        print(f"dev: usage: ./dev {name} {row.arguments}", file=sys.stderr)
        return 2
    function = getattr(importlib.import_module(f"devkit.{row.module}"), row.function)
    try:
        return int(function(*rest) or 0)
    except DevError as error:
        print(f"dev: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
