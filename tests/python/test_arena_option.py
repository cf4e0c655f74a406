"""stretto run --arena: a second preload, beside the first, and the setting that switches it on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stretto.benchmark import program
from stretto.benchmark.model import Results
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


@pytest.mark.parametrize(("options", "wanted"), [([], "yes"), (["--no-arena"], "no")])
def test_tune_writes_rules_for_what_it_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: list[str], wanted: str
) -> None:
    monkeypatch.setenv("STRETTO_ARENA", "on")
    measured = []

    def run(command: list[str], choice: program.Choice, *_: Any) -> Results:
        measured.append(choice.arena)
        results, times = Results(command), {"median_us": 1.0, "p10_us": 1.0, "samples": 3}
        tuning = {"path": "x.rules", "header": "tuned build=1 machine=2 mpi=3", "about": "a; b"}
        setup = {"library": "MPICH", "ranks": 2, "nodes": 1, "crowded": False, "accelerating": True, "tuning": tuning}
        point = {"collective": "barrier", "bytes": 0, "floor_us": 0, "mode": "single", "wrong": 0}
        results.take(json.dumps({"kind": "setup", **setup}))
        results.take(json.dumps({"kind": "point", **point, "sides": {"pmpi": times, "flat": times}}))
        return results

    monkeypatch.setattr(program, "run", run)
    assert main(["tune", "barrier", "--dry-run", *options, "--", "mpirun", "-n", "2"]) == 0
    assert measured == [wanted == "yes"] and f"crowded=no arena={wanted}" in capsys.readouterr().out
    assert main(["tune", "--explain", "allreduce", "64K", "-n", "2", *options]) == 0
    assert ("with arenas" in capsys.readouterr().out) == (wanted == "yes")


def test_paths_that_a_preload_cannot_hold() -> None:
    with pytest.raises(StrettoError, match="LD_PRELOAD cannot hold"):
        rewrite(Style.HYDRA, ["mpiexec", "a"], ["/l.so", "/a b.so"], {}, {})
