"""Summaries, comparisons and findings as text: tables in colour on a terminal, plain columns elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

from stretto.analysis import LIFE, Arrival, Collective, Summary
from stretto.comparison import Comparison, TurnsTaken
from stretto.machine import Finding
from stretto.wording import clean, rank_list

_NOT_JOINED = "not joined"  # a reason why MPI has done a call
_ARRIVALS = 3  # communicators whose arrivals are told
_OTHER_FUNCTIONS = 5  # of those that are no collectives of the table, the slowest are named


def say(message: str, file: TextIO | None = None) -> None:
    """One line, whatever names it holds."""
    print(f"stretto: {clean(message)}", file=file or sys.stderr, flush=True)


def seconds(value: float) -> str:
    for limit, factor, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.2f} s"


def size(value: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def percent(share: float) -> str:
    """100 % and 0 % mean all and none."""
    shown = f"{share * 100:.0f}"
    if shown == "100" and share < 1:
        return "99.9 %"
    return "<1 %" if shown == "0" and share > 0 else f"{shown} %"


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], file: TextIO) -> None:
    """Columns: the first and the last aligned left, the numbers between them right."""
    if file.isatty():
        from rich.console import Console
        from rich.table import Table

        drawn = Table(header_style="bold")
        for number, header in enumerate(headers):
            drawn.add_column(header, justify="right" if 0 < number < len(headers) - 1 else "left", overflow="fold")
        for row in rows:
            drawn.add_row(*(cell.replace("[", "\\[") for cell in row))
        Console(file=file).print(drawn)
        return
    widths = [max(len(row[column]) for row in [headers, *rows]) for column in range(len(headers))]
    for row in [headers, *rows]:
        cells = [
            cell.rjust(width) if 0 < number < len(headers) - 1 else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  " + "  ".join(cells).rstrip(), file=file)


def counted(names: Mapping[str, int]) -> str:
    """`name 12, other 3`, the most frequent first."""
    return ", ".join(f"{name} {calls}" for name, calls in sorted(names.items(), key=lambda item: (-item[1], item[0])))


def print_summary(summary: Summary, wall_seconds: float, exit_code: int | None, accelerate: str, file: TextIO) -> None:
    """What `stretto run` ends with. `exit_code` None: the job runs."""
    ranks = len(summary.ranks)
    if ranks:
        one = "1 rank" if ranks == 1 else f"{ranks} ranks"
        calls = "MPI" if exit_code == 0 else "calls of MPI that have returned"
        share = f", {percent(summary.mpi_share)} of the ranks' time in {calls}" if summary.mpi_share else ""
        ended = f", exit code {exit_code}" if exit_code else ""
        say(f"{one}, {seconds(wall_seconds)}{ended}{share}; {_verdict(summary, accelerate)}", file)
    if summary.collectives:
        headers = ("collective", "calls", "accelerated", "bytes", "time", "per rank", "algorithms; left to MPI")
        table(headers, [_collective_row(name, one, ranks, accelerate) for name, one in _by_time(summary)], file)
    others = _other_functions(summary)
    if others:
        say(f"other calls: {others}", file)
    for arrival in summary.arrivals[:_ARRIVALS]:
        say(_arrival(arrival, ranks), file)
    for line in warnings(summary, exit_code):
        say(line, file)


def _arrival(one: Arrival, world: int) -> str:
    last = one.usual_last
    ranks = f" ({'rank' if len(one.ranks) == 1 else 'ranks'} {rank_list(one.ranks)})".replace("–", "-")
    who = f", {world} ranks" if len(one.ranks) == world else ranks
    compared = "1 collective" if one.calls == 1 else f"{one.calls} collectives"
    return (
        f"arrival{who}, {compared} compared: {seconds(one.mean_spread)} from first to last "
        f"(at most {seconds(one.most_spread)}); rank {last} last in {percent(one.last[last])}, "
        f"the same rank twice running in {percent(one.repeated)}"
    )


def _by_time(summary: Summary) -> list[tuple[str, Collective]]:
    return sorted(summary.collectives.items(), key=lambda item: -item[1].seconds)


def _collective_row(name: str, one: Collective, ranks: int, accelerate: str) -> tuple[str, ...]:
    off = "acceleration is off" if accelerate == "off" else _NOT_JOINED
    declines = {off if reason == _NOT_JOINED else reason: calls for reason, calls in one.declines.items()}
    notes = counted(one.algorithms)
    if declines:
        notes += ("; " if notes else "") + f"MPI: {counted(declines)}"
    times = (seconds(one.seconds), seconds(one.seconds / max(ranks, 1)))
    sum_bytes = "-" if one.declines.get(_NOT_JOINED) == one.calls else size(one.bytes)  # nothing but the call is looked at then
    return (name, str(one.calls), percent(one.accelerated_share), sum_bytes, *times, notes)


def _verdict(summary: Summary, accelerate: str) -> str:
    if accelerate == "off":
        return "observed only (--accelerate off)"
    working = sum(rank.accelerating for rank in summary.ranks)
    if working == len(summary.ranks):
        if not summary.collectives:
            return "ready, but no collective that Stretto takes over was called"
        used = any(one.accelerated_calls for one in summary.collectives.values())
        return "accelerated" if used else "ready, but no collective was accelerated"
    reasons = dict.fromkeys(rank.verdict or "no reason given" for rank in summary.ranks if not rank.accelerating)
    who = "not accelerated" if not working else f"{working} of {len(summary.ranks)} ranks accelerated"
    return f"{who}: {'; '.join(reasons)}"


def _other_functions(summary: Summary) -> str:
    shown = {name.lower() for name in summary.collectives}
    rest = [
        (name, one)
        for name, one in summary.functions.items()
        if name.removeprefix("MPI_").removesuffix("_c").lower() not in shown and not LIFE.fullmatch(name)
    ]
    rest.sort(key=lambda item: -item[1].seconds)
    parts = [f"{name} {one.calls} ({seconds(one.seconds)})" for name, one in rest[:_OTHER_FUNCTIONS]]
    return ", ".join(parts) + (f", {len(rest) - _OTHER_FUNCTIONS} more" if len(rest) > _OTHER_FUNCTIONS else "")


def _unfinished(summary: Summary, ended: bool) -> list[str]:
    """Ranks that did not come to MPI_Finalize; and those that did where few have, as after an exception that Python ends with."""
    behind = [rank for rank in summary.ranks if not rank.finished]
    lines = [f"rank {rank.rank} (pid {rank.pid}) did not finish" for rank in behind] if ended else []
    few = [rank.rank for rank in summary.ranks if rank.finished]
    if 0 < len(few) < len(behind) and "MPI_Abort" not in summary.functions:
        some = ", ".join(map(str, few[:8])) + (", ..." if len(few) > 8 else "")
        who = f"rank {some} has" if len(few) == 1 else f"ranks {some} have"
        lines.append(f"{who} come to MPI_Finalize, the others {'had' if ended else 'have'} not")
    return lines


def warnings(summary: Summary, exit_code: int | None) -> list[str]:
    """What the user should know of records that are missing or incomplete, one line each. `exit_code` None: the job runs."""
    ended = exit_code is not None
    lines = _unfinished(summary, ended)
    if summary.processes and not summary.calls:
        one = "1 process" if summary.processes == 1 else f"{summary.processes} processes"
        failed = "they may have failed in MPI_Init; else the program does not use MPI, or is linked with it statically"
        lines.append(f"no MPI call was seen, though Stretto was in {one}: {'; '.join(summary.refusals) or failed}")
    elif ended and not summary.calls:
        cause = (
            "the program may not have started, or not use MPI"
            if exit_code
            else "the program may not use MPI (PyTorch's gloo and NCCL do not, even under mpirun; gloo's programs do by "
            "python -m stretto.torch, see docs/pytorch.md), or another one than its launcher's; or the launcher does not pass "
            "LD_PRELOAD on, or the ranks run in a container without Stretto's libraries"
        )
        lines.append(f"no MPI call was seen (exit code {exit_code}): {cause} (--dry-run shows the command)")
    if summary.missing and summary.calls:
        some = ", ".join(map(str, summary.missing[:8])) + (", ..." if len(summary.missing) > 8 else "")
        lines.append(
            f"{len(summary.missing)} of {summary.world_size} ranks left no record (rank {some}): "
            "on another node, or without Stretto's preload; the numbers above leave them out"
        )
    return lines + [f"record skipped or incomplete: {problem}" for problem in summary.problems]


def print_comparison(comparison: Comparison, file: TextIO) -> None:
    """What `stretto compare` ends with: each run, then the medians and their ratios."""
    headers = ("run", "wall", "in MPI, per rank", "in collectives, per rank", "")
    rows: list[tuple[str, ...]] = [
        (
            str(number + 1),
            seconds(one.wall_seconds),
            seconds(one.mpi_seconds),
            seconds(one.collective_seconds),
            one.mode,
        )
        for number, one in enumerate(comparison.runs)
    ]
    for mode in ("plain", "accelerated"):
        middle = comparison.medians[mode]
        rows.append(("median", *(seconds(middle[key]) for key in comparison.KEYS), mode))
    rows.append(("ratio", *(_ratio(comparison.ratios[key]) for key in comparison.KEYS), "accelerated / plain"))
    table(headers, rows, file)


def print_turns(taken: TurnsTaken, file: TextIO) -> None:
    """What `stretto compare --one-run` ends with: a turn of each side, and their ratios with standard errors."""
    headers = (f"{4 * taken.fours} turns of {taken.calls} collectives", "time of one", "of it in MPI calls")
    rows = [(name, seconds(taken.seconds[name]), seconds(taken.mpi_seconds[name])) for name in ("plain", "accelerated")]
    ratios = (f"{ratio.value:.3f} ± {ratio.error:.3f}" for ratio in (taken.wall, taken.mpi))
    table(headers, [*rows, ("accelerated / plain", *ratios)], file)
    unequal = taken.held_unequal_work
    if taken.bytes and taken.per_byte and (unequal or taken.may_have_held_unequal_work):
        held, spent = (f"{ratio.value:.2f} ± {ratio.error:.2f}" for ratio in (taken.bytes, taken.per_byte))
        so = "as many collectives are not as much work here" if unequal else "too few turns hold most of them to compare turns"
        say(f"Stretto's turns held {held} times the bytes of MPI's: {so}; time per byte, accelerated / plain: {spent}")


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def print_findings(findings: Sequence[Finding], file: TextIO) -> None:
    """What `stretto doctor` prints: one line per finding, and below a missing one what to do about it."""
    marks = {"ok": "ok", "note": "--", "missing": "!!"}
    width = max((len(one.name) for one in findings), default=0)
    for one in findings:
        print(f"{marks[one.state]}  {one.name.ljust(width)}  {one.value}", file=file)
        if one.advice:
            print(f"    {''.ljust(width)}  -> {one.advice}", file=file)


def print_settings(rows: Sequence[tuple[str, str, str, str]], file: TextIO) -> None:
    table(
        ("setting", "default", "values", "meaning"),
        [(name, default or "-", kind, help) for name, kind, default, help in rows],
        file,
    )
