"""The rules of the verdict, each one small function and one row of `RULES`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from stretto.profile import say
from stretto.profile.incomplete import clock_noise, damaged, end_unknown, lost, stopped, unreturned
from stretto.profile.job import MOST_ALIKE, cpus_of_hosts
from stretto.profile.sizes import is_negotiation
from stretto.profile.verdict import NOTABLE, Said, View
from stretto.profile_model import Finding, Severity

REST = 0.0005  # of the run time, from which on it is told
LATE_TIME = 0.005  # of the run time, that this waiting takes at least
ONCE = 0.05  # of the run time, that waiting in one collective takes at least, to be told
SLOW = 3.0  # times what the neighbouring sizes let expect
SLOW_INVOCATIONS = 10  # of a size, for its time to be known
POLLING = 0.05  # of the run time
CONTROL_CALLS = 20  # of a rank: fewer are no negotiation, but what a program says once


def shares(seen: View) -> list[Said]:
    """How much of the run time is communication, and how much of that waiting and transfer."""
    if seen.run_time <= 0 or not seen.library_time:
        return []
    whole = say.percent(seen.share(seen.library_time))
    several = " (threads of a rank call at once)" if seen.library_time > seen.run_time else ""
    if not seen.splits:
        title = f"Communication takes {whole} of the run time"
        text = f"How much of it{several} is waiting cannot be told: no collective was seen on all its ranks."
        return [Said(seen.library_time, Finding(seen.severity(seen.library_time), title, text, "", "functions"))]
    waiting, transfer = seen.waiting, seen.transfer
    rest = max(0.0, seen.library_time - waiting - transfer)
    parts = (say.percent(seen.share(waiting)), say.percent(seen.share(transfer)))
    title = f"Waiting for late ranks takes {parts[0]} of the run time, transfer {parts[1]}"
    if transfer > waiting:
        title = f"Transfer in collectives takes {parts[1]} of the run time, waiting for late ranks {parts[0]}"
    in_turn = _late_in_turn(seen)
    others = f"; {say.percent(seen.share(rest))} is not in collectives or could not be divided"
    text = f"All calls together take {whole}{several}{others if seen.share(rest) >= REST else ''}.{_estimated(seen)}"
    if in_turn:
        text += " No rank is late by more than chance or scheduling: they come late in turn, by little, or are held up at times."
    advice = ""
    if seen.share(waiting + transfer) >= NOTABLE and waiting + transfer > sum(seconds for _, _, seconds in seen.open):
        small = _control(seen)[0] - waiting > transfer / 2  # all waiting may be theirs
        advice = _against(waiting > transfer, _crowding(seen) if in_turn else "", small)
    return [Said(waiting + transfer, Finding(seen.severity(waiting + transfer), title, text, advice, "arrival"))]


def _estimated(seen: View) -> str:
    """What waiting and transfer are drawn from, where it is not all."""
    rows = seen.table("arrival").filter(pl.col("scope") == "cluster")
    known, of = int(rows["invocations"].sum()), int(rows["of_invocations"].sum())
    return f" Waiting and transfer are estimated from {known:,} of {say.count(of, 'collective')}." if known < of else ""


def _late_in_turn(seen: View) -> bool:
    """Whether there is notable waiting, seen by clocks that tell it, and neither a rank, a node nor a single call to blame."""
    noisy = _noisy(seen)
    told = sum(one.waiting for one in seen.splits if (one.library, one.communicator, one.function) not in noisy)
    return seen.share(told) >= NOTABLE and not (late_rank(seen) or late_node(seen) or long_wait(seen))


def _against(waiting: bool, crowding: str, small: bool) -> str:
    """What to do about waiting or transfer, whichever is more.

    `crowding`: why ranks may have to wait for their core. `small`: most of the transfer is in control messages.
    """
    if not waiting:
        less = "The time is in moving and reducing data: fewer or smaller messages, or faster collectives, help."
        if small:
            less = (
                "Most of it is in control messages, which move next to nothing: make fewer of them, "
                "and where each takes long, see that ranks and threads do not share a core."
            )
        return less + (f" Against the waiting, see first that no rank shares its core: {crowding}." if crowding else "")
    why = "a faster network or collective does not shorten waiting."
    if crowding:
        return f"See first that no rank shares its core: {crowding}. Then even out the ranks' work: {why}"
    return f"Even out the ranks' work: {why}"


def _crowding(seen: View) -> str:
    """That ranks leave no CPU of a host to the system and other programs, in words; empty: they do."""
    for host, (number, cpus) in _ranks_and_cpus(seen).items():
        if 0 < cpus <= number:
            taken = _shared(host, number, cpus) or f"{number} ranks take all of {say.count(cpus, 'CPU')} on {host}"
            return f"{taken}, and whatever else runs there delays one of them"
    return ""


def _shared(host: str, ranks: int, cpus: int) -> str:
    return f"{ranks} ranks share {say.count(cpus, 'CPU')} on {host}" if 0 < cpus < ranks else ""


def _ranks_and_cpus(seen: View) -> dict[str, tuple[int, int]]:
    """By host: its ranks, and the CPUs that they may run on; 0: unknown."""
    allowed = cpus_of_hosts(seen.job)
    ranks: dict[str, int] = {}
    for process in seen.job.mpi:
        ranks[process.trace.header.host] = ranks.get(process.trace.header.host, 0) + 1
    return {host: (number, allowed.get(host, 0)) for host, number in ranks.items()}


def _before(seen: View, rank: int, function: str) -> str:
    """Where to look when a rank is late."""
    host = next((process.trace.header.host for process in seen.job.processes if process.rank == rank), "")
    who, shared = f"rank {rank} ({host})" if host else f"rank {rank}", _shared(host, *_ranks_and_cpus(seen).get(host, (0, 0)))
    if shared:
        then = f"Then what it does before {function}: more work or data than the others."
        return f"See first whether {who} has a core of its own: {shared}. {then}"
    return f"See what {who} does before {function}: more work or data than the others, a slower or shared core."


def late_rank(seen: View) -> list[Said]:
    """One rank that causes most of the waiting in a collective."""
    found: dict[int, list[_Blamed]] = {}
    for one in _blamed(seen):
        found.setdefault(one.rank, []).append(one)
    said = []
    for rank, parts in found.items():
        seconds = sum(part.seconds for part in parts)
        if seen.share(seconds) < LATE_TIME:
            continue
        worst = max(parts, key=lambda one: one.seconds)
        function = worst.function
        when = f" since {say.seconds(worst.since)} after the start" if worst.since > 0 else ""
        title = f"Waiting for rank {rank} takes {say.percent(seen.share(seconds))} of the run time{when}"
        text = (
            f"All ranks together wait {say.seconds(seconds)} for it. Of the waiting in {function} on {worst.communicator},"
            f" {say.percent(worst.share)} is for this rank: it comes last in {worst.last:,} of"
            f" {say.count(worst.invocations, 'call')}, and {say.seconds(worst.behind)} behind the others' mean over all of them."
        )
        advice = _before(seen, rank, function)
        said.append(Said(seconds, Finding(seen.severity(seconds), title, text, advice, "late")))
    return said


@dataclass(frozen=True, slots=True)
class _Blamed:
    """A rank that is late beyond the clock error in a collective: the table `late`, with the waiting it causes."""

    rank: int
    seconds: float  # waited for it by all ranks
    share: float  # of all waiting in this function on this communicator
    function: str
    communicator: str
    last: int  # invocations in which it came last, of `invocations`
    invocations: int
    behind: float
    since: float


def _blamed(seen: View) -> list[_Blamed]:
    noisy, once = _noisy(seen), _once(seen)
    waiting = {(one.library, one.communicator, one.function): one.waiting for one in seen.splits}
    columns = ("library", "communicator", "function", "rank", "invocations", "last", "behind", "caused", "since")
    totals: dict[tuple[str, str, str], float] = {}
    rows = list(seen.table("late").select(columns).iter_rows())
    for row in rows:
        totals[row[:3]] = totals.get(row[:3], 0.0) + row[7]
    found = []
    for library, communicator, function, rank, invocations, last, behind, caused, since in rows:
        key = (library, communicator, function)
        if since is None or totals[key] <= 0 or key in noisy or behind <= 0 or (*key, rank) in once:
            continue
        share = caused / totals[key]
        seconds = waiting.get(key, 0.0) * share
        found.append(_Blamed(rank, seconds, share, function, communicator, last, invocations, behind, since))
    return found


def _once(seen: View) -> set[tuple[str, str, str, int]]:
    """Library, communicator, function and rank where half or more of what the rank causes is in one invocation."""
    keys = ["library", "communicator", "function"]
    worst = seen.table("invocations").group_by(*keys, pl.col("last_rank").alias("rank")).agg(pl.col("waiting").max())
    both = seen.table("late").join(worst, on=[*keys, "rank"])
    return set(both.filter(pl.col("waiting") >= 0.5 * pl.col("caused")).select(*keys, "rank").iter_rows())


def _noisy(seen: View) -> set[tuple[str, str, str]]:
    """Library, communicator and function of what cannot be told from the clocks' error."""
    rows = seen.table("arrival").filter((pl.col("scope") == "cluster") & pl.col("in_noise"))
    return set(rows.select("library", "communicator", "function").iter_rows())


