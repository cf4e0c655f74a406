"""The sections of the HTML page on time, ranks, queues, overlap, Stretto itself and the data. See also traffic.py, arrival.py."""

from __future__ import annotations

from collections.abc import Sequence

from stretto.profile_model import Profile
from stretto.profile_report import figures, views
from stretto.profile_report.markup import (
    Html,
    Section,
    bar,
    details,
    figure,
    folded_table,
    heading,
    note,
    number,
    paragraph,
    table,
    text,
)
from stretto.wording import NONE, bin_name, clean, count, digits, duration, percent, plural, size, span

_NOTHING = "nothing of this kind was seen in the run"


def missing(profile: Profile, name: str) -> Html:
    """Why a table has no rows."""
    reason = profile.unavailable.get(name)
    return note(f"Unavailable: {reason}." if reason else f"None: {_NOTHING}.", "none")


def absent(profile: Profile, name: str, title: str, table: str) -> Section:
    """A section whose table has no rows."""
    return Section(name, title, missing(profile, table), True)


def without_data(found: Sequence[Section]) -> Section:
    """The sections that have nothing to show, in one."""
    parts = (f'<h3 id="{one.name}">{one.title}</h3>{one.content}' for one in found)
    return Section("without-data", "Without data", "".join(parts))


def time(profile: Profile) -> Section:
    rows = views.function_rows(profile)
    if not rows:
        return absent(profile, "time", "Calls and time", "functions")
    parts = [_function_table(rows), figure(figures.rank_shares(profile, rows), _RANK_CAPTION, "after Temuçin 2021, Fig. 3.6")]
    return Section("time", "Calls and time", "".join(parts))


_RANK_CAPTION = (
    "A rank that spends little time in collectives while the others spend much is the one that they wait for. "
    "Beyond 64 ranks a row is the mean of a block of ranks."
)


def _function_table(rows: Sequence[views.Row]) -> Html:
    most = max((row["most_share"] or row["share"] or 0) for row in rows) or 1.0
    most_calls = max(row["calls"] for row in rows) or 1
    shown = [
        (
            row["library"],
            row["function"],
            bar(row["calls"] / most_calls, count(row["calls"])),
            span(row["least_calls"], row["most_calls"]),
            duration(row["time"]),
            bar(
                None if row["share"] is None else row["share"] / most,
                percent(row["share"]),
                None if row["least_share"] is None else row["least_share"] / most,
                None if row["most_share"] is None else row["most_share"] / most,
            ),
            size(row["sent"]),
            size(row["received"]),
        )
        for row in rows
    ]
    columns = (
        text("library"),
        text("function"),
        number("calls"),
        number("per rank", "least and most over the ranks"),
        number("time", "summed over ranks"),
        number("share of run time", "mean over the ranks; the line spans the least and the most"),
        number("sent"),
        number("received"),
    )
    caption = Html(
        "Functions by library, the longest first. Time and bytes are summed over ranks; the thin line in a bar of shares spans "
        'the ranks. <span class="after">after Temuçin 2021, Fig. 3.1–3.6, Table 3.1</span>'
    )
    return folded_table(columns, shown, 14, caption)


def ranks(profile: Profile) -> Section:
    rows = profile.table("ranks").sort("rank", "library").to_dicts()
    if not rows:
        return absent(profile, "ranks", "Ranks", "ranks")
    columns = (
        number("rank"),
        text("library"),
        text("host"),
        number("pid"),
        text("state"),
        number("run time"),
        number("in the library"),
        number("share"),
        number("calls"),
        number("events"),
        number("lost"),
        number("threads"),
        number("clock error", "bound of this rank's clock against rank 0's"),
    )
    shown = [
        (
            row["rank"],
            row["library"],
            row["host"],
            row["pid"],
            row["state"],
            duration(row["run_time"]),
            duration(row["library_time"]),
            percent(row["library_time"] / row["run_time"] if row["run_time"] else None),
            count(row["calls"]),
            count(row["events"]),
            count(row["lost"]),
            row["threads"],
            _clock_error(row["clock_error"]),
        )
        for row in rows
    ]
    odd = [line for line, row in zip(shown, rows, strict=True) if row["state"] != "finished" or row["lost"]]
    if len(shown) <= 16:
        return Section("ranks", "Ranks", table(columns, shown))
    first = table(columns, odd[:32], "Ranks that did not finish, or whose events were dropped") if odd else ""
    return Section("ranks", "Ranks", first + details(f"All {len(shown)} ranks", table(columns, shown[:2048])))


