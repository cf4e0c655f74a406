#!/usr/bin/env python3
"""Prints the commands of the README's quick start as a shell script, so that CI runs what a newcomer types.

Usage: readme_commands.py [FILE [HEADING]]: the ```sh blocks of the section with that heading (README.md, Quick start).
Exits 1 where there are none.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def commands(text: str, heading: str) -> str:
    """The contents of the section's sh blocks, one after the other; prompts ("$ ") are taken off."""
    blocks: list[str] = []
    level, language = 0, ""
    for line in text.splitlines():
        fence = re.match(r"\s*```(\w*)", line)
        title = re.match(r"(#+)\s+(.*?)\s*#*$", line)
        if fence:
            language = "" if language else fence[1] or "text"
        elif language == "sh" and level:
            blocks.append(line.removeprefix("$ "))
        elif title and not language:
            if title[2].lower() == heading.lower():
                level = len(title[1])
            elif level and len(title[1]) <= level:
                level = 0
    return "\n".join(blocks)


def main(words: list[str]) -> int:
    root = Path(__file__).resolve().parents[1]
    file = Path(words[0]) if words else root / "README.md"
    heading = words[1] if len(words) > 1 else "Quick start"
    script = commands(file.read_text(), heading)
    if not script.strip():
        print(f"{file}: no sh block under {heading}", file=sys.stderr)
        return 1
    print(f"set -e\n{script}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