def long_wait(seen: View) -> list[Said]:
    """One collective in which much of the run's waiting is, for a rank that is not late as a rule."""
    blamed = {(one.function, one.communicator, one.rank) for one in _blamed(seen)}
    columns = ("library", "communicator", "function", "sequence", "at", "omega", "last_rank", "waiting")
    worst = seen.table("invocations").sort("waiting", descending=True).select(columns).head(1)
    for library, communicator, function, sequence, at, omega, rank, seconds in worst.iter_rows():
        noisy = (library, communicator, function) in _noisy(seen)
        if seen.share(seconds) < ONCE or noisy or (function, communicator, rank) in blamed:
            return []
        title = f"Waiting in one {function} takes {say.percent(seen.share(seconds))} of the run time"
        text = (
            f"It is number {sequence} on {communicator}, {say.seconds(at)} after the start: rank {rank} comes last,"
            f" {say.seconds(omega)} after the first; all ranks together wait {say.seconds(seconds)}."
        )
        advice = f"See what rank {rank} does alone before: reading input, preparing data. Share it out, or let the others go on."
        return [Said(seconds, Finding(seen.severity(seconds), title, text, advice, "invocations"))]
    return []


def late_node(seen: View) -> list[Said]:
    """Ranks of one node that together cause most of the waiting, while none of them does alone."""
    node_of = {process.rank: process.node for process in seen.job.mpi}
    if len(set(node_of.values())) < 2:
        return []
    noisy, blamed = _noisy(seen), {(one.function, one.communicator) for one in _blamed(seen)}
    waiting = {(one.library, one.communicator, one.function): one.waiting for one in seen.splits}
    caused: dict[tuple[str, str, str], dict[int, float]] = {}
    for library, communicator, function, rank, seconds in (
        seen.table("late").select("library", "communicator", "function", "rank", "caused").iter_rows()
    ):
        by_node = caused.setdefault((library, communicator, function), {})
        by_node[node_of.get(rank, -1)] = by_node.get(node_of.get(rank, -1), 0.0) + seconds
    found: dict[int, float] = {}
    for key, by_node in caused.items():
        total, node = sum(by_node.values()), max(by_node, key=lambda one: by_node[one])
        if key in noisy or (key[2], key[1]) in blamed or len(by_node) < 2 or total <= 0 or by_node[node] < 0.8 * total:
            continue
        found[node] = found.get(node, 0.0) + waiting.get(key, 0.0) * by_node[node] / total
    said = []
    for node, seconds in found.items():
        if seen.share(seconds) >= LATE_TIME:
            host = next(process.trace.header.host for process in seen.job.mpi if process.node == node)
            title = f"Waiting for the ranks of {host or f'node {node}'} takes {say.percent(seen.share(seconds))} of the run time"
            text = "Its ranks come last in turn, the other nodes' hardly ever."
            advice = "Look for what slows that node: other jobs, heat, fewer CPUs, a distant file system."
            said.append(Said(seconds, Finding(seen.severity(seconds), title, text, advice, "late")))
    return said


