"""The result of a series as a Markdown page and a JSON document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import goals
import machine
import tables
from kept import Kept
from runs import Json, Place, Run, distances, is_placed


def versions_of(runs: list[Run]) -> dict[str, str]:
    found = {run.peer: run.lines[0]["library"].split(" for ")[0].split(", package")[0] for run in runs}
    return {peer: " ".join(text.replace("Version:", "").replace("Library ", "").split()) for peer, text in found.items()}


def _settings_used(cells: list[tables.Cell], peers: dict[str, str]) -> str:
    """How often each peer's settings were its best."""
    lines = []
    for peer, title in peers.items():
        counts: dict[str, int] = {}
        for cell in cells:
            if peer in cell.peers:
                name = cell.peers[peer].settings
                counts[name] = counts.get(name, 0) + 1
        lines.append(f"- {title}: " + ", ".join(f"{name} ({count} points)" for name, count in counts.items()))
    return "\n".join(lines) + "\n"


METHOD = """\
Times are microseconds: medians over {repeats} repeat(s), each the median over its samples; **bold** is the best peer. Inputs are
rewritten before every call. *Calls from a common start*: all ranks leave a barrier of the benchmark's own together; the
time is from the last entry to the last exit (with more ranks than cores: from the first entry). *Back to back*: time per
call of a batch with the root moving on, rewriting the inputs included. "/ best peer" is Stretto's time divided by the best
peer's at its best settings, each from runs that call nothing else, so each with the caches to itself; "/ PMPI in run" is from
runs that call MPI_X and PMPI_X in turn, where each finds the caches as the other left them. *Cores N ns apart*: how
long a cache line takes between them, measured at every point; on a virtual machine it changes, and only equals are compared.
*Arena*: large blocks of memory come from an allocator of Stretto's, and peers read them in place. Sizes are those of the vector,
or of one block where ranks exchange blocks (gatherv and its like: of the mean block; every other one is thrice its neighbour).
*Bare calls* (of the first four collectives, up to 1 KiB) are their plainest form, stores into lines that the others watch, and no
library (`bench/collective/bare.h`); how they compare with the best peer stands with the goals.
The *floor* is the time in which all ranks at once copy what each obtains of the call (STREAM copy of as many bytes, measured
in the same run); shares of it are medians over the repeats.
"""


def page_head(title: str, kept: Kept, method: str) -> list[str]:
    """How a page begins: where it was measured, how, and by which commands."""
    commands = dict.fromkeys(kept.commands)
    lines = [f"# {title}", "", *(f"- {key}: {value}" for key, value in machine.describe().items())]
    return [*lines, *(f"- command: `{command}`" for command in commands), "", method]


def page_notes(notes: list[str]) -> list[str]:
    return ["## What failed or does not count", "", *[f"- {line}" for line in notes], ""] if notes else []


def document_of(kept: Kept, verdicts: list[goals.Verdict], notes: list[str], **results: Any) -> Json:
    return {
        "machine": machine.describe(),
        "command": "; ".join(dict.fromkeys(kept.commands)),
        "versions": versions_of(kept.runs),
        "repeats": kept.repeats(),
        "goals": [verdict.as_json() for verdict in verdicts],
        **results,
        "notes": notes,
    }


def make(kept: Kept) -> tuple[str, Json]:
    """The Markdown page and the JSON document."""
    apart = distances(kept.runs)
    cells = tables.merge(kept.runs, apart)
    verdicts = goals.judge(cells, kept.declining) if any(run.stretto for run in kept.runs) else []
    versions = versions_of(kept.runs)
    notes = [*kept.failures, *cut_off(kept.runs), *_moved(kept.runs, apart)]
    title = "Collectives on one node" if verdicts else "The peers' collectives on one node"
    page = page_head(title, kept, METHOD.format(repeats=kept.repeats()))
    if verdicts:
        page += ["## Goals", "", goals.markdown(verdicts)]
        page += [
            "## By collective",
            "",
            "Ratio to the best peer: geometric mean over the sizes (and the largest).",
            "",
        ]
        page += [tables.means(cells, versions), "## Where a peer is faster, the worst first", "", tables.lost(cells, versions)]
    page += ["## Times", "", tables.markdown(cells, versions)]
    if kept.declining:
        page += ["## What loaded but declining costs", "", declining_table(kept.declining)]
    page += ["## Settings that were best", "", _settings_used(cells, versions), *page_notes(notes)]
    found = [cell.as_json() for cell in cells]
    return "\n".join(page), document_of(kept, verdicts, notes, cells=found, declining=kept.declining)


def cut_off(runs: list[Run]) -> list[str]:
    """A line for each run that took too long."""
    return [
        f"{run.peer} ({run.config}){' + ' + run.way if run.way else ''}, {run.task}: cut off after {run.cut_after():.0f} s, "
        f"{len(run.points())} points measured"
        for run in runs
        if run.cut_after()
    ]


def _moved(runs: list[Run], apart: dict[Place, int]) -> list[str]:
    places = [(r, p) for r, run in enumerate(runs) for p, point in enumerate(run.points()) if is_placed(point)]
    moved = sum(place not in apart for place in places)
    return [f"{moved} of {len(places)} points left out: the cores moved meanwhile"] if moved else []


def declining_table(declining: list[Json]) -> str:
    """10th percentiles over blocks of calls. Where ranks meet, the difference drowns in their waiting on a busy machine."""
    rows = [
        f"| {d['host']} | {d['how']} | {d['call']} | {d['mpi_ns']:.0f} | {d['pmpi_ns']:.0f} | {d['extra_ns']:.0f} |"
        for d in declining
    ]
    return "\n".join(["| MPI | ranks | call | MPI_X ns | PMPI_X ns | extra ns |", "|---|---|---|---:|---:|---:|", *rows]) + "\n"


def _compact(document: Json) -> str:
    """JSON with a line per cell, so that two results can be compared line by line."""
    parts = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            body = "[\n  " + ",\n  ".join(json.dumps(item) for item in value) + "\n ]"
        else:
            body = json.dumps(value)
        parts.append(f' "{key}": {body}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def write(folder: Path, stem: str, page: str, document: Json) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{stem}.md", folder / f"{stem}.json"]
    paths[0].write_text(page)
    paths[1].write_text(_compact(document))
    return paths
