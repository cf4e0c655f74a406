"""Who comes last, how often, by how much, and since when; and the raster of arrivals.

Being last by a hair happens to everybody, above all in collectives that follow one another closely. So a rank is held to be late
by the waiting of the others in the invocations in which it came last: by what it caused. Of two ranks one always causes half or
more, and whichever of them the system interrupts now and then causes nearly all. So that is not enough: `_Counts.by_chance`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stretto.profile.figures import present
from stretto.profile.job import Group
from stretto.profile.matching import Matched
from stretto.profile.thinned import Thinned
from stretto.profile_model import TABLES

Array = NDArray[Any]

WINDOWS = 512  # of equally many invocations, in which a change can be found
FEWEST = 8  # invocations of which something can be said
USUALLY = 0.5  # share of the waiting from which on a rank is the one that is waited for
CHANGE = 2.0  # least ratio of what it causes after and before ...
CERTAIN = 5.0  # ... and the least difference in standard deviations
SPIKE = 20.0  # times the mean: what is above counts as this much, so that one hiccup is no change
BEYOND_CHANCE = 2.5  # standard deviations: what chance gives once in 160 times is taken for more than chance; `CERTAIN` where
# it is in few invocations, since what interrupts a rank comes several times running
MORE = 3.0  # times what another rank causes on an average, that a late one causes at least
OFTEN = 0.05  # of the invocations, in which a rank that is late as a rule makes the others wait, ...
HAIR = 10e-6  # ... and seconds by which it is late there: less is what an interrupt or a cold cache costs
SLICE = 10e-3  # seconds for which a scheduler gives a core to somebody else: who is later than this may be so seldom
RASTER_RANKS, RASTER_INVOCATIONS, RASTER_GROUPS = 64, 256, 256


@dataclass(slots=True)
class _Counts:
    """Of one communicator and function: who was last, and what that cost, in windows of `width` consecutive invocations."""

    group: Group
    last: Array  # by member: how many invocations those in which it was last stand for
    caused: Array  # [window, member]: seconds that all waited
    weight: Array  # by window: how many invocations those in it stand for
    begin: Array  # seconds, first arrival of the window's first invocation
    squares: Array  # [window, member]: sum of the squares of what it caused in each invocation
    most: Array  # [window, member]: the most that one invocation, with its weight, added to `caused`
    sampled: Array  # by window: sum of the squares of what each invocation added: how few of them hold the waiting
    behind: Array  # by member: sum of arrival - mean arrival of the others, as often as each weighs
    width: int = 1
    seen: int = 0

    @classmethod
    def of(cls, group: Group) -> _Counts:
        members = len(group.members)
        caused, squares, most = (np.zeros((WINDOWS, members)) for _ in range(3))
        weight, begin, sampled = (np.zeros(WINDOWS) for _ in range(3))
        return cls(group, np.zeros(members), caused, weight, begin, squares, most, sampled, np.zeros(members))

    def add(self, some: Matched, chosen: Any) -> None:
        arrival, figures = some.arrival[:, chosen], some.figures
        members, count = arrival.shape
        while self.seen + count > self.width * WINDOWS:
            self._merge()
        window = (self.seen + np.arange(count)) // self.width
        last, first = figures.last_member[chosen], figures.first[chosen]
        place, weight, waiting = window * members + last, some.weight[chosen], figures.waiting[chosen]
        self.last += np.bincount(last, weight, members)
        self.caused += np.bincount(place, waiting * weight, WINDOWS * members).reshape(WINDOWS, members)
        self.weight += np.bincount(window, weight, WINDOWS)
        self.squares += np.bincount(place, waiting**2 * weight, WINDOWS * members).reshape(WINDOWS, members)
        self.sampled += np.bincount(window, (waiting * weight) ** 2, WINDOWS)
        np.maximum.at(self.most, (window, last), waiting * weight)
        starts = np.flatnonzero((self.seen + np.arange(count)) % self.width == 0)
        self.begin[window[starts]] = first[starts]
        self.behind += ((arrival - arrival.mean(axis=0)) * weight).sum(axis=1) * (members / max(members - 1, 1))
        self.seen += count

    def _merge(self) -> None:
        half = WINDOWS // 2
        for sums in (self.caused, self.weight, self.squares, self.sampled):
            sums[:half] = sums[0::2] + sums[1::2]
            sums[half:] = 0
        self.most[:half] = np.maximum(self.most[0::2], self.most[1::2])
        self.most[half:] = 0
        self.begin[:half] = self.begin[0::2]
        self.width *= 2

    def since(self) -> list[float | None]:
        """By member: the second from which on it is the one waited for; 0: always; None: it is not."""
        used = -(-self.seen // self.width)
        caused, weight, begin = self.caused[:used], self.weight[:used], self.begin[:used]
        if self.seen < FEWEST:
            return [None] * caused.shape[1]
        found = [waited_for_since(one, caused.sum(axis=1), weight, begin) for one in caused.T]
        return [None if at is None or self.by_chance(member, at) else at for member, at in enumerate(found)]

    def by_chance(self, member: int, since: float) -> bool:
        """Whether this rank would cause so much by chance or by what the system does on its core, since it is waited for.

        By chance each of n ranks causes an n-th, give or take what follows from how few invocations hold the waiting: a rank
        that is late for its work causes clearly more, and several times what another one does. It also makes the others wait
        in a good part of the invocations, or so long that no scheduler did it. How often it is last by a hair is not asked: after
        an invocation to which it came late, another one may be so. The longest single wait for somebody else does not count: one
        hiccup, or the reading of the input, says nothing about this rank.
        """
        used = -(-self.seen // self.width)
        then = np.flatnonzero(self.begin[:used] >= since)
        caused, ranks = self.caused[then].sum(axis=0), self.caused.shape[1]
        hiccup = float(np.delete(self.most[then].max(axis=0), member).max(initial=0.0))
        mine, all_ = float(caused[member]), float(caused.sum()) - hiccup
        sampled = float(self.sampled[then].sum()) - hiccup**2
        if ranks < 2 or mine <= 0 or mine < MORE * (all_ - mine) / (ranks - 1):
            return True
        squares = float(self.squares[then, member].sum())
        delay, often = squares / mine / (ranks - 1), mine**2 / squares / float(self.weight[then].sum())
        needed = CERTAIN if often < USUALLY else BEYOND_CHANCE
        if _beyond_chance(mine / all_, all_**2 / sampled, ranks) < needed:
            return True
        return delay < SLICE and (delay < HAIR or often < OFTEN)


def _beyond_chance(share: float, of: float, ranks: int) -> float:
    """By how many standard deviations a rank's share of `of` equal things is above an n-th, by which chance would give them."""
    even = 1 / ranks
    return float((share - even) / np.sqrt(even * (1 - even) / of))


