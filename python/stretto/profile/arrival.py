"""Arrival patterns: how far apart the members of a collective arrive, and what that costs.

Metrics of Alizadeh et al. 2022, section 2.2: Omega = max arrival - min arrival, delta = mean of |arrival - mean arrival|, both
also over alpha, the time to communicate a message of the collective's size. Alpha is measured in the job itself: the `ALPHA`
quantile, over the invocations of the same function on the same communicator in the same size bin, of last exit - last arrival.
That time is free of waiting whatever the arrivals; a low quantile leaves out disturbed invocations, and is above the least one so
that a single clock error does not decide. Waiting is each rank's time until the last arrival, transfer the rest of its time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stretto.profile.figures import Figures, figures, present, quantile
from stretto.profile.invocations import BINS, Counted, Name, bin_bound, invocations_by_bin, members_by_bin, size_bin
from stretto.profile.job import Group, Job
from stretto.profile.matching import PERSISTENT, Matched, Matcher
from stretto.profile.thinned import Thinned
from stretto.profile_model import TABLES

Array = NDArray[Any]

ALPHA = 0.1
SMALL, MEDIUM = 4 << 10, 64 << 10  # bytes; the paper's algorithms for small messages go up to 64 KiB, large ones are above
MOST_KEPT = 1 << 18  # invocations of one key whose medians and quantiles are exact
MOST_SHOWN = 2000  # invocations in the table, per communicator and function
MOST_COMMUNICATORS = 50  # that have invocations in the table
NOISE = 3  # times the clock error: what is below cannot be told from it


def size_class(size: int) -> str:
    """Of a message's size, or of the upper bound of its bin, in bytes."""
    return "none" if size <= 0 else "small" if size <= SMALL else "medium" if size <= MEDIUM else "large"


@dataclass(slots=True)
class Sums:
    """Of the invocations with one function, communicator, size bin and scope; sums count each as often as its weight says."""

    invocations: int = 0
    parts: float = 0.0  # weights, added for each node where several nodes are looked at by themselves
    omega: float = 0.0
    delta: float = 0.0
    most: float = 0.0
    waiting: float = 0.0
    transfer: float = 0.0
    held: Array = field(default_factory=lambda: np.zeros(BINS))  # by bin: shares of the members that had so much, added up
    kept: Thinned = field(default_factory=lambda: Thinned(MOST_KEPT))  # omega, weight
    done: Thinned = field(default_factory=lambda: Thinned(MOST_KEPT))  # last exit - last arrival, weight


