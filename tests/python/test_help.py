"""--help: short enough for any terminal, and true about where the launcher goes."""

from __future__ import annotations

import pytest

from stretto.cli import main

COMMANDS = ("run", "compare", "profile", "report", "dump", "top", "export", "bench", "tune", "doctor", "settings")


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_the_overview_names_every_command_in_a_whole_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.split("Commands:\n")[1].splitlines()
    assert tuple(line.split()[0] for line in lines) == COMMANDS
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_usage_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith(f"Usage: stretto {command} [OPTIONS]")
    assert first.endswith(" -- LAUNCHER ...") == (command in ("run", "compare", "profile", "bench", "tune"))
    assert all(len(line) <= 80 for line in rest)
    assert not any("LAUNCHER" in line for line in rest), "it is no argument of its own"
