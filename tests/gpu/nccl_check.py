"""What the trace of a rank must hold after nccl_traffic.py: calls, bytes, types, ops, sequence numbers, kernels and their times.

check(told, trace, wrapped, plugin, behind) -> Findings     told: the rank's log; trace: its trace file, read, or None
"""

from __future__ import annotations

import statistics
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "nccl"))

from trace_file import FAILED, Event, Trace

COLLECTIVES = {"AllReduce", "Reduce", "Broadcast", "Bcast", "AllGather", "ReduceScatter", "AlltoAll", "Gather", "Scatter"}
OPERATIONS = COLLECTIVES | {"Send", "Recv"}
EARLY = 1_000_000  # ns by which an event may seem to begin before its step
TOO_EARLY = 100_000  # ns by which a kernel may seem to begin before its call on the host
LATE = 2_000_000  # ns by which a kernel may seem to end after the host has waited for it
MOST_SAID = 6

Facts = tuple[Any, ...]


@dataclass
class Findings:
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def need(self, condition: object, problem: str) -> None:
        if not condition:
            self.problems.append(problem)


@dataclass
class Step:
    """One step of the program, and the trace's events in its time."""

    name: str
    calls: list[list[Any]]
    begin: int
    end: int
    host: list[Event] = field(default_factory=list)
    gpu: list[Event] = field(default_factory=list)


def bare(event: Event) -> str:
    return event.function.removeprefix("GPU ").removeprefix("nccl")


def on_gpu(event: Event) -> bool:
    return event.function.startswith("GPU ")


def summary(trace: Trace) -> list[str]:
    """A compact form of all that the trace holds."""
    header = trace.header
    calls = Counter(event.function for event in trace.events)
    algorithms: dict[str, Counter[str]] = defaultdict(Counter)
    for event in trace.events:
        if event.algorithm:
            algorithms[event.function][event.algorithm] += 1
    told = [f"{name} {number}" for name, number in sorted(calls.items())]
    used = [f"{name}: {', '.join(f'{a} {n}' for a, n in of.items())}" for name, of in sorted(algorithms.items())]
    comms = [f"{c['name']!r} {c['rank']}/{c['size']}" for c in trace.communicators]
    where = f"rank {header['world_rank']}/{header['world_size']}"
    first = f"{header['library']}, {where}, dropped {header['dropped_events']}, communicators {comms}"
    return [first, "; ".join(told), *used, f"types {trace.datatypes}, ops {trace.operations}"]


def steps_of(told: dict[str, Any], trace: Trace) -> list[Step]:
    steps = [Step(s["name"], s["calls"], s["begin"], s["end"]) for s in told["steps"]]
    for event in sorted(trace.events, key=lambda event: event.begin):
        if bare(event) not in OPERATIONS:
            continue
        before = [step for step in steps if step.begin - EARLY <= event.begin]
        if before:
            (before[-1].gpu if on_gpu(event) else before[-1].host).append(event)
    return steps


