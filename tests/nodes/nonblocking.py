"""Nonblocking collectives over nodes: the program of tests/mpi/nonblocking, and what must have been taken over in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mpi_job import QUICK, Outcome

# Kinds that the built-in rules leave to Stretto at any size, none of which the program calls in its blocking form.
TAKEN = ("Bcast", "Reduce", "Scan", "Exscan")
# The same by rules that leave nothing to MPI.
FORCED = (*TAKEN, "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv")
FORCED += ("Alltoall", "Alltoallv", "Alltoallw", "Reduce_scatter", "Reduce_scatter_block")
LEFT = "several nodes"


@dataclass(frozen=True)
class Case:
    """Ranks on each node. words: of the program, besides the seed. rules: one of the sets that leave nothing to MPI."""

    ranks: tuple[int, ...]
    words: str
    settings: dict[str, str] = field(default_factory=dict)
    rules: str = ""

    @property
    def taken(self) -> bool:
        """Stretto takes over: any thread may call MPI."""
        return "STRETTO_PROGRESS" in self.settings

    @property
    def name(self) -> str:
        settings = "".join(f" ({name.removeprefix('STRETTO_').lower()} {value})" for name, value in self.settings.items())
        rules = f" ({self.rules})" if self.rules else ""
        return f"nonblocking: {'+'.join(map(str, self.ranks))}, {self.words}{settings}{rules}"


# Persistent ones by rules that leave nothing to MPI: both MPIs have faults in their own.
def cases(family: str) -> list[Case]:
    thread = {"STRETTO_PROGRESS": "thread"}
    result = [
        Case((2, 2), "--steps 160 random", thread, "leaders"),
        Case((2, 2), "--steps 60 persistent", thread, "leaders"),
        Case((2, 1), "semantics progress", thread),
        Case((2, 1), "--multiple --steps 100 random"),
        Case((2, 2), "--steps 60 persistent", {**thread, "STRETTO_NODES_AFTER": "1000"}, "leaders"),
    ]
    if family == "mpich":  # Open MPI refuses to free a request of what is left to it
        result += [Case((2, 2), "--steps 160 random", {**thread, "STRETTO_NODES_AFTER": "4"}, "leaders")]
    if QUICK:
        return result
    result += [
        Case((2, 2), "--steps 160 random", thread),
        Case((2, 2), "--multiple semantics progress", thread),
        Case((3, 1, 2), "--multiple --steps 160 random", thread, "rsa"),
        Case((3, 1, 2), "--steps 60 persistent", thread, "pipelined"),
        Case((1, 2), "--multiple progress", thread),
    ]
    if family == "mpich":  # Open MPI's own nonblocking collectives fail between nodes when threads make communicators meanwhile
        result += [Case((2, 2), "--steps 40 threads", thread), Case((2, 1), "--steps 40 threads")]
    return result


def command(program: Path, case: Case, seed: int) -> list[str]:
    return [str(program), "--seed", str(seed), "--nodes", *["--taken"] * case.taken, *case.words.split()]


def problem_of(case: Case, outcome: Outcome) -> str:
    if outcome.code is None:
        return "    no end\n" + outcome.tail()
    if outcome.code or " 0 failed" not in outcome.output or "checks" not in outcome.output:
        failed = [line for line in outcome.error.splitlines() if "FAILED" in line]
        return f"    exit code {outcome.code}\n" + ("\n".join(failed[:12]) or outcome.tail())
    seen = outcome.summary.get("collectives", {})
    kinds = [name for name in (FORCED if case.rules else TAKEN) if seen.get(name, {}).get("calls", 0) >= 4 * sum(case.ranks)]
    calls, taken = (sum(seen[name][key] for name in kinds) for key in ("calls", "accelerated_calls"))
    wrong = [f"{taken} of {calls} calls were taken over"] if calls and (taken >= 0.3 * calls) != case.taken else []
    if case.rules:
        wrong += [f"nothing of {name} was taken over" for name in kinds if not seen[name]["accelerated_calls"]]
    if not case.taken and any(LEFT not in seen[name].get("declines", {}) for name in kinds):
        wrong.append(f'nothing left to MPI for "{LEFT}"')
    if not kinds and ("random" in case.words or case.rules):
        wrong.append("hardly any calls")
    return f"    not as it should be: {wrong}: {[(name, seen.get(name)) for name in kinds]}\n" + outcome.tail() if wrong else ""
