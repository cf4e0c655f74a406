"""The HTML page: self-contained, harmless, of bounded size, and right when a browser lays it out."""

from __future__ import annotations

import re
import struct
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

import browser
from profile_example import HOSTILE, LATE, example
from stretto.profile_model import Profile
from stretto.profile_report.markup import MOST_ROWS, folded_table, number
from stretto.profile_report.page import html_page

LAPTOP = (1366, 768)
needs_browser = pytest.mark.skipif(not browser.find(), reason=f"no browser on PATH ({', '.join(browser.NAMES)})")


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, {name: value or "" for name, value in attrs}))
        self._style = tag == "style"

    def handle_data(self, data: str) -> None:
        if not self._style:
            self.text.append(data)


def parsed(page: str) -> _Tags:
    tags = _Tags()
    tags.feed(page)
    return tags


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", " ".join(parsed(page).text))


@pytest.mark.parametrize("ranks", [1, 2, 8, 64, 1024])
def test_it_is_self_contained_and_small(ranks: int) -> None:
    page = html_page(example(ranks))
    assert len(page.encode()) < 2_000_000
    for tag, attributes in parsed(page).seen:
        assert tag not in ("script", "link", "iframe", "object", "embed", "base")
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href"):
            assert attributes.get(name, "#").startswith(("#", "data:image/png;base64,")), (tag, attributes)
    assert re.findall(r"url\((?!#)", page) == []
    assert "default-src 'none'" in page
    assert ">None<" not in page


def test_it_says_what_the_profile_says() -> None:
    shown = text_of(html_page(example(8)))
    for words in (
        f"Waiting for rank {LATE} takes 16 % of the run time",
        "MPI_Allreduce 75,840 9,480",
        "16 % 81.9 s",
        "queue variables: its point-to-point layer is not ob1",
        "after Temuçin 2021, Fig. 3.1",
        "after Temuçin 2021, Fig. 3.6",
        "after Temuçin 2021, Fig. 3.7",
        "after Temuçin 2021, Fig. 3.11",
        "after Alizadeh 2022, Table 1",
        "after Alizadeh 2022, Table 2",
        "after Alizadeh 2022, Fig. 4",
        "6,125 of 9,280",
        "61.0 ns",
        "MPI_BAND",
        "no MPI_Finalize",
    ):
        assert words in shown, words


def test_the_headings_go_down_one_step_at_a_time() -> None:
    levels = [int(tag[1]) for tag, _ in parsed(html_page(example(8))).seen if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_drawing_has_a_name() -> None:
    page = html_page(example(8))
    drawings = re.findall(r'<svg [^>]*role="img"[^>]*>(.{20})', page)
    assert len(drawings) >= 10
    assert all(one.startswith("<title>") for one in drawings)


def test_figures_in_the_noise_are_marked() -> None:
    noisy, sharp = html_page(example(8, noisy=True)), html_page(example(8))
    assert noisy.count('<tr class="noise">') == 7
    assert sharp.count('<tr class="noise">') == 1, "the one row of the example that is"
    assert "below three times the error of the clocks" in text_of(noisy)


def test_one_node_is_not_told_twice() -> None:
    assert "All ranks are on one node" in text_of(html_page(example(4)))
    assert "All ranks are on one node" not in text_of(html_page(example(8)))


def test_names_of_the_job_cannot_become_markup() -> None:
    page = html_page(example(8, HOSTILE))
    assert [tag for tag, _ in parsed(page).seen if tag in ("script", "img")] == []
    assert page.count("<title>") == page.count("</title>")
    assert HOSTILE.split("\x1b")[0] in " ".join(parsed(page).text), "it is shown as text"
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", page)


def test_a_profile_without_anything_is_a_page() -> None:
    whole = example(1)
    bare = Profile("/nowhere", "", "", "aggregate", "", 0.0, 0, False, {n: t.clear() for n, t in whole.tables.items()})
    shown = text_of(html_page(bare))
    assert "No verdict" in shown
    assert "Incomplete" in shown


def test_the_size_is_bounded_whatever_the_trace() -> None:
    profile = example(64)
    many = pl.concat([profile.table("invocations")] * 8)
    names = pl.int_range(pl.len(), eager=False).cast(pl.String)
    profile.tables["invocations"] = many.with_columns(communicator=pl.lit("c") + (names.cast(pl.Int64) % 400).cast(pl.String))
    for name in ("communicators", "arrival", "late", "takeover", "sizes", "buckets"):
        rows = pl.concat([profile.table(name)] * 3000)
        profile.tables[name] = rows.with_columns(
            pl.concat_str(pl.lit("n" * 70), names).alias("communicator" if name != "communicators" else "name")
            if name not in ("takeover",)
            else pl.concat_str(pl.lit("n" * 38), names).alias("function")
        )
    profile.problems = ["p" * 300] * 100_000
    assert len(html_page(profile).encode()) < 8_000_000


def test_a_folded_table_says_what_it_leaves_out() -> None:
    columns = (number("row"),)
    whole = folded_table(columns, [(row,) for row in range(MOST_ROWS)], 16)
    assert whole.count("<tr") == MOST_ROWS + 2
    assert f"<summary>{MOST_ROWS - 16} more rows</summary>" in whole
    cut = folded_table(columns, [(row,) for row in range(MOST_ROWS + 7)], 16, marks=[False] * 16 + [True])
    assert cut.count("<tr") == MOST_ROWS + 2
    assert cut.count('<tr class="noise">') == 1
    assert f"<summary>{MOST_ROWS - 9} more rows, the first {MOST_ROWS - 16} here</summary>" in cut
    assert "<details>" not in folded_table(columns, [(row,) for row in range(16)], 16)


@needs_browser
@pytest.mark.parametrize(("ranks", "text"), [(1, ""), (8, ""), (64, ""), (1024, ""), (8, HOSTILE)])
def test_it_fits_a_laptop_screen(ranks: int, text: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(html_page(example(ranks, text)), encoding="utf-8")
    found = browser.measure(page, *LAPTOP)
    assert found["overflow"] <= 0
    assert found["title"].startswith("Stretto profile of mpirun")
    assert found["images"] == 0
    figures = found["figures"]
    assert len(figures) >= (5 if ranks == 1 else 12)
    assert all(one["marks"] >= 2 and one["width"] > 100 and one["height"] > 50 for one in figures), figures
    assert found["outside"] == []
    if not text:
        assert found["wide"] == [], "no table needs scrolling"


@needs_browser
def test_the_browser_has_nothing_to_complain_about(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(html_page(example(8, HOSTILE)), encoding="utf-8")
    assert browser.complaints(page) == []
    page.write_text(html_page(example(2)).replace("</body>", "<script>1</script></body>"), encoding="utf-8")
    assert browser.complaints(page) != [], "a script is refused by the page's own policy, and the browser says so"


@needs_browser
def test_a_narrow_window_scrolls_no_page(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(html_page(example(8)), encoding="utf-8")
    assert browser.measure(page, 800, 600)["overflow"] <= 0


@needs_browser
def test_it_can_be_drawn(tmp_path: Path) -> None:
    page, picture = tmp_path / "report.html", tmp_path / "report.png"
    page.write_text(html_page(example(8)), encoding="utf-8")
    data = browser.screenshot(page, picture)
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">2I", data[16:24]) == (1366, 900)
    assert len(data) > 40_000, "an empty page compresses to less"
