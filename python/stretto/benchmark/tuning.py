"""`stretto tune`: measures the candidates on this machine and writes what is best."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stretto.benchmark import choosing, rules_file
from stretto.benchmark.model import LIBRARY, Results
from stretto.benchmark.rules_file import RulesFile
from stretto.errors import StrettoError
from stretto.files import read_bytes
from stretto.wording import percent


@dataclass(frozen=True, slots=True)
class Tuned:
    path: Path
    text: str
    kept: int  # blocks of an earlier file


def condition(results: Results, arena: bool) -> str:
    """The circumstances of the run, as a rule has them."""
    setup = results.setup
    if setup.get("nodes", 1) > 1:
        return f"nodes={setup['nodes']} ranks={setup['ranks']}"
    return f"ranks={setup['ranks']} crowded={'yes' if setup['crowded'] else 'no'} arena={'yes' if arena else 'no'}"


def tune(results: Results, built_in: str, arena: bool, output: Path | None, today: datetime.date) -> Tuned:
    """The new file. StrettoError: Stretto took no part, or there is no place to write to."""
    told = results.setup.get("tuning")
    if not results.accelerating or not told:
        raise StrettoError(f"nothing can be tuned: {results.setup.get('why') or 'Stretto was not loaded'}")
    path = output or (Path(told["path"]) if told["path"] else None)
    if path is None:
        raise StrettoError("there is no home folder to keep rules in: set HOME or XDG_CONFIG_HOME, or name a file with --output")
    file = RulesFile(told["header"], told["about"], built_in)
    kept = _adopt(file, path)
    where = condition(results, arena)
    for collective in dict.fromkeys(point.collective for point in results.points):
        points = [point for point in results.points if point.collective == collective]
        lines = choosing.as_lines(collective, where, choosing.choose(points, results.setup["ranks"]))
        file.put(collective, where, today.isoformat(), lines)
    return Tuned(path, file.text(), kept)


def _adopt(file: RulesFile, path: Path) -> int:
    try:
        file.adopt(read_bytes(path, rules_file.MOST_BYTES).decode())
    except (OSError, UnicodeDecodeError):
        return 0
    return len(file.blocks)


def write(tuned: Tuned) -> None:
    rules_file.write(tuned.path, tuned.text)


def summary(results: Results) -> list[str]:
    """What was chosen, one line a collective, with the sizes up to which it runs and the gain over the MPI library."""
    lines = []
    for collective in dict.fromkeys(point.collective for point in results.points):
        points = [point for point in results.points if point.collective == collective]
        ranges = choosing.choose(points, results.setup["ranks"])
        words = [one.algorithm + (f" to {one.until}" if one.until is not None else "") for one in ranges]
        lines.append(f"{collective:<14} {', '.join(words)}{_gain(ranges)}")
    return lines


def _gain(ranges: Sequence[choosing.Range]) -> str:
    chosen = library = 0.0
    for one in ranges:
        for point in one.points:
            side = LIBRARY if one.algorithm == "mpi" else one.algorithm
            chosen += point.median(side) or 0.0
            library += point.median(LIBRARY) or 0.0
    return f"  ({percent(1 - chosen / library)} less time than MPI, summed over the sizes)" if library > chosen > 0 else ""
