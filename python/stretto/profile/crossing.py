"""Bytes that crossed from node to node: of messages, of collectives that Stretto carried, and what the others have to send.

Messages are counted by their ends' nodes. Of collectives that Stretto carried over nodes the traces say what ranks gave to MPI
for other nodes. Of those that MPI carried only the call is known: what its pattern sends between nodes where each byte crosses as
seldom as it can. The MPI may send more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from stretto.profile.job import Group, Job, Process
from stretto.profile.sums import MOST_SUM
from stretto.profile_model import TABLES
from stretto.trace_layout import BETWEEN_NODES, REASON

EXACT, LEAST, ESTIMATE = "exact", "at least", "estimate"
_BY_MPI = ("leader", "pipelined")  # rows that leave the part between nodes to an algorithm of MPI's
_MESSAGES = {"sent": "messages", "put": "puts", "got": "gets"}
_COLLECTIVE = re.compile(
    r"MPI_I?(allreduce|reduce_scatter_block|reduce_scatter|reduce|bcast|allgatherv?|gatherv?|scatterv?|alltoall[vw]?|scan|exscan)"
    r"(_c)?",
    re.IGNORECASE,
)


def crossing(job: Job, cells: pl.DataFrame, partners: pl.DataFrame) -> pl.DataFrame:
    """`partners`: the table. Jobs on one node have no rows."""
    node_of = {process.rank: process.node for process in job.mpi if process.node >= 0}
    if len(set(node_of.values())) < 2:
        return pl.DataFrame(schema=TABLES["crossing"])
    counted = _counted(job)
    rows = [*_messages(partners, node_of), *_collectives(job, cells, node_of, counted)]
    return pl.DataFrame(rows, schema=TABLES["crossing"], orient="row").sort(
        "crossed", "what", "communicator", "carried", descending=[True, False, False, False]
    )


def _messages(partners: pl.DataFrame, node_of: dict[int, int]) -> Iterable[tuple[Any, ...]]:
    nodes = {name: pl.col(name).replace_strict(node_of, default=-1, return_dtype=pl.Int32) for name in ("source", "target")}
    known = partners.with_columns(a=nodes["source"], b=nodes["target"]).filter((pl.col("a") >= 0) & (pl.col("b") >= 0))
    between = pl.col("a") != pl.col("b")
    sums = known.group_by("how").agg(pl.col("calls", "bytes").sum(), crossed=pl.col("bytes").filter(between).sum())
    for how, calls, sent, crossed in sums.iter_rows():
        yield _MESSAGES[how], "", "", calls, sent, crossed, EXACT


Key = tuple[str, int, str]  # function, communicator's identity, algorithm


def _counted(job: Job) -> dict[Key, int]:
    """What Stretto gave to MPI for other nodes, over ranks."""
    found: dict[Key, int] = {}
    for process in job.mpi:
        rows = process.trace.partners
        for row in rows[(rows["direction"] == BETWEEN_NODES) & (rows["calls"] > 0) & (rows["bytes"] < 1 << 62)]:
            if key := _key(process, int(row["communicator"]), int(row["partner"])):
                found[key] = found.get(key, 0) + int(row["bytes"])
    return found


def _key(process: Process, communicator: int, what: int) -> Key | None:
    trace = process.trace
    function, algorithm = what & 0xFFFF, what >> 16
    if not 0 <= algorithm < min(REASON, len(trace.algorithms)) or function >= len(trace.functions):
        return None
    if communicator >= len(trace.communicators):
        return None
    return trace.functions[function], trace.communicators[communicator].identity, trace.algorithms[algorithm]


def _collectives(job: Job, cells: pl.DataFrame, node_of: dict[int, int], counted: dict[Key, int]) -> Iterable[tuple[Any, ...]]:
    keys = ["function", "identity", "stretto"]
    mine = cells.filter((pl.col("library") == "MPI") & pl.col("function").str.contains(f"(?i)^(?:{_COLLECTIVE.pattern})$"))
    sums = mine.group_by(*keys, "rank").agg(pl.col("calls", "sent").sum()).partition_by(*keys, as_dict=True)
    for (function, identity, stretto), part in sums.items():
        group = job.groups.get(("MPI", int(identity)))
        nodes = {node_of[rank] for rank in group.members if rank in node_of} if group else set()
        if not group or group.inter or max(len(nodes), group.nodes) < 2:
            continue
        known = counted.get((str(function), int(identity), str(stretto)))
        crossed, label = (
            (known, LEAST if stretto in _BY_MPI else EXACT)
            if known is not None
            else _needed(str(function), group, max(len(nodes), group.nodes), part, node_of)
        )
        taken = stretto and not str(stretto).startswith("MPI: ")
        carried = f"Stretto: {stretto}" if taken else "MPI"
        yield function, group.label, carried, int(part["calls"].sum()), int(part["sent"].sum()), min(crossed, MOST_SUM), label


def _needed(function: str, group: Group, nodes: int, part: pl.DataFrame, node_of: dict[int, int]) -> tuple[int, str]:
    """(bytes over all nodes, how well that is known) that calls of this pattern have to send between nodes."""
    found = _COLLECTIVE.fullmatch(function)
    pattern = found[1].lower() if found else ""
    ranks, sent = max(group.size, 1), part["sent"].to_numpy().astype(float)
    others = nodes - 1
    if pattern == "allreduce":  # each node's part of the result is combined there and given to the others
        return round(sent.sum() * 2 * others / ranks), LEAST
    if pattern.startswith("reduce") or pattern.endswith("scan"):  # one contribution of every other node
        return round(sent.sum() * others / ranks), LEAST
    if pattern == "bcast" or pattern.startswith("allgather"):  # what is given is to reach every other node
        return round(sent.sum() * others), LEAST
    if pattern.startswith("alltoall"):
        on = Counter(node_of[rank] for rank in group.members if rank in node_of)
        near = [on[node_of[rank]] if rank in node_of else 0 for rank in part["rank"].to_list()]
        away = np.array([1 - one / ranks if one else others / nodes for one in near])
        return round(float((sent * away).sum())), ESTIMATE
    return round(sent.sum() * others / nodes), ESTIMATE  # gather, scatter: blocks of the nodes other than the root's
