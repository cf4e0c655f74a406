#!/usr/bin/env python3
"""Checks that each part of Stretto uses strictly lower parts only.

src/: a file includes headers of its own folder and of folders on a strictly lower level; siblings on one level do not
include one another; mpi.h stands in shim/ only. python/stretto/: a module imports modules on a strictly lower level.
Prints one line per violation and exits 1 where there is one. Long functions and files are listed as warnings.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

CPP_LEVELS = {
    "base": 0,
    "platform": 1,
    "trace": 1,
    "arena": 2,
    "kernels": 2,
    "launcher": 2,
    "transport": 2,
    "collective": 3,
    "select": 4,
    "engine": 5,
    "shim": 6,
    "nccl": 6,
    "bench": 7,
}
PYTHON_LEVELS = {  # profile, profile_report and torch are folders
    "__init__": 0,
    "errors": 0,
    "inside": 0,
    "torch": 0,
    "elf": 0,
    "trace_layout": 0,
    "profile_model": 0,
    "wording": 0,
    "files": 0,
    "record": 1,
    "trace_sections": 1,
    "trace": 2,
    "preload": 1,
    "running": 1,
    "meeting": 1,
    "cli_options": 1,
    "analysis": 3,
    "launchers": 3,
    "programs": 1,
    "job": 3,
    "profile": 3,
    "rewrite": 4,
    "machine": 4,
    "receives": 3,
    "exports": 4,
    "perfetto": 4,
    "timeline": 5,
    "otf2_archive": 5,
    "session": 5,
    "profiling": 6,
    "comparison": 6,
    "report": 7,
    "live": 7,
    "profile_report": 8,
    "profile_cli": 9,
    "benchmark": 9,
    "bench_options": 10,
    "bench_cli": 11,
    "tune_cli": 11,
    "cli": 12,
    "__main__": 13,
}
MOST_FUNCTION_LINES = 60
MOST_FILE_LINES = 400

_INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def cpp_violations(source: Path) -> Iterator[str]:
    """`source` is the src folder."""
    for path in sorted(source.rglob("*")):
        if path.suffix not in (".hpp", ".cpp", ".h", ".c", ".cu", ".inc"):
            continue
        layer = path.relative_to(source).parts[0]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = _INCLUDE.match(line)
            if match:
                problem = include_problem(layer, match[1] or "", match[2] or "")
                if problem:
                    yield f"{path}:{number}: {problem}"


def include_problem(layer: str, quoted: str, angled: str) -> str:
    """Why a file of `layer` must not include this; empty where it may."""
    if layer not in CPP_LEVELS:
        return f"folder {layer} has no level: give it one in tools/check_layers.py"
    if "mpi.h" in (quoted, angled) and layer != "shim":
        return "mpi.h is for shim/ only"
    target = quoted.split("/")[0]
    if "/" not in quoted or target in (layer, "stretto"):
        return ""
    if quoted.startswith("../"):
        return f"{quoted}: include by the path from src/"
    if target not in CPP_LEVELS:
        return f"{quoted}: {target} is no part of src/"
    if CPP_LEVELS[target] >= CPP_LEVELS[layer]:
        kind = "a sibling" if CPP_LEVELS[target] == CPP_LEVELS[layer] else "a higher level"
        return f"{layer} includes {quoted}, of {kind}"
    return ""


def python_violations(package: Path) -> Iterator[str]:
    """`package` is python/stretto."""
    for path in sorted(package.rglob("*.py")):
        module = path.relative_to(package).parts[0].removesuffix(".py")
        if module not in PYTHON_LEVELS:
            yield f"{path}: module {module} has no level: give it one in tools/check_layers.py"
            continue
        for line, imported in imports(path.read_text()):
            if imported != module and PYTHON_LEVELS.get(imported, -1) >= PYTHON_LEVELS[module]:
                yield f"{path}:{line}: {module} imports {imported}, which is not on a lower level"


def imports(text: str) -> Iterator[tuple[int, str]]:
    """(line, module) for every import of a module of the package."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "stretto":
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stretto."):
            yield node.lineno, (node.module or "").split(".")[1]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("stretto."):
                    yield node.lineno, alias.name.split(".")[1]


def long_parts(files: list[Path]) -> Iterator[str]:
    for path in files:
        text = path.read_text()
        lines = text.count("\n")
        if lines > MOST_FILE_LINES:
            yield f"{path}: {lines} lines"
        functions = python_functions(text) if path.suffix == ".py" else cpp_functions(text)
        for line, length in functions:
            if length > MOST_FUNCTION_LINES:
                yield f"{path}:{line}: function of {length} lines"


def python_functions(text: str) -> Iterator[tuple[int, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno:
            yield node.lineno, node.end_lineno - node.lineno + 1


def cpp_functions(text: str) -> Iterator[tuple[int, int]]:
    """(line, length) of the functions that begin in column 0, as clang-format lays them out."""
    begin, signature = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"[\w~:*&<]", line) and not line.startswith(("namespace", "using", "extern")):
            signature = "" if line.startswith(("class", "struct")) else line
        if line.endswith("{") and not begin and signature and re.match(r"[\w ~:*&<,>(]", line) and "(" in signature + line:
            begin = 0 if line.startswith(("namespace", "extern")) else number
        elif line == "}" and begin:
            yield begin, number - begin + 1
            begin, signature = 0, ""


def main() -> int:
    root = Path(__file__).resolve().parents[1]
    violations = [*cpp_violations(root / "src"), *python_violations(root / "python" / "stretto")]
    files = sorted([*root.glob("src/**/*.[hc]pp"), *root.glob("python/**/*.py"), *root.glob("tools/**/*.py")])
    for warning in long_parts(files):
        print(f"warning: {Path(warning).relative_to(root)}")
    for violation in violations:
        print(Path(violation).relative_to(root))
    print(f"layers: {len(violations)} violation{'' if len(violations) == 1 else 's'}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
