"""Rules of the verdict on what a job or its traces lack: ranks that did not end, calls that did not return, lost events, clocks
that differ too much."""

from __future__ import annotations

import math

import polars as pl

from stretto.profile import say
from stretto.profile.verdict import NOTABLE, Said, View
from stretto.profile_model import Finding, Severity

CROWDED = 0.5  # of the invocations in which two figures of three are below the clock's error


def damaged(seen: View) -> list[Said]:
    """Files that are there and cannot be read, or not wholly: every other figure lacks what they held."""
    return _damaged_traces(seen) + _damaged_facts(seen)


def _damaged_traces(seen: View) -> list[Said]:
    harmed = seen.job.damage
    if not harmed:
        return []
    text = f"{'; '.join(one.why for one in harmed[:3])}{'; ...' if len(harmed) > 3 else ''}."
    if seen.profile.world_size > 1:
        text += " Who is late is told only of calls that the files of all ranks hold."
    advice = "Copy the folder again from where the job ran, or run the job again."
    return [Said(math.inf, Finding(Severity.bad, _damage_title(seen), text, advice, "ranks"))]


def _damage_title(seen: View) -> str:
    harmed, unread = seen.job.damage, seen.job.unread
    ranks = sorted({one.rank for one in harmed if one.rank >= 0} | set(unread))
    one = len(harmed) == 1
    lacking = f"figures are without {'' if any(one.whole for one in harmed) else 'part of '}{'it' if one else 'them'}"
    if not ranks:
        return f"{say.count(len(harmed), 'file')} cannot be read: {lacking}"
    if len(ranks) > len(harmed):
        return f"{say.count(len(harmed), 'file')} of {say.ranks(ranks)} cannot be read, the others are not there: {lacking}"
    return f"The {'file' if one else 'files'} of {say.ranks(ranks)} {'is' if one else 'are'} damaged: {lacking}"


def _damaged_facts(seen: View) -> list[Said]:
    if not seen.job.facts_lost:
        return []
    text = f"The command, and when and how the job ended, are unknown: {seen.job.facts_lost}."
    return [Said(math.inf, Finding(Severity.notable, "job.json cannot be read", text, "", "ranks"))]


def stopped(seen: View) -> list[Said]:
    """Ranks that did not end, and where they are or were."""
    states: dict[str, list[int]] = {}
    for rank, state in seen.table("ranks").filter(pl.col("library") == "MPI").select("rank", "state").iter_rows():
        if state != "finished":
            states.setdefault(_without_time(state), []).append(rank)
    if seen.job.missing:
        states["left no trace"] = seen.job.missing
    if not states:
        return []
    number = sum(map(len, states.values()))
    running = any(process.now for process in seen.job.processes)
    parts = [
        f"{say.ranks(ranks)} {'is' if len(ranks) == 1 else 'are'} {where}"
        if running and where.startswith("in ")
        else f"{say.ranks(ranks)}: {where}"
        for where, ranks in sorted(states.items(), key=lambda item: len(item[1]))
    ]
    title = f"{say.count(number, 'rank')} of {seen.profile.world_size} {'had not finished' if running else 'did not finish'}"
    advice = "Look first at the few ranks that are elsewhere than the rest." if len(states) > 1 and number > 2 else ""
    return [
        Said(math.inf, Finding(Severity.notable if running else Severity.bad, title, "; ".join(parts) + ".", advice, "ranks"))
    ]


def end_unknown(seen: View) -> list[Said]:
    """What the times of ranks without an end are, where nothing tells how the job ended."""
    if not seen.job.end_unknown:
        return []
    text = "`stretto profile` was killed, or still runs on another machine. Times are up to the last that each rank recorded."
    return [Said(math.inf, Finding(Severity.notable, "How and when the job ended is not known", text, "", "ranks"))]


def _without_time(state: str) -> str:
    return state.split(" since ")[0]


def unreturned(seen: View) -> list[Said]:
    """Time in calls that the job did not get out of."""
    total = sum(seconds for _, _, seconds in seen.open)
    if seen.share(total) < NOTABLE:
        return []
    running = any(process.now for process in seen.job.processes)
    ranks: dict[str, dict[int, float]] = {}
    for function, rank, seconds in seen.open:
        ranks.setdefault(function, {})[rank] = max(seconds, ranks.get(function, {}).get(rank, 0.0))
    parts = [
        f"{say.ranks(sorted(found))} in {function} for {say.seconds(max(found.values()))}"
        for function, found in sorted(ranks.items(), key=lambda item: -sum(item[1].values()))
    ]
    title = f"{say.percent(seen.share(total))} of the run time is in calls that {'have' if running else 'had'} not returned"
    until = "" if running else " at least" if seen.job.end_unknown else ", up to the job's end if they lived so long"
    text = f"{'; '.join(parts)}{until}. What is said of waiting and transfer is of those that returned."
    advice = "`stretto dump` tells which ranks each of them waits for, and what these do instead."
    return [Said(total, Finding(seen.severity(total), title, text, advice, "ranks"))]


LOST = (
    ("dropped_events", "event", "found no room in the files: counts and sizes are whole, arrivals and requests are not"),
    ("dropped_cells", "call", "found no room in the sums: counts and bytes are too small by them"),
    ("unnamed", "object", "(communicators, datatypes, operations) found no room in the tables of names"),
)


def lost(seen: View) -> list[Said]:
    """What the traces do not hold."""
    headers = [process.trace.header for process in seen.job.processes]
    numbers = [(sum(getattr(one, name) for one in headers), what, why) for name, what, why in LOST]
    parts = [f"{say.count(number, what)} {why}" for number, what, why in numbers if number]
    if not parts:
        return []
    advice = "Give the traces more room (--limit MiB) or record fewer iterations (--iterations A:B)." if numbers[0][0] else ""
    return [Said(0.0, Finding(Severity.notable, "Not everything was recorded", "; ".join(parts) + ".", advice, "ranks"))]


def clock_noise(seen: View) -> list[Said]:
    """Arrival figures that the clocks cannot tell."""
    rows = seen.table("arrival").filter(pl.col("scope") == "cluster")
    known, noisy = int(rows["invocations"].sum() or 0), int(rows.filter(pl.col("in_noise"))["invocations"].sum() or 0)
    if not known or noisy < CROWDED * known:
        return []
    errors = [process.line.error for process in seen.job.processes if math.isfinite(process.line.error)]
    bound = f"up to {say.seconds(max(errors))}" if errors and max(errors) > 0 else "an unknown amount"
    title = f"The clocks are too far apart to tell who is late in {say.percent(noisy / known)} of the collectives"
    text = f"They may differ by {bound}; figures below three times that are marked. Figures within a node are not affected."
    return [Said(0.0, Finding(Severity.notable, title, text, "", "arrival"))]
