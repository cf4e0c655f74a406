"""Two runs side by side: `stretto report A B`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from stretto.profile.comparison import Comparison, Figure
from stretto.profile_report.console import heading, line, table, write
from stretto.wording import NONE, bin_name, count, duration, factor, rank_list

if TYPE_CHECKING:
    from rich.console import Console


def print_comparison(found: Comparison, file: TextIO) -> None:
    def draw(console: Console) -> None:
        line(console, f"{found.first.folder} and {found.second.folder}", "bold")
        for text in found.differences:
            line(console, f"note: {text}")
        heading(console, "In all", "times of a rank, on an average; ratio: second / first")
        table(console, ("", "first", "second", "ratio"), [_figure(one) for one in found.figures])
        heading(console, "Functions", "what differs most first")
        table(console, ("function", "", "calls", "calls", "time", "time", "ratio"), _functions(found), left=(0, 1))
        heading(console, "Message sizes", "seconds of one call; what differs most in all first")
        table(console, ("function", "size", "calls", "calls", "a call", "a call", "ratio"), _sizes(found), left=(0, 1))
        heading(console, "Ranks that the others wait for")
        for name, ranks in zip(("first", "second"), found.late, strict=True):
            line(console, f"{name}: {rank_list(ranks) if ranks else 'none'}")
        console.print()

    write(file, draw)


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return NONE
    if unit == "s":
        return duration(value)
    return f"{value:.2g}" if 0 < value < 1 else count(value)  # of a rank, on an average


def _figure(one: Figure) -> tuple[str, str, str, str]:
    return one.name, _shown(one.first, one.unit), _shown(one.second, one.unit), factor(one.ratio)


def _ratio(first: float | None, second: float | None) -> str:
    return factor(second / first if first and second is not None else None)


def _functions(found: Comparison) -> list[tuple[str, ...]]:
    return [
        (function, library, _shown(calls, ""), _shown(calls2, ""), _shown(time, "s"), _shown(time2, "s"), _ratio(time, time2))
        for library, function, calls, time, calls2, time2 in found.functions.iter_rows()
    ]


def _sizes(found: Comparison) -> list[tuple[str, ...]]:
    return [
        (
            function,
            bin_name(upper),
            _shown(calls, ""),
            _shown(calls2, ""),
            _shown(each, "s"),
            _shown(each2, "s"),
            _ratio(each, each2),
        )
        for _, function, upper, calls, each, calls2, each2 in found.sizes.iter_rows()
    ]


def as_json(found: Comparison) -> dict[str, Any]:
    """Columns of the second run end in _second."""
    return {
        "schema": 1,
        "first": found.first.folder,
        "second": found.second.folder,
        "differences": found.differences,
        "figures": [
            {"name": one.name, "unit": one.unit, "first": one.first, "second": one.second, "ratio": one.ratio}
            for one in found.figures
        ],
        "functions": _rows(found.functions.to_dicts()),
        "sizes": _rows(found.sizes.to_dicts()),
        "late": {"first": found.late[0], "second": found.late[1]},
    }


def _rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name.replace("_right", "_second"): value for name, value in row.items()} for row in rows]
