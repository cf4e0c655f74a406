"""What is left of a job that did not end by MPI_Finalize, or could not write."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import read_trace
from mpi_job import Mpi, Outcome
from read_trace import Trace, text

Profiled = Callable[..., tuple[Outcome, list[Trace]]]
CALLS = 1000


def allreduces(trace: Trace) -> int:
    return len(trace.function("MPI_Allreduce"))


def ticks_problem(trace: Trace) -> str:
    """Ticks can be converted, also to the end."""
    header = trace.header
    if not header["start_ticks"] < header["last_ticks"] or not header["start_ns"] < header["last_ns"]:
        return f"no calibration: {header}"
    return ""


def end_problem(profiled: Profiled, mpi: Mpi, program: Path, how: str, mode: str) -> str:
    with tempfile.TemporaryDirectory() as name:
        _, traces = profiled(mpi, [program, how], 2, Path(name), mode)
    if len(traces) != 2:
        return f"{len(traces)} traces of 2"
    for trace in traces:
        header = trace.header
        if trace.function_sums().get("MPI_Allreduce") != (CALLS, 4 * CALLS, 4 * CALLS):
            return f"sums {trace.function_sums()}"
        if allreduces(trace) != CALLS:  # in aggregate, these are few enough to be kept all
            return f"{allreduces(trace)} events"
        if header["stage"] != 1 or header["init_ticks"] == 0 or header["finalize_ticks"]:
            return f"header {header}"
        if problem := ticks_problem(trace):
            return problem
    return inside_problem(traces, how)


def inside_problem(traces: list[Trace], how: str) -> str:
    """Where each rank was when it ended."""
    inside = {}
    for trace in traces:
        thread = trace.tables["threads"][0]
        function = int(thread["function"])
        inside[trace.header["world_rank"]] = (
            "" if function == read_trace.NONE16 else text(trace.tables["functions"][function]),
            int(thread["peer"]),
        )
    wanted = {0: ("", -1) if how == "exit" else ("MPI_Recv", 1), 1: ("MPI_Abort" if how == "abort" else "", -1)}
    actual = {rank: (function, peer if function == "MPI_Recv" else -1) for rank, (function, peer) in inside.items()}
    return "" if actual == wanted else f"inside {actual} instead of {wanted}"


def fork_problem(profiled: Profiled, mpi: Mpi, program: Path) -> str:
    with tempfile.TemporaryDirectory() as name:
        outcome, traces = profiled(mpi, [program, "fork"], 2, Path(name))
    if outcome.code != 0 or len(traces) != 2:
        return f"exit code {outcome.code}, {len(traces)} traces\n{outcome.tail()}"
    wrong = [
        trace for trace in traces if allreduces(trace) != CALLS + 1 or len(trace.tables["marks"]) or trace.header["stage"] != 2
    ]
    return "a child wrote to its parent's trace" if wrong else ""


def unwritable_problem(profiled: Profiled, mpi: Mpi, program: Path) -> str:
    """A folder that is none: one line, and the program runs as ever."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "file"
        file.write_text("")
        outcome, traces = profiled(mpi, [program], 2, Path(name), STRETTO_RECORD_DIR=str(file))
    lines = [line for line in outcome.error.splitlines() if "no profile in" in line]
    return "" if outcome.code == 0 and len(lines) == 1 and not traces else f"exit code {outcome.code}, {lines}\n{outcome.tail()}"


def full_disk_problem(profiled: Profiled, mpi: Mpi, program: Path) -> str:
    """A disk of 1 MiB: the program runs to its end, and what was dropped is counted."""
    with tempfile.TemporaryDirectory() as name:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", name], capture_output=True, check=False).returncode:
            return ""  # not allowed here; tests/unit/trace fills a file up to a limit
        try:
            outcome, traces = profiled(mpi, [program], 1, Path(name), TRUTH="/dev/shm")
        finally:
            subprocess.run(["umount", name], check=True)
            Path("/dev/shm/0").unlink(missing_ok=True)
    if outcome.code != 0 or len(traces) != 1:
        return f"exit code {outcome.code}, {len(traces)} traces\n{outcome.tail()}"
    return "" if traces[0].header["dropped_events"] > 0 else f"nothing dropped: {traces[0].header}"


def limit_problem(profiled: Profiled, mpi: Mpi, program: Path) -> str:
    """STRETTO_TRACE_MIB bounds the file; sums go on."""
    with tempfile.TemporaryDirectory() as name:
        outcome, traces = profiled(mpi, [program], 1, Path(name), STRETTO_TRACE_MIB="1")
        largest = max((path.stat().st_size for path in Path(name).glob("*.trace")), default=0)
    if outcome.code != 0 or len(traces) != 1 or largest > 1 << 20:
        return f"exit code {outcome.code}, {len(traces)} traces of {largest} bytes\n{outcome.tail()}"
    events, header = len(traces[0].calls), traces[0].header
    calls = sum(calls for calls, _, _ in traces[0].function_sums().values())
    marks_lost = 3 - len(traces[0].tables["marks"])  # of the three MPI_Pcontrol
    good = header["dropped_events"] > 0 and events + header["dropped_events"] == calls + marks_lost
    return "" if good else f"{events} events, {header['dropped_events']} dropped, {calls} calls"


def same_for_program(profiled: Profiled, mpi: Mpi, program: Path, mode: str) -> str:
    with tempfile.TemporaryDirectory() as name:
        without, _ = profiled(mpi, [program], 1, Path(name), "off")
    with tempfile.TemporaryDirectory() as name:
        with_profile, _ = profiled(mpi, [program], 1, Path(name), mode)
    if without.code != 0 or (without.code, without.output) != (with_profile.code, with_profile.output):
        return f"without, {without.code}:\n{without.output}with, {with_profile.code}:\n{with_profile.output}{with_profile.error}"
    return ""
