"""What the benchmark program wrote: the setup and its points."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from stretto.errors import StrettoError

SCHEMA = 1
PROGRAM, LIBRARY = "mpi", "pmpi"  # sides: as a program calls it, and the MPI library alone


@dataclass(frozen=True, slots=True)
class Point:
    """One collective at one size; times in microseconds. Under an arrival pattern they are counted from the last arrival."""

    collective: str
    bytes: int
    sides: dict[str, dict[str, Any]]
    floor: float
    mode: str = "single"
    shape: str = ""  # empty: no arrival pattern
    spread: float = 0.0
    unit: float = 0.0
    waiting: float = 0.0
    bound: float = 0.0
    wrong: int = 0
    samples: int = 0

    def median(self, side: str) -> float | None:
        value = self.sides.get(side, {}).get("median_us")
        return float(value) if value is not None else None

    def as_run(self, accelerating: bool) -> Point:
        """Without Stretto the program's calls are the MPI library's: told once, and as such."""
        if accelerating or PROGRAM not in self.sides:
            return self
        rest = {name: side for name, side in self.sides.items() if name != PROGRAM}
        return replace(self, sides=rest if LIBRARY in rest else {LIBRARY: self.sides[PROGRAM], **rest})

    @property
    def ratio(self) -> float | None:
        """Time of the program's calls over that of the MPI library's own."""
        mine, theirs = self.median(PROGRAM), self.median(LIBRARY)
        return mine / theirs if mine is not None and theirs else None


@dataclass(slots=True)
class Results:
    command: list[str] = field(default_factory=list)
    setup: dict[str, Any] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    raw: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[dict[str, Any]] = field(default_factory=list)
    unshown: OSError | None = None  # why they could not be shown to their end

    def take(self, line: str) -> Point | None:
        """Adds a line of the program's; the point, where it is one."""
        try:
            value = json.loads(line)
            kind = value["kind"]
            if kind == "setup":
                self.setup = value
            elif kind == "skipped":
                self.skipped.append(value)
            elif kind == "point":
                self.raw.append(value)
                self.points.append(_point(value))
                return self.points[-1]
        except (ValueError, KeyError, TypeError) as error:
            raise StrettoError(f"the benchmark program wrote a line that does not read ({error})") from None
        return None

    @property
    def wrong(self) -> int:
        return sum(point.wrong > 0 for point in self.points)

    @property
    def accelerating(self) -> bool:
        return bool(self.setup.get("accelerating"))

    def as_json(self) -> dict[str, Any]:
        def plain(value: dict[str, Any]) -> dict[str, Any]:
            return {name: one for name, one in value.items() if name != "kind"}

        return {
            "schema": SCHEMA,
            "command": self.command,
            "setup": plain(self.setup),
            "points": [plain(one) for one in self.raw],
            "skipped": [plain(one) for one in self.skipped],
        }


def _point(value: dict[str, Any]) -> Point:
    return Point(
        collective=value["collective"],
        bytes=value["bytes"],
        sides=value["sides"],
        floor=value["floor_us"],
        mode=value["mode"],
        shape=value.get("shape", ""),
        spread=value.get("spread", 0.0),
        unit=value.get("unit_us", 0.0),
        waiting=value.get("waiting_us", 0.0),
        bound=value.get("bound_us", 0.0),
        wrong=value["wrong"],
        samples=max((side["samples"] for side in value["sides"].values()), default=0),
    )
