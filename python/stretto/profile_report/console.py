"""Lines, headings and tables on a terminal: at most 100 columns, plain where piped, harmless whatever the job's names hold."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from stretto.wording import NONE, clean

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 100
_PLAIN = str.maketrans(
    {"µ": "u", "–": "-", "−": "-", "≤": "<=", "≈": "~", "Ω": "W", "Δ": "D", "α": "a", "■": "!", "▲": "*", "●": "-", "→": ">"}
    | {"±": "+-", "…": ".", "·": "|", "█": "#", "×": "x"}
)


def write(file: TextIO, draw: Callable[[Console], None]) -> None:
    """Draws into memory first: a terminal that knows no Unicode gets the nearest plain letters."""
    from rich.console import Console

    terminal = file.isatty()
    width = min(shutil.get_terminal_size((WIDTH, 24)).columns if terminal else WIDTH, WIDTH)
    page = io.StringIO()
    drawn = Console(
        file=page,
        width=max(width, 60),
        height=24,  # with both given, a terminal that is called dumb is not taken for one of 80 columns
        force_terminal=terminal,
        color_system="auto" if terminal else None,
        markup=False,
        highlight=False,
        emoji=False,
    )
    draw(drawn)
    text = "\n".join(line.rstrip() for line in page.getvalue().splitlines()) + "\n"
    encoding = file.encoding or "utf-8"
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        text = text.translate(_PLAIN).encode("ascii", "replace").decode()
    file.write(text)
    file.flush()


def line(console: Console, text: str, style: str = "") -> None:
    from rich.text import Text

    console.print(Text(clean(text), style=style))


def heading(console: Console, text: str, after: str = "") -> None:
    from rich.text import Text

    console.print()
    console.print(Text.assemble((clean(text), "bold"), (f"  {after}" if after else "", "dim italic")))


def table(
    console: Console,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    dim: Sequence[bool] = (),
    left: Sequence[int] = (0,),
) -> None:
    """`left`: columns of text; the others are numbers, aligned right."""
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False, show_header=any(columns))
    for place, name in enumerate(columns):
        is_text = place in left
        drawn.add_column(name, justify="left" if is_text else "right", no_wrap=True, overflow="ellipsis" if name else "crop")
    for number, row in enumerate(rows):
        drawn.add_row(
            *(Text(clean(NONE if cell is None else cell)) for cell in row),
            style="dim" if number < len(dim) and dim[number] else "",
        )
    console.print(drawn)
