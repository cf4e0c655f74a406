"""What a profile says, in tables: the analyses fill them, the reports show them.

Every table is a polars DataFrame whose columns stand here; a table with no rows is a fact that could not be had, and
`unavailable` says why. Times are seconds, sizes are bytes. "library" is "MPI" or "NCCL".
Sources: thesis = Temucin 2021, chapter 3; paper = Alizadeh et al. 2022, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import polars as pl

TABLES: dict[str, dict[str, pl.DataType | type[pl.DataType]]] = {
    # One row per process and library. `lost`: dropped events. `clock_error`: bound of the clock against rank 0's.
    # `state`: "finished", "no MPI_Finalize", "aborted", "in MPI_X since 3.2 s" for a live or hung job ...
    "ranks": {
        "rank": pl.Int32,
        "library": pl.String,
        "host": pl.String,
        "node": pl.Int32,
        "pid": pl.Int32,
        "version": pl.String,
        "state": pl.String,
        "run_time": pl.Float64,
        "library_time": pl.Float64,
        "calls": pl.Int64,
        "events": pl.Int64,
        "lost": pl.Int64,
        "threads": pl.Int32,
        "clock_error": pl.Float64,
    },
    # Thesis Fig. 3.1-3.6, Table 3.1. `share`: of the rank's run time.
    "functions": {
        "rank": pl.Int32,
        "library": pl.String,
        "function": pl.String,
        "calls": pl.Int64,
        "time": pl.Float64,
        "share": pl.Float64,
        "sent": pl.Int64,
        "received": pl.Int64,
    },
    # Thesis Fig. 3.7-3.10; summed over ranks. `upper`: upper bound of the bin (2^(n-1), 2^n]; 0: no bytes. `location`:
    # "host", "device", "managed", "none". `stretto`: the algorithm that ran, "MPI: <reason>", or "" where Stretto was not asked.
    # `bytes`: the larger of sent and received.
    # `use`: "sums" (in training: gradients), "control", "parameters", "".
    "sizes": {
        "library": pl.String,
        "function": pl.String,
        "communicator": pl.String,
        "datatype": pl.String,
        "op": pl.String,
        "location": pl.String,
        "upper": pl.Int64,
        "stretto": pl.String,
        "use": pl.String,
        "calls": pl.Int64,
        "bytes": pl.Int64,
        "time": pl.Float64,
    },
    # Thesis Fig. 3.11; world ranks, from the sender's side; "how": "sent", "put", "got".
    "partners": {"source": pl.Int32, "target": pl.Int32, "how": pl.String, "calls": pl.Int64, "bytes": pl.Int64},
    # Bytes from node to node, over all nodes. `what`: a collective, "messages", "puts", "gets"; `carried`: "Stretto:
    # <algorithm>", "MPI", "" for messages. `calls`: of ranks. `sent`: what ranks contributed; `crossed`: of these, or of what
    # was made of them, those between nodes. `known`: "exact"; "at least": the least that the pattern has to send, where an MPI's
    # algorithm moved it; "estimate": the same with blocks taken for equal.
    "crossing": {
        "what": pl.String,
        "communicator": pl.String,
        "carried": pl.String,
        "calls": pl.Int64,
        "sent": pl.Int64,
        "crossed": pl.Int64,
        "known": pl.String,
    },
    "communicators": {
        "identity": pl.UInt64,
        "name": pl.String,
        "parent": pl.String,
        "size": pl.Int32,
        "nodes": pl.Int32,
        "calls": pl.Int64,
        "bytes": pl.Int64,
        "time": pl.Float64,
    },
    # Thesis Fig. 3.12, over ranks.
    "queues": {
        "variable": pl.String,
        "unit": pl.String,
        "least": pl.Float64,
        "mean": pl.Float64,
        "most": pl.Float64,
        "samples": pl.Int64,
    },
    # Paper Tables 1 and 2. `scope`: "cluster" (all members) or "node" (members of one node, over all nodes). `size_class`:
    # "small" (up to 4 KiB), "medium" (up to 64 KiB, where the paper's algorithms for large messages begin), "large", "none" (no
    # bytes). `of_invocations`: that the sums counted. Omega: max - min arrival; delta: mean of |arrival - mean arrival|. Factors:
    # over alpha, the time to communicate such a message, measured in the job itself: the lowest tenth over the invocations of the
    # same function, communicator and size of last exit - last arrival; null where it cannot be told. `waiting`: summed over ranks
    # and invocations, last arrival - own arrival; `transfer`: exit - last arrival; both of all that were counted, for which those
    # that were recorded stand. `in_noise`: below three times the clock error.
    "arrival": {
        "scope": pl.String,
        "library": pl.String,
        "function": pl.String,
        "communicator": pl.String,
        "size_class": pl.String,
        "invocations": pl.Int64,
        "of_invocations": pl.Int64,
        "alpha": pl.Float64,
        "omega_mean": pl.Float64,
        "omega_median": pl.Float64,
        "omega_most": pl.Float64,
        "delta_mean": pl.Float64,
        "omega_factor": pl.Float64,
        "delta_factor": pl.Float64,
        "waiting": pl.Float64,
        "transfer": pl.Float64,
        "in_noise": pl.Boolean,
    },
    # Who comes last: `last` of `invocations` in which this rank was the last one, counted as often as those that were recorded
    # stand for; `behind`: mean seconds behind the others' mean;
    # `caused`: seconds that all ranks together waited in those; `since`: seconds of run time since which it causes at least half
    # of the waiting (0: always; null: it does not).
    "late": {
        "library": pl.String,
        "communicator": pl.String,
        "function": pl.String,
        "rank": pl.Int32,
        "invocations": pl.Int64,
        "last": pl.Int64,
        "share": pl.Float64,
        "behind": pl.Float64,
        "caused": pl.Float64,
        "since": pl.Float64,
    },
    # Paper Fig. 4: one row per invocation, thinned to at most a few thousand per (communicator, function).
    "invocations": {
        "library": pl.String,
        "communicator": pl.String,
        "function": pl.String,
        "sequence": pl.Int64,
        "at": pl.Float64,
        "bytes": pl.Int64,
        "omega": pl.Float64,
        "delta": pl.Float64,
        "omega_factor": pl.Float64,
        "delta_factor": pl.Float64,
        "last_rank": pl.Int32,
        "waiting": pl.Float64,
        "transfer": pl.Float64,
    },
    # Arrival raster: seconds each rank came after the first one; at most 64 ranks x 256 invocations, of the communicator that
    # waits most.
    "raster": {
        "communicator": pl.String,
        "function": pl.String,
        "sequence": pl.Int64,
        "rank": pl.Int32,
        "after_first": pl.Float64,
    },
    # Threads of a process in the library at once. `overlapped`: time with two or more inside; `most`: at once.
    "overlap": {"rank": pl.Int32, "library": pl.String, "most": pl.Int32, "overlapped": pl.Float64, "calls_overlapped": pl.Int64},
    # Requests by the function that started them: seconds from start to completion over all, `waited`: of those spent in the
    # completing calls, `hidden_share`: not. `open`: never seen to complete.
    "requests": {
        "function": pl.String,
        "completed": pl.Int64,
        "open": pl.Int64,
        "in_flight": pl.Float64,
        "waited": pl.Float64,
        "hidden_share": pl.Float64,
    },
    # Recognised fused buckets: large reductions that repeat with the same sizes in each iteration. `per_iteration` is null where
    # no period was found; `iterations` then counts calls.
    "buckets": {
        "communicator": pl.String,
        "function": pl.String,
        "bytes": pl.Int64,
        "datatype": pl.String,
        "per_iteration": pl.Int64,
        "iterations": pl.Int64,
    },
    # What Stretto did or would do, by function and size. `outcome`: "taken over", "would take over", "left: <reason>".
    # `expected_gain`: seconds, over all ranks; of calls taken over, what they would have cost more. Null where it cannot be told.
    "takeover": {
        "function": pl.String,
        "upper": pl.Int64,
        "outcome": pl.String,
        "calls": pl.Int64,
        "time": pl.Float64,
        "expected_gain": pl.Float64,
    },
}


class Severity(str, Enum):
    bad = "bad"  # costs the job much
    notable = "notable"
    fine = "fine"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence of the verdict, with its numbers, and what to do about it."""

    severity: Severity
    title: str  # "Waiting for rank 4 takes 31 % of the run time"
    text: str  # one or two sentences
    advice: str = ""
    figure: str = ""  # the table that shows it: "arrival", "sizes", ...


@dataclass(frozen=True, slots=True)
class Overhead:
    """Stretto's own cost, measured in the run: calls x cost of one."""

    calls: int
    nanoseconds_per_call: float
    seconds: float
    share: float  # of all ranks' run time


@dataclass(slots=True)
class Profile:
    folder: str
    job: str
    command: str
    mode: str  # "aggregate" or "full"
    started: str  # ISO 8601, local time; "" unknown
    wall_seconds: float
    world_size: int
    complete: bool  # every rank's file is there, whole, and was finished
    tables: dict[str, pl.DataFrame]
    calls: int = 0  # that the sums hold
    single_calls: int = 0  # that are recorded one by one
    unavailable: dict[str, str] = field(default_factory=dict)  # table -> why it has no rows
    verdict: list[Finding] = field(default_factory=list)
    overhead: Overhead | None = None
    problems: list[str] = field(default_factory=list)  # unreadable files, dropped events, ...

    def table(self, name: str) -> pl.DataFrame:
        return self.tables[name]


def empty_table(name: str) -> pl.DataFrame:
    return pl.DataFrame(schema=TABLES[name])
