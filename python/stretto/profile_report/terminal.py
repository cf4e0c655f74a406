"""A profile as a page on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

import polars as pl

from stretto.profile_model import Finding, Profile, Severity
from stretto.profile_report import views
from stretto.profile_report.arrival import noise_note, waiting_rows
from stretto.profile_report.console import heading, line, table, write
from stretto.profile_report.page import key_numbers, subtitle
from stretto.profile_report.svg import short
from stretto.wording import (
    NONE,
    clean,
    count,
    digits,
    duration,
    factor,
    percent,
    plural,
    rank_list,
    short_count,
    size,
    span,
)

if TYPE_CHECKING:
    from rich.console import Console

_MARKS = {Severity.bad: ("■", "bold red"), Severity.notable: ("▲", "yellow"), Severity.fine: ("●", "green")}


def print_page(profile: Profile, file: TextIO) -> None:
    """The whole page."""
    write(file, lambda console: _page(console, profile))


def print_short(profile: Profile, file: TextIO, more: str = "") -> None:
    """The verdict and where to look; `more`: the command that shows the rest."""

    def draw(console: Console) -> None:
        _title(console, profile)
        _verdict(console, profile)
        if more:
            line(console, more, "dim")

    write(file, draw)


def _bar(share: float | None, width: int) -> str:
    return "" if share is None else "█" * max(round(min(share, 1.0) * width), 1 if share > 0 else 0)


def _page(console: Console, profile: Profile) -> None:
    _title(console, profile)
    _verdict(console, profile)
    _numbers(console, profile)
    for part in (_functions, _arrival, _late, _sizes, _partners, _crossing, _communicators, _rest, _ranks, _problems):
        part(console, profile)


def _title(console: Console, profile: Profile) -> None:
    line(console, profile.command or profile.folder, "bold")
    line(console, " · ".join(subtitle(profile)), "dim")


def _verdict(console: Console, profile: Profile) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console.print()
    if not profile.verdict:
        line(console, "No verdict: too little was recorded.")
    for one in profile.verdict:
        mark, style = _MARKS[one.severity]
        console.print(Text.assemble((f"{mark} ", style), (clean(one.title), "bold" if one.severity is not Severity.fine else "")))
        for text, text_style in _explained(one):
            console.print(Padding(Text(clean(text), style=text_style), (0, 0, 0, 2)))


def _explained(one: Finding) -> list[tuple[str, str]]:
    found = [(one.text, "")] if one.text else []
    return found + ([(f"→ {one.advice}", "dim")] if one.advice else [])


def _numbers(console: Console, profile: Profile) -> None:
    console.print()
    table(console, ("", "", ""), [(what, value, rest) for value, what, rest in key_numbers(profile)], left=(0, 2))


def _functions(console: Console, profile: Profile) -> None:
    rows = sorted(views.function_rows(profile), key=lambda row: (-row["spent"], -row["time"]))
    heading(console, "Calls and time")
    if not rows:
        return _missing(console, profile, "functions")
    most = max((row["share"] or 0 for row in rows), default=0) or 1.0
    shown = [
        (
            row["function"],
            row["library"],
            count(row["calls"]),
            duration(row["time"]),
            percent(row["share"]),
            span(row["least_share"], row["most_share"], percent),
            _bar((row["share"] or 0) / most, 20),
        )
        for row in rows[:9]
    ]
    table(console, ("function", "", "calls", "time", "of run time", "over ranks", ""), shown, left=(0, 1, 6))
    if len(rows) > 9:
        rest = duration(sum(row["time"] for row in rows[9:] if row["share"] is not None))
        return line(console, f"{plural(len(rows) - 9, 'more function')}, {rest} of the run time", "dim")
    return None


def _missing(console: Console, profile: Profile, name: str) -> None:
    reason = profile.unavailable.get(name)
    line(console, f"unavailable: {reason}" if reason else "none seen", "dim")


def _arrival(console: Console, profile: Profile) -> None:
    heading(console, "Arrival", "Ω: first to last, Δ: mean distance, α: a transfer")
    rows = profile.table("arrival").to_dicts()
    if not rows:
        return _missing(console, profile, "arrival")
    rows.sort(key=lambda row: (row["scope"] != "cluster", -(row["waiting"] or 0)))
    rows = [row for row in rows if row["scope"] == "cluster"][:6] + [
        row for row in rows if row["scope"] == "node" and views.node_count(profile) > 1
    ][:4]
    columns = ("function", "communicator", "of", "size", "calls", "mean Ω", "most Ω", "mean Δ", "Ω/α", "Δ/α")
    shown = [
        (
            row["function"],
            short(row["communicator"], 14),
            "all" if row["scope"] == "cluster" else row["scope"],
            row["size_class"],
            _few_digits(row["invocations"], 10_000),
            ("≈" if row["in_noise"] else "") + duration(row["omega_mean"]),
            duration(row["omega_most"]),
            duration(row["delta_mean"]),
            factor(row["omega_factor"]),
            factor(row["delta_factor"]),
        )
        for row in rows
    ]
    table(console, columns, shown, dim=[bool(row["in_noise"]) for row in rows], left=(0, 1, 2, 3))
    if any(row["in_noise"] for row in rows):
        line(console, noise_note(profile).replace("Set in grey: ", ""), "dim")
    whole = views.run_time(profile) or 1.0
    for row in waiting_rows(profile, 3):
        name = f"{row['function']} on {short(row['communicator'], 32)}"
        shares = f"{percent(row['waiting'] / whole)} of the run time waiting, {percent(row['transfer'] / whole)} transfer"
        line(console, f"{name}: {shares}")
    return None


def _late(console: Console, profile: Profile) -> None:
    rows = views.often_late(profile)
    if not rows:
        return
    heading(console, "Who is waited for", "last of the ranks; behind the others' mean; what all others waited; since when")
    shown = [
        (
            row["rank"],
            row["function"],
            short(row["communicator"], 15),
            f"{percent(row['share'])} of {_few_digits(row['invocations'])}",
            duration(row["behind"]),
            duration(row["caused"]),
            NONE if row["since"] is None else "start" if row["since"] == 0 else duration(row["since"]),
        )
        for row in rows[:6]
    ]
    columns = ("rank", "function", "communicator", "last in", "behind", "waited", "since")
    table(console, columns, shown, left=(1, 2, 6))


def _few_digits(calls: int, most: int = 1_000_000) -> str:
    return count(calls) if calls < most else short_count(calls)


def _sizes(console: Console, profile: Profile) -> None:
    heading(console, "Message sizes")
    rows = views.size_rows(profile, 8)
    if not rows:
        return _missing(console, profile, "sizes")
    most = max(row["time"] or 0 for row in rows) or 1.0
    shown = [
        (
            *views.size_words(row),
            _few_digits(row["calls"]),
            duration(row["time"]),
            _bar((row["time"] or 0) / most, 5),
        )
        for row in rows
    ]
    return table(
        console, ("function", "bytes", "datatype", "op", "in", "use", "calls", "time", ""), shown, left=(0, 2, 3, 4, 5, 8)
    )


def _partners(console: Console, profile: Profile) -> None:
    heading(console, "Point-to-point partners")
    partners = profile.table("partners")
    if not partners.height:
        return _missing(console, profile, "partners")
    known = (pl.col("source") >= 0) & (pl.col("target") >= 0) & (pl.col("source") != pl.col("target"))
    pairs = partners.filter(known).group_by("source", "target")
    summed = pairs.agg(pl.col("calls", "bytes").sum()).sort("bytes", "source", "target", descending=[True, False, False])
    ranks = max(profile.world_size, 1)
    line(
        console,
        f"{plural(summed.height, 'pair')} of ranks ({percent(summed.height / (ranks * max(ranks - 1, 1)))} of all), "
        f"{count(int(summed['calls'].sum()))} calls, {size(float(summed['bytes'].sum()))}; most bytes: "
        + ", ".join(f"{row[0]} to {row[1]} {size(row[3])}" for row in summed.head(3).iter_rows()),
    )
    return None


def _crossing(console: Console, profile: Profile) -> None:
    rows = views.crossing_rows(profile)
    if not rows:
        return
    heading(console, "Between nodes")
    shown = [
        (row["what"], short(row["communicator"] or NONE, 22), row["carried"] or NONE, size(row["crossed"]), row["known"])
        for row in rows[:5]
    ]
    table(console, ("what", "communicator", "carried by", "crossed nodes", "known"), shown, left=(0, 1, 2, 4))
    total, how = views.crossing_total(rows)
    line(console, f"{how}{size(total)} crossed from node to node in all", "dim")


def _communicators(console: Console, profile: Profile) -> None:
    rows, unused = views.communicator_rows(profile)
    if not rows:
        return
    heading(console, "Communicators")
    shown = [
        (
            short(row["name"] or "unnamed", 36),
            row["size"],
            row["nodes"] or NONE,
            count(row["calls"]),
            size(row["bytes"]),
            duration(row["time"]),
        )
        for row in rows[:5]
    ]
    table(console, ("name", "ranks", "nodes", "calls", "bytes", "time"), shown)
    if len(rows) > 5 or unused:
        more = [plural(len(rows) - 5, "more communicator")] if len(rows) > 5 else []
        line(console, " and ".join([*more, *([f"{count(unused)} that no call was made on"] if unused else [])]), "dim")


def _rest(console: Console, profile: Profile) -> None:
    """Overlap, requests, queues, Stretto: a line each."""
    heading(console, "Overlap, requests, queues, Stretto")
    lines = _overlap(profile) + _requests(profile) + _queues(profile) + _takeover(profile)
    cost = profile.overhead
    if cost:
        each = f"{count(cost.calls)} calls at {digits(cost.nanoseconds_per_call)} ns"
        lines.append(f"Stretto's own cost: {each}, {percent(cost.share)} of the run time")
    for text in lines:
        line(console, text)


def _overlap(profile: Profile) -> list[str]:
    rows = [row for row in profile.table("overlap").to_dicts() if row["calls_overlapped"]]
    if not rows:
        return []
    seconds = duration(sum(row["overlapped"] or 0 for row in rows))
    return [f"threads: at most {max(row['most'] for row in rows)} of a rank in the library at once, for {seconds} over all ranks"]


def _requests(profile: Profile) -> list[str]:
    rows = profile.table("requests").sort("in_flight", descending=True, nulls_last=True).head(3).to_dicts()
    found = []
    for row in rows:
        parts = [f"{percent(row['hidden_share'])} of their time in flight hidden"] if row["completed"] else []
        parts += [f"{count(row['open'])} left open"] if row["open"] else []
        found.append(f"{row['function']}: {', '.join([plural(row['completed'], 'request'), *parts])}")
    return found


def _queues(profile: Profile) -> list[str]:
    rows = profile.table("queues").to_dicts()
    found = []
    for row in rows:
        values = [digits(row[name]) for name in ("least", "mean", "most") if row[name] is not None]
        found.append(f"{row['variable']}: {' / '.join(values)} {row['unit']} (least / mean / most over ranks)")
    reason = profile.unavailable.get("queues")
    return found or ([f"queue variables unavailable: {reason}"] if reason else [])


def _takeover(profile: Profile) -> list[str]:
    table = profile.table("takeover").group_by("outcome").agg(pl.col("calls", "time", "expected_gain").sum())
    parts = [
        f"{outcome}: {count(calls)} calls, {duration(time)}" + (f", expected gain {duration(gain)}" if gain else "")
        for outcome, calls, time, gain in table.sort("time", descending=True).head(4).iter_rows()
    ]
    return [f"Stretto, {part}" for part in parts]


def _ranks(console: Console, profile: Profile) -> None:
    """Only what is out of the ordinary: ranks that did not finish, by state."""
    table = profile.table("ranks").filter(pl.col("state") != "finished")
    if not table.height:
        return
    running = table.filter(pl.col("state").str.contains("^(in|running)")).height
    heading(console, "Ranks that had not finished" if running else "Ranks that did not finish")
    grouped = table.group_by("state").agg(pl.col("rank")).sort(pl.col("rank").list.min())
    for state, ranks in grouped.head(12).iter_rows():
        line(console, f"{'rank' if len(ranks) == 1 else 'ranks'} {rank_list(ranks)}: {state}")


def _problems(console: Console, profile: Profile) -> None:
    if not profile.problems:
        return
    heading(console, "Problems with the data")
    for text in profile.problems[:10]:
        line(console, text)
    if len(profile.problems) > 10:
        line(console, f"and {len(profile.problems) - 10} more; the HTML page lists them", "dim")
