"""What both pages show, taken from a profile's tables: few rows, in the order in which they matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from stretto.profile.sums import LIFE, is_kernel
from stretto.profile_model import Profile
from stretto.wording import NONE, bin_name

_FEW = 8  # invocations; fewer make no figure over time
MOST_RANKS = 64  # more are shown in blocks of ranks
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Totals:
    """Seconds summed over ranks, each a share of the run time summed over ranks; None where it is not known."""

    run_time: float
    communication: float
    waiting: float | None
    transfer: float | None
    clock_error: float | None
    lost: int

    def share(self, seconds: float | None) -> float | None:
        return seconds / self.run_time if seconds is not None and self.run_time > 0 else None


def totals(profile: Profile) -> Totals:
    ranks, arrival = profile.table("ranks"), profile.table("arrival")
    cluster = arrival.filter(pl.col("scope") == "cluster")
    known = cluster.height > 0
    return Totals(
        run_time=run_time(profile),
        communication=float(_in_the_run(profile)["spent"].sum() or 0.0),
        waiting=float(cluster["waiting"].sum()) if known else None,
        transfer=float(cluster["transfer"].sum()) if known else None,
        clock_error=_number(ranks["clock_error"].max()),
        lost=int(ranks["lost"].sum() or 0),
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def run_time(profile: Profile) -> float:
    """Seconds, summed over ranks: a rank with two libraries counts once."""
    return float(profile.table("ranks").group_by("rank").agg(pl.col("run_time").max())["run_time"].sum() or 0.0)


def _in_the_run(profile: Profile) -> pl.DataFrame:
    """The functions table with `spent`: seconds within the run time, which MPI_Init and MPI_Finalize are outside of."""
    run_times = profile.table("ranks").group_by("rank").agg(pl.col("run_time").max())
    joined = profile.table("functions").join(run_times, on="rank", how="left")
    return joined.with_columns(spent=pl.col("share").fill_nan(0).fill_null(0) * pl.col("run_time").fill_null(0))


def node_count(profile: Profile) -> int:
    """Nodes as the ranks number them, or hosts where they do not."""
    table = profile.table("ranks")
    numbered = table.filter(pl.col("node") >= 0)
    return max(numbered["node"].n_unique() if numbered.height == table.height else table["host"].n_unique(), 1)


def rank_numbers(profile: Profile) -> list[int]:
    known = set(profile.table("ranks")["rank"].drop_nulls().to_list())
    return sorted(known | set(range(min(profile.world_size, 1 << 16))))


def function_rows(profile: Profile) -> list[Row]:
    """Per library and function, over ranks: calls and their least and most, time, its share of the run time (if it is in it)."""
    table = _in_the_run(profile)
    if not table.height:
        return []
    ranks = max(len(rank_numbers(profile)), 1)
    whole = run_time(profile)
    grouped = table.group_by("library", "function").agg(
        pl.col("calls", "time", "sent", "received", "spent").sum(),
        least_calls=pl.col("calls").min(),
        most_calls=pl.col("calls").max(),
        least_share=pl.col("share").min(),
        most_share=pl.col("share").max(),
        ranks=pl.col("rank").n_unique(),
    )
    lower = pl.when(pl.col("ranks") < ranks).then(0)
    outside = pl.col("function").str.contains(f"^{LIFE.pattern}$") | is_kernel()
    return (
        grouped.with_columns(
            share=pl.col("spent") / whole if whole > 0 else pl.lit(None, pl.Float64),
            least_calls=lower.otherwise("least_calls"),
            least_share=lower.otherwise("least_share"),
        )
        .with_columns(pl.when(~outside).then(pl.col("share", "least_share", "most_share")))
        .sort("library", "spent", "time", "function", descending=[False, True, True, False])
        .to_dicts()
    )


@dataclass(frozen=True, slots=True)
class Block:
    """Ranks that a figure shows as one row."""

    first: int
    last: int

    @property
    def label(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


def blocks(ranks: int, most: int = MOST_RANKS) -> list[Block]:
    """Ranks 0..ranks-1 in at most `most` blocks of equal length, a power of two."""
    width = 1
    while ranks > width * most:
        width *= 2
    return [Block(first, min(first + width, ranks) - 1) for first in range(0, ranks, width)]


def shares_by_rank(profile: Profile, functions: list[tuple[str, str]]) -> tuple[list[Block], np.ndarray[Any, Any]]:
    """(blocks, mean share of run time[block, function]); the last column holds all other functions."""
    numbers = rank_numbers(profile)
    parts = blocks(numbers[-1] + 1 if numbers else 0)
    width = parts[0].last - parts[0].first + 1 if parts else 1
    found = np.zeros((len(parts), len(functions) + 1))
    place = {key: column for column, key in enumerate(functions)}
    table = profile.table("functions").filter(pl.col("rank") >= 0)
    for library, function, rank, share in table.select("library", "function", "rank", "share").iter_rows():
        if share is not None:
            found[rank // width, place.get((library, function), len(functions))] += share
    lengths = np.array([part.last - part.first + 1 for part in parts])
    return parts, found / lengths[:, None] if parts else found


def _sized(profile: Profile) -> pl.DataFrame:
    """Sizes of the functions that move data, and of barriers; waiting for requests or starting MPI is neither."""
    table = profile.table("sizes")
    moves = (pl.col("upper").max().over("library", "function") > 0) | pl.col("function").str.contains("(?i)barrier")
    return table.filter(moves)


def histograms(profile: Profile, most: int = 6) -> list[tuple[str, str, list[Row]]]:
    """(library, function, rows per bin, location and use) of the functions with most time that have sizes."""
    table = _sized(profile)
    ordered = table.group_by("library", "function").agg(pl.col("time").sum()).sort("time", "function", descending=[True, False])
    found = []
    for library, function, _ in ordered.head(most).iter_rows():
        mine = table.filter((pl.col("library") == library) & (pl.col("function") == function))
        rows = mine.group_by("upper", "location").agg(pl.col("calls", "bytes", "time").sum()).sort("upper", "location")
        found.append((library, function, rows.to_dicts()))
    return found


def size_rows(profile: Profile, most: int) -> list[Row]:
    """By function, bin, datatype, op, location and use: the longest first."""
    keys = ("library", "function", "upper", "datatype", "op", "location", "use")
    table = _sized(profile).group_by(*keys).agg(pl.col("calls", "bytes", "time").sum())
    return table.sort("time", *keys, descending=[True, *[False] * len(keys)]).head(most).to_dicts()


def size_words(row: Row) -> tuple[str, ...]:
    """What a row of size_rows() is about: function, bin, datatype, op, place of the buffers, use."""
    where = NONE if row["location"] == "none" else row["location"]
    return row["function"], bin_name(row["upper"]), row["datatype"] or NONE, row["op"] or NONE, where, row["use"] or NONE


@dataclass(frozen=True, slots=True)
class Matrix:
    parts: list[Block]
    calls: np.ndarray[Any, Any]  # [source, target]
    bytes: np.ndarray[Any, Any]
    unknown_calls: int  # with a partner that could not be told


def matrix(profile: Profile) -> Matrix:
    table = profile.table("partners")
    known = table.filter((pl.col("source") >= 0) & (pl.col("target") >= 0))
    ends = [known[name].max() for name in ("source", "target")]
    ranks = max([profile.world_size, *(int(end) + 1 for end in ends if isinstance(end, int))])
    parts = blocks(ranks)
    width = parts[0].last - parts[0].first + 1 if parts else 1
    calls, sizes = (np.zeros((len(parts), len(parts)), dtype=np.int64) for _ in range(2))
    source, target = (known[name].to_numpy() // width for name in ("source", "target"))
    np.add.at(calls, (source, target), known["calls"].to_numpy())
    np.add.at(sizes, (source, target), known["bytes"].to_numpy())
    return Matrix(parts, calls, sizes, int(table["calls"].sum() or 0) - int(known["calls"].sum() or 0))


def communicator_rows(profile: Profile) -> tuple[list[Row], int]:
    """The communicators that were used, those with most time first, and how many were not."""
    table = profile.table("communicators").sort("time", "calls", "name", descending=[True, True, False])
    used = table.filter(pl.col("calls") > 0)
    return used.to_dicts(), table.height - used.height


def crossing_rows(profile: Profile) -> list[Row]:
    """What crossed from node to node, the most bytes first."""
    return profile.table("crossing").filter(pl.col("calls") > 0).to_dicts()


def crossing_total(rows: list[Row]) -> tuple[int, str]:
    """(bytes, how well they are known: "", "at least " or "about ")."""
    known = {row["known"] for row in rows}
    return sum(row["crossed"] for row in rows), "about " if "estimate" in known else "at least " if "at least" in known else ""


def busiest(profile: Profile, most: int) -> list[tuple[str, str, str]]:
    """(library, communicator, function) with invocations over time, those with most waiting first."""
    keys = ("library", "communicator", "function")
    table = profile.table("invocations").group_by(*keys).agg(pl.col("waiting").sum(), many=pl.len() >= _FEW)
    table = table.filter(pl.col("many")) if table["many"].any() else table
    ordered = table.sort("waiting", "communicator", "function", descending=[True, False, False])
    return [(row[0], row[1], row[2]) for row in ordered.head(most).iter_rows()]


def late_rows(profile: Profile, most: int = 8) -> list[Row]:
    """At most `most` rows of the table `late`: those that the others have been waiting for since some time first, then by how
    long they did."""
    table = profile.table("late").filter(pl.col("last") > 0).with_columns(blamed=pl.col("since").is_not_null())
    order = table.sort("blamed", "caused", "last", "rank", descending=[True, True, True, False], nulls_last=True)
    return order.drop("blamed").head(most).to_dicts()


def often_late(profile: Profile) -> list[Row]:
    """Of late_rows() those waited for since some time, or half again as long as if all were waited for alike; at least the first,
    if it comes behind the others."""
    keys = ("library", "communicator", "function")
    late = profile.table("late").group_by(*keys).agg(pl.col("caused").sum(), pl.len())
    mean = {row[:3]: (row[3] or 0.0) / row[4] for row in late.iter_rows()}

    def stands_out(row: Row) -> bool:
        much = row["last"] >= 4 and (row["caused"] or 0.0) > 1.5 * mean[row["library"], row["communicator"], row["function"]]
        return row["since"] is not None or much

    rows = late_rows(profile, 1000)
    return [row for row in rows if stands_out(row)] or [row for row in rows[:1] if (row["behind"] or 0.0) > 0]


def raster_communicators(profile: Profile) -> list[str]:
    """The communicators that have an arrival raster, those with most waiting first."""
    there = set(profile.table("raster")["communicator"].unique().to_list())
    waiting = profile.table("invocations").group_by("communicator").agg(pl.col("waiting").sum())
    known = dict(waiting.iter_rows())
    return sorted(there, key=lambda name: (-known.get(name, 0.0), name))
