"""A recorded profile as an arrival pattern: by how much each rank came later than the first to each collective."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.errors import StrettoError
from stretto.profile.job import open_job
from stretto.profile.matching import Matched, Matcher
from stretto.profile.scan import scan

MOST_CALLS = 4096
LONGEST_NS = 1e9  # a delay beyond it is cut: a program's start-up is no arrival pattern


@dataclass(slots=True)
class _Delays:
    """A sink of matched invocations."""

    matcher: Matcher | None = None
    wanted: str = ""  # a function's name in lower letters, or all
    parts: dict[int, list[NDArray[Any]]] = field(default_factory=dict)  # by number of members

    def matched(self, some: Matched) -> None:
        functions = self.matcher.functions if self.matcher else []
        named = np.array([not self.wanted or _plain(name) == self.wanted for name in functions], bool)
        chosen = named[some.function]
        late = (some.arrival - some.arrival.min(axis=0))[:, chosen] * 1e9
        kept = self.parts.get(late.shape[0], [])
        if late.shape[1] and sum(map(len, kept)) < MOST_CALLS:
            self.parts[late.shape[0]] = [*kept, np.minimum(late, LONGEST_NS).T]


def _plain(function: str) -> str:
    """In lower letters, of large counts and of persistent collectives too."""
    return function.lower().removesuffix("_c").removesuffix("_init")


def delays(folder: Path, ranks: int, collective: str = "") -> NDArray[Any]:
    """[call, rank] in ns, of collectives on communicators of so many ranks. StrettoError: none was recorded."""
    job = open_job(folder)
    sink = _Delays(wanted=f"mpi_{collective}" if collective else "")
    sink.matcher = Matcher(job, [sink])
    scan(job, [sink.matcher])
    found = sink.parts.get(ranks)
    if not found:
        others = ", ".join(map(str, sorted(sink.parts))) or "none"
        what = collective or "collective"
        raise StrettoError(
            f"{folder} has no {what} of {ranks} ranks to replay (of communicators with this many members: {others})"
        )
    return np.concatenate(found)[:MOST_CALLS]


def write(path: Path, rows: NDArray[Any]) -> None:
    """As the benchmark program reads them."""
    path.write_text("".join(" ".join(f"{value:.0f}" for value in row) + "\n" for row in rows))
