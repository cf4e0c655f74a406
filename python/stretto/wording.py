"""Numbers and names as the reports show them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

NONE = "–"


def clean(text: object) -> str:
    """Text that came from the job, harmless on a terminal and in a page: what is not printable becomes '?'."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(text))


def known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def duration(value: float | None) -> str:
    """Three significant digits with the unit that suits: 12.5 µs, 3.20 ms, 63.2 s, 2 h 05 min."""
    if value is None or not math.isfinite(value):
        return NONE
    if value < 0:
        return f"−{duration(-value)}"
    if value == 0:
        return "0"
    if value >= 6000:
        return f"{value // 3600:.0f} h {value % 3600 // 60:02.0f} min"
    for limit, factor, unit in ((9.995e-7, 1e9, "ns"), (9.995e-4, 1e6, "µs"), (0.9995, 1e3, "ms"), (math.inf, 1.0, "s")):
        if value < limit:
            return f"{digits(value * factor)} {unit}"
    return NONE


def digits(value: float) -> str:
    """Three significant digits, no exponent."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")
    places = 2 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:.{min(max(places, 0), 9)}f}"


def tick(value: float) -> str:
    """A round number on an axis."""
    return count(value) if abs(value) >= 1000 else f"{value:.6g}" if abs(value) >= 1e-4 or value == 0 else f"{value:.0e}"


def size(value: float | None) -> str:
    """Bytes: 8 B, 64 KiB, 1.5 MiB."""
    if value is None or not math.isfinite(value):
        return NONE
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}" if value == int(value) or abs(value) >= 999.5 else f"{digits(value)} {unit}"
        value /= 1024
    return f"{digits(value)} PiB"


def bin_name(upper: int) -> str:
    """The bin (upper/2, upper] by its upper bound; 0: calls without data."""
    return "no data" if upper == 0 else f"≤ {size(upper)}" if upper > 1 else "1 B"


def count(value: float | None) -> str:
    """1,204; 412,000."""
    return NONE if value is None else f"{int(value):,}"


def short_count(value: float) -> str:
    """For labels in figures: 640, 7.9k, 1.2M."""
    for limit, unit in ((1e3, ""), (1e6, "k"), (1e9, "M"), (math.inf, "G")):
        if abs(value) < limit:
            return f"{value:.0f}" if not unit else f"{value / (limit / 1e3):.3g}{unit}"
    return NONE


def short_size(value: float) -> str:
    """For cells of figures: 64, 2.5K, 51M (powers of 1024)."""
    for unit in ("", "K", "M", "G"):
        if value < 999.5:
            return f"{value:.0f}{unit}" if value >= 9.95 or not unit else f"{value:.1f}{unit}"
        value /= 1024
    return f"{value:.1f}T"


def plural(number: int, what: str) -> str:
    return f"{count(number)} {what}" + ("" if number == 1 else "s")


def percent(share: float | None) -> str:
    """0 % and 100 % mean none and all."""
    if share is None or not math.isfinite(share):
        return NONE
    value = share * 100
    if value == 0:
        return "0 %"
    if value < 0.095:
        return "< 0.1 %"
    if value < 9.95:
        return f"{value:.1f} %"
    return f"{min(value, 99.9):.1f} %" if 99 < value < 100 else f"{value:.0f} %"


def factor(value: float | None) -> str:
    """A time over alpha."""
    if value is None or not math.isfinite(value):
        return NONE
    return count(round(value)) if value >= 999.5 else digits(value) if value >= 0.995 else f"{value:.2f}"


def span(least: float | None, most: float | None, show: Callable[[float | None], str] = count) -> str:
    """ "3 to 5", or one number where both read the same."""
    low, high = show(least), show(most)
    return low if low == high else f"{low} to {high}"


def rank_list(ranks: Iterable[int], most: int = 12) -> str:
    """0–3, 7, 9: ranges written short, cut after `most` of them."""
    parts: list[str] = []
    run: list[int] = []
    for rank in [*sorted(set(ranks)), None]:
        if run and rank == run[-1] + 1:
            run.append(rank)
            continue
        if run:
            parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}")
        run = [rank] if rank is not None else []
    return ", ".join(parts[:most]) + (f", … ({len(parts) - most} more)" if len(parts) > most else "")
