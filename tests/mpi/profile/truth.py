"""Compares traces with what the programs said of themselves (truth.h): each call in order, sums, partners, sequence numbers and
the identities of communicators."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from read_trace import ANY_SOURCE, ANY_TAG, CANCELLED, FAILED, IN_PLACE, INCOMPLETE, NONE16, PART, Call, Trace, text

FLAGS = {
    "in_place": IN_PLACE,
    "any_source": ANY_SOURCE,
    "any_tag": ANY_TAG,
    "failed": FAILED,
    "cancelled": CANCELLED,
    "incomplete": INCOMPLETE,
}
ALWAYS_SAID = IN_PLACE | FAILED | CANCELLED | INCOMPLETE
FRAME = {"MPI_Init", "MPI_Init_thread", "MPI_Finalize"}  # in every trace


@dataclass
class Said:
    function: str
    communicator: str
    sent: int
    received: int
    peer: int
    tag: int
    sequence: int = 0
    flags: int = 0
    more: dict[str, str] = field(default_factory=dict)
    parts: list[Said] = field(default_factory=list)


@dataclass
class Truth:
    calls: list[Said] = field(default_factory=list)
    traffic: Counter[tuple[str, int]] = field(default_factory=Counter)  # bytes
    messages: Counter[tuple[str, int]] = field(default_factory=Counter)
    communicators: dict[str, list[int]] = field(default_factory=dict)
    numbers: Counter[str] = field(default_factory=Counter)  # by communicator: collectives that were begun
    complete: bool = False


def said(words: list[str]) -> Said:
    sent, received, peer, tag = map(int, words[2:])
    return Said(words[0], words[1], sent, received, peer, tag)


def read_truth(path: Path) -> Truth:
    truth = Truth()
    sequences = truth.numbers
    last: Said | None = None
    for line in path.read_text().splitlines():
        kind, *words = line.split()
        if kind in ("call", "collective"):
            last = said(words)
            if kind == "collective":
                last.sequence = sequences[last.communicator]
                sequences[last.communicator] += 1
            truth.calls.append(last)
        elif kind in ("part", "started"):
            last = said(words)
            truth.calls[-1].parts.append(last)
            if kind == "started":
                last.more["partitions"] = "1"
                alone = truth.calls[-1].function == "MPI_Start"  # which bears the number too
                last.sequence = truth.calls[-1].sequence if alone else sequences[last.communicator]
                sequences[last.communicator] += not alone
        elif kind == "with":
            assert last is not None
            if words[0] == "flag":
                last.flags |= FLAGS[words[1]]
            elif words[0] == "tag":
                last.tag = int(words[1])
            else:
                last.more[words[0]] = words[1]
        elif kind == "traffic":
            truth.traffic[words[0], int(words[1])] += int(words[2])
            truth.messages[words[0], int(words[1])] += 1
        elif kind == "communicator":
            truth.communicators[words[0]] = [int(word) for word in words[1:]]
        elif kind == "unseen":
            sequences[words[0]] += 1
        elif kind == "end":
            truth.complete = True
    return truth


def name_of(trace: Trace, index: int) -> str:
    return "-" if index == NONE16 else text(trace.tables["communicators"][index]["name"]).replace(" ", "_")


def differences(trace: Trace, actual: Call, wanted: Said) -> list[str]:
    pairs = {
        "function": (actual.function, wanted.function),
        "communicator": (name_of(trace, actual.communicator), wanted.communicator),
        "sent": (actual.sent, wanted.sent),
        "received": (actual.received, wanted.received),
        "peer": (actual.peer, wanted.peer),
        "tag": (actual.tag, wanted.tag),
        "sequence": (actual.sequence, wanted.sequence),
        "flags": (actual.flags & (ALWAYS_SAID | wanted.flags), wanted.flags),
        "end": (actual.end >= actual.begin, True),
    }
    if "datatype" in wanted.more:
        pairs["datatype"] = (actual.datatype.replace(" ", "_"), wanted.more["datatype"])
    if "op" in wanted.more:
        pairs["op"] = (actual.op, wanted.more["op"])
    if "partitions" in wanted.more:
        pairs["partitions"] = (str(actual.partitions), wanted.more["partitions"])
    found = [f"{name} {got!r} instead of {want!r}" for name, (got, want) in pairs.items() if got != want]
    if len(actual.parts) != len(wanted.parts):
        return [*found, f"{len(actual.parts)} parts instead of {len(wanted.parts)}"]
    for part, wanted_part in zip(actual.parts, wanted.parts, strict=True):
        found += [f"part: {problem}" for problem in differences(trace, part, wanted_part)]
    return found


def calls_problem(trace: Trace, truth: Truth) -> str:
    calls = [call for call in trace.calls if call.function not in FRAME]
    for number, (actual, wanted) in enumerate(zip(calls, truth.calls, strict=False)):
        found = differences(trace, actual, wanted)
        if found:
            return f"call {number}, {wanted.function}: {'; '.join(found)}"
    if len(calls) != len(truth.calls):
        more = calls[len(truth.calls) :] or truth.calls[len(calls) :]
        return f"{len(calls)} calls instead of {len(truth.calls)}, from {more[0].function}"
    return order_problem(calls)


def order_problem(calls: list[Call]) -> str:
    for before, after in pairwise(calls):
        if before.thread == after.thread and after.begin < before.end:
            return f"{after.function} begins before {before.function} ends"
    return ""


def numbers_problem(trace: Trace, truth: Truth) -> str:
    actual: Counter[str] = Counter()
    for index, one in enumerate(trace.tables["communicators"]):
        actual[name_of(trace, index)] += int(one["collectives"])
    wrong = [name for name, count in truth.numbers.items() if actual[name] != count]
    return "; ".join(f"{actual[name]} collectives begun on {name} instead of {truth.numbers[name]}" for name in wrong)


def sums_problem(trace: Trace, truth: Truth) -> str:
    wanted: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for one in truth.calls:
        for place, amount in enumerate((1, one.sent, one.received)):
            wanted[one.function][place] += amount
    actual: dict[str, list[int]] = {}  # mpi4py calls the forms for large counts where there are some
    for name, sums in trace.function_sums().items():
        if name not in FRAME:
            actual[name.removesuffix("_c")] = list(sums)
    if actual != dict(wanted):
        wrong = [name for name in {*actual, *wanted} if actual.get(name) != wanted.get(name)]
        return "; ".join(f"sums of {name}: {actual.get(name)} instead of {wanted.get(name)}" for name in wrong)
    return ""


def partners_problem(trace: Trace, truth: Truth) -> str:
    actual = trace.partner_sums()
    wanted = {key: (truth.messages[key], truth.traffic[key]) for key in truth.messages}
    return "" if actual == wanted else f"traffic {sorted(actual.items())} instead of {sorted(wanted.items())}"


def requests_problem(trace: Trace) -> str:
    """Each request that was started is completed, cancelled or freed by one call, and numbers are never used twice."""
    started: Counter[int] = Counter()
    ended: Counter[int] = Counter()
    for call in trace.calls:
        for one in (call, *call.parts):
            if not one.request or (one.flags & PART and call.request == one.request):
                continue
            completes = call.function.startswith(("MPI_Wait", "MPI_Test", "MPI_Request_free"))
            inspects = call.function in ("MPI_Request_get_status", "MPI_Cancel", "MPI_Parrived") or "Pready" in call.function
            if not inspects:
                (ended if completes else started)[one.request] += 1
    twice = [number for number, times in (started + ended).items() if started[number] > 1 or ended[number] > 1]
    if twice:
        return f"requests {twice[:5]} more than once"
    return f"requests differ: {sorted(set(started) ^ set(ended))[:5]}" if set(started) != set(ended) else ""


def header_problem(trace: Trace, size: int) -> str:
    header = trace.header
    if header["stage"] != 2 or header["world_size"] != size or header["node"] != 0:
        return f"header {header}"
    if not header["start_ticks"] < header["init_ticks"] < header["finalize_ticks"] <= header["last_ticks"]:
        return f"times {header}"
    if any(header[word] for word in ("dropped_events", "dropped_cells", "unnamed")):
        return f"drops {header}"
    return "" if header["library"].startswith(("Open MPI", "MPICH")) else f"library {header['library']}"


def identities_problem(traces: dict[int, Trace], truths: dict[int, Truth]) -> str:
    """One communicator has one identity on all its members; two have two."""
    identities: dict[tuple[str, tuple[int, ...]], int] = {}
    for rank, trace in traces.items():
        for name, members in truths[rank].communicators.items():
            index = trace.communicator_named(name)
            if trace.members(index)[: len(members)] != members:
                return f"{name} on rank {rank}: members {trace.members(index)} instead of {members}"
            identity = identities.setdefault((name, tuple(sorted(members))), trace.identity(index))
            if identity != trace.identity(index):
                return f"{name} has another identity on rank {rank}"
    if len(set(identities.values())) != len(identities):
        return f"identities are not unique: {identities}"
    return intercommunicators_problem(traces)


def intercommunicators_problem(traces: dict[int, Trace]) -> str:
    """Both sides of an intercommunicator call it alike."""
    found: dict[tuple[str, tuple[int, ...]], set[int]] = defaultdict(set)
    for trace in traces.values():
        for index, one in enumerate(trace.tables["communicators"]):
            if one["remote_size"]:
                found[text(one["name"]), tuple(sorted(trace.members(index)))].add(int(one["identity"]))
    return "" if all(len(known) == 1 for known in found.values()) else f"intercommunicators {dict(found)}"


def order_of_arrival_problem(traces: dict[int, Trace], folder: Path) -> str:
    """Ranks began each collective in the order in which they came. One node: all ranks share the cycle counter. Where the machine
    was so busy that two came within a millisecond, nobody can say."""
    arrivals: dict[int, dict[int, int]] = defaultdict(dict)
    for rank in traces:
        for line in (folder / str(rank)).read_text().splitlines():
            kind, *words = line.split()
            if kind == "arrived":
                arrivals[int(words[0])][rank] = int(words[1])
    decided = 0
    for sequence, times in arrivals.items():
        if any(after - before < 1_000_000 for before, after in pairwise(sorted(times.values()))):
            continue
        begins = {
            rank: next(call.begin for call in trace.calls if call.sequence == sequence and call.communicator == 0)
            for rank, trace in traces.items()
        }
        decided += 1
        if sorted(begins, key=lambda rank: begins[rank]) != sorted(times, key=lambda rank: times[rank]):
            return f"collective {sequence}: begun {begins}, reached {times}"
    return "" if decided or not arrivals else "no collective with a certain order"


def problem_of(traces: dict[int, Trace], truths: dict[int, Truth], events: str = "in order") -> str:
    """What is wrong with a job's traces, by world rank. `events`: "in order" as the program says, "there" in any, or "none"."""
    if sorted(traces) != sorted(truths):
        return f"traces of ranks {sorted(traces)}, truths of {sorted(truths)}"
    for rank, trace in traces.items():
        truth = truths[rank]
        problem = "" if truth.complete else "the program did not end"
        checks = (sums_problem, partners_problem, numbers_problem)
        problem = problem or header_problem(trace, len(truths)) or next(filter(None, (one(trace, truth) for one in checks)), "")
        if events == "in order":
            problem = calls_problem(trace, truth) or problem
        if events != "none":
            problem = problem or requests_problem(trace)
        if problem:
            return f"rank {rank}: {problem}"
    return identities_problem(traces, truths)
