"""A command run plainly and under Stretto in turn, or once with both taking turns, and what the two took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from statistics import fmean, median
from typing import Any, ClassVar

from stretto.analysis import SCHEMA, Turn
from stretto.session import Result

_FEWEST_FOURS = 8  # of which a spread can be told


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
class Ratio:
    """Accelerated / plain, and its standard error."""

    value: float
    error: float


@dataclass(frozen=True, slots=True)
class TurnsTaken:
    """What turns of MPI and of Stretto within one run took: medians over turns and ranks, in seconds.

    The ratios `wall` and `mpi` are medians over fours of turns. Where the number of a program's collectives depends on time,
    turns of as many are no equal parts of its work: `bytes` is how many those of Stretto held for one of MPI's, and
    `per_byte` the ratio of the times that one took, both in the later half of the fours, as programs begin otherwise than they go
    on; None where too few fours are known to hold bytes.
    """

    command: list[str]
    calls: int  # collectives in a turn
    fours: int  # of turns, in the order Stretto, MPI, MPI, Stretto
    seconds: dict[str, float]  # of a turn, "plain" and "accelerated"
    mpi_seconds: dict[str, float]  # of it, in MPI calls
    wall: Ratio
    mpi: Ratio
    bytes: Ratio | None
    per_byte: Ratio | None

    def as_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    @property
    def held_unequal_work(self) -> bool:
        """Beyond what is chance."""
        return self.bytes is not None and abs(self.bytes.value - 1) > max(0.1, 3 * self.bytes.error)

    @property
    def may_have_held_unequal_work(self) -> bool:
        """Too few of them hold most of it to tell."""
        return self.bytes is not None and self.bytes.error > 0.2


def turns_taken(result: Result) -> TurnsTaken | None:
    """None: the run was too short, or Stretto took over nothing."""
    fours = [turns[i : i + 4] for turns in result.summary.turns for i in range(0, len(turns) - 3, 4)]
    fours = [four for four in fours if all(turn.seconds > 0 for turn in four)]
    if not fours:
        return None
    ranks = len(result.summary.turns)
    sides = {
        "plain": [turn for four in fours for turn in four[1:3]],
        "accelerated": [turn for four in fours for turn in four[::3]],
    }
    return TurnsTaken(
        result.plan.command,
        result.summary.turn_calls,
        len(fours) // ranks,
        {name: median(turn.seconds for turn in turns) for name, turns in sides.items()},
        {name: median(turn.mpi_seconds for turn in turns) for name, turns in sides.items()},
        ratio_of_fours([[turn.seconds for turn in four] for four in fours], ranks),
        ratio_of_fours([[turn.mpi_seconds for turn in four] for four in fours], ranks),
        *_ratios_of_work(result.summary.turns),
    )


def _ratios_of_work(turns: list[list[Turn]]) -> tuple[Ratio, Ratio] | tuple[None, None]:
    """`bytes` and `per_byte` of TurnsTaken, from each rank's turns; standard errors by leaving out each four in turn."""
    most = max(len(one) for one in turns) // 4
    turns = [one for one in turns if len(one) // 4 >= most - 1]  # others took those of another communicator
    count = min(len(one) for one in turns) // 4
    parts = []  # of a four, over all ranks: bytes of Stretto's and of MPI's turns, seconds of both
    for at in range(4 * (count // 2), 4 * count, 4):
        sides = [[turn for one in turns for turn in (one[at + i], one[at + j])] for i, j in ((0, 3), (1, 2))]
        parts.append(
            [*(sum(turn.bytes for turn in side) for side in sides), *(sum(turn.seconds for turn in side) for side in sides)]
        )
    whole = [sum(column) for column in zip(*parts, strict=True)]
    without = [[all_of_it - one for all_of_it, one in zip(whole, part, strict=True)] for part in parts]
    if len(parts) < _FEWEST_FOURS or not all(min(sums) > 0 for sums in [whole, *without]):
        return None, None

    def ratio(of: Callable[[list[float]], float]) -> Ratio:
        others = [of(one) for one in without]
        spread = sum((one - fmean(others)) ** 2 for one in others) * (len(others) - 1) / len(others)
        return Ratio(of(whole), spread**0.5)

    return ratio(lambda sums: sums[0] / sums[1]), ratio(lambda sums: sums[2] / sums[3] * sums[1] / sums[0])


def ratio_of_fours(fours: list[list[float]], ranks: int = 1) -> Ratio:
    """Of times in the order a b b a, a / b. `ranks`: how many saw each of them; they see the same, so more do not tell more.

    What disturbs the machine for a while meets few fours, so the median knows nothing of it.
    """
    ratios = [(a + d) / (b + c) for a, b, c, d in fours if b + c > 0]
    if not ratios:
        return Ratio(0.0, 0.0)
    middle = median(ratios)
    spread = 1.4826 * median(abs(one - middle) for one in ratios)  # a standard deviation, where they are normal
    return Ratio(middle, 1.2533 * spread / max(len(ratios) / ranks, 1.0) ** 0.5)
