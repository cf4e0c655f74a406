"""What the tests of the command stand on: a launcher made of shell, and a file for the preload library."""

from __future__ import annotations

import struct
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
    """The headers of a library in which nothing is."""
    path = tmp_path / "libstretto_ompi.so"
    header = struct.pack("<6s26xQ14xHH6x", b"\x7fELF\x02\x01", 64, 56, 1)
    path.write_bytes(header + struct.pack("<IIQQQQQQ", 1, 0, 0, 0, 0, 120, 120, 4096))
    return path
