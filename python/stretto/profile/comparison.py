"""What differs between two profiled runs: headline figures, functions, message sizes, and who is late."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from stretto.profile.sums import is_kernel
from stretto.profile_model import Profile

LARGEST = 15  # functions and sizes that are told, those whose time differs most first


@dataclass(frozen=True, slots=True)
class Figure:
    """`first` and `second` in `unit` ("s", "share", "count"); None: unknown."""

    name: str
    unit: str
    first: float | None
    second: float | None

    @property
    def ratio(self) -> float | None:
        return self.second / self.first if self.first and self.second is not None else None


@dataclass(slots=True)
class Comparison:
    """Seconds are means over the ranks of each run, so that runs with different numbers of ranks can be compared."""

    first: Profile
    second: Profile
    figures: list[Figure] = field(default_factory=list)
    functions: pl.DataFrame = field(default_factory=pl.DataFrame)  # library, function, and of each run calls and time of a rank
    sizes: pl.DataFrame = field(default_factory=pl.DataFrame)  # function, upper, and of each run calls and mean seconds of one
    late: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))  # ranks that cause waiting
    differences: list[str] = field(default_factory=list)  # that make figures hard to compare


def compare(first: Profile, second: Profile) -> Comparison:
    found = Comparison(first, second)
    found.figures = _figures(first, second)
    found.functions = _side_by_side(_functions(first), _functions(second), ["library", "function"], "time")
    found.sizes = _side_by_side(_sizes(first), _sizes(second), ["library", "function", "upper"], "total").drop(
        "total", "total_right"
    )
    found.late = (_late(first), _late(second))
    found.differences = _differences(first, second)
    return found


def _ranks(profile: Profile) -> int:
    return max(1, profile.table("ranks")["rank"].n_unique())


def _run_time(profile: Profile) -> float:
    ranks = profile.table("ranks").group_by("rank").agg(pl.col("run_time").max())
    return float(ranks["run_time"].sum() or 0.0) / _ranks(profile)


def _figures(first: Profile, second: Profile) -> list[Figure]:
    def arrival(profile: Profile, column: str) -> float | None:
        rows = profile.table("arrival").filter(pl.col("scope") == "cluster")
        return float(rows[column].sum()) / _ranks(profile) if rows.height else None

    def inside(profile: Profile) -> float:
        rows = profile.table("functions").filter(~pl.col("function").str.contains("^MPI_(Init(_thread)?|Finalize)$"))
        rows = rows.filter(~is_kernel())
        return float(rows["time"].sum() or 0.0) / _ranks(profile)

    def both(name: str, unit: str, one: float | None, other: float | None) -> Figure:
        return Figure(name, unit, one, other)

    called = [profile.table("functions").filter(~is_kernel()) for profile in (first, second)]
    calls = [float(rows["calls"].sum() or 0) / _ranks(profile) for rows, profile in zip(called, (first, second), strict=True)]
    return [
        both("wall time", "s", first.wall_seconds or None, second.wall_seconds or None),
        both("run time of a rank", "s", _run_time(first), _run_time(second)),
        both("in communication", "s", inside(first), inside(second)),
        both("waiting for late ranks", "s", arrival(first, "waiting"), arrival(second, "waiting")),
        both("transfer in collectives", "s", arrival(first, "transfer"), arrival(second, "transfer")),
        both("calls of a rank", "count", *calls),
    ]


def _functions(profile: Profile) -> pl.DataFrame:
    ranks = _ranks(profile)
    rows = _one_name(profile.table("functions")).group_by("library", "function")
    return rows.agg(pl.col("calls").sum() / ranks, pl.col("time").sum() / ranks)


def _one_name(rows: pl.DataFrame) -> pl.DataFrame:
    """MPI_Allreduce_c under MPI_Allreduce: which of them a program calls changes with its bindings."""
    return rows.with_columns(pl.col("function").str.strip_suffix("_c"))


def _sizes(profile: Profile) -> pl.DataFrame:
    ranks = _ranks(profile)
    rows = (
        _one_name(profile.table("sizes"))
        .group_by("library", "function", "upper")
        .agg(pl.col("calls").sum(), pl.col("time").sum())
    )
    rows = rows.filter(pl.col("calls") > 0)
    return rows.select(
        "library",
        "function",
        "upper",
        (pl.col("calls") / ranks).alias("calls"),
        (pl.col("time") / pl.col("calls")).alias("each"),
        (pl.col("time") / ranks).alias("total"),
    )


def _side_by_side(one: pl.DataFrame, other: pl.DataFrame, keys: list[str], by: str) -> pl.DataFrame:
    """Columns of the second run end in _right; rows of which a run has none are null there. What differs most by `by` first."""
    joined = one.join(other, on=keys, how="full", coalesce=True)
    change = (pl.col(f"{by}_right").fill_null(0.0) - pl.col(by).fill_null(0.0)).abs()
    return joined.sort([change, *(pl.col(key) for key in keys)], descending=[True, *(False for _ in keys)]).head(LARGEST)


def _late(profile: Profile) -> list[int]:
    return sorted(profile.table("late").filter(pl.col("since").is_not_null())["rank"].unique().to_list())


def _differences(first: Profile, second: Profile) -> list[str]:
    told = []
    for what, one, other in (
        ("commands", first.command, second.command),
        ("numbers of ranks", str(first.world_size), str(second.world_size)),
        ("hosts", _set(first, "host"), _set(second, "host")),
        ("libraries", _set(first, "version"), _set(second, "version")),
        ("recording", first.mode, second.mode),
    ):
        if one != other:
            told.append(f"different {what}: {one or 'unknown'} and {other or 'unknown'}")
    for name, profile in (("first", first), ("second", second)):
        if not profile.complete:
            told.append(f"the {name} run did not end as it should, or its files are not whole")
    return told


def _set(profile: Profile, column: str) -> str:
    return ", ".join(sorted({one for one in profile.table("ranks")[column].to_list() if one}))
