"""The table of functions (src/shim/functions.txt), as tools/generate_shim.py and its parts know it."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import sys
from collections.abc import Iterator

USED = "used"
OF_SESSIONS = ("MPI_Comm_create_from_group", "MPI_Intercomm_create_from_groups")


@dataclasses.dataclass(frozen=True)
class Parameter:
    type: str  # as in C, e.g. "const int" with array ""
    name: str
    array: str  # "[]" or ""

    @property
    def value_type(self) -> str:
        """The type a function type has for this parameter: arrays are pointers."""
        return self.type + ("*" if self.array else "")


@dataclasses.dataclass(frozen=True)
class Function:
    category: str
    name: str  # "MPI_Send"
    result: str
    parameters: tuple[Parameter, ...]
    large: bool  # the _c form of another line
    variadic: bool
    marks: dict[str, str]

    @property
    def short(self) -> str:
        return self.name.removeprefix("MPI_")

    @property
    def local(self) -> bool:
        """Whether it never waits for another process."""
        return "local" in self.marks or "started" in self.marks

    @property
    def since(self) -> str:
        return "4.0" if self.large else self.marks.get("since", "3.1")

    @property
    def signature(self) -> str:
        """The function type; MPI does not look at what MPI_Pcontrol takes beyond its level."""
        return f"{self.result}({', '.join(p.value_type for p in self.parameters)})"

    @property
    def words(self) -> list[str]:
        """Names of the words of a call from C: of a variadic one as many as there are registers for."""
        return [p.name for p in self.parameters] + [f"more{i}" for i in range(6 - len(self.parameters))] * self.variadic

    @property
    def of_session(self) -> bool:
        """Whether it makes a communicator of a session, which is its last parameter."""
        return self.name in OF_SESSIONS

    @property
    def fortran_words(self) -> list[str]:
        """Names of the words of the Fortran call: those of C, the error code, and the length of a tag."""
        return [p.name for p in self.parameters] + ["ierror"] + ["length"] * self.of_session

    @property
    def in_fortran(self) -> bool:
        """Whether the Fortran form can be forwarded word by word: character arguments carry hidden lengths."""
        has_text = any("char" in p.type for p in self.parameters) and not self.of_session
        return not self.large and "hand" not in self.marks and not has_text

    @property
    def has_choice_buffer(self) -> bool:
        """A Fortran argument of any type; baseptr and buffer_addr are of type C_PTR."""
        return any(p.value_type.endswith("void*") and p.name not in ("baseptr", "buffer_addr") for p in self.parameters)


def parse_parameter(text: str) -> Parameter:
    match = re.fullmatch(r"(.*[\s*])(\w+)(\[\])?", text)
    if not match:
        raise ValueError(f"unreadable parameter '{text}'")
    return Parameter(match[1].strip(), match[2], match[3] or "")


def choose(text: str, side: int) -> str:
    """The left (0) or right (1) alternative of every `left|right` in the text."""
    return re.sub(r"(\w+)\|(\w+)", lambda match: match[side + 1], text)


def parse_line(category: str, line: str) -> Iterator[Function]:
    prototype, *written = line.split(" @")
    match = re.fullmatch(r"(\w+) (MPI_\w+)\((.*)\)", prototype.strip())
    if not match:
        raise ValueError(f"unreadable prototype '{line}'")
    result, name, text = match.groups()
    parts = [] if text == "void" else [part.strip() for part in text.split(",")]
    variadic = "..." in parts
    parts = [part for part in parts if part != "..."]
    marks = {key: value for key, _, value in (mark.strip().partition("=") for mark in written)}
    for side in range(2 if "|" in text else 1):
        parameters = tuple(parse_parameter(choose(part, side)) for part in parts)
        yield Function(category, name + ("_c" if side else ""), result, parameters, bool(side), variadic, marks)


def read_table(path: pathlib.Path) -> list[Function]:
    functions: list[Function] = []
    category = ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            category = line.strip("[]")
            continue
        try:
            functions.extend(parse_line(category, line))
        except ValueError as error:
            sys.exit(f"{path}:{number}: {error}")
    wrapped = [f for f in functions if f.category != USED]
    return wrapped + [f for f in functions if f.category == USED]
