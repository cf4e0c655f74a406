"""What an ELF file asks for and names: enough to see which MPI a program is linked with, and how old an MPI library is."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_STRTAB, _DT_STRSZ = 1, 5, 10
_MOST = 1 << 24  # bytes of a table that is read; more is taken for damage


def needed(path: Path) -> list[str]:
    """DT_NEEDED of a 64-bit little-endian ELF file; empty for anything else, static programs and damaged files included."""
    tags, names = _dynamic(path)
    return [_name(names, value) for tag, value in tags if tag == _DT_NEEDED and value < len(names)]


def mentions(path: Path, symbol: str) -> bool:
    """Whether such a file names a symbol, or one that ends so (names share their ends); false where it cannot be read."""
    return f"{symbol}\0".encode() in _dynamic(path)[1]


def damage(path: Path) -> str:
    """Why such a file cannot be loaded, as far as its headers tell; empty: they do not. The loader maps what is not there too."""
    try:
        with path.open("rb") as file:
            ends = [offset + size for kind, offset, _, size in _headers(file) if kind == _PT_LOAD]
            length = file.seek(0, 2)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except (struct.error, ValueError, OverflowError):
        return "is cut off or damaged"
    if not ends:
        return "is no library for 64-bit Linux"
    return f"is cut off: {length} bytes of at least {max(ends)}" if max(ends) > length else ""


def _dynamic(path: Path) -> tuple[list[tuple[int, int]], bytes]:
    """The dynamic section's (tag, value), and the names that it and the symbols use; both empty for anything else."""
    try:
        with path.open("rb") as file:
            return _read_dynamic(file)
    except (OSError, struct.error, ValueError, OverflowError):
        return [], b""


def _at(file: BinaryIO, offset: int, size: int) -> bytes:
    if size > _MOST:
        raise ValueError("table too long")
    file.seek(offset)
    return file.read(size)


def _headers(file: BinaryIO) -> list[tuple[int, int, int, int]]:
    """Of each program header: type, offset, address, size in the file. Empty where it is no such file."""
    ident = _at(file, 0, 64)
    if ident[:6] != b"\x7fELF\x02\x01":
        return []
    (table,) = struct.unpack_from("<Q", ident, 32)
    entry_size, entries = struct.unpack_from("<HH", ident, 54)
    if entry_size != 56:
        return []
    rows = struct.iter_unpack("<IIQQQQQQ", _at(file, table, 56 * entries))
    return [(kind, offset, address, size) for kind, _, offset, address, _, size, _, _ in rows]


def _read_dynamic(file: BinaryIO) -> tuple[list[tuple[int, int]], bytes]:
    headers = _headers(file)
    dynamic = next((_at(file, offset, size) for kind, offset, _, size in headers if kind == _PT_DYNAMIC), b"")
    tags = list(struct.iter_unpack("<QQ", dynamic[: len(dynamic) // 16 * 16]))
    values = dict(tags)
    if _DT_STRTAB not in values:
        return [], b""
    address = values[_DT_STRTAB]
    for kind, offset, start, size in headers:
        if kind == _PT_LOAD and start <= address < start + size:
            return tags, _at(file, offset + address - start, values.get(_DT_STRSZ, 0))
    return [], b""


def _name(table: bytes, at: int) -> str:
    return table[at:].partition(b"\0")[0].decode("utf-8", "replace")
