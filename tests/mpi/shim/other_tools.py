"""Another tool in the process (tool.c), linked into the program, preloaded before Stretto, or a library behind it: it sees what
it sees without Stretto, and Stretto takes over what the tool passes on. And a second Stretto, which does nothing."""

from __future__ import annotations

import shutil
import subprocess
from functools import partial
from pathlib import Path

from mpi_job import BUILD, Mpi, Outcome, Tally, accelerated_share, run_accelerated

HERE = Path(__file__).resolve().parent
SEEN = "tool: 500 50 10 7 2"
RANKS = 2
CALLS = {"Allreduce": RANKS * 550, "Barrier": RANKS * 7}  # blocking or not, all taken over


FLAGS = {"behind, Fortran": ["-DFORTRAN"], "behind, passing by": ["-DPASSES_BY"]}


def build(mpi: Mpi, how: str) -> tuple[Path, Path]:
    """The tool as a library, and the program."""
    flags = FLAGS.get(how, [])
    name = f"tool{''.join(flags)}-{mpi.name}"
    library, program = BUILD / f"lib{name}.so", BUILD / f"{how.replace(', ', '_').replace(' ', '_')}-{name}"
    subprocess.run([mpi.cc, *flags, "-shared", "-fPIC", HERE / "tool.c", "-o", library], check=True)
    linked = {"linked": [HERE / "tool.c"], "before": []}.get(how, ["-Wl,--no-as-needed", library, f"-Wl,-rpath,{BUILD}"])
    if "Fortran" in how:
        linked.append("-lmpi_mpifh")
    subprocess.run([mpi.cc, *flags, HERE / "tool_calls.c", *linked, "-o", program], check=True)
    return library, program


def problem_of(mpi: Mpi, how: str) -> str:
    library, program = build(mpi, how)
    environment = {"LD_PRELOAD": str(library)} if how == "before" else {}
    outcome = run_accelerated(mpi, mpi.launch(RANKS, program), 60, environment)
    if outcome.code != 0 or SEEN not in outcome.output:
        return f"    exit code {outcome.code}\n{outcome.tail()}"
    if how == "behind, passing by":  # its MPI_Wait would know nothing of requests of Stretto's
        told = outcome.summary["collectives"]["Allreduce"]
        left = told["declines"] == {"requests completed by another tool": RANKS * 50} and told["calls"] == RANKS * 50
        return "" if left else f"    {told}\n"
    return calls_problem(outcome)


def calls_problem(outcome: Outcome) -> str:
    for collective, calls in CALLS.items():
        told = outcome.summary["collectives"].get(collective, {})
        if told.get("calls") != calls or accelerated_share(outcome, collective) < 0.9:
            return f"    {collective}: {told}\n"
    calls = {
        name: outcome.summary["functions"].get(name, {}).get("calls", 0) for name in ("MPI_Sendrecv", "MPI_Sendrecv_replace")
    }
    return "" if calls == {"MPI_Sendrecv": 0, "MPI_Sendrecv_replace": RANKS * 3} else f"    {calls}\n"


def second_problem(mpi: Mpi, stretto: Path) -> str:
    """`stretto`: the preload for this MPI."""
    program, second = BUILD / f"tool_calls-{mpi.name}", BUILD / "second" / stretto.name
    second.parent.mkdir(exist_ok=True)
    shutil.copy(stretto, second)
    subprocess.run([mpi.cc, HERE / "tool_calls.c", "-o", program], check=True)
    outcome = run_accelerated(mpi, mpi.launch(RANKS, program), 60, {"LD_PRELOAD": str(second)})
    return calls_problem(outcome) if outcome.code == 0 else f"    exit code {outcome.code}\n{outcome.tail()}"


def check(tally: Tally, mpi: Mpi, stretto: Path) -> None:
    hows = ["linked", "before", "behind", "behind, passing by"]
    for how in hows + (["behind, Fortran"] if mpi.name == "debian-openmpi" else []):
        tally.run(f"another tool under {mpi.name}, {how}", partial(problem_of, mpi, how))
    tally.run(f"a second Stretto under {mpi.name}", partial(second_problem, mpi, stretto))
