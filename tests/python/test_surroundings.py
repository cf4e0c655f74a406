"""Where the command runs: no Unicode, full disks, pipes that nobody reads, Ctrl-C, and folders that hold anything."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.cli import main
from trace_writer import make_example

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_example(tmp_path / "profile", ranks=2, iterations=12)
    return tmp_path / "profile"


def stretto(*words: str, stdout: int | None = None, **variables: str) -> subprocess.CompletedProcess[bytes]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))}
    env |= {"PYTHONPATH": str(ROOT / "python")} | variables
    out = subprocess.PIPE if stdout is None else stdout
    return subprocess.run([sys.executable, "-m", "stretto", *words], env=env, stdout=out, stderr=subprocess.PIPE, timeout=120)


def test_a_locale_without_unicode(folder: Path) -> None:
    done = stretto("report", str(folder), LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Calls and time" in done.stdout
    assert done.stdout.isascii()
    assert "Ω" in (folder / "report.html").read_text(encoding="utf-8"), "a file is UTF-8 whatever the terminal"


@pytest.mark.parametrize("words", [["report"], ["settings"], ["run", "--help"], ["--version"]])
def test_a_full_disk_behind_standard_output(words: list[str], folder: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = stretto(*words, *([str(folder)] if words == ["report"] else []), stdout=full.fileno())
    assert done.returncode == 1
    assert done.stderr == b"stretto: standard output: No space left on device\n"


@pytest.mark.parametrize("words", [["report"], ["settings"], ["run", "--help"]])
def test_a_pipe_that_nobody_reads(words: list[str], folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = stretto(*words, *([str(folder)] if words == ["report"] else []), stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


def test_ctrl_c(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("stretto.profile_cli._analyse", interrupted)
    assert main(["report", str(folder)]) == 130
    assert capsys.readouterr().err.strip() == ""


@pytest.mark.parametrize(
    "words",
    [["report", "no\nsuch\x1b[31m"], ["run", "--", "no\nsuch\x1b[31m"], ["dump", "no\nsuch\x1b[31m"], ["no\nsuch\x1b[31m"]],
)
def test_names_cannot_break_the_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) in (2, 127)
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "\x1b" not in err


@pytest.mark.parametrize("words", [["report", "a" * 300], ["dump", "²"], ["run", "--library", "a" * 300, "--", "mpirun"]])
def test_names_of_nothing(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) in (2, 127)
    assert capsys.readouterr().err.count("\n") == 1


def what_no_trace_is(folder: Path) -> None:
    (folder / "rank-7.trace").mkdir()
    os.mkfifo(folder / "rank-8.trace")
    (folder / "rank-9.trace").symlink_to("rank-9.trace")
    (folder / "rank-10.trace").symlink_to("nowhere")
    (folder / "job.json").unlink()
    os.mkfifo(folder / "job.json")


@pytest.mark.parametrize("command", [["report"], ["dump"], ["top", "--times", "1"], ["export", "--parquet"]])
def test_a_folder_that_holds_anything(
    command: list[str], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    what_no_trace_is(folder)
    words = [command[0], str(folder), *command[1:], *([str(tmp_path / "calls")] if command[0] == "export" else [])]
    assert main(words) == 0
    out = capsys.readouterr().out
    if command[0] in ("report", "dump"):
        problems = out[out.index("Problems with the data") :]
        assert all(f"rank-{number}.trace" in problems for number in (7, 8, 9, 10))
        assert "job.json cannot be read" in problems


@pytest.mark.parametrize("kind", ["dumb", "xterm"])
def test_a_narrow_terminal(kind: str, folder: Path) -> None:
    if not shutil.which("script"):
        pytest.skip("no script(1), which lends a terminal")
    env = os.environ | {"PYTHONPATH": str(ROOT / "python"), "COLUMNS": "60", "TERM": kind, "NO_COLOR": "1"}
    words = f"{sys.executable} -m stretto report {folder}"
    done = subprocess.run(
        ["script", "-qec", words, "/dev/null"], env=env, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120
    )
    lines = re.sub(r"\x1b\[[0-9;]*m|\r", "", done.stdout.decode()).splitlines()
    assert done.returncode == 0
    assert any("Calls and time" in line for line in lines)
    page = lines[: next(number for number, line in enumerate(lines) if line.startswith("with figures"))]
    assert max(map(len, page)) <= 60
