"""Finds the jobs that run under Stretto on this machine, without any register: their processes tell.

A rank has STRETTO_RECORD_DIR and STRETTO_JOB in its environment; a launcher has them on its command line, where `stretto` put
them. What other users run cannot be read and is not found.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stretto.errors import StrettoError

_FOLDER, _JOB = "STRETTO_RECORD_DIR", "STRETTO_JOB"
_LEAST_LETTERS = 4  # of a job's identity


@dataclass(slots=True)
class Running:
    job_id: str
    folder: Path
    pids: list[int] = field(default_factory=list)


def start_time(pid: int) -> str:
    """When a process began, in clock ticks since boot; empty where there is no such process. With the pid it is unique."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return ""


def began_by(pid: int, seconds: float) -> bool:
    """Whether there is such a process and it began by then, in seconds since 1970: else another one got its number."""
    ticks = start_time(pid)
    if not ticks:
        return False
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(ticks) / os.sysconf("SC_CLK_TCK")
    return time.time() - age <= seconds


def is_alive(facts: dict[str, Any]) -> bool:
    """Whether the command that wrote a job.json still runs on this machine."""
    pid = facts.get("pid")
    if facts.get("host") != socket.gethostname() or not isinstance(pid, int):
        return False
    return start_time(pid) == facts.get("pid_start") != ""


def jobs() -> list[Running]:
    """The jobs that run now and whose folder is there."""
    found: dict[tuple[str, str], Running] = {}
    for pid in _pids():
        told = _told(pid)
        if told.get(_FOLDER):
            key = (told.get(_JOB, ""), told[_FOLDER])
            found.setdefault(key, Running(key[0], Path(key[1]))).pids.append(pid)
    return sorted((one for one in found.values() if one.folder.is_dir()), key=lambda one: min(one.pids))


def find(name: str) -> Path:
    """The folder of a job: `name` is the folder, a job's identity (or how it begins), or the pid of a process around or in it."""
    folder = Path(name)
    if folder.is_dir():
        return folder
    if "/" in name:
        raise StrettoError(f"{name}: no such folder")
    running = jobs()
    matching = _by_pid(int(name), running) if re.fullmatch("[0-9]{1,9}", name) else []
    if not matching and len(name) >= _LEAST_LETTERS:
        matching = [one for one in running if one.job_id.startswith(name)]
    folders = {one.folder for one in matching}
    if len(folders) == 1:
        return folders.pop()
    if folders:
        raise StrettoError(f"{name} means {len(folders)} jobs: {', '.join(sorted(map(str, folders)))}")
    raise StrettoError(f"{name} is no folder, and no job of that identity or pid runs here under Stretto{_hint(running)}")


def only_one() -> Path:
    """The folder of the one job that runs. StrettoError: none does, or several, which it names."""
    running = jobs()
    if len(running) == 1:
        return running[0].folder
    if not running:
        raise StrettoError("no job of yours runs under Stretto on this machine: name a profile folder")
    raise StrettoError(f"several jobs run: name one{_hint(running)}")


def _hint(running: list[Running]) -> str:
    shown = ", ".join(f"{one.job_id[:8] or '?'} (pid {min(one.pids)}) in {one.folder}" for one in running[:4])
    return f"; running: {shown}" if shown else ""


def _by_pid(pid: int, running: list[Running]) -> list[Running]:
    """The jobs that the process belongs to, or that run below it."""
    family = {pid, *_descendants(pid)}
    return [one for one in running if family & set(one.pids)]


def _pids() -> Iterator[int]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            yield int(entry.name)


def _descendants(root: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid in _pids():
        try:
            parent = int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    todo = [root]
    while todo:
        new = [child for child in children.get(todo.pop(), []) if child not in found]
        found.update(new)
        todo += new
    return found


def _told(pid: int) -> dict[str, str]:
    """What a process's environment, or else its command line, says of Stretto."""
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        found = _assignments([os.fsdecode(word) for word in words])
        if _FOLDER in found:
            return found
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return {}
    return _assignments(_launcher_words([os.fsdecode(word) for word in words]))


def _assignments(words: list[str]) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in words) if name in (_FOLDER, _JOB)}


def _launcher_words(words: list[str]) -> list[str]:
    """NAME=value of -x NAME=value, of -genv NAME value, and of --export=ALL,NAME=value."""
    found = []
    for place, word in enumerate(words):
        if word.startswith("--export="):
            found += word.removeprefix("--export=").split(",")
        elif word in (_FOLDER, _JOB) and place + 1 < len(words):
            found.append(f"{word}={words[place + 1]}")
        else:
            found.append(word)
    return found
