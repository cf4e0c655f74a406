"""Which algorithm will run, by which rule of which file, and what was measured there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from stretto.benchmark.chooser import LIBRARIES, Chooser, Question
from stretto.benchmark.rules_file import MOST_BYTES, about_of, header_fields, header_of
from stretto.errors import StrettoError
from stretto.files import read_bytes
from stretto.wording import size

_BYTES = re.compile(r"(\d+)([KMG]?)i?B?$", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """64K, 1M, 8: powers of 1024."""
    match = _BYTES.match(text)
    if not match:
        raise StrettoError(f"{text} is no size: write 8, 64K or 1M")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2].upper()]


def explain(chooser: Chooser, question: Question, environment: Mapping[str, str], cpus: int) -> tuple[list[str], bool]:
    """The answer, in lines, and whether the file that STRETTO_RULES names would be refused; why, the lines tell."""
    crowded = f", more than the {cpus} CPUs" if question.crowded else f" on {cpus} CPUs"
    nodes = f" of each of {question.nodes} nodes" if question.nodes > 1 else ""
    lines = [f"{question.collective} of {size(question.bytes)}, {question.ranks} ranks{crowded}{nodes}" + _arena(question)]
    setting = environment.get("STRETTO_RULES", "")
    if setting and setting != "builtin":
        told, refused = _by_file(chooser, question, Path(setting), "")
        return lines + told, refused
    files = [] if setting else _tuned_files(chooser)
    for path in files:
        lines += _by_file(chooser, question, path, about_of(_read(path)).rpartition("; ")[2] or path.name)[0]
    lines += _by_library(chooser, question, None, "the built-in rules", "any other MPI" if files else "any MPI")
    untuned = not setting and not any(line.lstrip().startswith("measured ") for line in lines)
    if untuned and not chooser.explain(None, question).why:
        where = f" on {question.nodes} nodes" if question.nodes > 1 else ""
        lines.append(f"  nothing was measured for this on this machine: stretto tune -- mpirun -n {question.ranks}{where} would")
    return lines, False


def _by_library(chooser: Chooser, question: Question, text: str | None, source: str, everything: str) -> list[str]:
    """The answer for each library, told once where all have the same. `everything`: what they are together, in words."""
    told: dict[tuple[str, ...], list[str]] = {}
    for name in LIBRARIES:
        answer = tuple(_answer(chooser, replace(question, library=name), text, source))
        told.setdefault(answer, []).append(name)
    lines: list[str] = []
    for (runs, *why), names in told.items():
        rest = everything if len(told) == 1 else LIBRARIES["other"]
        under = rest if "other" in names else ", ".join(LIBRARIES[name] for name in names)
        lines += [f"  under {under}: {runs}", *why]
    return lines


def _arena(question: Question) -> str:
    return ", with arenas" if question.arena else ""


def _tuned_files(chooser: Chooser) -> list[Path]:
    path, machine = chooser.tuned_path, header_fields(chooser.header).get("machine", "")
    return sorted(path.parent.glob(f"{machine}-*.rules")) if path and machine else []


def _read(path: Path) -> str:
    try:
        return read_bytes(path, MOST_BYTES).decode(errors="replace")
    except OSError as error:
        raise StrettoError(f"cannot read {path}: {error.strerror}") from None


def _by_file(chooser: Chooser, question: Question, path: Path, about: str) -> tuple[list[str], bool]:
    """The answer, and whether the file is refused. `about`: the MPI it was measured with; empty: any."""
    under = about or "any MPI"
    try:
        text = _read(path)
        refused = why_refused(header_of(text), chooser.header)
        if refused:
            return [f"  under {under}: {path} is refused: {refused}"], True
        if not about:
            return _by_library(chooser, question, text, str(path), under), False
        library = next((name for name, words in LIBRARIES.items() if about.startswith(words)), "other")
        first, *rest = _answer(chooser, replace(question, library=library), text, str(path))
        return [f"  under {under}: {first}", *rest], False
    except StrettoError as error:
        instead = "" if about else ", and all is left to the MPI library"
        return [f"  under {under}: {path} is refused{instead}: {error}"], True


def why_refused(header: str, own: str) -> str:
    """As a job would say; what the file says of its MPI is taken as it is."""
    found, here = header_fields(header), header_fields(own)
    if found and found.get("build") != here.get("build"):
        return "measured with another build of Stretto; run stretto tune again"
    if found and found.get("machine") != here.get("machine"):
        return "measured on another machine; run stretto tune on this one"
    return ""


def _answer(chooser: Chooser, question: Question, text: str | None, source: str) -> list[str]:
    answer = chooser.explain(text, question)
    runs = "the MPI library" if answer.algorithm == "mpi" else answer.algorithm
    lines = [runs]
    if answer.why:
        lines.append(f"      {answer.why}")
    if not answer.line:
        return lines if answer.why else [*lines, f"      no rule of {source} holds"]
    written = (text if text is not None else chooser.built_in).splitlines()
    lines.append(f"      line {answer.line} of {source}: {_rule(written, answer.line)}")
    lines += [f"      {one}" for one in _measured_above(written, answer.line - 1)]
    first = chooser.explain(text, replace(question, fresh=True))
    if first.line and answer.algorithm not in ("mpi", first.algorithm):
        lines += [
            f"    a communicator's first calls: {first.algorithm}",
            f"      line {first.line}: {_rule(written, first.line)}",
        ]
    return lines


def _rule(written: Sequence[str], line: int) -> str:
    return " ".join(written[line - 1].split())


def _measured_above(written: Sequence[str], place: int) -> list[str]:
    found: list[str] = []
    while place > 0 and written[place - 1].startswith("#   "):
        place -= 1
        found.append("measured " + written[place].removeprefix("#   "))
    return found[::-1]
