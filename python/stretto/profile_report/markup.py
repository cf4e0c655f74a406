"""Pieces of the HTML page: tables, figures and sections. Every text is escaped here, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stretto.profile_report.svg import safe
from stretto.wording import NONE, plural

MOST_ROWS = 500  # of a table in the page, folded ones included


class Html(str):
    """Text that is markup already."""


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    number: bool = True  # aligned right, figures of equal width
    hint: str = ""


def text(title: str, hint: str = "") -> Column:
    return Column(title, False, hint)


def number(title: str, hint: str = "") -> Column:
    return Column(title, True, hint)


def html(value: object) -> str:
    return value if isinstance(value, Html) else safe(NONE if value is None else value)


def bar(share: float | None, label: str, least: float | None = None, most: float | None = None, style: str = "") -> Html:
    """A bar in a table's cell, `share` of the cell's width 0..1, and its value; a whisker from `least` to `most`."""
    if share is None:
        return Html(f'<span class="num">{safe(label)}</span>')
    whisker = ""
    if least is not None and most is not None and most - least > 0.004:
        whisker = f'<i class="whisker" style="left:{least * 100:.1f}%;width:{(most - least) * 100:.1f}%"></i>'
    fill = f'<i class="fill {style}" style="width:{min(max(share, 0), 1) * 100:.1f}%"></i>'
    return Html(f'<span class="num">{safe(label)}</span><span class="bar">{fill}{whisker}</span>')


def table(columns: Sequence[Column], rows: Sequence[Sequence[object]], caption: str = "", marks: Sequence[bool] = ()) -> Html:
    """`marks`: rows set back, because their figures are in the noise."""
    head = "".join(
        f'<th scope="col"{_kind(column)}'
        + (f' title="{safe(column.hint)}"' if column.hint else "")
        + f">{safe(column.title)}</th>"
        for column in columns
    )
    body = []
    for place, row in enumerate(rows):
        set_back = ' class="noise"' if place < len(marks) and marks[place] else ""
        cells = "".join(f"<td{_kind(column)}>{html(cell)}</td>" for column, cell in zip(columns, row, strict=True))
        body.append(f"<tr{set_back}>{cells}</tr>")
    said = f"<caption>{html(caption)}</caption>" if caption else ""
    return Html(f'<div class="scroll"><table>{said}<thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>')


def folded_table(
    columns: Sequence[Column], rows: Sequence[Sequence[object]], first: int, caption: str = "", marks: Sequence[bool] = ()
) -> Html:
    """A table whose rows after the `first` are folded away; what is beyond MOST_ROWS is left out, and the fold says so."""
    shown = table(columns, rows[:first], caption, marks[:first])
    if len(rows) <= first:
        return shown
    said = plural(len(rows) - first, "more row") + (f", the first {MOST_ROWS - first} here" if len(rows) > MOST_ROWS else "")
    return Html(shown + details(said, table(columns, rows[first:MOST_ROWS], marks=marks[first:MOST_ROWS])))


def _kind(column: Column) -> str:
    return ' class="n"' if column.number else ""


def figure(drawing: str, caption: str, after: str = "") -> Html:
    """A drawing (or several) with what it shows and which published figure it generalises."""
    if not drawing:
        return Html("")
    source = f' <span class="after">{safe(after)}</span>' if after else ""
    return Html(f"<figure>{drawing}<figcaption>{safe(caption)}{source}</figcaption></figure>")


def note(said: str, style: str = "note") -> Html:
    return Html(f'<p class="{style}">{safe(said)}</p>')


def paragraph(said: str, after: str = "") -> Html:
    source = f' <span class="after">{safe(after)}</span>' if after else ""
    return Html(f"<p>{safe(said)}{source}</p>")


def heading(said: str, after: str = "") -> Html:
    source = f' <span class="after">{safe(after)}</span>' if after else ""
    return Html(f"<h3>{safe(said)}{source}</h3>")


def details(summary: str, *content: str) -> Html:
    return Html(f"<details><summary>{safe(summary)}</summary>{''.join(content)}</details>")


def columns_of(*content: str) -> Html:
    return Html(f'<div class="pair">{"".join(content)}</div>')


@dataclass(frozen=True, slots=True)
class Section:
    name: str  # of its anchor
    title: str
    content: str
    empty: bool = False  # nothing but the reason why

    def render(self) -> str:
        heading = f'<h2 id="{self.name}-h">{safe(self.title)}</h2>'
        return f'<section id="{self.name}" aria-labelledby="{self.name}-h">{heading}{self.content}</section>'
