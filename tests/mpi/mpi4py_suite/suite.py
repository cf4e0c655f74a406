"""mpi4py's own tests: where they are, how a job runs them, and what became of each on each rank."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mpi_job import ROOT, Mpi, Outcome, installations

VERSION = "4.1.2"
CACHE = ROOT / ".cache" / "mpi4py"
RECORDED = Path(__file__).resolve().parent / "recorded.py"
LIMIT = 400.0
# Tests that are left out, as mpi4py's main.py takes them.
LEFT_OUT = {
    "openmpi": (
        "IDup",  # flaky without Stretto
        "test_spawn",  # children are not reached by shared memory alone (OMPI_MCA_btl of these tests)
    ),
    "mpich": (
        # Has no Iagree, so mpi4py makes it of an Iallreduce, which the test starts before a Barrier on one rank and after it on
        # the others. MPI forbids that; MPICH gets along with it, and Stretto ends both with an error.
        "TestULFMWorld.testIAgree",
    ),
}
# Minutes, for a file that is opened and closed hundreds of times.
TOO_LONG = ("*IOView*Darray*",)


# One name per rank and test: "0 test_op.TestOp.testCreate".
@dataclass(frozen=True)
class Results:
    passed: frozenset[str]
    failed: frozenset[str]
    code: int | None


def test_folder() -> Path:
    """mpi4py's test folder, downloaded once."""
    folder = CACHE / f"mpi4py-{VERSION}" / "test"
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        python = str(installations()[0].python)
        options = ["--quiet", "--no-deps", "--no-binary", "mpi4py", "--dest", str(CACHE)]
        subprocess.run([python, "-m", "pip", "download", *options, f"mpi4py=={VERSION}"], check=True)
        with tarfile.open(CACHE / f"mpi4py-{VERSION}.tar.gz") as archive:
            members = [m for m in archive.getmembers() if m.name.startswith(f"mpi4py-{VERSION}/test/")]
            archive.extractall(CACHE, members=members)
    return folder


def all_modules() -> list[str]:
    return sorted(path.stem for path in test_folder().glob("test_*.py"))


def _results_of(folder: Path, code: int | None) -> Results:
    told = [(path.stem.removeprefix("rank-"), json.loads(path.read_text())) for path in sorted(folder.iterdir())]
    by_outcome = {
        outcome: frozenset(f"{rank} {test}" for rank, tests in told for test, was in tests.items() if was == outcome)
        for outcome in ("passed", "failed")
    }
    return Results(by_outcome["passed"], by_outcome["failed"], code)


def run(mpi: Mpi, modules: tuple[str, ...], start: Callable[[list[str], list[str]], Outcome]) -> tuple[Results, Outcome]:
    """start(program, prefix): has ranks run the program in test_folder(), to the end; prefix: what the launcher's command
    begins with, as a test that runs away must not take the machine's memory."""
    words = [word for module in modules for word in ("-i", module)]
    words += [word for name in (*LEFT_OUT[mpi.family], *TOO_LONG) for word in ("-x", name)]
    prefix = ["prlimit", f"--data={4 << 30}"] if shutil.which("prlimit") else []
    with tempfile.TemporaryDirectory() as folder:
        outcome = start([str(mpi.python), str(RECORDED), folder, "-q", *words], prefix)
        return _results_of(Path(folder), outcome.code), outcome


def _difference(plain: Results, accelerated: Results) -> str:
    lines = []
    for what, a, b in (("passes", plain.passed, accelerated.passed), ("failures", plain.failed, accelerated.failed)):
        lines += [f"    {what} only without Stretto: {name}" for name in sorted(a - b)]
        lines += [f"    {what} only with Stretto: {name}" for name in sorted(b - a)]
    if (plain.code == 0) != (accelerated.code == 0):
        lines.append(f"    exit code {plain.code} without Stretto, {accelerated.code} with")
    return "\n".join(lines[:20])


def _module(name: str) -> str:
    return name.split()[1].split(".")[0]


def compare(
    mpi: Mpi, modules: tuple[str, ...], start: Callable[[bool, list[str], list[str]], Outcome], alone: bool, whole: bool = False
) -> tuple[str, str]:
    """start(accelerated, program, prefix) as in run(). alone: one rank, where nothing can be accelerated. Without Stretto the
    modules run in which tests have failed with it; `whole`: all do.

    Returns a line of what there was, and the problem, empty if there is none.
    """
    accelerated, after = run(mpi, modules, lambda program, prefix: start(True, program, prefix))
    counts = f"{len(accelerated.passed)} passes and {len(accelerated.failed)} failures"
    line = f"{counts} in {after.seconds:.0f} s"
    problem = ""
    failed = {_module(name) for name in accelerated.failed}
    if whole or failed or accelerated.code != 0:
        again = modules if whole or not failed else tuple(rf"{module}\b" for module in sorted(failed))
        plain, before = run(mpi, again, lambda program, prefix: start(False, program, prefix))
        ran = {_module(name) for name in plain.passed | plain.failed}
        passed = frozenset(name for name in accelerated.passed if whole or _module(name) in ran)
        problem = _difference(plain, Results(passed, accelerated.failed, accelerated.code))
        line += f"; {len(plain.passed)} and {len(plain.failed)} in {before.seconds:.0f} s without Stretto"
    if not problem and not accelerated.passed:
        problem = "    no test ran\n" + after.tail()
    if not problem and not alone and "; accelerated" not in after.error:
        problem = "    not accelerated\n" + after.tail()
    return line, problem and problem + "\n" + after.tail()
