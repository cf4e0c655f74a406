"""Where the sections of a trace file lie, and what stands in them; trace.py says what it means."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.errors import StrettoError
from stretto.trace_layout import PAGE, SECTION_HEADER, SECTION_MAGIC, SECTIONS

Array = NDArray[Any]
Lacks = Callable[[str], None]  # notes damage


class TraceError(StrettoError):
    """The file is no trace that this version can read; the message says why."""


@dataclass(frozen=True, slots=True)
class Section:
    kind: str
    thread: int  # NONE16: of the process
    offset: int  # in the file, of the first entry
    used: int  # entries that are in the file
    entry_bytes: int  # from one to the next
    first: int = 0  # of a tail: events of its thread in front of its first entry
    head: int = -1  # of a tail: where its header lies, which tells whether it was emptied meanwhile


def open_file(path: Path) -> Any:
    """A regular file, opened without waiting for a writer."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise TraceError(f"{path}: no regular file")
    return os.fdopen(file, "rb", buffering=0)


def _read(file: int, offset: int, count: int, kind: np.dtype[Any]) -> Array:
    """Up to `count` entries; fewer where the file ends."""
    buffer = np.empty(count * kind.itemsize, np.uint8)
    view, filled = buffer.data, 0
    while filled < len(buffer):
        got = os.preadv(file, [view[filled:]], offset + filled)
        if got <= 0:
            break
        filled += got
    return buffer[: filled // kind.itemsize * kind.itemsize].view(kind)


def entries_of(file: int, section: Section, first: int, count: int, kind: np.dtype[Any]) -> Array:
    """Entries of a section; of longer ones than known, written by a later Stretto, what is known."""
    at, length = section.offset + first * section.entry_bytes, section.entry_bytes
    if length == kind.itemsize:
        return _read(file, at, count, kind)
    raw = _read(file, at, count, np.dtype((np.void, length)))
    return np.ascontiguousarray(raw.view(np.uint8).reshape(-1, length)[:, : kind.itemsize]).view(kind).reshape(-1)


def first_of(file: int, head: int) -> int:
    return int(SECTION_HEADER.unpack(_exactly(file, head, SECTION_HEADER.size))[7])


def walk(file: int, length: int, ended: bool, lacks: Lacks) -> Iterator[Section]:
    """The sections in file order. Behind a damaged one the next page that begins like a section is where it goes on. `ended`: the
    process has, and left no room that it had not used yet."""
    at = PAGE
    while at + SECTION_HEADER.size <= length:
        magic, kind, thread, entry_bytes, _, size, used, first, *_ = SECTION_HEADER.unpack(
            _exactly(file, at, SECTION_HEADER.size)
        )
        if magic != SECTION_MAGIC or size < PAGE or size % PAGE:
            if magic or size or ended:
                lacks(f"damaged section at byte {at}")
            at = _next_section(file, at + PAGE, length)
            continue
        if kind in SECTIONS:
            section = _section(lacks, at, min(size, length - at), SECTIONS[kind], (thread, entry_bytes, used, first))
            if section is not None:
                yield section
        at += size


def _exactly(file: int, offset: int, size: int) -> bytes:
    return os.pread(file, size, offset).ljust(size, b"\0")


def _section(
    lacks: Lacks, at: int, size: int, kind: tuple[str, np.dtype[Any]], rest: tuple[int, int, int, int]
) -> Section | None:
    name, layout = kind
    thread, entry_bytes, used, first = rest
    if not layout.itemsize <= entry_bytes <= PAGE:
        lacks(f"section of {name} at byte {at} with entries of {entry_bytes} bytes, not {layout.itemsize}")
        return None
    room = max(0, size - SECTION_HEADER.size) // entry_bytes
    if used > room:
        lacks(f"section of {name} at byte {at} holds {room} of the {used} entries that it counts")
    tail = (first, at) if name == "tail" else (0, -1)
    return Section(name, thread, at + SECTION_HEADER.size, min(used, room), entry_bytes, *tail)


def _next_section(file: int, at: int, length: int) -> int:
    """The first page from `at` on that begins like a section; `length` where there is none."""
    step = 256 * PAGE
    while (at := _data(file, at, length)) < length:
        words = _read(file, at, min(step, length - at) // 4, np.dtype("<u4"))[:: PAGE // 4]
        found = np.flatnonzero(words == SECTION_MAGIC)
        if len(found):
            return int(at + found[0] * PAGE)
        at += step
    return length


def _data(file: int, at: int, length: int) -> int:
    """The page at or behind `at` that is not in a hole of the file."""
    try:
        return max(at, os.lseek(file, at, os.SEEK_DATA) // PAGE * PAGE)
    except OSError as error:
        return length if error.errno == errno.ENXIO else at
