"""The option --order of stretto run and stretto profile, which is the setting of the same name."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.cli import main


@pytest.mark.parametrize("command", ["run", "profile"])
@pytest.mark.parametrize("order", ["ranks", "domains", "arrival", ""])
def test_the_ranks_are_told(command: str, order: str, launcher: Path, library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--order", order] if order else []
    assert main([command, "--library", str(library), *options, "--dry-run", "--", str(launcher), "-n", "2", "a"]) == 0
    line = capsys.readouterr().out
    assert (f"STRETTO_ORDER={order}" in line) if order else ("STRETTO_ORDER" not in line)


def test_other_orders_are_refused(launcher: Path, library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--library", str(library), "--order", "luck", "--", str(launcher), "-n", "2", "a"]) == 2
    assert "luck" in capsys.readouterr().err