def _clock_error(value: float | None) -> str:
    return "same clock" if value == 0 else f"± {duration(value)}" if value is not None else NONE


def queues(profile: Profile) -> Section:
    rows = profile.table("queues").to_dicts()
    if not rows:
        return absent(profile, "queues", "Message queues", "queues")
    shown = [
        (row["variable"], row["unit"], *(_plain(row[name]) for name in ("least", "mean", "most")), count(row["samples"]))
        for row in rows
    ]
    columns = (text("variable"), text("unit"), number("least"), number("mean"), number("most"), number("samples"))
    caption = Html('MPI_T variables, sampled at calls; over all ranks. <span class="after">after Temuçin 2021, Fig. 3.12</span>')
    why = profile.unavailable.get("queues")
    return Section("queues", "Message queues", table(columns, shown, caption) + (note(f"Unavailable: {why}.") if why else ""))


def _plain(value: float | None) -> str:
    return NONE if value is None else count(round(value)) if abs(value) >= 1000 else digits(value)


def overlap(profile: Profile) -> Section:
    return Section("overlap", "Overlap", _threads(profile) + _requests(profile))


def _threads(profile: Profile) -> str:
    title = heading("Threads in the library at once", "after Temuçin 2021, section 3.2")
    rows = profile.table("overlap").to_dicts()
    if not rows:
        return title + missing(profile, "overlap")
    told = [row for row in rows if row["calls_overlapped"]]
    if not told:
        return title + paragraph("Never were two threads of a process inside the library at the same time.")
    whole = views.run_time(profile)
    seconds = sum(row["overlapped"] or 0 for row in told)
    calls = sum(row["calls_overlapped"] for row in told)
    return title + paragraph(
        f"At most {max(row['most'] for row in told)} threads of a rank at once; {count(calls)} calls overlapped another one, for "
        f"{duration(seconds)} summed over {plural(len(told), 'rank')} ({percent(seconds / whole if whole else None)})."
    )


def _requests(profile: Profile) -> str:
    title = heading("Requests")
    rows = profile.table("requests").sort("in_flight", descending=True, nulls_last=True).to_dicts()
    if not rows:
        return title + missing(profile, "requests")
    columns = (
        text("started by"),
        number("completed"),
        number("left open"),
        number("in flight", "from start to completion, summed"),
        number("waited for", "in the completing calls"),
        number("hidden", "of the time in flight, not spent in a completing call"),
    )
    shown = [
        (
            row["function"],
            count(row["completed"]),
            count(row["open"]),
            duration(row["in_flight"]),
            duration(row["waited"]),
            bar(row["hidden_share"], percent(row["hidden_share"])),
        )
        for row in rows
    ]
    said = "Hidden is the part of a request's time in flight that the program did not spend waiting for it."
    return title + table(columns, shown, said)


def stretto(profile: Profile) -> Section:
    rows = profile.table("takeover").sort("time", descending=True).to_dicts()
    content: list[str] = [missing(profile, "takeover")]
    if rows:
        columns = (
            text("function"),
            number("bytes per call"),
            text("Stretto"),
            number("calls"),
            number("time"),
            number("expected gain"),
        )
        shown = [
            (
                row["function"],
                bin_name(row["upper"]),
                row["outcome"],
                count(row["calls"]),
                duration(row["time"]),
                duration(row["expected_gain"]),
            )
            for row in rows
        ]
        caption = "What Stretto did, would do under stretto run, or leaves to the library; summed over ranks."
        content = [folded_table(columns, shown, 16, caption)]
    return Section("stretto", "Stretto's part", "".join(content) + _overhead(profile))


def _overhead(profile: Profile) -> str:
    title = heading("Stretto's own cost")
    cost = profile.overhead
    if cost is None:
        return title + note("Unavailable: the cost of a call was not measured in this run.", "none")
    return title + paragraph(
        f"{count(cost.calls)} calls at {digits(cost.nanoseconds_per_call)} ns, measured in the run: {duration(cost.seconds)} "
        f"summed over ranks, {percent(cost.share)} of the run time."
    )


def problems(profile: Profile) -> Section:
    said = [clean(line) for line in profile.problems]
    if not said:
        return Section("problems", "Data problems", note("None: every file was read wholly.", "none"))
    items = "".join(f"<li>{note(line)}</li>" for line in said[:200])
    more = note(f"and {len(said) - 200} more") if len(said) > 200 else ""
    return Section("problems", "Data problems", f"<ul>{items}</ul>{more}")
