"""Reading which libraries a program is linked with."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stretto import elf


def test_a_real_program() -> None:
    program = Path(shutil.which("ls") or sys.executable)
    assert any(name.startswith("libc.so") for name in elf.needed(program))


def test_symbols_that_a_file_names(tmp_path: Path) -> None:
    program = Path(shutil.which("ls") or sys.executable)
    assert elf.mentions(program, "malloc")
    assert not elf.mentions(program, "MPI_Allreduce_c")
    assert not elf.mentions(tmp_path / "absent", "malloc")


def test_what_is_no_elf_file_needs_nothing(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert elf.needed(script) == []
    assert elf.needed(tmp_path) == []
    assert elf.needed(tmp_path / "absent") == []


def test_a_library_that_was_not_copied_wholly(tmp_path: Path) -> None:
    whole = Path(shutil.which("ls") or sys.executable)
    assert elf.damage(whole) == ""
    part = tmp_path / "part.so"
    part.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    assert elf.damage(part).startswith(f"is cut off: {part.stat().st_size} bytes of at least ")
    for bytes_left in (0, 40, 100):
        part.write_bytes(whole.read_bytes()[:bytes_left])
        assert elf.damage(part)
    assert "cannot be read" in elf.damage(tmp_path / "absent.so")


@pytest.fixture(scope="module")
def library() -> bytes:
    return Path(shutil.which("true") or sys.executable).read_bytes()[:65536]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files_do_no_harm(tmp_path: Path, library: bytes, data: st.DataObject) -> None:
    raw = bytearray(library)
    for _ in range(data.draw(st.integers(1, 16))):
        raw[data.draw(st.integers(0, 1023))] = data.draw(st.integers(0, 255))
    file = tmp_path / "damaged"
    file.write_bytes(bytes(raw))
    assert isinstance(elf.needed(file), list)
    assert isinstance(elf.damage(file), str)
