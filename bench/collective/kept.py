"""What a series has measured so far, in a file that grows by a line with every run: a series that is cut can be taken up again,
and several can be merged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from runs import Json, Run


@dataclass
class Kept:
    """`declining`: decline lines of collective_bench. `others`: what else belongs to a page, by name."""

    path: Path | None = None
    runs: list[Run] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    declining: list[Json] = field(default_factory=list)
    others: dict[str, Json] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)

    def command(self, words: str) -> None:
        self.commands.append(words)
        self._write({"command": words})

    def run(self, run: Run) -> None:
        self.runs.append(run)
        self._write({"run": run.as_json()})

    def failure(self, text: str) -> None:
        self.failures.append(text)
        self._write({"failure": text})

    def decline(self, line: Json) -> None:
        self.declining.append(line)
        self._write({"decline": line})

    def other(self, name: str, value: Json) -> None:
        self.others[name] = value
        self._write({"other": [name, value]})

    def _write(self, entry: Json) -> None:
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps(entry) + "\n")

    def read(self, path: Path) -> None:
        """Adds what another file holds. A last line that was cut short does not count."""
        text = path.read_text()
        take: dict[str, Callable[..., None]] = {
            "run": lambda value: self.runs.append(Run(**value)),
            "failure": self.failures.append,
            "decline": self.declining.append,
            "command": self.commands.append,
            "other": lambda pair: self.others.__setitem__(*pair),
        }
        for line in text[: text.rfind("\n") + 1].splitlines():
            for kind, value in json.loads(line).items():
                take[kind](value)

    def repeats(self) -> int:
        """How often the most frequent run is there."""
        return max((self.count(run.identity) for run in self.runs), default=0)

    def count(self, identity: tuple[str, str, str, str]) -> int:
        return sum(run.identity == identity for run in self.runs)


def merged(paths: Iterable[Path]) -> Kept:
    """Several files as one series, which is not kept itself."""
    whole = Kept()
    for path in paths:
        whole.read(path)
    return whole


def resumed(path: Path) -> Kept:
    """The series of this file, which goes on there. A line that was cut short is taken out."""
    whole = Kept()
    if path.exists():
        text = path.read_text()
        path.write_text(text[: text.rfind("\n") + 1])
        whole.read(path)
    whole.path = path
    return whole
