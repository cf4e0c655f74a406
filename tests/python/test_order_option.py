"""The option --order of stretto run and stretto profile, which is the setting of the same name."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.cli import main


@pytest.fixture
def launcher(tmp_path: Path) -> Path:
    path = tmp_path / "mpirun"
    path.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "mpirun (Open MPI) 5.0.0"\nexit 0\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "libstretto_ompi.so"
    path.write_bytes(b"")
    return path


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