def _how_to_share(seen: View) -> str:
    """What lets ranks that wait give their CPU to others, where they do not."""
    if seen.job.text("launcher_version").startswith("Hydra"):
        accelerated = seen.job.text("accelerate") == "on"
        return "" if accelerated else ", or use stretto run, under which ranks that wait give their CPU to the others"
    yields = "oversubscribe" in seen.job.text("command")
    return "" if yields else ", or have the MPI yield while it waits (Open MPI: --oversubscribe)"


def oversubscribed(seen: View) -> list[Said]:
    """Hosts with more ranks than CPUs."""
    crowded = {host: (number, cpus) for host, (number, cpus) in _ranks_and_cpus(seen).items() if 0 < cpus < number}
    if not crowded:
        return []
    host, (number, cpus) = max(crowded.items(), key=lambda item: item[1][0] / item[1][1])
    more = f" (and {len(crowded) - 1} more hosts likewise)" if len(crowded) > 1 else ""
    part = sum(number for number, _ in crowded.values()) / max(1, len(seen.job.mpi))
    title = f"{number} ranks share {say.count(cpus, 'CPU')} on {host}{more}"
    text = "Ranks take turns: the one that everybody waits for may be the one that does not run."
    more = _how_to_share(seen)
    advice = f"Start as many ranks as there are CPUs{more}."
    return [Said(seen.waiting * part, Finding(Severity.bad, title, text, advice, "ranks"))]


