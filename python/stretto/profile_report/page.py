"""The HTML page: one file that opens offline, without a script, and carries its figures as drawings."""

from __future__ import annotations

import re
from importlib import resources

from stretto import __version__
from stretto.profile_model import Finding, Profile, Severity
from stretto.profile_report import sections, traffic, views
from stretto.profile_report.arrival import arrival
from stretto.profile_report.markup import Section
from stretto.profile_report.svg import safe
from stretto.wording import NONE, duration, percent

# Nothing may be loaded and nothing may run, whatever a job's names hold.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_SOURCES = (
    "Temuçin 2021: Y. H. Temuçin, High-Performance Interconnect-Aware MPI Communication for Deep Learning Workloads, Queen's "
    "University, 2021. Alizadeh 2022: P. Alizadeh, Y. H. Temuçin, A. Sojoodi, A. Afsahi, Efficient Process Arrival Pattern Aware "
    "Collective Communication for Deep Learning, 2022."
)
_SEVERITY = {Severity.bad: "costs much", Severity.notable: "notable", Severity.fine: "fine"}
_PLACES = {
    **{name: "time" for name in ("functions",)},
    **{name: "arrival" for name in ("arrival", "late", "invocations", "raster")},
    **{name: "overlap" for name in ("overlap", "requests")},
    **{name: name for name in ("ranks", "sizes", "partners", "crossing", "communicators", "queues")},
    "buckets": "sizes",
    "takeover": "stretto",
}
_TITLES = {
    "time": "Calls and time",
    "arrival": "Arrival",
    "overlap": "Overlap",
    "ranks": "Ranks",
    "sizes": "Message sizes",
    "partners": "Partners",
    "crossing": "Between nodes",
    "communicators": "Communicators",
    "queues": "Message queues",
    "stretto": "Stretto's part",
}
_PATTERNS = (
    '<svg width="0" height="0" aria-hidden="true" style="position:absolute"><defs>'
    '<pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="5" height="5" class="hb"/><rect width="2" height="5" class="hf"/></pattern>'
    '<pattern id="points" width="5" height="5" patternUnits="userSpaceOnUse">'
    '<rect width="5" height="5" class="pb"/><circle cx="2.5" cy="2.5" r="1.2" class="pf"/></pattern>'
    '<pattern id="stripes" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">'
    '<rect width="6" height="6" class="wb"/><rect width="2.5" height="6" class="wf"/></pattern>'
    "</defs></svg>"
)


def html_page(profile: Profile) -> str:
    """The whole page. Well under 8 MB whatever the profile: tables are cut, and figures have a bounded number of marks."""
    found = [
        sections.time(profile),
        arrival(profile),
        traffic.sizes(profile),
        traffic.partners(profile),
        traffic.crossing(profile),
        traffic.communicators(profile),
        sections.overlap(profile),
        sections.queues(profile),
        sections.stretto(profile),
        sections.ranks(profile),
        sections.problems(profile),
    ]
    bare = [one for one in found if one.empty]
    found = [one for one in found if not one.empty] + ([sections.without_data(bare)] if bare else [])
    style = resources.files("stretto.profile_report").joinpath("page.css").read_text(encoding="utf-8")
    body = _header(profile) + _verdict(profile) + _numbers(profile) + "".join(one.render() for one in found)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f"<title>{safe(_title(profile))}</title><style>{style}</style></head><body>{_PATTERNS}{_navigation(found)}"
        f"<main>{body}{_footer(profile)}</main></body></html>\n"
    )


def _title(profile: Profile) -> str:
    return f"Stretto profile of {profile.command or profile.folder}"[:120]


def _navigation(found: list[Section]) -> str:
    links = "".join(f'<li><a href="#{one.name}">{safe(one.title)}</a></li>' for one in found)
    return f'<nav aria-label="Sections"><p class="brand">Stretto</p><ul><li><a href="#verdict">Verdict</a></li>{links}</ul></nav>'


