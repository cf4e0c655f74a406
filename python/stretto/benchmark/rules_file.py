"""The file of measured rules: a header, a block for each collective and number of ranks, and the built-in rules for the rest."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from stretto.errors import StrettoError

_BLOCK = re.compile(r"# measured (?P<key>\S+(?: \w+=\S+)+) on (?P<day>\S+)$")
MOST_BYTES = 1 << 20  # as the library reads
_ABOUT = "# for "
_REST = "# everything else: the built-in rules"


@dataclass(slots=True)
class RulesFile:
    header: str  # tuned build=... machine=... mpi=...
    about: str  # machine and MPI in words
    built_in: str
    blocks: dict[str, list[str]] = field(default_factory=dict)  # by the line they begin with, without the day
    days: dict[str, str] = field(default_factory=dict)

    def put(self, collective: str, condition: str, day: str, lines: list[str]) -> None:
        key = f"{collective} {condition}"
        self.blocks[key], self.days[key] = lines, day

    def adopt(self, text: str) -> bool:
        """Takes over the blocks of an earlier file for the same build, machine and MPI. False: it is of another one, or none."""
        lines = text.splitlines()
        if self.header not in lines:
            return False
        key = ""
        for line in lines:
            match = _BLOCK.match(line)
            if match:
                key = match["key"]
                self.blocks[key], self.days[key] = [], match["day"]
            elif line == _REST:
                break
            elif key and line:
                self.blocks[key].append(line)
        return True

    def text(self) -> str:
        parts = [f"# Rules measured by stretto tune\n{_ABOUT}{self.about}\n{self.header}\n"]
        parts += [
            "\n".join([f"# measured {key} on {self.days[key]}", *lines]) + "\n" for key, lines in sorted(self.blocks.items())
        ]
        return "\n".join([*parts, f"{_REST}\n{self.built_in}"])


def header_fields(header: str) -> dict[str, str]:
    """build, machine and mpi of a line `tuned ...`; empty where it is none."""
    words = header.split()
    return dict(word.split("=", 1) for word in words[1:] if "=" in word) if words[:1] == ["tuned"] else {}


def header_of(text: str) -> str:
    return next((line for line in text.splitlines() if line.startswith("tuned ")), "")


def about_of(text: str) -> str:
    return next((line.removeprefix(_ABOUT) for line in text.splitlines() if line.startswith(_ABOUT)), "")


def _beside(path: Path) -> tuple[int, str]:
    """A new file in its folder, which is made: (descriptor, name)."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return tempfile.mkstemp(prefix=".rules-", dir=path.parent)
    except OSError as error:
        raise StrettoError(f"cannot write {path}: {error.strerror}") from None


def check_writable(path: Path) -> None:
    """Before a long run rather than after it."""
    if path.is_dir():
        raise StrettoError(f"cannot write {path}: {os.strerror(errno.EISDIR)}")
    descriptor, name = _beside(path)
    os.close(descriptor)
    Path(name).unlink()


def write(path: Path, text: str) -> None:
    """At once, so that a job that starts meanwhile reads the old file or the new one. StrettoError where it cannot be written."""
    descriptor, name = _beside(path)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise StrettoError(f"cannot write {path}: {error.strerror}") from None
