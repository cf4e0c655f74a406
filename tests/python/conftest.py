"""What the tests of the command stand on: a launcher made of shell, and a file for the preload library."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def launcher(tmp_path: Path) -> Path:
    """Of the Open MPI kind; it starts nothing."""
    path = tmp_path / "mpirun"
    path.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "mpirun (Open MPI) 5.0.0"\nexit 0\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "libstretto_ompi.so"
    path.write_bytes(b"")
    return path
