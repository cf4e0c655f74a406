"""Runs mpi4py's test/main.py and writes what became of every test on this rank, which its printed report, mixed with the
other ranks', does not tell reliably.

Usage: recorded.py FOLDER ARGUMENTS_OF_MAIN...   (in mpi4py's test folder)
"""

import json
import runpy
import sys
import unittest
from pathlib import Path

folder = Path(sys.argv[1])
results: dict[str, str] = {}


def recording(name: str, outcome: str) -> None:
    original = getattr(unittest.TextTestResult, name)

    def method(self, test, *details):
        results[test.id()] = outcome
        return original(self, test, *details)

    setattr(unittest.TextTestResult, name, method)


def record_subtests() -> None:
    original = unittest.TextTestResult.addSubTest

    def method(self, test, subtest, error):
        if error is not None:
            results[subtest.id()] = "failed"
        return original(self, test, subtest, error)

    unittest.TextTestResult.addSubTest = method


for name, outcome in (("addSuccess", "passed"), ("addFailure", "failed"), ("addError", "failed"), ("addSkip", "skipped")):
    recording(name, outcome)
record_subtests()

sys.argv = ["main.py", *sys.argv[2:]]
sys.path.insert(0, str(Path.cwd()))
try:
    runpy.run_path("main.py", run_name="__main__")
finally:
    from mpi4py import MPI

    (folder / f"rank-{MPI.COMM_WORLD.rank}.json").write_text(json.dumps(results))
