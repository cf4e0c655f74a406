"""`stretto top`: a running job's rates, sizes and late ranks, drawn anew again and again."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from stretto import live
from stretto.profile import rates
from stretto.profile_report.console import heading, line, table, write
from stretto.wording import bin_name, count, duration, percent, rank_list, size

if TYPE_CHECKING:
    from rich.console import Console

_MOST_ROWS = 12
_CLEAR = "\x1b[H\x1b[2J"


def watch(folder: Path, file: TextIO, every: float, times: int) -> None:
    """Until the job ends, `times` pictures are drawn (0: no limit), or Ctrl-C."""
    waited: Counter[int] = Counter()  # looks in which the others waited for this rank
    before, pictures = rates.look(folder), 0
    try:
        while True:
            time.sleep(every)
            after, found = rates.look(folder), live.look(folder)
            waited.update({rank for one in found.gatherings for rank in one.absent})
            pictures += 1
            _picture(folder, file, rates.between(before, after), found, (waited, pictures))
            before = after
            if not found.running or pictures == times:
                return
    except KeyboardInterrupt:
        return


def _picture(folder: Path, file: TextIO, found: rates.Rates, now: live.Live, looks: tuple[Counter[int], int]) -> None:
    def draw(console: Console) -> None:
        state = "running" if now.running else "not running any more"
        line(console, f"{folder}: {state}; the last {duration(found.seconds)}", "bold")
        _functions(console, found)
        _ranks(console, found)
        _late(console, now, looks)

    if file.isatty():
        file.write(_CLEAR)
    write(file, draw)


def _functions(console: Console, found: rates.Rates) -> None:
    heading(console, "Calls", "of all ranks; share of their time")
    if not found.functions.height:
        return line(console, "no call has ended meanwhile")
    rows = [
        (function, bin_name(upper), f"{count(round(calls))}/s", f"{size(bytes_)}/s", percent(share), duration(each))
        for _, function, upper, calls, bytes_, share, each in found.functions.head(_MOST_ROWS).iter_rows()
    ]
    table(console, ("function", "size", "calls", "bytes", "time", "a call"), rows, left=(0, 1))
    return None


def _ranks(console: Console, found: rates.Rates) -> None:
    """Those that spend least time in communication are those that the others wait for."""
    if found.ranks.height < 2:
        return
    heading(console, "Ranks", "the least in communication are usually waited for")
    ordered = found.ranks.sort("share", "rank")
    chosen = ordered if ordered.height <= 6 else ordered.head(3).vstack(ordered.tail(3))
    rows = [(rank, f"{count(round(calls))}/s", percent(share)) for rank, calls, share in chosen.iter_rows()]
    table(console, ("rank", "calls", "in communication"), rows, left=())


def _late(console: Console, now: live.Live, looks: tuple[Counter[int], int]) -> None:
    waited, pictures = looks
    heading(console, "Late")
    for one in [one for one in now.gatherings if one.absent][:3]:
        text = f"{one.function} number {one.sequence} on {one.communicator} waits for {rank_list(one.absent)}"
        line(console, f"{text} for {duration(one.since)}")
    if not waited:
        line(console, "in no look so far was a rank waited for")
    for rank, times in waited.most_common(4):
        line(console, f"rank {rank}: waited for in {times} of {pictures} looks")
