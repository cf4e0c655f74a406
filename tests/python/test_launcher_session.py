"""What stretto run preloads into MPICH's launcher itself, so that ranks that share CPUs stay in one session."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.cli import main
from stretto.session import others_compute


@pytest.fixture(autouse=True)
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stretto.session.others_compute", lambda: False)


@pytest.fixture
def beside(library: Path) -> Path:
    path = library.with_name("libstretto_launcher.so")
    path.write_bytes(b"")
    return path


def dry_run(launcher: Path, library: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["run", "--library", str(library), *options, "--dry-run", "--", str(launcher), "-n", "2", "a"]) == 0
    return capsys.readouterr().out


def test_hydra_gets_it_and_the_ranks_do_not(
    hydra: Path, library: Path, beside: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    line = dry_run(hydra, library, capsys)
    assert line.startswith(f"LD_PRELOAD={beside} {hydra} -genv LD_PRELOAD {library} ")
    monkeypatch.setenv("LD_PRELOAD", "/users.so")
    line = dry_run(hydra, library, capsys)
    assert line.startswith(f"LD_PRELOAD=/users.so:{beside} {hydra} -genv LD_PRELOAD /users.so:{library} ")


def test_a_path_that_a_preload_cannot_hold(
    hydra: Path, library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "a b"
    odd.mkdir()
    (odd / "libstretto_launcher.so").write_bytes(b"")
    monkeypatch.setattr("stretto.preload.folder", lambda: odd)
    assert "libstretto_launcher" not in dry_run(hydra, library, capsys)


@pytest.mark.parametrize("why", ["accelerate", "variable", "setting", "busy", "other launcher", "missing"])
def test_nobody_else_gets_it(
    hydra: Path,
    launcher: Path,
    library: Path,
    beside: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    why: str,
) -> None:
    options = ["--accelerate", "off"] if why == "accelerate" else []
    if why == "variable":
        monkeypatch.setenv("STRETTO_ACCELERATE", "off")
    if why == "setting":
        monkeypatch.setenv("STRETTO_SESSIONS", "own")
    if why == "busy":
        monkeypatch.setattr("stretto.session.others_compute", lambda: True)
    if why == "missing":
        beside.unlink()
        monkeypatch.setattr("stretto.preload.folder", lambda: beside.parent)
    if why == "other launcher":
        hydra.unlink()  # whose neighbour it would be taken for
    line = dry_run(launcher if why == "other launcher" else hydra, library, capsys, *options)
    assert "libstretto_launcher" not in line


def test_a_busy_machine_is_as_good_as_an_idle_one_where_it_is_asked_for(
    hydra: Path, library: Path, beside: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stretto.session.others_compute", lambda: True)
    monkeypatch.setenv("STRETTO_SESSIONS", "shared")
    assert str(beside) in dry_run(hydra, library, capsys)


@pytest.mark.parametrize(("running", "busy"), [([1], False), ([3], False), ([4], True), ([5, 4, 3], False), ([None], False)])
def test_others_compute_that_want_a_cpu_in_every_look(
    running: list[int | None], busy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = [*running, *[running[-1]] * 10]
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(Path, "read_text", lambda _: f"0.10 0.20 0.30 {looks.pop(0)}/400 1234\n")
    assert others_compute() == busy
