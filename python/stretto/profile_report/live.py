"""What `stretto dump` prints first: where the ranks are, and whom they wait for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from stretto.profile_report.console import heading, line, table, write
from stretto.wording import duration, plural, rank_list

if TYPE_CHECKING:
    from rich.console import Console

    from stretto.live import Gathering, Live, Place

_MOST_ROWS = 40


def print_live(found: Live, folder: str, file: TextIO) -> None:
    def draw(console: Console) -> None:
        state = "not running here" if found.end_unknown else "not running any more"
        state = "running" if found.running else f"{state}: where its ranks were last"
        line(console, f"{folder}: {state}", "bold")
        _gatherings(console, found)
        _places(console, found)
        if found.unseen:
            line(console, f"ranks without a trace: {rank_list(found.unseen)}")
        console.print()

    write(file, draw)


def _gatherings(console: Console, found: Live) -> None:
    short = [one for one in found.gatherings if one.absent]
    for one in short[:8]:
        heading(console, f"{one.function} number {one.sequence} on {one.communicator} waits for {_ranks(one.absent)}")
        line(
            console, f"{_ranks(one.inside)} {'is' if len(one.inside) == 1 else 'are'} in it, the first for {duration(one.since)}"
        )
        for rank in one.absent[:8]:
            line(console, f"  rank {rank}: {found.elsewhere.get(rank, 'unknown')}")
        if len(one.absent) > 8:
            line(console, f"  and {plural(len(one.absent) - 8, 'more rank')}")
    if found.gatherings and not short:
        heading(console, "Every collective that a rank is in has been reached by all its members")
    unknown = [one for one in found.gatherings if one.size and not one.absent and _short_of(one)]
    if unknown:
        line(console, "(in some, a member has left already: it needs nothing from those that are in it)", "dim")


def _short_of(one: Gathering) -> bool:
    return len(one.inside) < one.size


def _ranks(ranks: Iterable[int]) -> str:
    several = list(ranks)
    return f"rank {several[0]}" if len(several) == 1 else f"ranks {rank_list(several)}"


def _places(console: Console, found: Live) -> None:
    heading(console, "Where the ranks are")
    if not found.places:
        return line(console, "no rank is in a call of its communication library")
    groups: dict[tuple[str, str, str, str], list[Place]] = {}
    for place in found.places:
        peer = f"rank {place.peer}" if place.peer >= 0 else "any" if place.peer == -2 else ""
        number = str(place.sequence) if place.collective else ""
        key = (place.function, place.communicator, number, peer)
        groups.setdefault(key, []).append(place)
    ordered = sorted(groups.items(), key=lambda item: -max(place.since for place in item[1]))
    rows = [
        (rank_list(place.rank for place in places), function, communicator, number, peer, duration(max(p.since for p in places)))
        for (function, communicator, number, peer), places in ordered[:_MOST_ROWS]
    ]
    table(console, ("ranks", "in", "on", "number", "root or partner", "for"), rows, left=(0, 1, 2, 4))
    if len(ordered) > _MOST_ROWS:
        line(console, f"and {plural(len(ordered) - _MOST_ROWS, 'more place')}", "dim")
    return None
