"""`./dev check [static]`: formatting, lint, types, layers; then the quick tests."""

from __future__ import annotations

import hashlib
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from devkit.common import BUILD, ROOT, VENV, DevError, capture, need, say, tracked_files
from devkit.test import test

CPP = ("*.cpp", "*.hpp", "*.c", "*.h")


def check(part: str = "") -> int:
    if part not in ("", "static"):
        raise DevError(f"no part {part}: ./dev check or ./dev check static")
    results = [
        step("clang-format", ["clang-format", "--dry-run", "--Werror", *tracked_files(*CPP)]),
        step("ruff check", ["ruff", "check", ROOT]),
        step("ruff format", ["ruff", "format", "--check", ROOT]),
        step(
            "mypy",
            ["mypy", "python/stretto", "tools/devkit", *sorted(ROOT.glob("tools/*.py")), *sorted(ROOT.glob("bench/**/*.py"))],
        ),
        step("layers", [VENV / "bin/python", "tools/check_layers.py"], always=True),
        clang_tidy(),
    ]
    if not all(results):
        raise DevError("check failed")
    say("static checks passed")
    return test("quick") if part == "" else 0


def reformat() -> None:
    need(["clang-format", "-i", *tracked_files(*CPP)])
    need(["ruff", "format", "--quiet", ROOT])
    need(["ruff", "check", "--fix", ROOT])


def step(name: str, command: list[str | Path], always: bool = False) -> bool:
    """Runs one check and prints its output where it fails (or always)."""
    code, text = capture(command)
    say(f"{name}: {'ok' if code == 0 else 'FAILED'}")
    if code or always:
        print(text.rstrip())
    return code == 0


def clang_tidy() -> bool:
    """clang-tidy over src/, in parallel, each file once, though some are compiled for several MPIs or instruction sets; files
    whose text and headers are unchanged since they passed are left out."""
    database = BUILD / "release" / "compile_commands.json"
    if not database.is_file():
        say("clang-tidy: FAILED (it needs the compile commands: ./dev build)")
        return False
    text = re.sub(r" -Winvalid-pch -include \S+", "", database.read_text())  # precompiled by another compiler
    once = {row["file"]: row for row in reversed(json.loads(text))}
    listed = json.dumps(list(once.values()))
    files = [file for file in tracked_files("src/*.cpp") if str(file) in once]
    passed = BUILD / "clang-tidy"
    passed.mkdir(parents=True, exist_ok=True)
    (passed / "compile_commands.json").write_text(listed)
    headers = hashlib.sha256((ROOT / ".clang-tidy").read_bytes() + listed.encode())
    for header in tracked_files("src/*.hpp", "include/*.h"):
        headers.update(header.read_bytes())
    todo = {
        file: passed / hashlib.sha256(headers.digest() + str(file).encode() + file.read_bytes()).hexdigest() for file in files
    }
    todo = {file: stamp for file, stamp in todo.items() if not stamp.exists()}
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = list(pool.map(tidy_one, todo.items()))
    say(f"clang-tidy: {'ok' if all(results) else 'FAILED'} ({len(todo)} of {len(files)} files looked at, the others unchanged)")
    return all(results)


def tidy_one(item: tuple[Path, Path]) -> bool:
    file, stamp = item
    code, text = capture(["clang-tidy", "-p", BUILD / "clang-tidy", "--quiet", "--warnings-as-errors=*", file])
    if code:
        print(text.rstrip())
        return False
    stamp.touch()
    return True
