"""Which program a launcher's command line starts, and which MPI that program is linked with."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from stretto import elf

# Launcher options that take no value; after any other option the next word is taken for its value.
_FLAGS = frozenset(
    """--oversubscribe -oversubscribe --nooversubscribe --allow-run-as-root --use-hwthread-cpus --report-bindings --display-map
    --tag-output --timestamp-output --get-stack-traces --bynode --byslot --bind-to-core -q --quiet -v --verbose -V
    -l -prepend-rank -genvall -genvnone -envall -envnone -print-all-exitcodes -nolocal
    --label -u --unbuffered --exclusive --overlap --overcommit -O -s --pty --multi-prog -k --no-kill -K --kill-on-bad-exit
    -E --preserve-env -X --disable-status -Q --contiguous --spread-job --use-min-nodes""".split()
)
# Those that take two; of Hydra's, NAME=VALUE is one.
_PAIRS = frozenset(["--mca", "-mca", "--omca", "--gmca", "-gmca", "--prtemca", "--pmixmca", "-genv", "--genv", "-env", "--env"])
_WRAPPERS = frozenset(["env", "time", "numactl", "taskset", "nice", "ionice", "stdbuf", "setarch", "nohup", "strace", "ltrace"])
_SECONDS = 30.0


def find_program(words: Sequence[str], letters: bool = False) -> Path | None:
    """The first program of a launcher's arguments, wrappers such as numactl or env skipped; None where it cannot be told.

    Of srun's --multi-prog, the first one in its file. `letters`: behind one dash stand a letter and its value, or more letters,
    as srun has it; else a name.
    """
    if "--multi-prog" in words:
        words = _first_of_several(words)
        return _search(words, range(len(words)))
    return _search(words, _no_options(words, letters)) or _search(words, range(len(words)))


def certain_program(words: Sequence[str], letters: bool = False) -> Path | None:
    """The same, but None too where it may be an option's value; of a script the interpreter."""
    return _search(words, _no_options(words, letters))


def options_end(words: Sequence[str], letters: bool = False) -> int:
    """How many words of a launcher's arguments are its own: what follows are a program and its arguments."""
    return next((i for i in _no_options(words, letters) if _may_be_program(words[i])), len(words))


def _first_of_several(words: Sequence[str]) -> list[str]:
    """Of the last file among `words`, the words of the first line `RANKS PROGRAM ...`; none where there is no such line."""
    path = next((word for word in reversed(words) if os.path.isfile(word)), "")  # noqa: PTH113 (a word may be no path at all)
    try:
        lines = Path(path).read_text(errors="replace").splitlines() if path else []
        found = next(filter(None, (re.match(r"\s*[\d*][\d,-]*\s+(.+)", line) for line in lines)), None)
        return shlex.split(found[1]) if found else []
    except (OSError, ValueError):
        return []


def _no_options(words: Sequence[str], letters: bool) -> Iterator[int]:
    """Where words stand that are neither options nor, so far as that is known, their values."""
    position = 0
    while position < len(words):
        if words[position].startswith("-"):
            position += 1 + _values(words[position], words[position + 1 :], letters)
        else:
            yield position
            position += 1


def _values(option: str, following: Sequence[str], letters: bool) -> int:
    if option in _PAIRS:
        return 1 if option.endswith("env") and "=" in "".join(following[:1]) else 2
    with_value = "=" in option or (letters and re.match("-[^-].", option)) or re.fullmatch(r"-[A-Za-z]\d+", option)
    return 0 if option in _FLAGS or with_value or "".join(following[:1]).startswith("-") else 1


def _may_be_program(word: str) -> bool:
    return not (word.startswith("-") or "=" in word or word.isdecimal())


def _search(words: Sequence[str], positions: Iterable[int]) -> Path | None:
    for word in (words[position] for position in positions if _may_be_program(words[position])):
        path = shutil.which(word)
        if path is not None and Path(word).name not in _WRAPPERS:
            return _interpreter(Path(path))
    return None


def _interpreter(path: Path) -> Path:
    """What runs `path`: itself, or the interpreter that its first line names."""
    try:
        with path.open("rb") as file:
            line = file.readline(256)
    except OSError:
        return path
    if not line.startswith(b"#!"):
        return path
    words = line[2:].decode("utf-8", "replace").split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    found = shutil.which(words[0]) if words else None
    return Path(found) if found else path


def abi_of_library(path: Path) -> str:
    """The ABI of an MPI library, by its name and, where an old and a new one share that, by what it is linked with or names."""
    abi = _abi_of_name(path.name)
    if abi == "ompi":
        return "ompi4" if any(name.startswith("libopen-rte.so") for name in elf.needed(path)) else "ompi"
    if abi == "mpich" and elf.needed(path) and not elf.mentions(path, "MPI_Allreduce_c"):
        return "mpich3"
    return abi


def library_beside(launcher: Path, sonames: Sequence[str]) -> Path | None:
    """The MPI library of one of these names below the prefix of a launcher."""
    prefixes = [launcher.parent.parent, Path(os.path.realpath(launcher)).parent.parent]
    for prefix in dict.fromkeys(prefixes):
        folders = [prefix / "lib", prefix / "lib64", prefix / "lib" / "release", *sorted((prefix / "lib").glob("*-linux-gnu"))]
        for path in (folder / name for folder in folders for name in sonames):
            if path.exists():
                return path
    return None


def _abi_of_name(name: str) -> str:
    if re.match(r"libmpi_abi\.so", name):
        return "abi"
    if re.match(r"libmpi\.so\.40\b", name):
        return "ompi"
    if re.match(r"lib(mpi|mpich|mpi_(cray|gnu_\d+|intel|nvidia|amd))\.so\.12\b", name):  # Cray's by compiler
        return "mpich"
    return ""


def linked_abi(program: Path) -> str:
    """The ABI (of any version: "ompi", "mpich", "abi") of the MPI that an ELF program names directly; empty for none."""
    return next((abi for abi in map(_abi_of_name, elf.needed(program)) if abi), "")


def loaded_abi(program: Path) -> str:
    """The ABI a program will run with: by its linked libraries, direct or not, or by the mpi4py of a Python; empty for none."""
    library = _mpi4py_library(program) if re.match(r"python[\d.]*$", program.name) else _ldd_library(program)
    return abi_of_library(library) if library else ""


def _output(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


def _ldd_library(program: Path) -> Path | None:
    for name, path in re.findall(r"(\S+) => (/\S+)", _output(["ldd", str(program)])):
        if _abi_of_name(name):
            return Path(path)
    return None


_ASK_MPI4PY = r"""
import re
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
for line in open("/proc/self/maps"):
    path = line.split()[-1]
    if re.search(r"/lib(mpi|mpich|mpi_(abi|cray|gnu_\d+|intel|nvidia|amd))\.so[^/]*$", path):
        print(path)
        break
"""


def _mpi4py_library(python: Path) -> Path | None:
    path = _output([str(python), "-c", _ASK_MPI4PY]).strip()
    return _with_soname(Path(path)) if path else None


def _with_soname(path: Path) -> Path:
    """/usr/lib/libmpi.so.40.30.4 tells its ABI; a bare libmpi.so tells it by the numbered name that links to it."""
    if _abi_of_name(path.name):
        return path
    for other in sorted(path.parent.glob(f"{path.name}.*")):
        if os.path.realpath(other) == os.path.realpath(path) and _abi_of_name(other.name):
            return other
    return path
