"""`./dev test [quick]`: every suite, and one line that adds them up."""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue

from devkit.build import build
from devkit.common import BUILD, MPI_ENVIRONMENTS, OLD_MPI, ROOT, VENV, DevError, environment, jobs, run, say

_SHOWN_LINES = 60  # of a failed test's output, repeated at the end
_COUNTS = re.compile(r"(\d+) passed, (\d+) failed")


@dataclass(frozen=True)
class Suite:
    name: str
    passed: int
    failed: int
    seconds: float
    failures: tuple[str, ...] = ()  # each a name, and under it the end of what it printed


Task = Callable[[], Suite]


def processor_time() -> float:
    """Seconds of all programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test(part: str = "") -> int:
    """Exit code 1 where any test failed. `quick` leaves out sanitizers and installation, and asks for short MPI tests.

    MPI jobs wait for one another much of their time, so what compiles runs beside them, and then what is apart from them."""
    if part not in ("", "quick"):
        raise DevError(f"no part {part}: ./dev test or ./dev test quick")
    quick = part == "quick"
    begin, busy = time.monotonic(), processor_time()
    build("release")
    suites = in_two_rows(mpi_suites(quick), compiling_suites(quick), suites_apart(quick))
    print()
    for suite in suites:
        counts = f"{suite.passed:7} passed {suite.failed:5} failed"
        print(f"{suite.name:28}{counts} {suite.seconds:8.1f} s")
    for suite in suites:
        for failure in suite.failures:
            print(f"FAILED  {suite.name}: {failure}")
    passed, failed = sum(suite.passed for suite in suites), sum(suite.failed for suite in suites)
    seconds = time.monotonic() - begin
    print(f"{seconds:.0f} s, {(processor_time() - busy) / seconds:.1f} cores busy")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


def in_two_rows(first: list[Task], second: list[Task], either: list[Task]) -> list[Suite]:
    """All of `first`, one after the other, and beside them all of `second`; who is through takes of `either` what is left."""
    left: SimpleQueue[Task] = SimpleQueue()
    for task in either:
        left.put(task)

    def row(own: list[Task]) -> list[Suite]:
        suites = [task() for task in own]
        with suppress(Empty):
            while True:
                suites.append(left.get_nowait()())
        return suites

    with ThreadPoolExecutor() as pool:
        return [suite for done in [pool.submit(row, first), pool.submit(row, second)] for suite in done.result()]


def mpi_suites(quick: bool) -> list[Task]:
    """These look at what jobs leave in /dev/shm, so only one at a time."""
    return [partial(script_suite, script, quick) for script in sorted((ROOT / "tests" / "mpi").glob("*/run"))]


def suites_apart(quick: bool) -> list[Task]:
    """In namespaces of their own, or without MPI jobs."""
    scripts = (ROOT / "tests" / name / "run" for name in ("nodes", "slurm", "nccl", "scale"))
    return [*(partial(script_suite, script, quick) for script in scripts), pytest]


def compiling_suites(quick: bool) -> list[Task]:
    presets = ("release",) if quick else ("release", "asan", "tsan")
    packaging = [] if quick else [partial(script_suite, ROOT / "tests" / "packaging" / "run", False)]
    return [*(partial(unit_tests, preset) for preset in presets), *packaging]


def unit_tests(preset: str) -> Suite:
    try:
        build(preset, tests=True)
    except DevError as error:  # the other suites count all the same
        return Suite(f"unit ({preset})", 0, 1, 0.0, (f"not built\n{error}",))
    return ctest(preset)


def ctest(preset: str) -> Suite:
    """The unit and conformance tests of a build: each part of a program writes a report. What that does not show, as where a part
    crashed, or leaked memory, ctest tells of the part."""
    folder = BUILD / preset
    reports = folder / "tests" / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    # gcc's thread sanitizer does not stand the address layouts of newer kernels: fix the layout.
    fixed = ["setarch", "-R"] if preset == "tsan" and shutil.which("setarch") else []
    parts = folder / "ctest.xml"
    parts.unlink(missing_ok=True)
    command = [*fixed, "ctest", "--test-dir", folder, "--output-on-failure", "-j", jobs(), "--output-junit", parts]
    extra = {"TSAN_OPTIONS": "halt_on_error=1", "ASAN_OPTIONS": "detect_leaks=1"}
    if preset == "tsan":
        extra["GTEST_FILTER"] = "-Reduce.*:Copy.*"  # kernels by a single thread, slow there

    def read() -> Cases:
        cases, ended = Cases(), Cases()
        shown = set()
        for report in sorted(reports.glob("*.xml")):
            before = len(cases.failures)
            cases.read(report)
            if len(cases.failures) > before:
                shown.add(report.stem)
        ended.read(parts, lambda part: part not in shown)
        cases.failures += ended.failures
        return cases

    return counted(f"unit ({preset})", [str(word) for word in [*command, "--quiet"]], read, extra)


def pytest() -> Suite:
    report = BUILD / "pytest.xml"
    report.unlink(missing_ok=True)
    command = [str(VENV / "bin" / "pytest"), "tests/python", "--junitxml", str(report)]

    def read() -> Cases:
        cases = Cases()
        cases.read(report)
        return cases

    return counted("python", command, read, mpi_environments())


class Cases:
    """What JUnit reports tell."""

    def __init__(self) -> None:
        self.passed = 0
        self.failures: list[str] = []

    def read(self, report: Path, counts: Callable[[str], bool] = lambda _: True) -> None:
        """Those whose name counts; nothing where there is no such report."""
        for case in ElementTree.parse(report).getroot().iter("testcase") if report.is_file() else ():
            name = case.get("name", "?")
            if not counts(name):
                continue
            group = case.get("classname", name)
            bad = [part for part in case if part.tag in ("failure", "error")]
            if bad:
                printed = "\n".join(text for text in (*(part.text for part in bad), case.findtext("system-out")) if text)
                title = name if group == name else f"{group}.{name}"
                self.failures.append("\n".join([title, *printed.splitlines()[-_SHOWN_LINES:]]))
            elif case.find("skipped") is None:
                self.passed += 1


def counted(name: str, command: list[str], read: Callable[[], Cases], extra: dict[str, str]) -> Suite:
    """A suite that writes JUnit reports. No report, or a failure that they do not show, counts as one failure."""
    say(name)
    begin = time.monotonic()
    code = run(command, extra)
    cases = read()
    failed = len(cases.failures) or int(code != 0)
    return Suite(name, cases.passed, failed, time.monotonic() - begin, tuple(cases.failures))


def script_suite(script: Path, quick: bool) -> Suite:
    """A script under tests: exit code 0 passes. A line 'N passed, N failed' gives the numbers, else it is one."""
    name = str(script.parent.relative_to(ROOT / "tests"))
    say(name)
    begin = time.monotonic()
    extra = {**mpi_environments(), **({"QUICK": "1"} if quick else {})}
    passed = failed = 0
    told = False
    failures: list[list[str]] = []
    with subprocess.Popen([str(script)], cwd=ROOT, env=environment(extra), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            match = _COUNTS.fullmatch(line.strip())
            if line.startswith("FAILED"):
                failures.append([line.removeprefix("FAILED").strip()])
            elif failures and not (match or line.startswith("ok ")) and len(failures[-1]) < _SHOWN_LINES:
                failures[-1].append(line.rstrip())  # why, below the name
            if match:
                passed, failed, told = int(match[1]), int(match[2]), True
    if process.returncode and not failed:
        failed = 1
        failures.append([f"ended with exit code {process.returncode}; why stands above, behind 'dev: {name}'"])
    if not process.returncode and not told:
        passed = 1
    return Suite(name, passed, failed, time.monotonic() - begin, tuple(map("\n".join, failures)))


def mpi_environments() -> dict[str, str]:
    return {f"MPI_{name.upper()}": str(folder) for name, folder in {**MPI_ENVIRONMENTS, **OLD_MPI}.items()}
