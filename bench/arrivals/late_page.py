"""The result of a series under arrival patterns: a Markdown page, a JSON document, a picture."""

from __future__ import annotations

import goals
import late_goals
import machine
from kept import Kept
from lateness import BALANCED, PAPER, SHAPES, Cell, Key, Variant, merge
from report import cut_off, document_of, page_head, page_notes, versions_of
from runs import Json
from stretto.benchmark import pictures
from stretto.benchmark.model import Point, Results
from stretto.profile_report.svg import stacked
from tables import size_text

METHOD = """\
Microseconds *after the last arrival*: max exit - max arrival over the ranks; medians over {repeats} repeat(s), each the {of}
of its samples. Where ranks share cores a rank arrives when it was to enter the call: it is ready then. *last-delayed xN*: the
last rank comes N times the time of a balanced call of the MPI library's after the others; *random xN*: each rank comes at a
random moment of so long a time. No delay is longer than the limit in the command. "Stretto" and what is divided by the best peer,
the bound and the order of arrival is from runs that call nothing else, as are the peers, each at its best settings: each has the
caches to itself. "/ paper" and "/ balanced" are from runs in which Stretto, the paper's two algorithms (the faster of them) and
Stretto's balanced ones take turns. All kinds of runs take turns with one another. The *bound* is that of docs/arrival.md, with
this machine's time for a copy and an addition. Deterministic is the default, "by arrival" is STRETTO_ORDER=arrival.
*Cores N ns apart*: how long a cache line takes between them, measured at every point; on a virtual machine it changes, and
only equals are compared.
"""


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _row(cell: Cell, variant: Variant, titles: dict[str, str]) -> str:
    best = cell.best()
    columns = [cell.key.collective, size_text(cell.key.bytes), cell.key.pattern()]
    columns += [f"{_number(best[0])} ({titles.get(best[1], best[1])})" if best else "-"]
    columns += [_number(cell.time(variant, sides)) for sides in (PAPER, BALANCED)] + [_number(cell.time(variant.alone()))]
    columns += [_number(cell.over_peers(variant)), _number(cell.over_sides(variant, PAPER))]
    columns += [_number(cell.over_sides(variant, BALANCED)), _number(cell.over_bound(variant))]
    return "| " + " | ".join([*columns, _number(cell.over_arrival_order(variant))]) + " |"


def tables(cells: list[Cell], titles: dict[str, str]) -> str:
    head = ["collective", "size", "arrival", "best peer", "paper", "balanced", "Stretto"]
    head += ["/ best peer", "/ paper", "/ balanced", "/ bound", "/ by arrival"]
    rule = "|" + "|".join(["---", "---:", "---"] + ["---:"] * (len(head) - 3)) + "|"
    parts = []
    for variant in late_goals.variants(cells):
        for where, here in late_goals.places(cells, variant).items():
            rows = [_row(cell, variant, titles) for cell in here]
            title = f"### {where}, {late_goals.name(variant)}"
            parts.append("\n".join([title, "", "| " + " | ".join(head) + " |", rule, *rows]))
    return "\n\n".join(parts) + "\n"


def _missed(cells: list[Cell], most: int = 80) -> str:
    found = late_goals.missed(cells)
    if not found:
        return "Nowhere.\n"
    rows = [f"| {where} |" for _, where in found[:most]]
    more = f"\n{len(found) - most} more, by less.\n" if len(found) > most else ""
    return "\n".join(["| point | ranks | Stretto | goal | ratio |", "|---|---|---|---|---:|", *rows]) + "\n" + more


def training_table(training: dict[str, Json]) -> str:
    """`training`: late -> what examples/stragglers.py wrote."""
    rows = []
    for late, result in training.items():
        ranks = result["options"]["ranks"]
        for kind, one in result.items():
            if kind != "options":
                step, after = (f"{1e3 * one[key]:.2f}" for key in ("step_seconds", "after_seconds"))
                rows.append(f"| {late}, {ranks} ranks | {kind} | {step} | {after} | {one['after_share']:.0%} |")
    head = ["| late | | ms a step | after the last arrival | share |", "|---|---|---:|---:|---:|"]
    return "\n".join([*head, *rows]) + "\n"


def make(kept: Kept, of: str = "median_us") -> tuple[str, Json]:
    """The Markdown page and the JSON document. `of`: lateness.Cell.of."""
    cells = merge(kept.runs, of)
    verdicts, titles = late_goals.judge(cells), versions_of(kept.runs)
    notes = [*kept.failures, *cut_off(kept.runs)]
    method = METHOD.format(repeats=kept.repeats(), of="median" if of == "median_us" else "10th percentile")
    page = page_head("Collectives to which ranks come apart, on one node", kept, method)
    page += ["## Goals", "", goals.markdown(verdicts), "## Where a goal is missed, the worst first", "", _missed(cells)]
    page += ["## Times", "", tables(cells, titles)]
    if kept.others:
        page += ["## Training with ranks that come late", "", "examples/stragglers.py.", "", training_table(kept.others)]
    page += page_notes(notes)
    found = [cell.as_json() for cell in cells]
    return "\n".join(page), document_of(kept, verdicts, notes, cells=found, training=kept.others)


def _points(cells: list[Cell], variant: Variant, sides: tuple[str, ...], title: str) -> list[Point]:
    """Gains over the best peer, in the form in which the pictures know them."""
    found = []
    for cell in cells:
        mine, best = cell.time(variant if sides == PAPER else variant.alone(), sides), cell.best()
        if not cell.key.late() or mine is None or best is None or best[0] <= 0 or cell.missing:
            continue
        key: Key = cell.key
        times = {"mpi": {"median_us": mine}, "pmpi": {"median_us": best[0]}}
        label = f"{key.collective}, {key.where()}, {title}"
        found.append(Point(label, key.bytes, times, 0.0, shape=key.shape, spread=key.spread, unit=1.0))
    return sorted(found, key=lambda one: (SHAPES.index(one.shape), one.spread))  # the same colours everywhere


def gains_of(cells: list[Cell], shown: list[Variant]) -> list[Point]:
    """Of the paper's algorithms, under the first of the variants, and of Stretto."""
    found = _points(cells, shown[0], PAPER, "the paper's algorithms") if shown else []
    for variant in shown:
        found += _points(cells, variant, ("mpi",), "Stretto" + (" with an arena" if variant.way == "arena" else ""))
    return found


def picture(kept: Kept, of: str = "median_us") -> str:
    """After Figures 7 and 8 of the arrival paper, against the best peer; empty where there is too little to draw."""
    cells = merge(kept.runs, of)
    results = Results(setup={"accelerating": True})
    shown = late_goals.variants(cells)
    results.points = gains_of(cells, [variant for variant in shown if variant.host == shown[0].host])
    parts = pictures.drawings(results)
    best = ", ".join(versions_of(kept.runs).values())
    return stacked(parts, f"{machine.cores()} cores; the MPI library: the best of {best}", pictures.STYLE) if parts else ""
