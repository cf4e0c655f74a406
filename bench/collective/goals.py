"""The speed goals of the project, judged on merged cells. A goal that the data cannot judge is reported as such."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tables import HOSTS, SMALL, Cell, Json, geometric_mean, size_text


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


def _never_slower(cells: Iterable[Cell], host: str) -> Verdict:
    goal = f"on {host}, 2 ranks: no collective slower than the best peer at any size"
    ratios = [(ratio, cell) for cell in cells if (ratio := cell.ratio(host)) is not None]
    slower = sorted(((r, c) for r, c in ratios if r > 1.005), key=lambda pair: -pair[0])
    if not ratios:
        return Verdict(goal, "not measured", None)
    names = ", ".join(f"{c.collective} {size_text(c.bytes)} {r:.2f}" for r, c in slower[:6])
    text = f"{len(ratios) - len(slower)} of {len(ratios)} points{'; slower: ' + names if names else ''}"
    return Verdict(goal, text, not slower)


def judge(cells: list[Cell], declining: list[Json]) -> list[Verdict]:
    """Verdicts for each MPI under which Stretto ran. `declining`: the decline lines of collective_bench."""
    verdicts = []
    single = [c for c in cells if c.ranks == 2 and c.mode == "balanced"]
    allreduce = [c for c in single if c.collective == "allreduce"]
    for host in HOSTS:
        verdicts.append(_never_slower(single, host))
        verdicts.append(
            _limit(
                f"on {host}, 2 ranks: allreduce to 1 KiB at most 0.4 of the best peer's time (geometric mean)",
                [c for c in allreduce if c.bytes <= SMALL],
                host,
                0.4,
            )
        )
        verdicts.append(
            _limit(
                f"on {host}, 2 ranks: allreduce above 1 KiB at most 0.8 (geometric mean)",
                [c for c in allreduce if c.bytes > SMALL],
                host,
                0.8,
            )
        )
        for ranks in sorted({c.ranks for c in cells if c.ranks > 2}):
            few = [c for c in cells if c.ranks == ranks and c.mode == "batch" and c.bytes <= SMALL]
            verdicts.append(_limit(f"on {host}, {ranks} ranks: small messages at most 0.6 (geometric mean)", few, host, 0.6))
    if declining:
        worst = max(declining, key=lambda line: line["extra_ns"])
        text = f"at most {worst['extra_ns']:.0f} ns ({worst['call']}, {worst['host']})"
        verdicts.append(Verdict("loaded but declining: at most 50 ns a call", text, worst["extra_ns"] <= 50))
    return verdicts


def markdown(verdicts: list[Verdict]) -> str:
    words = {True: "met", False: "**not met**", None: "no data"}
    rows = [f"| {v.goal} | {v.measured} | {words[v.met]} |" for v in verdicts]
    return "\n".join(["| goal | measured | |", "|---|---|---|", *rows]) + "\n"
