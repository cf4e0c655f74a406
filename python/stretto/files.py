"""Files that may be anything."""

from __future__ import annotations

import os
from pathlib import Path


def read_bytes(path: Path, most: int) -> bytes:
    """Of a file its first `most`, opened without waiting for a writer where it is a pipe."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file.read(most) or b""
