"""The speed goals of the project, judged on merged cells. A goal that the data cannot judge is reported as such."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from runs import Json
from tables import HOSTS, SMALL, Cell, geometric_mean, size_text


@dataclass
class Verdict:
    goal: str
    measured: str
    met: bool | None  # None: no data

    def as_json(self) -> Json:
        return {"goal": self.goal, "measured": self.measured, "met": self.met}


def _limit(goal: str, cells: Iterable[Cell], host: str, most: float) -> Verdict:
    ratios = [(ratio, cell) for cell in cells if (ratio := cell.ratio(host)) is not None]
    mean = geometric_mean(ratio for ratio, _ in ratios)
    if mean is None:
        return Verdict(goal, "not measured", None)
    worst, where = max(ratios, key=lambda pair: pair[0])
    text = f"{mean:.2f} (worst {worst:.2f}: {where.collective} {size_text(where.bytes)})"
    return Verdict(goal, text, mean <= most)


def _never_slower(goal: str, cells: Iterable[Cell], host: str) -> Verdict:
    ratios = [(ratio, cell) for cell in cells if (ratio := cell.ratio(host)) is not None]
    slower = sorted(((r, c) for r, c in ratios if r > 1.005), key=lambda pair: -pair[0])
    if not ratios:
        return Verdict(goal, "not measured", None)
    names = ", ".join(f"{c.collective} {size_text(c.bytes)} {r:.2f}" for r, c in slower[:6])
    text = f"{len(ratios) - len(slower)} of {len(ratios)} points{'; slower: ' + names if names else ''}"
    return Verdict(goal, text, not slower)


def _two_ranks(cells: list[Cell], host: str, apart_ns: int) -> list[Verdict]:
    where = f"on {host}, 2 ranks" + (f", cores {apart_ns} ns apart" if apart_ns else "")
    here = [c for c in cells if c.ranks == 2 and c.mode == "balanced" and c.key.apart_ns == apart_ns]
    small = [c for c in here if c.collective == "allreduce" and c.bytes <= SMALL]
    large = [c for c in here if c.collective == "allreduce" and c.bytes > SMALL]
    return [
        _never_slower(f"{where}: no collective slower than the best peer at any size", here, host),
        _limit(f"{where}: allreduce to 1 KiB at most 0.4 of the best peer's time (geometric mean)", small, host, 0.4),
        _limit(f"{where}: allreduce above 1 KiB at most 0.8 (geometric mean)", large, host, 0.8),
    ]


def judge(cells: list[Cell], declining: list[Json]) -> list[Verdict]:
    """Verdicts for each MPI under which Stretto ran. `declining`: the decline lines of collective_bench."""
    verdicts = []
    for host in HOSTS:
        for apart in sorted({c.key.apart_ns for c in cells if c.ranks == 2 and c.ratio(host) is not None}) or [0]:
            verdicts += _two_ranks(cells, host, apart)
        for ranks in sorted({c.ranks for c in cells if c.ranks > 2}):
            few = [c for c in cells if c.ranks == ranks and c.mode == "batch" and c.bytes <= SMALL]
            verdicts.append(_limit(f"on {host}, {ranks} ranks: small messages at most 0.6 (geometric mean)", few, host, 0.6))
    if local := [line for line in declining if line["local"]]:
        worst = max(local, key=lambda line: line["extra_ns"])
        text = f"at most {worst['extra_ns']:.0f} ns ({worst['call']}, {worst['host']})"
        verdicts.append(
            Verdict("loaded but declining: at most 50 ns a call (calls that meet no other rank)", text, worst["extra_ns"] <= 50)
        )
    return verdicts


def markdown(verdicts: list[Verdict]) -> str:
    words = {True: "met", False: "**not met**", None: "no data"}
    rows = [f"| {v.goal} | {v.measured} | {words[v.met]} |" for v in verdicts]
    return "\n".join(["| goal | measured | |", "|---|---|---|", *rows]) + "\n"
