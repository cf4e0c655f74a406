"""What the tests of the command stand on: a launcher made of shell, and a file for the preload library."""

from __future__ import annotations

from pathlib import Path

import pytest


def _starts_nothing(path: Path, version: str) -> Path:
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}"\nexit 0\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def launcher(tmp_path: Path) -> Path:
    """Of the Open MPI kind; it starts nothing."""
    return _starts_nothing(tmp_path / "mpirun", "mpirun (Open MPI) 5.0.0")


@pytest.fixture
def hydra(tmp_path: Path) -> Path:
    """MPICH's, likewise; known by its name."""
    return _starts_nothing(tmp_path / "mpiexec.hydra", "")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "libstretto_ompi.so"
    path.write_bytes(b"")
    return path
