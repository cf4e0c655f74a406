"""A command run plainly and under Stretto in turn, or once with both taking turns, and what the two took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any, ClassVar

from stretto.analysis import SCHEMA, Turns
from stretto.session import Result


@dataclass(frozen=True, slots=True)
class Run:
    mode: str  # "plain" (observed, nothing taken over) or "accelerated"
    exit_code: int
    wall_seconds: float
    mpi_seconds: float  # mean over the ranks
    collective_seconds: float  # mean over the ranks
    collectives: dict[str, float]  # seconds, mean over the ranks


@dataclass(slots=True)
class Comparison:
    """Runs as they were made; medians per mode; ratios accelerated / plain of the medians (None: nothing to divide by)."""

    KEYS: ClassVar[tuple[str, ...]] = ("wall_seconds", "mpi_seconds", "collective_seconds")
    command: list[str]
    runs: list[Run] = field(default_factory=list)

    @property
    def medians(self) -> dict[str, dict[str, float]]:
        return {mode: {key: self._median(mode, key) for key in self.KEYS} for mode in ("plain", "accelerated")}

    def _median(self, mode: str, key: str) -> float:
        return median([float(getattr(run, key)) for run in self.runs if run.mode == mode] or [0.0])

    @property
    def ratios(self) -> dict[str, float | None]:
        middle = self.medians
        return {key: middle["accelerated"][key] / middle["plain"][key] if middle["plain"][key] else None for key in self.KEYS}

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "command": self.command,
            "runs": [{name: getattr(run, name) for name in Run.__slots__} for run in self.runs],
            "medians": self.medians,
            "ratios": self.ratios,
        }


def measured(mode: str, result: Result) -> Run:
    summary, ranks = result.summary, max(len(result.summary.ranks), 1)
    return Run(
        mode,
        result.outcome.exit_code,
        result.outcome.wall_seconds,
        summary.mpi_seconds / ranks,
        summary.collective_seconds / ranks,
        {name: one.seconds / ranks for name, one in summary.collectives.items()},
    )


def compare(command: list[str], repeats: int, run: Callable[[str], Result]) -> tuple[Comparison, Result]:
    """Runs plain and accelerated alternately, `repeats` times each; ends early after a run that fails. With the last result.

    `run` gets "off" or "on" for what STRETTO_ACCELERATE is to be.
    """
    comparison = Comparison(command)
    for number in range(2 * repeats):
        mode, accelerate = (("plain", "off"), ("accelerated", "on"))[number % 2]
        result = run(accelerate)
        comparison.runs.append(measured(mode, result))
        if result.outcome.exit_code:
            break
    return comparison, result


@dataclass(frozen=True, slots=True)
class TurnsTaken:
    """What turns of MPI and of Stretto within one run took; ratios accelerated / plain."""

    command: list[str]
    calls: int  # collectives in a turn
    plain: Turns
    accelerated: Turns

    @property
    def wall_ratio(self) -> float:
        return self.accelerated.seconds / self.plain.seconds

    @property
    def wall_error(self) -> float:
        """Of the ratio: the standard error that follows from how much turns differ."""
        relative = (one.error / one.seconds for one in (self.plain, self.accelerated))
        return self.wall_ratio * sum(value**2 for value in relative) ** 0.5

    @property
    def collective_ratio(self) -> float | None:
        before = self.plain.collective_seconds
        return self.accelerated.collective_seconds / before if before else None

    def as_json(self) -> dict[str, Any]:
        sides = {"plain": self.plain, "accelerated": self.accelerated}
        return {
            "schema": SCHEMA,
            "command": self.command,
            "turn_calls": self.calls,
            "turns": {name: {key: getattr(one, key) for key in Turns.__slots__} for name, one in sides.items()},
            "ratios": {
                "wall_seconds": self.wall_ratio,
                "wall_error": self.wall_error,
                "collective_seconds": self.collective_ratio,
            },
        }


def turns_taken(result: Result) -> TurnsTaken | None:
    """None: the run was too short, or Stretto took over nothing."""
    turns = result.summary.turns
    if len(turns) < 2 or not all(one.seconds > 0 for one in turns.values()):
        return None
    return TurnsTaken(result.plan.command, result.summary.turn_calls, turns["plain"], turns["accelerated"])
