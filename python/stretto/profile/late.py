"""Who comes last, how often, by how much, and since when; and the raster of arrivals.

Being last by a hair happens to everybody, above all in collectives that follow one another closely. So a rank is held to be late
by the waiting of the others in the invocations in which it came last: by what it caused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stretto.profile.figures import Figures, present
from stretto.profile.job import Group
from stretto.profile.matching import Matched
from stretto.profile.thinned import Thinned
from stretto.profile_model import TABLES

Array = NDArray[Any]

WINDOWS = 512  # of equally many invocations, in which a change can be found
FEWEST = 8  # invocations of which something can be said
USUALLY = 0.5  # share of the waiting from which on a rank is the one that is waited for
CHANGE = 0.25  # least difference of shares before and after a change ...
CERTAIN = 2.0  # ... times sqrt(before x after / all), in invocations: at least four standard deviations of chance
RASTER_RANKS, RASTER_INVOCATIONS, RASTER_GROUPS = 64, 256, 256


@dataclass(slots=True)
class _Counts:
    """Of one communicator and function: who was last, and what that cost, in windows of `width` consecutive invocations."""

    group: Group
    last: Array  # by member: invocations
    caused: Array  # [window, member]: seconds that all waited
    begin: Array  # seconds, first arrival of the window's first invocation
    behind: Array  # by member: sum of arrival - mean arrival
    width: int = 1
    seen: int = 0

    def add(self, arrival: Array, figures: Figures, chosen: Any) -> None:
        members, count = arrival.shape
        while self.seen + count > self.width * WINDOWS:
            self._merge()
        window = (self.seen + np.arange(count)) // self.width
        last, first = figures.last_member[chosen], figures.first[chosen]
        self.last += np.bincount(last, minlength=members)
        flat = np.bincount(window * members + last, figures.waiting[chosen], WINDOWS * members)
        self.caused += flat.reshape(WINDOWS, members)
        starts = np.flatnonzero((self.seen + np.arange(count)) % self.width == 0)
        self.begin[window[starts]] = first[starts]
        self.behind += (arrival - arrival.mean(axis=0)).sum(axis=1)
        self.seen += count

    def _merge(self) -> None:
        half = WINDOWS // 2
        self.caused[:half] = self.caused[0::2] + self.caused[1::2]
        self.caused[half:] = 0
        self.begin[:half] = self.begin[0::2]
        self.width *= 2

    def since(self) -> list[float | None]:
        """By member: the second from which on it is the one waited for; 0: always; None: it is not."""
        used = -(-self.seen // self.width)
        caused, counts = self.caused[:used], np.full(used, float(self.width))
        counts[-1] = self.seen - (used - 1) * self.width
        if self.seen < FEWEST:
            return [None] * caused.shape[1]
        return [waited_for_since(one, caused.sum(axis=1), counts, self.begin[:used]) for one in caused.T]


def waited_for_since(caused: Array, totals: Array, counts: Array, begin: Array) -> float | None:
    """From windows: the begin of the one at which the share that a rank causes rises most, if to one half or more.

    `caused`: seconds waited for the rank, `totals`: for anybody, `counts`: invocations. 0 where nothing certain changes and the
    share is one half or more throughout; None where it is not the one waited for, or not any more.
    """
    part, whole, count = (np.concatenate([[0.0], np.cumsum(one)]) for one in (caused, totals, counts))
    left, right = slice(1, -1), -1
    with np.errstate(divide="ignore", invalid="ignore"):
        before = np.nan_to_num(part[left] / whole[left])
        after = np.nan_to_num((part[right] - part[left]) / (whole[right] - whole[left]))
    certain = (after - before) * np.sqrt(count[left] * (count[right] - count[left]) / count[right])
    changed = (np.abs(certain) >= CERTAIN) & (np.abs(after - before) >= CHANGE)
    if changed.any():
        at = int(np.where(changed, np.abs(certain), 0.0).argmax())
        if before[at] < USUALLY <= after[at]:
            return float(begin[at + 1])
        if after[at] < USUALLY:
            return None
    return 0.0 if whole[right] > 0 and part[right] / whole[right] >= USUALLY else None


class Late:
    """A sink of matched invocations."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, int, int], _Counts] = {}
        self.rasters: dict[tuple[str, int], tuple[Group, Array, Thinned]] = {}

    def matched(self, some: Matched) -> None:
        for function in present(some.function):
            mine = some.function == function
            chosen: Any = slice(None) if mine.all() else mine
            key = (some.group.library, some.group.identity, function)
            if key not in self.counts:
                members = len(some.group.members)
                zeros = (np.zeros(members, np.int64), np.zeros((WINDOWS, members)), np.zeros(WINDOWS), np.zeros(members))
                self.counts[key] = _Counts(some.group, *zeros)
            self.counts[key].add(some.arrival[:, chosen], some.figures, chosen)
        self._raster(some)

    def _raster(self, some: Matched) -> None:
        key = (some.group.library, some.group.identity)
        if key not in self.rasters:
            if len(self.rasters) == RASTER_GROUPS:
                return
            members = len(some.group.members)
            chosen = np.unique(np.linspace(0, members - 1, min(members, RASTER_RANKS)).round().astype(np.int64))
            self.rasters[key] = (some.group, chosen, Thinned(RASTER_INVOCATIONS))
        _, chosen, kept = self.rasters[key]
        kept.add(some.sequence, some.sequence, some.function, (some.arrival[chosen] - some.figures.first).T)


def late(found: Late, functions: list[str]) -> pl.DataFrame:
    """One row per member; of communicators that share a label, one after the other."""
    rows = []
    for (library, _, function), counts in found.counts.items():
        last, since, caused = counts.last, counts.since(), counts.caused.sum(axis=0)
        for member, rank in enumerate(counts.group.members):
            share = float(last[member]) / counts.seen
            behind = float(counts.behind[member]) / counts.seen
            place = (library, counts.group.label, functions[function], rank)
            rows.append((*place, counts.seen, int(last[member]), share, behind, float(caused[member]), since[member]))
    table = pl.DataFrame(rows, schema=TABLES["late"], orient="row")
    return table.sort("library", "communicator", "function", "caused", "rank", descending=[False, False, False, True, False])


def raster(found: Late, functions: list[str], arrivals: pl.DataFrame) -> pl.DataFrame:
    """Of the communicator with most waiting."""
    waiting: dict[tuple[str, str], float] = {}
    for scope, library, label, seconds in arrivals.select("scope", "library", "communicator", "waiting").iter_rows():
        if scope == "cluster":
            waiting[library, label] = waiting.get((library, label), 0.0) + seconds
    if not found.rasters:
        return pl.DataFrame(schema=TABLES["raster"])
    group, chosen, kept = max(found.rasters.values(), key=lambda one: waiting.get((one[0].library, one[0].label), 0.0))
    sequence, function, after = kept.columns()
    ranks = np.array(group.members, np.int32)[chosen]
    columns = {
        "communicator": [group.label] * after.size,
        "function": pl.Series(functions).gather(np.repeat(function, len(ranks))),
        "sequence": np.repeat(sequence, len(ranks)),
        "rank": np.tile(ranks, len(sequence)),
        "after_first": after.reshape(-1),
    }
    return pl.DataFrame(columns, schema=TABLES["raster"])
