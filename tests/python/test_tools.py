"""The checkout's own tools: the layer check, the reader of the README's commands, and how ./dev test goes through its suites."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import check_layers
import readme_commands
from devkit import test as suites
from devkit.test import Suite, Task, in_two_rows


@pytest.mark.parametrize(
    ("layer", "quoted", "angled", "problem"),
    [
        ("engine", "select/rules.hpp", "", ""),
        ("engine", "engine/pool.hpp", "", ""),
        ("engine", "pool.hpp", "", ""),
        ("kernels", "stretto/stretto.h", "", ""),
        ("base", "", "cstdint", ""),
        ("shim", "", "mpi.h", ""),
        ("select", "engine/pool.hpp", "", "higher level"),
        ("trace", "platform/cpus.hpp", "", "sibling"),
        ("kernels", "transport/table.hpp", "", "sibling"),
        ("collective", "", "mpi.h", "shim/ only"),
        ("engine", "mpi.h", "", "shim/ only"),
        ("engine", "../select/rules.hpp", "", "path from src/"),
        ("engine", "elsewhere/a.hpp", "", "no part of src/"),
        ("elsewhere", "base/status.hpp", "", "no level"),
    ],
)
def test_includes(layer: str, quoted: str, angled: str, problem: str) -> None:
    found = check_layers.include_problem(layer, quoted, angled)
    assert problem in found
    assert bool(problem) == bool(found)


def test_violations_are_found_in_files(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "a.cpp").write_text('#include "base/b.hpp"\n  #  include "shim/c.hpp"\n// #include "engine/d.hpp"\n')
    (violation,) = check_layers.cpp_violations(tmp_path)
    assert "a.cpp:2: base includes shim/c.hpp" in violation


def test_python_imports_go_leftward(tmp_path: Path) -> None:
    (tmp_path / "record.py").write_text("import os\nfrom stretto.errors import StrettoError\nfrom stretto import cli\n")
    (tmp_path / "report.py").write_text("from stretto.analysis import Summary\nimport stretto.cli\n")
    (tmp_path / "stray.py").write_text("")
    found = "\n".join(check_layers.python_violations(tmp_path))
    assert "record.py:3: record imports cli" in found
    assert "report.py:2: report imports cli" in found
    assert "stray.py: module stray has no level" in found
    assert found.count("\n") == 2


def test_long_functions_are_listed(tmp_path: Path) -> None:
    body = "  x += 1;\n" * 70
    source = tmp_path / "a.cpp"
    source.write_text(
        f"namespace a {{\n\nint f(int x) {{\n{body}  return x;\n}}\n\nint g() {{\n  return 1;\n}}\n\n}}  // namespace a\n"
    )
    script = tmp_path / "b.py"
    script.write_text("def f():\n" + "    x = 1\n" * 70 + "\n" * 340)
    found = list(check_layers.long_parts([source, script]))
    assert [line.split(": ", 1)[1] for line in found] == ["function of 73 lines", "411 lines", "function of 71 lines"]


README = """# Stretto
## Quick start
```sh
$ ./dev setup
./dev build   # compile
```
Then:
### More
```sh
./dev demo
```
```python
## Quick start
```
## Limits
```sh
rm -rf nothing
```
"""


def test_readme_commands() -> None:
    assert readme_commands.commands(README, "quick start") == "./dev setup\n./dev build   # compile\n./dev demo"
    assert readme_commands.commands(README, "Absent") == ""


def test_suites_in_two_rows() -> None:
    """The second row waits for the last of the first, so the first must have taken all that either may do."""
    through = threading.Event()
    begun: list[str] = []

    def suite(name: str, waits: bool = False) -> Task:
        def task() -> Suite:
            begun.append(name)
            if waits:
                assert through.wait(20)
            if name == "f":
                through.set()
            return Suite(name, 1, 0, 0.0)

        return task

    found = in_two_rows([suite("a"), suite("b")], [suite("c", waits=True), suite("d")], [suite("e"), suite("f")])
    assert [one.name for one in found] == ["a", "b", "e", "f", "c", "d"]
    assert sorted(begun) == list("abcdef")


def test_a_suite_that_raises_is_no_end_of_them() -> None:
    def broken() -> Suite:
        raise IndexError("a list of its own")

    with pytest.raises(IndexError, match="of its own"):
        in_two_rows([], [], [broken])


def test_a_script_that_breaks_off_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "tests" / "some" / "run"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\necho 'ok      first'\nexit 3\n")
    script.chmod(0o755)
    monkeypatch.setattr(suites, "ROOT", tmp_path)
    found = suites.script_suite(script, True)
    assert (found.name, found.passed, found.failed) == ("some", 0, 1)
    assert "exit code 3" in found.failures[0]