def waited_for_since(caused: Array, totals: Array, weights: Array, begin: Array) -> float | None:
    """From windows: the begin of the one at which what a rank causes rises most clearly, if to half of all waiting or more.

    `caused`: seconds waited for the rank, `totals`: for anybody, `weights`: invocations. 0 where nothing clear changes and it
    causes half or more throughout; None where it does not, or not any more. The change is that of a mean: the split of the
    windows with the mean on either side that leaves least variance.
    """
    if totals.sum() <= 0:
        return None
    always = 0.0 if caused.sum() >= USUALLY * totals.sum() else None
    at, before, after, certain = _step(caused / weights)
    if certain < CERTAIN:
        return always
    late_then = caused[at:].sum() >= USUALLY * totals[at:].sum() > 0
    if after >= CHANGE * before:
        return float(begin[at]) if late_then else None
    return always if late_then or before < CHANGE * after else None


def _step(values: Array) -> tuple[int, float, float, float]:
    """Where the mean changes: the index from which on it is another, both means, and their difference in standard deviations."""
    count = len(values)
    if count < 2:
        return 0, 0.0, 0.0, 0.0
    values = np.minimum(values, SPIKE * values.mean())
    left = np.arange(1, count)
    sums = np.cumsum(values)
    before, after = sums[:-1] / left, (sums[-1] - sums[:-1]) / (count - left)
    within = (values**2).sum() - left * before**2 - (count - left) * after**2
    spread = np.sqrt(np.maximum(within, 1e-18 * (values**2).sum()) / max(1, count - 2) * (1 / left + 1 / (count - left)))
    certain = np.abs(after - before) / np.where(spread > 0, spread, 1.0)
    at = int(certain.argmax())
    return at + 1, float(before[at]), float(after[at]), float(certain[at])


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
                self.counts[key] = _Counts.of(some.group)
            self.counts[key].add(some, chosen)
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


def late(found: Late, functions: list[str], arrivals: pl.DataFrame) -> pl.DataFrame:
    """One row per member, of communicators that share a label one after the other. All `caused` add up to `arrivals`' waiting."""
    rows = []
    keys = ["library", "communicator", "function"]
    for (library, _, function), counts in found.counts.items():
        last, since, caused, of = counts.last, counts.since(), counts.caused.sum(axis=0), float(counts.weight.sum())
        for member, rank in enumerate(counts.group.members):
            share, behind = float(last[member]) / of, float(counts.behind[member]) / of
            place = (library, counts.group.label, functions[function], rank)
            rows.append((*place, round(of), round(float(last[member])), share, behind, float(caused[member]), since[member]))
    table = pl.DataFrame(rows, schema=TABLES["late"], orient="row")
    waited = arrivals.filter(pl.col("scope") == "cluster").group_by(keys).agg(pl.col("waiting").sum())
    whole = pl.col("caused").sum().over(keys)
    scaled = pl.when(whole > 0).then(pl.col("caused") * pl.col("waiting") / whole).otherwise(0.0)
    table = table.join(waited, on=keys, how="left").with_columns(caused=scaled).drop("waiting")
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