def subtitle(profile: Profile) -> list[str]:
    """What ran: ranks, nodes, libraries, start, length, mode."""
    table = profile.table("ranks")
    nodes = views.node_count(profile) if table.height else 0
    ranks = profile.world_size or table["rank"].n_unique()
    parts = [f"{ranks} rank" + ("s" if ranks != 1 else "") + (f" on {nodes} node" + ("s" if nodes != 1 else "") if nodes else "")]
    parts += sorted({_library(name) for name in table["version"].unique().to_list() if name})[:3]
    if profile.started:
        parts.append(profile.started.replace("T", " ")[:19])
    if profile.wall_seconds > 0:
        parts.append(f"ran {duration(profile.wall_seconds)}")
    return [*parts, _recorded(profile)]


def _recorded(profile: Profile) -> str:
    if profile.mode != "full":
        return "sums, with a sample of the calls"
    if profile.single_calls >= profile.calls:
        return "every call recorded"
    return f"{profile.single_calls:,} of {profile.calls:,} calls recorded one by one"


def _library(version: str) -> str:
    """The name and number that a library's version begins with, without how and when it was built."""
    return " ".join(version.split(",")[0].replace("Version:", "").split())[:60]


def _header(profile: Profile) -> str:
    facts = "".join(f"<li>{safe(fact)}</li>" for fact in subtitle(profile))
    said = "Incomplete: some ranks did not finish, or their data are not there or damaged; see Verdict, Ranks and Data problems."
    incomplete = "" if profile.complete else f'<p class="warning">{said}</p>'
    return (
        '<header><p class="kicker">Communication profile</p>'
        f'<h1>{safe(profile.command or profile.folder)}</h1><ul class="facts">{facts}</ul>{incomplete}</header>'
    )


def _verdict(profile: Profile) -> str:
    items = "".join(_finding(one) for one in profile.verdict)
    content = f'<ol class="verdict">{items}</ol>' if items else '<p class="none">No verdict: too little was recorded.</p>'
    return f'<section id="verdict" aria-labelledby="verdict-h"><h2 id="verdict-h">Verdict</h2>{content}</section>'


def _finding(one: Finding) -> str:
    place = _PLACES.get(one.figure)
    link = f' <a class="see" href="#{place}">see {safe(_TITLES[place])}</a>' if place else ""
    advice = f'<p class="advice">{_with_code(one.advice)}</p>' if one.advice else ""
    return (
        f'<li class="{one.severity.value}"><p class="severity">{_SEVERITY[one.severity]}</p><div><h3>{safe(one.title)}</h3>'
        f"<p>{safe(one.text)}{link}</p>{advice}</div></li>"
    )


def _with_code(said: str) -> str:
    """`Commands` set as such."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", safe(said))


def key_numbers(profile: Profile) -> list[tuple[str, str, str]]:
    """(value, what, of what): the figures on top of both pages."""
    sums = views.totals(profile)
    cost = profile.overhead
    error = sums.clock_error
    clock = NONE if error is None else "one clock" if error == 0 else f"± {duration(error)}"
    return [
        (percent(sums.share(sums.communication)), "in communication", f"{duration(sums.communication)} of all ranks' run time"),
        (percent(sums.share(sums.waiting)), "waiting for late ranks", _seconds_or_none(sums.waiting)),
        (percent(sums.share(sums.transfer)), "transfer in collectives", _seconds_or_none(sums.transfer)),
        (clock, "clock error", "all ranks read the same" if error == 0 else "the largest, against rank 0"),
        (percent(cost.share) if cost else NONE, "Stretto's own cost", duration(cost.seconds) if cost else "not measured"),
    ]


def _seconds_or_none(value: float | None) -> str:
    return "unavailable" if value is None else duration(value)


def _numbers(profile: Profile) -> str:
    items = "".join(
        f"<div><dt>{safe(what)}</dt><dd><b>{safe(value)}</b> <span>{safe(rest)}</span></dd></div>"
        for value, what, rest in key_numbers(profile)
    )
    return f'<dl class="numbers">{items}</dl>'


def _footer(profile: Profile) -> str:
    return (
        f"<footer><p>{safe(_SOURCES)}</p><p>Job {safe(profile.job or NONE)} in {safe(profile.folder)}. "
        f"Written by Stretto {safe(__version__)}.</p></footer>"
    )
