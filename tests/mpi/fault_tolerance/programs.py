"""Programs that tolerate faults, and what they must print."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mpi_job import Mpi, Outcome, compile_program

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Case:
    program: str
    words: tuple[str, ...]

    @property
    def name(self) -> str:
        return " ".join((self.program, *self.words))

    @property
    def started(self) -> bool:
        """Whether its collectives are nonblocking or persistent."""
        return not {"nonblocking", "persistent"}.isdisjoint(self.words)

    def build(self, mpi: Mpi) -> Path:
        return compile_program(mpi, self.program, [HERE / f"{self.program}.c"], "-O1")

    def problem_of(self, outcome: Outcome, ranks: int) -> str:
        right = 1 if self.program == "revoke" else ranks - 1
        if outcome.code is None or outcome.output.split().count("right") + outcome.output.split().count("right:") != right:
            return f"    exit code {outcome.code} after {outcome.seconds:.0f} s\n{outcome.tail()}"
        return ""


CASES = [
    *(Case("revoke", (how, count)) for how in ("blocking", "world", "nonblocking", "persistent") for count in ("8", "300000")),
    *(Case("shrink", (count,)) for count in ("8", "2000", "100000")),
]


def tolerating(command: list[str], launcher: str) -> list[str]:
    """The same with a launcher that lets the others live when a process dies."""
    after = command.index(launcher) + 1
    return [*command[:after], "--with-ft", "ulfm", *command[after:]]
