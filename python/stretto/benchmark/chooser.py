"""What a preload library says of its algorithms and rules (include/stretto/stretto.h)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stretto import preload
from stretto.errors import StrettoError

LIBRARIES = {"openmpi": "Open MPI", "mpich": "MPICH", "intelmpi": "Intel(R) MPI", "other": "any other MPI"}


@dataclass(frozen=True, slots=True)
class Question:
    collective: str
    bytes: int  # as rules count them
    ranks: int
    crowded: bool
    arena: bool = False
    library: str = "other"  # the MPI, as rules name it: one of LIBRARIES
    fresh: bool = False  # what rules say of a communicator's first calls
    nodes: int = 1  # over which the ranks are spread evenly


@dataclass(frozen=True, slots=True)
class Answer:
    algorithm: str  # or "mpi"
    line: int  # of the rule; 0: none holds
    why: str = ""  # MPI does it, whatever that rule says


class Chooser:
    """A preload library that is asked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        functions = ["stretto_algorithms", "stretto_default_rules", "stretto_tuning"]
        algorithms, self.built_in, told = preload.ask(path, [[name] for name in functions])
        self.algorithms: dict[str, list[str]] = {}  # by collective
        for line in algorithms.splitlines():
            collective, name, *_ = line.split("\t")
            self.algorithms.setdefault(collective, []).append(name)
        self.tuned_path = Path(told[0]) if told[0] else None  # of this machine and no MPI
        self.header: str = told[1]  # the line that measured rules of this machine and no MPI begin with

    def explain(self, rules: str | None, question: Question) -> Answer:
        """By these rules; None: the built-in ones. StrettoError: they do not read, or there is no such collective."""
        words = [question.collective, question.bytes, question.ranks, int(question.crowded), int(question.arena)]
        words += [question.library, int(question.fresh), question.nodes]
        ((code, algorithm, line),) = preload.ask(self._path, [["stretto_explain", rules, words]])
        if code < 0:
            raise StrettoError(f"Stretto has no algorithm for {question.collective}: it knows {', '.join(self.algorithms)}")
        if code == 2:
            return Answer("mpi", line, algorithm)
        if code > 0:
            raise StrettoError(f"line {line}: {algorithm}" if line else algorithm)
        return Answer(algorithm, line)