def messages(call: list[Any], size: int) -> list[list[Any]]:
    """What an all-to-all is to NCCL."""
    _, sent, received, datatype, _, _ = call
    sends = [["Send", sent // size, 0, datatype, "", peer] for peer in range(size)]
    return sends + [["Recv", 0, received // size, datatype, "", peer] for peer in range(size)]


def facts(function: str, sent: int, received: int, datatype: str, op: str, peer: int, *, exact: bool) -> Facts:
    """Of one call, in the form in which two are compared. The plugin alone knows no op, and takes some types for bytes."""
    name = "Broadcast" if function == "Bcast" else function
    common: Facts = (name, sent, received, peer if name in ("Send", "Recv") else -1)
    return (*common, datatype, op) if exact else common


def wanted(step: Step, size: int, split: bool, exact: bool) -> Counter[Facts]:
    """`split`: an all-to-all as its messages."""
    calls = []
    for call in step.calls:
        calls += messages(call, size) if split and call[0] == "AlltoAll" else [call]
    return Counter(facts(*call, exact=exact) for call in calls)


def seen(events: list[Event], exact: bool) -> Counter[Facts]:
    return Counter(facts(bare(e), e.sent, e.received, e.datatype, e.op, e.peer, exact=exact) for e in events)


def without_own(calls: Counter[Facts], rank: int) -> Counter[Facts]:
    """NCCL may do a message of a rank to itself without a kernel."""
    return Counter({c: n for c, n in calls.items() if not (c[0] in ("Send", "Recv") and c[3] == rank)})


def compare(result: Findings, what: str, found: Counter[Facts], choices: list[Counter[Facts]]) -> None:
    if found not in choices:
        extra, missing = found - choices[0], choices[0] - found
        result.need(False, f"{what}: not wanted {list(extra.elements())[:3]}, missing {list(missing.elements())[:3]}")


def check_calls(result: Findings, step: Step, told: dict[str, Any], exact: bool) -> None:
    size, rank = told["size"], told["rank"]
    choices = [wanted(step, size, split, exact) for split in (False, True)]
    found = without_own(seen(step.host, exact), rank)
    compare(result, f"call of {step.name}", found, [without_own(choice, rank) for choice in choices])
    result.need(not any(e.flags & FAILED for e in step.host), f"{step.name}: a call that failed")


def check_kernels(result: Findings, step: Step, told: dict[str, Any], exact: bool, behind: bool) -> int:
    """How many there are. `behind`: all or none."""
    rank = told["rank"]
    found = without_own(seen(step.gpu, exact), rank)
    kernels = without_own(wanted(step, told["size"], True, exact), rank)
    if behind and not found:
        return 0
    compare(result, f"kernel of {step.name}", found, [kernels])
    for event in step.gpu:
        result.need(event.spent > 0, f"{step.name}: a kernel of {event.spent} ns")
        result.need(event.algorithm or bare(event) not in COLLECTIVES, f"{step.name}: a kernel without algorithm")
    return len(step.gpu)


def check_sequence(result: Findings, trace: Trace) -> None:
    """From 0 on for each communicator, in the order of the calls."""
    numbers: dict[int | None, list[int]] = defaultdict(list)
    for event in sorted(trace.events, key=lambda event: (event.begin, event.sequence)):
        if bare(event) in COLLECTIVES and not on_gpu(event):
            numbers[event.communicator].append(event.sequence)
    for communicator, found in numbers.items():
        result.need(found == list(range(len(found))), f"sequence numbers of communicator {communicator}: {found[:12]}...")


def check_times(result: Findings, steps: list[Step], both: bool) -> None:
    after_call, after_wait, spent = [], [], []
    for step in steps:
        calls = {(e.communicator, e.sequence, "Broadcast" if bare(e) == "Bcast" else bare(e)): e for e in step.host}
        for kernel in step.gpu:
            call = calls.get((kernel.communicator, kernel.sequence, bare(kernel)))
            if call and bare(kernel) in COLLECTIVES:
                after_call.append(kernel.begin - call.begin)
            elif both and bare(kernel) in COLLECTIVES:
                result.need(False, f"{step.name}: a kernel with the number {kernel.sequence}, and no such call")
            after_wait.append(kernel.begin + kernel.spent - step.end)
            spent.append(kernel.spent)
    if after_call:
        result.notes.append(f"kernel begins after its call by us: {spread(after_call)}")
        result.need(min(after_call) > -TOO_EARLY, f"a kernel begins {-min(after_call)} ns before its call")
    if after_wait:
        result.notes.append(f"kernel ends before the host has waited for it by us: {spread([-x for x in after_wait])}")
        result.notes.append(f"kernels take us: {spread(spent)}")
        result.need(max(after_wait) < LATE, f"a kernel ends {max(after_wait)} ns after the host has waited for it")


def spread(values: list[int]) -> str:
    return f"{min(values) / 1e3:.1f} to {max(values) / 1e3:.1f}, median {statistics.median(values) / 1e3:.1f}"


def check(told: dict[str, Any], trace: Trace | None, wrapped: bool, plugin: bool, behind: bool) -> Findings:
    """Of a run of `known`. With one rank NCCL copies, if at all, and starts no kernel of its own: the plugin is told little.
    `behind`: from some kernel on there are none, but not before the first exchange of messages."""
    result = Findings([f"{s['name']}: {s['problem']}" for s in told["steps"] if s["problem"]])
    if trace is None:
        result.need(not wrapped and told["size"] == 1, "no trace")
        return result
    result.notes += summary(trace)
    steps = steps_of(told, trace)
    several, kernels, exchanged = told["size"] > 1, 0, False
    for step in steps:
        if wrapped or several:
            check_calls(result, step, told, wrapped)
        if plugin and several:
            kernels += check_kernels(result, step, told, wrapped, behind and exchanged)
        exchanged |= step.name == "all_to_all_single"
    if plugin and several:
        result.need(kernels > 0, "no kernel")
        result.notes.append(f"{kernels} kernels" + (", until NCCL told the times of earlier ones" if behind else ""))
    if wrapped or several:
        check_sequence(result, trace)
    if plugin:
        check_times(result, steps, wrapped and several)
    else:
        result.need(not any(map(on_gpu, trace.events)), "kernels without the plugin")
    return result


def check_graph(told: dict[str, Any], trace: Trace | None) -> tuple[Findings, str]:
    """Of a run of `graph` with wrappers and plugin; also why nothing could be checked, or nothing."""
    result = Findings()
    refused = [s["problem"] for s in told["steps"] if s["name"] == "capture" and s["problem"]]
    if refused:
        return result, refused[0]
    result.problems += [f"{s['name']}: {s['problem']}" for s in told["steps"] if s["problem"]]
    if trace is None:
        result.need(False, "no trace")
        return result, ""
    result.notes += summary(trace)
    steps = steps_of(told, trace)
    captured = [e for s in steps if s.name == "capture" for e in s.host]
    result.need(len(captured) == 1, f"{len(captured)} calls in the capture")
    for step in steps:
        if step.name == "replay":
            found = [(bare(e), e.sequence, e.sent, e.op) for e in step.gpu]
            need = [(bare(e), e.sequence, e.sent, e.op) for e in captured]
            result.need(
                not step.host and found == need, f"a launch of the graph: {len(step.host)} calls, kernels {found}, not {need}"
            )
            result.need(all(e.spent > 0 for e in step.gpu), "a kernel that takes no time")
    check_times(result, [s for s in steps if s.name != "replay"], True)
    return result, ""
