"""Another tool in the process (tool.c), linked into the program, preloaded before Stretto, or a library behind it: it sees what
it sees without Stretto, and Stretto takes over what the tool passes on."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path

from mpi_job import BUILD, Mpi, Tally, accelerated_share, run_accelerated

HERE = Path(__file__).resolve().parent
SEEN = "tool: 500 50 10 7"
RANKS = 2
CALLS = {"Allreduce": RANKS * 550, "Barrier": RANKS * 7}  # blocking or not


def build(mpi: Mpi, how: str) -> tuple[Path, Path]:
    """The tool as a library, and the program."""
    fortran = ["-DFORTRAN"] if how == "behind, Fortran" else []
    name = f"tool{'_fortran' * bool(fortran)}-{mpi.name}"
    library, program = BUILD / f"lib{name}.so", BUILD / f"{how.replace(', ', '_')}-{name}"
    subprocess.run([mpi.cc, *fortran, "-shared", "-fPIC", HERE / "tool.c", "-o", library], check=True)
    linked = {"linked": [HERE / "tool.c"], "before": []}.get(how, ["-Wl,--no-as-needed", library, f"-Wl,-rpath,{BUILD}"])
    subprocess.run(
        [mpi.cc, *fortran, HERE / "tool_calls.c", *linked, *(["-lmpi_mpifh"] if fortran else []), "-o", program], check=True
    )
    return library, program


def problem_of(mpi: Mpi, how: str) -> str:
    library, program = build(mpi, how)
    environment = {"LD_PRELOAD": str(library)} if how == "before" else {}
    outcome = run_accelerated(mpi, mpi.launch(RANKS, program), 60, environment)
    if outcome.code != 0 or SEEN not in outcome.output:
        return f"    exit code {outcome.code}\n{outcome.tail()}"
    for collective, calls in CALLS.items():
        told = outcome.summary["collectives"].get(collective, {})
        if told.get("calls") != calls or accelerated_share(outcome, collective) < 0.9:
            return f"    {collective}: {told}\n"
    return ""


def check(tally: Tally, mpi: Mpi) -> None:
    for how in ("linked", "before", "behind", *(["behind, Fortran"] if mpi.name == "debian-openmpi" else [])):
        tally.run(f"another tool under {mpi.name}, {how}", partial(problem_of, mpi, how))
