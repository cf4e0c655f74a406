"""stretto run --arena: a second preload, beside the first, and the setting that switches it on."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.cli import main
from stretto.errors import StrettoError
from stretto.launchers import Style
from stretto.rewrite import rewrite


def dry_run(launcher: Path, library: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["run", "--library", str(library), *options, "--dry-run", "--", str(launcher), "-n", "2", "a"]) == 0
    return capsys.readouterr().out


def test_it_is_off_unless_asked_for(launcher: Path, library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "ARENA" not in dry_run(launcher, library, capsys).upper()


def test_the_library_beside_the_preload_is_added(launcher: Path, library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arena = library.with_name("libstretto_arena.so")
    arena.write_bytes(b"")
    line = dry_run(launcher, library, capsys, "--arena")
    assert f"LD_PRELOAD={library}:{arena} " in line
    assert "STRETTO_ARENA=on" in line


@pytest.mark.parametrize(("value", "options", "wanted"), [("on", [], True), ("on", ["--no-arena"], False), ("off", [], False)])
def test_the_environment_asks_too(
    launcher: Path,
    library: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    value: str,
    options: list[str],
    wanted: bool,
) -> None:
    library.with_name("libstretto_arena.so").write_bytes(b"")
    monkeypatch.setenv("STRETTO_ARENA", value)
    assert ("libstretto_arena" in dry_run(launcher, library, capsys, *options)) == wanted


def test_paths_that_a_preload_cannot_hold() -> None:
    with pytest.raises(StrettoError, match="LD_PRELOAD cannot hold"):
        rewrite(Style.HYDRA, ["mpiexec", "a"], ["/l.so", "/a b.so"], {}, {})
