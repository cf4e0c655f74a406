"""What receives got, for the row of the call that began them: an MPI_Irecv knows neither whom MPI_ANY_SOURCE becomes nor how
much comes. The part of the MPI_Wait that completed it does; both bear the request's number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stretto.trace import Batch, Trace
from stretto.trace_layout import CANCELLED, PART

Array = NDArray[Any]

_RECEIVES = re.compile(r"MPI_(Im?recv|P?recv_init|Isendrecv(_replace)?)(_c)?", re.IGNORECASE)
_BEGINS = re.compile(r"MPI_(Im?recv|Isendrecv(_replace)?|Start)(_c)?")  # the call itself; of MPI_Startall its parts
COMPLETES = re.compile(r"MPI_(Wait|Test)(all|any|some)?")
_BOTH_WAYS = re.compile(r"MPI_Isendrecv(_replace)?(_c)?")  # the peer is whom it sends to
_BLOCK = 1 << 20
_NONE = pl.DataFrame(schema={"request": pl.UInt32, "peer": pl.Int32, "tag": pl.Int32, "got": pl.Int64})


@dataclass(frozen=True, slots=True)
class _Functions:
    """Of each function's number, whether its name matches; one row more for numbers beyond the table."""

    receives: Array
    begins: Array
    completes: Array
    both_ways: Array
    startall: Array


def _functions(trace: Trace) -> _Functions:
    def table(pattern: re.Pattern[str]) -> Array:
        return np.array([*(pattern.fullmatch(name) is not None for name in trace.functions), False])

    patterns = (_RECEIVES, _BEGINS, COMPLETES, _BOTH_WAYS, re.compile("MPI_Startall"))
    return _Functions(*map(table, patterns))


def calls_of_parts(rows: Array) -> Array:
    """Of each event the index of the call that it belongs to: its own where it is no part."""
    return np.maximum.accumulate(np.where(rows["flags"] & PART, 0, np.arange(len(rows))))


class Receives:
    """The completed receives of a process. Each use of a request has a number of its own."""

    def __init__(self, trace: Trace) -> None:
        self._are = _functions(trace)
        called = np.unique(trace.cells["function"]).astype(np.int64)
        any_begins = self._are.receives[called[called < len(self._are.receives)]].any()
        found = [self._completed(trace, thread) for thread in trace.event_threads()] if any_begins else []
        self._completions = pl.concat([_NONE, *found]).unique("request", keep="any")

    def _function(self, rows: Array) -> Array:
        return np.asarray(np.minimum(rows["function"], len(self._are.begins) - 1))

    def _completed(self, trace: Trace, thread: int) -> pl.DataFrame:
        parts, before = [_NONE], False
        for batch in trace.batches(thread, _BLOCK):
            rows = batch.rows
            function, call = self._function(rows), calls_of_parts(rows)
            completes = self._are.completes[function[call]]
            if len(rows) and rows["flags"][0] & PART:  # parts of the block before's last call
                completes[call == 0] = before
            before = bool(completes[-1]) if len(rows) else before
            cancelled, part = rows["flags"] & CANCELLED != 0, rows["flags"] & PART != 0
            mine = completes & (rows["request"] != 0) & np.where(part, self._are.receives[function], cancelled)
            got = np.where(cancelled, 0, batch.received)[mine]
            told = {name: rows[name][mine] for name in ("request", "peer", "tag")}
            parts.append(pl.DataFrame({**told, "got": got}, schema=_NONE.schema))
        return pl.concat(parts)

    def fill(self, batch: Batch) -> Batch:
        """The batch with whom and how much receives got where they began; those that were not seen to end stay as posted.
        Cancelled ones got nothing. It begins with a call."""
        rows = batch.rows
        if not self._completions.height or not len(rows):
            return batch
        function, call = self._function(rows), calls_of_parts(rows)
        part, in_startall = rows["flags"] & PART != 0, self._are.startall[function[call]]
        begins = np.where(part, in_startall & self._are.receives[function], self._are.begins[function])
        at = np.flatnonzero(begins & (rows["request"] != 0))
        if not len(at):
            return batch
        known = pl.DataFrame({"request": rows["request"][at], "index": at}).join(self._completions, on="request")
        at, got = known["index"].to_numpy(), known["got"].to_numpy()
        rows, received = rows.copy(), batch.received.copy()
        received[at] = got
        named = ~self._are.both_ways[function[at]] & (known["peer"].to_numpy() >= 0)
        for column in ("peer", "tag"):
            rows[column][at[named]] = known[column].to_numpy()[named]
        whole = np.zeros(len(rows), np.int64)
        np.add.at(whole, call[part & in_startall], received[part & in_startall])
        with_parts = np.unique(call[part & in_startall])
        received[with_parts] = whole[with_parts]
        return Batch(batch.thread, rows, batch.spent, batch.sent, received)