class Arrivals:
    """A sink of matched invocations."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.sums: dict[tuple[int, int, int, str], Sums] = {}  # group, function, bin, scope
        self.shown: dict[tuple[int, int], Thinned] = {}  # group, function
        self.groups: list[Group] = []
        self.clock_error: list[float] = []
        self._number: dict[tuple[str, int], int] = {}
        self._nodes: list[list[Array]] = []  # of each group: members of each node with several of them

    def number(self, group: Group) -> int:
        key = (group.library, group.identity)
        if key not in self._number:
            self._number[key] = len(self.groups)
            self.groups.append(group)
            self.clock_error.append(self.job.clock_error(group.members))
            self._nodes.append(self._by_node(group))
        return self._number[key]

    def _by_node(self, group: Group) -> list[Array]:
        node_of = {process.rank: process.node for process in self.job.processes if process.library == group.library}
        nodes = np.array([node_of.get(rank, -1) for rank in group.members])
        return [found for node in np.unique(nodes[nodes >= 0]) if len(found := np.flatnonzero(nodes == node)) > 1]

    def matched(self, some: Matched) -> None:
        group = self.number(some.group)
        whole = some.figures
        bins = size_bin(some.bytes)
        self._add(group, some, bins, whole, "cluster")
        nodes = self._nodes[group]
        if len(nodes) == 1 and len(nodes[0]) == len(some.group.members):
            self._add(group, some, bins, whole, "node")
        else:
            for number, members in enumerate(nodes):
                self._add(group, some, bins, figures(some.arrival[members], some.exit[members]), "node", first=not number)
        self._show(group, some, whole)

    def _add(self, group: int, some: Matched, bins: Array, values: Figures, scope: str, first: bool = True) -> None:
        code = some.function.astype(np.int64) * 128 + bins
        for one in present(code):
            mine = code == one
            chosen: Any = slice(None) if mine.all() else mine
            sums = self.sums.setdefault((group, one // 128, one % 128, scope), Sums())
            omega = values.omega[chosen]
            weight = some.weight[chosen]  # no `@`: BLAS would start threads of its own
            sums.invocations += len(omega) if first else 0
            sums.parts += float(weight.sum())
            sums.omega += float((weight * omega).sum())
            sums.delta += float((weight * values.delta[chosen]).sum())
            sums.most = max(sums.most, float(omega.max()))
            sums.waiting += float((weight * values.waiting[chosen]).sum())
            sums.transfer += float((weight * values.transfer[chosen]).sum())
            sums.kept.add(some.sequence[chosen], omega, weight)
            if scope == "cluster":
                sums.held += members_by_bin(some.sizes[:, chosen], weight)
                sums.done.add(some.sequence[chosen], values.done[chosen], weight)

    def _show(self, group: int, some: Matched, values: Figures) -> None:
        for function in present(some.function):
            mine = some.function == function
            columns = (
                some.sequence,
                values.first,
                some.bytes,
                values.omega,
                values.delta,
                values.last_member,
                values.waiting,
                values.transfer,
            )
            shown = self.shown.setdefault((group, function), Thinned(MOST_SHOWN))
            shown.add(some.sequence[mine], *(column[mine] for column in columns))

    def alphas(self, functions: list[str]) -> dict[tuple[int, int, int], float]:
        """By group, function and bin. Nonblocking calls, whose exits say nothing, take those of their blocking form."""
        found = {key[:3]: _quantile([sums.done], ALPHA) for key, sums in self.sums.items() if key[3] == "cluster"}
        for group, function, size in list(found):
            blocking = _blocking(functions[function])
            if blocking != functions[function]:
                other = functions.index(blocking) if blocking in functions else -1
                found[group, function, size] = found.get((group, other, size), 0.0)
        return found


BY_SIZE = {
    "library": pl.String,
    "communicator": pl.String,
    "function": pl.String,
    "upper": pl.Int64,
    "invocations": pl.Int64,
    "waiting": pl.Float64,
    "transfer": pl.Float64,
    "alpha": pl.Float64,
}


def by_size(found: Arrivals, matcher: Matcher) -> pl.DataFrame:
    """Cluster-wide figures by size bin; of communicators that share a label together (alpha: the first one's; null: unknown)."""
    rows = []
    for (group, function, size), alpha in found.alphas(matcher.functions).items():
        one, sums = found.groups[group], found.sums[group, function, size, "cluster"]
        key = (one.library, one.label, matcher.functions[function], bin_bound(size))
        rows.append((*key, sums.invocations, sums.waiting, sums.transfer, alpha if alpha > 0 else None))
    table = pl.DataFrame(rows, schema=BY_SIZE, orient="row")
    totals = pl.col("invocations", "waiting", "transfer").sum()
    return table.group_by(list(BY_SIZE)[:4], maintain_order=True).agg(totals, pl.col("alpha").drop_nulls().first())


def _blocking(function: str) -> str:
    if not function.startswith("MPI_I"):
        return function
    return "MPI_" + function[5:].capitalize() if not function.endswith("_c") else "MPI_" + function[5:-2].capitalize() + "_c"


def _quantile(kept: list[Thinned], share: float) -> float:
    values, weights = (np.concatenate(parts) for parts in zip(*(one.columns() for one in kept), strict=True))
    return quantile(values, weights, share) if len(values) else 0.0


def arrival(found: Arrivals, matcher: Matcher, cells: pl.DataFrame) -> pl.DataFrame:
    """One row per scope, function, communicator and size class; communicators that share a label are added up.

    Where not all invocations are known, those that are stand for all: waiting and transfer are of all that the sums counted.
    """
    alphas = found.alphas(matcher.functions)
    rows: dict[tuple[str, str, str, str, str], list[tuple[tuple[int, int, int, str], Sums]]] = {}
    for key, sums in found.sums.items():
        group, function, size, scope = key
        label = found.groups[group]
        name = (scope, label.library, matcher.functions[function], label.label, size_class(bin_bound(size)))
        rows.setdefault(name, []).append((key, sums))
    whole = not any(process.trace.header.dropped_cells for process in found.job.processes)
    counted = _counted(found, matcher.functions, cells, whole)
    table = [_row(name, parts, alphas, found, counted) for name, parts in rows.items()]
    return _capped(pl.DataFrame(table, schema=TABLES["arrival"], orient="row"), cells, whole).sort(
        "scope", "library", "communicator", "function", "alpha"
    )


def _counted(found: Arrivals, functions: list[str], cells: pl.DataFrame, whole: bool) -> dict[tuple[Name, int], Counted]:
    """Invocations of each size bin, by library, function and communicator's label."""
    kept: dict[Name, dict[int, list[Sums]]] = {}
    for (group, function, size, scope), sums in found.sums.items():
        if scope == "cluster":
            name = (found.groups[group].library, functions[function], found.groups[group].label)
            kept.setdefault(name, {}).setdefault(size, []).append(sums)
    return invocations_by_bin(kept, cells, whole)


def _capped(rows: pl.DataFrame, cells: pl.DataFrame, whole: bool) -> pl.DataFrame:
    """Waiting and transfer that were estimated are together no more than the time that the sums hold. Persistent collectives'
    time is that of their starts, which the sums hold under another name. `whole`: no call is missing in the sums."""
    keys = ["library", "function", "communicator"]
    exact = cells.group_by(keys).agg(pl.col("time").sum())
    estimate = (pl.col("waiting") + pl.col("transfer")).sum().over("scope", *keys)
    too_much = pl.lit(whole) & (pl.col("time") < estimate) & ~pl.col("function").str.contains(PERSISTENT.pattern)
    factor = pl.when(too_much).then(pl.col("time") / estimate).otherwise(1.0)
    return rows.join(exact, on=keys, how="left").with_columns(pl.col(*TIMES) * factor).drop("time")


def _row(
    name: tuple[str, str, str, str, str],
    parts: list[tuple[tuple[int, int, int, str], Sums]],
    alphas: dict[tuple[int, int, int], float],
    found: Arrivals,
    counted: dict[tuple[Name, int], Counted],
) -> tuple[Any, ...]:
    sums = [one for _, one in parts]
    weights = [(one, alphas.get(key[:3], 0.0)) for key, one in parts]
    timed_sums = [(one, alpha) for one, alpha in weights if alpha > 0]
    count, invocations = sum(one.parts for one in sums), sum(one.invocations for one in sums)
    timed = sum(one.parts for one, _ in timed_sums)

    def factor(total: str) -> float | None:
        return sum(getattr(one, total) / alpha for one, alpha in timed_sums) / timed if timed else None

    alpha = sum(alpha * one.parts for one, alpha in timed_sums) / timed if timed else None
    omega = sum(one.omega for one in sums) / count
    noise = 0.0 if name[0] == "node" else max(found.clock_error[key[0]] for key, _ in parts)
    median = _quantile([one.kept for one in sums], 0.5)
    figures_ = (alpha, omega, median, max(one.most for one in sums), sum(one.delta for one in sums) / count)
    times = [0.0, 0.0]
    of = 0
    for size in {key[2] for key, _ in parts}:
        number, scale = counted[name[1:4], size]
        for place, time in enumerate(TIMES):
            times[place] += scale * sum(getattr(one, time) for key, one in parts if key[2] == size)
        of += number
    return (*name, invocations, of, *figures_, factor("omega"), factor("delta"), *times, bool(omega < NOISE * noise))


TIMES = ("waiting", "transfer")


def invocations(found: Arrivals, matcher: Matcher) -> pl.DataFrame:
    """One row per invocation that was kept; of the communicators with most waiting."""
    alphas = found.alphas(matcher.functions)
    waiting = np.zeros(len(found.groups))
    for (group, _, _, scope), sums in found.sums.items():
        waiting[group] += sums.waiting if scope == "cluster" else 0.0
    chosen = set(np.argsort(-waiting, kind="stable")[:MOST_COMMUNICATORS].tolist())
    parts = [_shown(found, matcher, key, alphas) for key in found.shown if key[0] in chosen]
    if not parts:
        return pl.DataFrame(schema=TABLES["invocations"])
    return pl.concat(parts).sort("library", "communicator", "function", "sequence", "at")


def _shown(found: Arrivals, matcher: Matcher, key: tuple[int, int], alphas: dict[tuple[int, int, int], float]) -> pl.DataFrame:
    sequence, at, size, omega, delta, last, waiting, transfer = found.shown[key].columns()
    group = found.groups[key[0]]
    alpha = np.array([alphas.get((*key, one), 0.0) for one in size_bin(size).tolist()])
    alpha[alpha <= 0] = np.nan
    columns = {
        "library": [group.library] * len(sequence),
        "communicator": [group.label] * len(sequence),
        "function": [matcher.functions[key[1]]] * len(sequence),
        "sequence": sequence,
        "at": at,
        "bytes": size,
        "omega": omega,
        "delta": delta,
        "omega_factor": omega / alpha,
        "delta_factor": delta / alpha,
        "last_rank": np.array(group.members, np.int32)[last],
        "waiting": waiting,
        "transfer": transfer,
    }
    return pl.DataFrame(columns, schema=TABLES["invocations"], nan_to_null=True)
