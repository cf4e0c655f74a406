"""Running a launcher: exit codes, signals, and the folder for the records."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from stretto import job
from stretto.errors import StrettoError

SH = Path("/bin/sh")


@pytest.fixture(autouse=True)
def private_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def shell(script: str) -> job.Outcome:
    return job.run(SH, ["sh", "-c", script], os.environ)


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)])
def test_exit_codes(script: str, code: int) -> None:
    assert shell(script).exit_code == code


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "USR1"])
def test_signals_reach_the_launcher(name: str) -> None:
    number = signal.Signals[f"SIG{name}"]
    before = signal.getsignal(number)
    if before == signal.SIG_IGN:  # under nohup; a shell cannot trap what it finds ignored
        signal.signal(number, signal.SIG_DFL)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), number))
    timer.start()
    outcome = shell(f"trap 'exit 33' {name}; for i in $(seq 400); do sleep 0.05; done")
    timer.join()
    signal.signal(number, before)
    assert outcome.exit_code == 33
    assert number not in signal.pthread_sigmask(signal.SIG_BLOCK, ()), "the mask is as before"


def test_the_launcher_gets_ordinary_signal_dispositions(tmp_path: Path) -> None:
    out = tmp_path / "status"
    shell(f"grep -E 'SigBlk|SigIgn' /proc/self/status > {out}")
    masks = dict(line.split(":\t") for line in out.read_text().splitlines())
    assert int(masks["SigBlk"], 16) == 0
    assert int(masks["SigIgn"], 16) & (1 << (signal.SIGPIPE - 1)) == 0


def test_what_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(StrettoError, match="cannot be started"):
        job.run(tmp_path / "absent", ["absent"], os.environ)


def test_the_folder_is_private_and_goes_away() -> None:
    with job.record_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "rank-1.record").write_bytes(b"x")
    assert not folder.exists()


def test_the_folder_goes_away_after_an_error() -> None:
    with pytest.raises(ValueError, match="boom"), job.record_folder() as folder:
        raise ValueError("boom")
    assert not folder.exists()


def test_folders_of_killed_commands_are_removed_and_those_of_others_kept(tmp_path: Path) -> None:
    code = (
        "import sys, tempfile, os; tempfile.tempdir = sys.argv[1]; from stretto import job\n"
        "with job.record_folder() as f: print(f, flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=False)
    stale = Path(done.stdout.strip())
    assert stale.is_dir()
    with job.record_folder() as own:
        assert not stale.exists()
        with job.record_folder():
            assert own.exists(), "its command still runs"


def test_a_folder_of_another_pid_namespace_is_kept_while_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with job.record_folder() as own:
        seen_elsewhere = own.rename(own.with_name("stretto-run-4000001-17-abc"))  # no such process here
        with job.record_folder():
            assert seen_elsewhere.exists()
    with job.record_folder():
        assert not seen_elsewhere.exists(), "nobody holds it any more"
