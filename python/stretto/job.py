"""Runs the launcher: signals passed on, exit code kept, and a private folder for the ranks' records."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stretto.errors import StrettoError
from stretto.running import start_time

_PREFIX = "stretto-run-"
_LOCK = "lock"  # held while the job runs
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_PR_SET_PDEATHSIG = 1
_SI_KERNEL = 0x80  # the terminal sent it, to the whole foreground group: the launcher has it already


@dataclass(frozen=True, slots=True)
class Outcome:
    exit_code: int  # of the launcher; 128 + signal where a signal ended it
    wall_seconds: float
    end_ns: int  # CLOCK_MONOTONIC


def job_id() -> str:
    return uuid.uuid4().hex


@contextlib.contextmanager
def record_folder() -> Iterator[Path]:
    """A folder that only this user reads, removed at the end. Those of commands that were killed go as well."""
    base = Path(tempfile.gettempdir())
    _remove_stale(base)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-{start_time(os.getpid())}-", dir=base))
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StrettoError(f"no folder for the records in {base}: {error.strerror} (set TMPDIR)") from None
    try:
        with contextlib.suppress(OSError):  # of a file system without locks; then nobody takes the folder for stale
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_stale(base: Path) -> None:
    """Removes the folders of this user's that nobody holds. A process number alone does not tell: it may be of another host, or
    of another PID namespace."""
    for folder in base.glob(f"{_PREFIX}*"):
        pid, _, rest = folder.name.removeprefix(_PREFIX).partition("-")
        start = rest.partition("-")[0]
        try:
            mine = folder.lstat().st_uid == os.geteuid() and not folder.is_symlink()
        except OSError:
            continue
        if mine and pid.isdigit() and start_time(int(pid)) != start and _nobody_holds(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _nobody_holds(folder: Path) -> bool:
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def run(program: Path, command: Sequence[str], env: Mapping[str, str]) -> Outcome:
    """Runs `program` as `command` to its end, with this process's standard streams. Signals sent to this process reach it.

    Where this process is killed, it gets SIGTERM, with which launchers end their jobs.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where a parent ignores it, no exit code could be had
    watched = {*_FORWARDED, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    begin = time.monotonic_ns()
    try:
        prepare = _in_child(before)
        try:
            # More descriptors than the standard ones may be meant for it.
            launcher = subprocess.Popen(command, executable=program, env=env, close_fds=False, preexec_fn=prepare)
        except OSError as error:
            raise StrettoError(f"{program} cannot be started: {error.strerror}", 126) from None
        code = _wait(launcher, watched)
    finally:
        _drop_pending()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    end = time.monotonic_ns()
    return Outcome(code if code >= 0 else 128 - code, (end - begin) * 1e-9, end)


def _in_child(mask: set[int]) -> Callable[[], None]:
    """What the launcher's process does before it becomes the launcher."""
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:  # killed meanwhile
            os._exit(128 + signal.SIGTERM)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    return prepare


def _wait(launcher: subprocess.Popen[bytes], watched: set[signal.Signals]) -> int:
    while (code := launcher.poll()) is None:
        arrived = signal.sigwaitinfo(watched)
        if arrived.si_signo != signal.SIGCHLD and arrived.si_code != _SI_KERNEL:
            launcher.send_signal(arrived.si_signo)
    return code


def _drop_pending() -> None:
    """Signals that came too late for the launcher must not cut off the summary."""
    while signal.sigtimedwait(_FORWARDED, 0) is not None:
        pass
