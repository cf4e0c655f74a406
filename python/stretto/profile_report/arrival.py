"""The section on arrival: how far apart the ranks come to collectives, who comes last, what that costs."""

from __future__ import annotations

import polars as pl

from stretto.profile_model import Profile
from stretto.profile_report import arrival_figures, views
from stretto.profile_report.markup import Html, Section, bar, details, figure, folded_table, heading, note, number, text
from stretto.profile_report.sections import absent, missing
from stretto.wording import count, duration, factor, percent, plural

_CLASSES = {"small": 0, "medium": 1, "large": 2, "none": 3}
_SCOPES = (
    ("cluster", "Cluster-wide", "after Alizadeh 2022, Table 1"),
    ("node", "Node-wide: among the ranks of one node", "after Alizadeh 2022, Table 2"),
)
_DEFINITIONS = (
    "Ω is the time from the first rank's arrival to the last one's, Δ the mean distance from the mean arrival; α is what such a "
    "message takes in this run once all ranks have come, in the fastest tenth of its invocations. Waiting is what ranks spend "
    "before the last one comes, transfer what follows."
)


def arrival(profile: Profile) -> Section:
    rows = profile.table("arrival").to_dicts()
    if not rows:
        return absent(profile, "arrival", "Arrival", "arrival")
    parts: list[str] = [note(_DEFINITIONS), _waiting(profile)]
    for scope, title, after in _SCOPES:
        mine = [row for row in rows if row["scope"] == scope]
        same = scope == "node" and views.node_count(profile) == 1
        content = _table(mine) if mine else note("Unavailable for this run.", "none")
        parts.append(heading(title, after) + (note("All ranks are on one node: the same as above.") if same else content))
    if any(row["in_noise"] for row in rows):
        parts.append(note(noise_note(profile)))
    parts += [_late(profile), _over_time(profile), _raster(profile)]
    return Section("arrival", "Arrival", "".join(parts))


def noise_note(profile: Profile) -> str:
    error = views.totals(profile).clock_error
    bound = f" (here {duration(3 * error)})" if error else ""
    return (
        f"≈ Set in grey: Ω is below three times the error of the clocks{bound}; such figures say only that the ranks came close "
        "together."
    )


def _order(row: views.Row) -> tuple[object, ...]:
    return (row["library"], row["function"], row["communicator"], _CLASSES.get(row["size_class"], 9))


def _table(rows: list[views.Row]) -> Html:
    rows = sorted(rows, key=_order)
    columns = (
        text("function"),
        text("communicator"),
        text("messages"),
        number("invocations", "used here, of all"),
        number("α"),
        number("mean Ω"),
        number("median Ω"),
        number("largest Ω"),
        number("mean Δ"),
        number("Ω/α"),
        number("Δ/α"),
    )
    shown = []
    for row in rows:
        mark = "≈ " if row["in_noise"] else ""
        of = row["of_invocations"]
        shown.append(
            (
                row["function"],
                row["communicator"],
                "no data" if row["size_class"] == "none" else row["size_class"],
                count(row["invocations"]) + ("" if of in (None, row["invocations"]) else f" of {count(of)}"),
                duration(row["alpha"]),
                mark + duration(row["omega_mean"]),
                *(duration(row[name]) for name in ("omega_median", "omega_most", "delta_mean")),
                factor(row["omega_factor"]),
                factor(row["delta_factor"]),
            )
        )
    marks = [bool(row["in_noise"]) for row in rows]
    return folded_table(columns, shown, 20, marks=marks)


def waiting_rows(profile: Profile, most: int) -> list[views.Row]:
    """Seconds of waiting and transfer per function and communicator, cluster-wide; the longest first."""
    found: dict[tuple[str, str, str], views.Row] = {}
    for row in profile.table("arrival").to_dicts():
        if row["scope"] != "cluster":
            continue
        key = (row["library"], row["function"], row["communicator"])
        empty = {"function": row["function"], "communicator": row["communicator"], "waiting": 0.0, "transfer": 0.0}
        sums = found.setdefault(key, empty)
        sums["waiting"] += max(row["waiting"] or 0.0, 0.0)
        sums["transfer"] += max(row["transfer"] or 0.0, 0.0)
    return sorted(found.values(), key=lambda row: -(row["waiting"] + row["transfer"]))[:most]


def _waiting(profile: Profile) -> Html:
    rows = [row for row in waiting_rows(profile, 10) if row["waiting"] + row["transfer"] > 0]
    if not rows:
        return Html("")
    caption = "What the ranks' time in collectives goes to; summed over the ranks."
    return figure(arrival_figures.waiting(rows, views.run_time(profile)), caption)


def _late(profile: Profile) -> str:
    title = heading("Who is waited for")
    rows = views.late_rows(profile, 128)
    if not rows:
        return title + missing(profile, "late")
    columns = (
        number("rank"),
        text("function"),
        text("communicator"),
        number("last in", "invocations in which this rank came last"),
        number("behind the others", "on average, behind the mean arrival of the other ranks"),
        number("the others waited", "summed over them, in the invocations in which this rank came last"),
        text("since"),
    )
    most = max((row["caused"] or 0.0) for row in rows) or 1.0
    shown = [
        (
            row["rank"],
            row["function"],
            row["communicator"],
            f"{count(row['last'])} of {count(row['invocations'])} ({percent(row['share'])})",
            duration(row["behind"]),
            bar((row["caused"] or 0.0) / most, duration(row["caused"]), style="late"),
            since(row["since"]),
        )
        for row in rows
    ]
    caption = "Being last by a hair happens to every rank: what counts is how long the others waited for it."
    return title + folded_table(columns, shown, 6, caption)


def since(value: float | None) -> str:
    return "–" if value is None else "the start" if value == 0 else f"{duration(value)} into the run"


def _over_time(profile: Profile) -> str:
    title = heading("Invocations over time", "after Alizadeh 2022, Fig. 4")
    busiest = views.busiest(profile, 10)
    if not busiest:
        return title + missing(profile, "invocations")
    drawn = [arrival_figures.over_time(profile, *one) for one in busiest]
    first = figure("".join(drawn[:2]), _TIME_CAPTION)
    rest = [drawing for drawing in drawn[2:] if drawing]
    return title + first + (details(plural(len(rest), "more collective"), *(figure(one, "") for one in rest)) if rest else "")


_TIME_CAPTION = (
    "Each invocation has a dot for its worst-case imbalance and one for the mean, over α. Below, which rank came last: a "
    "line of dots is a rank that is late for long. Long runs are thinned, the worst of each stretch kept."
)


def _raster(profile: Profile) -> str:
    title = heading("Arrival raster")
    names = views.raster_communicators(profile)
    if not names:
        return title + missing(profile, "raster")
    first, *rest = (figure(arrival_figures.raster(profile, name), _raster_caption(profile, name)) for name in names[:9])
    return title + first + (details(plural(len(rest), "more communicator"), *rest) if rest else "")


def _raster_caption(profile: Profile, communicator: str) -> str:
    mine = profile.table("raster").filter(pl.col("communicator") == communicator)
    shown = mine["rank"].n_unique()
    members = profile.table("communicators").filter(pl.col("name") == communicator)["size"].max()
    some = f" {shown} of its {members} ranks are shown." if isinstance(members, int) and shown < members else ""
    return f"Time after the first rank of each invocation; darker is later.{some}"
