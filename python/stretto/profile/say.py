"""Numbers in words, for the sentences of the verdict."""

from __future__ import annotations

from collections.abc import Sequence


def percent(share: float) -> str:
    """31 %, 4.2 %, 0.03 %."""
    value = 100 * share
    if value >= 9.95:
        return f"{value:.0f} %"
    return f"{value:.1f} %" if value >= 0.95 else f"{value:.2g} %" if value >= 0.01 else "under 0.01 %"


def seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= 0.9995 * size:
            return f"{value / size:.3g} {unit}" if value < 999.5 * size else f"{value / size:,.0f} {unit}"
    return f"{value * 1e9:.0f} ns"


def size(value: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{value:.3g} {unit}" if value < 999.5 else f"{value:.0f} {unit}"


def count(value: int, noun: str) -> str:
    return f"{value:,} {noun}" + ("" if value == 1 else "s")


def listed(values: Sequence[object], most: int = 6) -> str:
    """1, 2 and 3; 1, 2, 3, 4, 5, 6 and 12 more."""
    texts = [str(value) for value in values[:most]]
    if len(values) > most:
        return f"{', '.join(texts)} and {len(values) - most} more"
    return " and ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)


def ranks(numbers: Sequence[int]) -> str:
    return f"{'rank' if len(numbers) == 1 else 'ranks'} {listed(numbers)}"