def slow_sizes(seen: View) -> list[Said]:
    """Sizes that take much longer than the sizes below and above let expect."""
    said = []
    keys = ["library", "communicator", "function"]
    known = seen.sized.filter((pl.col("invocations") >= SLOW_INVOCATIONS) & (pl.col("upper") > 0) & (pl.col("alpha") > 0))
    for key, curve in known.sort(*keys, "upper").group_by(keys, maintain_order=True):
        points = list(curve.select("upper", "alpha").iter_rows())
        for below, (size, alpha), above in zip(points, points[1:], points[2:], strict=False):
            place = math.log(size / below[0]) / math.log(above[0] / below[0])
            expected = math.exp(math.log(below[1]) * (1 - place) + math.log(above[1]) * place)
            if alpha >= SLOW * expected and above[0] <= 16 * below[0]:
                said += _slow(seen, key, size, alpha, expected)
    return said


def _slow(seen: View, key: tuple[object, ...], size: int, alpha: float, expected: float) -> list[Said]:
    library, communicator, function = map(str, key)
    rows = seen.table("sizes").filter(
        (pl.col("library") == library)
        & (pl.col("communicator") == communicator)
        & (pl.col("function") == function)
        & (pl.col("upper") == size)
    )
    calls = int(rows["calls"].sum() or 0)
    seconds = min(calls * (alpha - expected), float(rows["time"].sum() or 0.0))
    if seen.share(seconds) < NOTABLE / 10:
        return []
    bounds = f"{say.size(size / 2)} to {say.size(size)}"
    title = f"{function} of {bounds} takes {alpha / expected:.0f} times what its neighbours let expect"
    took = f"{say.seconds(alpha)} after the last arrival"
    text = f"{took}, in {say.count(calls, 'call')}; other sizes suggest {say.seconds(expected)}."
    advice = "The MPI chooses a poor algorithm or protocol there: try its tuning settings, or another message size."
    return [Said(seconds, Finding(seen.severity(seconds), title, text, advice, "sizes"))]


def no_gradients(seen: View) -> list[Said]:
    """A training job that negotiates and reduces nothing."""
    rows = seen.table("sizes")
    negotiated = int(rows.filter((pl.col("use") == "control") & is_negotiation())["calls"].sum())
    if "sums" in rows["use"] or negotiated < CONTROL_CALLS * max(1, len(seen.job.processes)):
        return []
    title = "No gradients were reduced"
    control = say.count(negotiated, "control message")
    text = f"There were {control}, but no sum of floating-point numbers above 512 B: each rank trains by itself."
    advice = "See that the optimizer is the distributed one and reaches the training loop (Keras 3 drops Horovod's silently)."
    return [Said(seen.run_time, Finding(Severity.bad, title, text, advice, "sizes"))]


def control_messages(seen: View) -> list[Said]:
    """Negotiation that costs more than the work."""
    seconds, calls, largest = _control(seen)
    if seen.share(seconds) < POLLING or calls < CONTROL_CALLS * max(1, len(seen.job.mpi)):
        return []
    title = f"Control messages take {say.percent(seen.share(seconds))} of the run time"
    text = f"{say.count(calls, 'call')} of at most {say.size(largest)}; most of their time is waiting for all ranks."
    advice = "In Horovod a longer HOROVOD_CYCLE_TIME makes fewer of them; it helps only if no gradients wait for them."
    return [Said(seconds, Finding(seen.severity(seconds), title, text, advice, "sizes"))]


