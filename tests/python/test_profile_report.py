"""The terminal page, the JSON form, and the numbers as both pages write them."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import polars as pl
import pytest
from rich.cells import cell_len

from profile_example import HOSTILE, LATE, RUN, example
from stretto import wording
from stretto.profile import say
from stretto.profile_model import TABLES, Profile
from stretto.profile_report import heat, svg, terminal, views
from stretto.profile_report.as_json import as_json


class Screen(io.StringIO):
    """A terminal that remembers."""

    def isatty(self) -> bool:
        return True


class Pipe(io.TextIOWrapper):
    def __init__(self, encoding: str) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding=encoding)

    def told(self) -> str:
        self.flush()
        return self.bytes.getvalue().decode(self.encoding)


def piped(profile: Profile, encoding: str = "utf-8") -> str:
    pipe = Pipe(encoding)
    terminal.print_page(profile, pipe)
    return pipe.told()


@pytest.mark.parametrize("ranks", [1, 2, 8, 64, 1024])
def test_the_page_fits_100_columns(ranks: int) -> None:
    page = piped(example(ranks))
    assert max(cell_len(line) for line in page.splitlines()) <= 100
    assert page.count("\n") < 110
    assert not any(line.endswith(" ") for line in page.splitlines())


def test_nothing_is_cut_in_a_table_of_100_columns() -> None:
    """The longest name that is common, numbers of calls and times as in long runs."""
    profile = example(8)
    long_name = (
        pl.when(pl.col("function") == "MPI_Allreduce").then(pl.lit("MPI_Reduce_scatter_block")).otherwise(pl.col("function"))
    )
    for name in ("functions", "sizes", "arrival", "late"):
        profile.tables[name] = profile.tables[name].with_columns(function=long_name)
    profile.tables["late"] = profile.tables["late"].with_columns(
        invocations=pl.lit(9_123_456), share=pl.lit(0.999), caused=pl.lit(42_000.0), since=pl.lit(7_500.0)
    )
    page = piped(profile)
    assert "…" not in page
    assert "  99.9 % of 9.12M  6.10 ms  11 h 40 min  2 h 05 min\n" in page


def test_the_verdict_comes_first_and_the_figures_are_there() -> None:
    page = re.sub(r"\s+", " ", piped(example(8)))
    order = [
        page.index(words) for words in ("Waiting for rank 5", "in communication", "Calls and time", "Arrival", "Message sizes")
    ]
    assert order == sorted(order)
    for words in (
        "MPI_Allreduce MPI 75,840 96.7 s 19 % 5.5 % to 22 %",
        "waiting for late ranks 16 % 81.9 s",
        "≈264 µs",
        f"{LATE} MPI_Allreduce MPI_COMM_WORLD 66 % of 9,280 6.10 ms 9.20 s 21.0 s",
        "MPI_Irecv: 95,998 requests, 41 % of their time in flight hidden, 2 left open",
        "26 pairs of ranks",
        "rank 3: no MPI_Finalize",
        "queue variables unavailable: this MPI",
    ):
        assert words in page, words


def test_a_terminal_gets_styles_and_a_pipe_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")  # a dumb one, as in a chroot or under a service, gets none
    screen = Screen()
    terminal.print_page(example(4), screen)
    assert "\x1b[1m" in screen.getvalue()
    assert "\x1b" not in piped(example(4))


def test_plain_letters_where_there_is_no_unicode() -> None:
    page = piped(example(4), "ascii")
    assert "280 us" in page
    assert "?" not in page


def test_names_of_the_job_cannot_move_the_cursor() -> None:
    screen = Screen()
    terminal.print_page(example(8, HOSTILE), screen)
    harmless = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())
    assert "\x1b" not in harmless
    assert "\x07" not in harmless
    assert "\u202e" not in harmless
    assert "?[31m" in harmless, "what would have been a colour is shown"


def test_markup_of_rich_stays_text() -> None:
    page = piped(example(2, "[bold red]x[/]"))
    assert "[bold red]x[/]" in page


def test_a_bare_profile_is_a_page() -> None:
    whole = example(1)
    bare = Profile("/nowhere", "", "", "aggregate", "", 0.0, 0, False, {n: t.clear() for n, t in whole.tables.items()})
    assert "No verdict" in piped(bare)


def test_the_short_page() -> None:
    pipe = Pipe("utf-8")
    terminal.print_short(example(8), pipe, "stretto report x")
    page = pipe.told()
    assert page.endswith("stretto report x\n")
    assert "Waiting for rank 5" in page
    assert "Calls and time" not in page


def test_json_holds_every_table_and_no_nan() -> None:
    profile = example(4)
    profile.tables["arrival"] = profile.table("arrival").with_columns(alpha=pl.lit(float("nan")))
    found = json.loads(json.dumps(as_json(profile), allow_nan=False))
    assert set(found["tables"]) == set(TABLES)
    assert found["tables"]["arrival"][0]["alpha"] is None
    assert found["verdict"][0]["severity"] == "bad"
    assert found["tables"]["partners"] == profile.table("partners").to_dicts()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0, "0"),
        (1.5e-9, "1.50 ns"),
        (999.6e-9, "1.00 µs"),
        (12.34e-6, "12.3 µs"),
        (0.99951, "1.00 s"),
        (63.2, "63.2 s"),
        (-870e-6, "−870 µs"),
        (7322, "2 h 02 min"),
    ],
)
def test_durations(value: float | None, shown: str) -> None:
    assert wording.duration(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0 B"),
        (8, "8 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1010 << 10, "1010 KiB"),
        (9.998 * 2**20, "10.0 MiB"),
        (3 << 40, "3 TiB"),
    ],
)
def test_sizes(value: float, shown: str) -> None:
    assert wording.size(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(8, "8 B"), (1023, "1023 B"), (1.5 * 2**20, "1.5 MiB"), (1010 << 10, "1010 KiB")])
def test_sizes_of_the_verdict(value: float, shown: str) -> None:
    assert say.size(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0 %"), (1, "100 %"), (0.9996, "99.9 %"), (0.00001, "< 0.1 %"), (0.314, "31 %")]
)
def test_shares(value: float, shown: str) -> None:
    assert wording.percent(value) == shown


def test_ranks_are_written_short() -> None:
    assert wording.rank_list([3, 0, 1, 2, 7, 9, 10]) == "0–3, 7, 9–10"
    assert wording.rank_list(range(0, 100, 2), 3) == "0, 2, 4, … (47 more)"


def test_totals_come_from_the_tables() -> None:
    profile = example(8)
    sums = views.totals(profile)
    assert sums.run_time == pytest.approx(8 * RUN)
    assert sums.communication == pytest.approx(profile.table("functions")["time"].sum())
    cluster = profile.table("arrival").filter(pl.col("scope") == "cluster")
    assert sums.waiting == pytest.approx(cluster["waiting"].sum())


def test_who_is_waited_for_comes_first() -> None:
    profile = example(8)
    assert [(row["rank"], row["function"]) for row in views.often_late(profile)] == [
        (LATE, "MPI_Allreduce"),
        (LATE, "MPI_Barrier"),
    ]
    profile.tables["late"] = profile.table("late").with_columns(since=pl.lit(None, pl.Float64))
    assert {row["rank"] for row in views.often_late(profile)} == {LATE}, "half again as long as the others"
    even = pl.col("caused") * 0 + 1.0
    profile.tables["late"] = profile.table("late").with_columns(even)
    assert len(views.often_late(profile)) == 1, "nobody stands out: one row all the same"


def test_functions_missing_on_some_ranks_have_none_there() -> None:
    profile = example(4)
    profile.tables["functions"] = profile.table("functions").filter((pl.col("rank") == 1) | (pl.col("function") != "MPI_Bcast"))
    row = next(row for row in views.function_rows(profile) if row["function"] == "MPI_Bcast")
    assert (row["least_calls"], row["most_calls"], row["least_share"]) == (0, 1612, 0)


@pytest.mark.parametrize(("ranks", "blocks", "width"), [(1, 1, 1), (64, 64, 1), (65, 33, 2), (1024, 64, 16), (1000, 63, 16)])
def test_many_ranks_are_shown_in_blocks(ranks: int, blocks: int, width: int) -> None:
    parts = views.blocks(ranks)
    assert len(parts) == blocks
    assert parts[0].last + 1 == width
    assert [rank for part in parts for rank in range(part.first, part.last + 1)] == list(range(ranks))


def test_the_matrix_adds_up() -> None:
    for ranks in (8, 1024):
        found = views.matrix(example(ranks))
        table = example(ranks).table("partners")
        assert found.calls.sum() == table["calls"].sum()
        assert found.bytes.sum() == table["bytes"].sum()
        if ranks == 8:
            assert found.calls[1, 0] == 6040
            assert found.bytes[0, 2] == 4 << 20


def test_shades_keep_the_order_and_tell_zero_from_nothing() -> None:
    values = np.array([0.0, 1e-6, 1e-4, 1e-2, np.nan])
    places = heat.shades(values, log=True)
    assert places[0] == 0
    assert np.isnan(places[4])
    assert list(np.diff(places[:4]) > 0) == [True] * 3
    grey = heat.colors(np.linspace(0, 1, 50)[None, :])[0, :, :3] @ np.array([0.299, 0.587, 0.114])
    assert (np.diff(grey) < 0).all(), "darker is more, in grey as well"
    assert heat.colors(places[None, :])[0, 4, 3] == 0, "nothing is transparent"


def test_the_scale_of_shades_says_that_it_is_logarithmic() -> None:
    for values, told in ((np.array([1e-6, 1e-2]), True), (np.array([1e-2, 1e-2]), False)):
        drawing = svg.Drawing(400, 40, "")
        heat.shade_scale(drawing, 0, 4, values)
        assert ("logarithmic" in drawing.render()) == told


@pytest.mark.parametrize("most", [1e-9, 0.37, 1, 63.2, 1e12, 0, float("nan")])
def test_axes_have_a_few_round_ticks_inside(most: float) -> None:
    scale = svg.exact(most, 100, 200)
    assert 3 <= len(scale.ticks) <= 12
    assert all(100 <= scale(tick) <= 200 for tick in scale.ticks)
    assert scale(scale.most) == 200


def test_a_logarithmic_axis_takes_what_lies_below_it() -> None:
    scale = svg.logarithmic(3e-5, 8e-5, 0, 100)
    assert scale(0.0) == 0
    assert scale(1e-4) == 100
