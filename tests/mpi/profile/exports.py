"""What is exported of a job with known traffic: every byte once, from and to whom it went."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import otf2
import polars as pl
import truth
from mpi_job import Mpi

from stretto.exports import to_parquet
from stretto.otf2_archive import to_otf2

RECEIVES = "^MPI_(Recv|Mrecv|Irecv|Imrecv)(_c)?$"
Totals = dict[int, tuple[int, int]]  # by rank: bytes sent and received


def exports_problem(profiled: Callable[..., Any], mpi: Mpi, program: list[str | Path], ranks: int) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        outcome, _ = profiled(mpi, program, ranks, folder)
        if outcome.code != 0:
            return f"exit code {outcome.code}\n{outcome.tail()}"
        truths = {int(path.name): truth.read_truth(path) for path in folder.glob("[0-9]*")}
        wanted = {rank: _told(one) for rank, one in truths.items()}
        to_parquet(folder, folder / "calls.parquet")
        to_otf2(folder, folder / "archive")
        calls = pl.read_parquet(folder / "calls.parquet").with_columns(pl.col(pl.Categorical).cast(pl.String))
        messages = ~pl.col("part") & pl.col("function").str.contains("(?i)send|recv|Start")
        if Path(program[-1]).name.startswith("profile-collectives"):
            return _archive_problem(folder / "archive", wanted, intercommunicators=True)
        return (
            _difference("the table", _in_table(calls.filter(messages), wanted), wanted)
            or _partners_problem(calls, truths)
            or _archive_problem(folder / "archive", wanted)
        )


def _told(one: truth.Truth) -> tuple[int, int]:
    sent, received = (
        sum(size for (direction, _), size in one.traffic.items() if direction == which) for which in ("sent", "received")
    )
    return sent, received


def _difference(where: str, found: Totals, wanted: Totals) -> str:
    return "" if found == wanted else f"{where} holds {found} bytes sent and received instead of {wanted}"


def _in_table(messages: pl.DataFrame, ranks: Iterable[int]) -> Totals:
    sums = messages.group_by("rank").agg(pl.col("bytes_sent", "bytes_received").sum())
    return {rank: (0, 0) for rank in ranks} | {rank: (sent, received) for rank, sent, received in sums.iter_rows()}


def _partners_problem(calls: pl.DataFrame, truths: dict[int, truth.Truth]) -> str:
    """Receives, those from anybody too, say whom they got something from; all communicators have the world's order."""
    got = calls.filter(~pl.col("part") & pl.col("function").str.contains(RECEIVES) & (pl.col("bytes_received") > 0))
    for rank, peers in got.group_by("rank").agg(pl.col("peer").unique()).iter_rows():
        partners = {other for direction, other in truths[rank].traffic if direction == "received"}
        if not set(peers) <= partners:
            return f"rank {rank} receives from {sorted(peers)} instead of {sorted(partners)}"
    expected = any(direction == "received" for one in truths.values() for direction, _ in one.traffic)
    return "no receive in the table" if expected and not got.height else ""


def _archive_problem(archive: Path, wanted: Totals, intercommunicators: bool = False) -> str:
    """`intercommunicators`: all messages of the program are on some, and so left out."""
    sent: Counter[int] = Counter()
    received: Counter[int] = Counter()
    open_requests: Counter[tuple[int, str, int]] = Counter()
    with otf2.reader.open(str(archive / "traces.otf2")) as found:
        for location, event in found.events:
            kind, rank = type(event).__name__, int(location.group.name.split()[1])
            if kind in ("MpiSend", "MpiIsend"):
                sent[rank] += event.msg_length
            if kind in ("MpiRecv", "MpiIrecv"):
                received[rank] += event.msg_length
            if kind in ("MpiIsend", "MpiIsendComplete"):
                open_requests[rank, "send", event.request_id] += 1 if kind == "MpiIsend" else -1
            if kind in ("MpiIrecvRequest", "MpiIrecv"):
                open_requests[rank, "receive", event.request_id] += 1 if kind == "MpiIrecvRequest" else -1
            if kind == "MpiRequestCancelled":
                open_requests[rank, "receive", event.request_id] -= 1
    totals = {rank: (sent[rank], received[rank]) for rank in wanted}
    if intercommunicators:
        wanted = dict.fromkeys(wanted, (0, 0))
    if totals != wanted:
        return _difference("the archive", totals, wanted)
    unended = Counter(which for (_, which, _), number in open_requests.items() if number)
    freed = unended.pop("send", 0)
    return "" if not unended and freed <= len(wanted) else f"requests without an end: {freed} sends, {dict(unended)}"