def _control(seen: View) -> tuple[float, int, int]:
    """Control messages: seconds, calls, and the largest size in bytes."""
    rows = seen.table("sizes").filter(pl.col("use") == "control")
    return float(rows["time"].sum() or 0.0), int(rows["calls"].sum() or 0), int(rows["upper"].cast(pl.Int64).max() or 0)


def polling(seen: View) -> list[Said]:
    """Time in probes and tests."""
    rows = seen.table("functions").filter(pl.col("function").str.contains("^MPI_(Im?probe|Test(all|any|some)?|Parrived)$"))
    if not rows.height:
        return []
    name, calls, seconds = rows.group_by("function").agg(pl.col("calls", "time").sum()).sort("time").row(-1)
    if seen.share(seconds) < POLLING:
        return []
    title = f"Polling with {name} takes {say.percent(seen.share(seconds))} of the run time"
    text = f"{say.count(calls, 'call')}, {say.seconds(seconds / calls)} each, mostly to find nothing."
    advice = "Poll less often, or post the receives and wait for them."
    return [Said(seconds, Finding(seen.severity(seconds), title, text, advice, "functions"))]


def accelerated(seen: View) -> list[Said]:
    """What Stretto took over."""
    rows = seen.table("takeover").filter(pl.col("outcome") == "taken over")
    if not rows.height:
        return []
    calls, gain = int(rows["calls"].sum()), float(rows["expected_gain"].sum() or 0.0)
    of = int(seen.table("takeover")["calls"].sum())
    title = f"Stretto took over {say.percent(calls / of)} of {say.count(of, 'collective')} that it can take over"
    saved = f"about {say.seconds(gain)}, {say.percent(seen.share(gain))} of the run time"
    text = f"By its ratios on a reference machine that saved {saved}."
    return [Said(0.0, Finding(Severity.fine, title, text, _left(seen), "takeover"))]


def would_accelerate(seen: View) -> list[Said]:
    """What Stretto would take over."""
    rows = seen.table("takeover").filter(pl.col("outcome") == "would take over")
    gain = float(rows["expected_gain"].sum() or 0.0) if rows.height else 0.0
    if seen.share(gain) < NOTABLE / 10:
        return []
    calls = int(rows["calls"].sum())
    title = f"Stretto would save about {say.percent(seen.share(gain))} of the run time"
    saved = f"{say.seconds(gain)} less transfer over all ranks, by its ratios on a reference machine"
    text = f"It would take over {say.count(calls, 'collective')} inside a node: {saved}."
    advice = "Run with `stretto run` in place of `stretto profile`."
    return [Said(gain, Finding(seen.severity(gain), title, text, advice, "takeover"))]


def _left(seen: View) -> str:
    rows = seen.table("takeover").filter(pl.col("outcome").str.starts_with("left"))
    if not rows.height:
        return ""
    outcome, calls = rows.group_by("outcome").agg(pl.col("calls").sum()).sort("calls", "outcome").row(-1)
    return f"{say.count(calls, 'call')} were left to MPI, most because of: {outcome.removeprefix('left: ')}."


def many_communicators(seen: View) -> list[Said]:
    """Communicators made again and again."""
    made = seen.table("functions").filter(pl.col("function").str.contains("^MPI_Comm_(dup|split|create)"))
    seconds, number = float(made["time"].sum() or 0.0), len(seen.job.groups)
    if seen.share(seconds) < NOTABLE or number <= MOST_ALIKE:
        return []
    title = f"Making communicators takes {say.percent(seen.share(seconds))} of the run time"
    text = f"{say.count(number, 'communicator')} were made, in {say.count(int(made['calls'].sum()), 'call')}."
    return [Said(seconds, Finding(seen.severity(seconds), title, text, "Make them once and keep them.", "communicators"))]


RULES: tuple[Callable[[View], list[Said]], ...] = (
    damaged,
    stopped,
    end_unknown,
    shares,
    unreturned,
    late_rank,
    long_wait,
    late_node,
    oversubscribed,
    slow_sizes,
    no_gradients,
    control_messages,
    polling,
    many_communicators,
    would_accelerate,
    accelerated,
    lost,
    clock_noise,
)
