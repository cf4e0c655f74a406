"""A profile's calls as an OTF2 archive, for Vampir, Scalasca and whatever else reads that format.

Written by the package `otf2` (the Score-P developers' own; `pip install otf2`). A rank is a process with a location per thread;
each call is a region, with OTF2's records of messages and collectives in it. Times are ns of the job's common time line,
moved so that none is below 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stretto.errors import StrettoError
from stretto.exports import Progress, Window, event_count, frames, job_with_events, windows
from stretto.profile.job import Job, Process
from stretto.profile.matching import COLLECTIVE
from stretto.receives import COMPLETES
from stretto.trace_layout import CANCELLED, INCOMPLETE, KERNEL, NO_PEER, PART

_SEND = re.compile(r"MPI_(Send|[BSR]send|Sendrecv(_replace)?)(_c)?")
_ISEND = re.compile(r"MPI_(I[bsr]?send|Isendrecv(_replace)?)(_c)?")
_SEND_INIT = re.compile(r"MPI_(Send|[BSRP]send)_init(_c)?")
_RECEIVE = re.compile(r"MPI_(Recv|Mrecv)(_c)?")
_IRECEIVE = re.compile(r"MPI_(Im?recv|Isendrecv(_replace)?)(_c)?")
_RECEIVE_INIT = re.compile(r"MPI_(Recv|Precv)_init(_c)?")
_RECEIVED = 1 << 32  # added to the number of a request that receives: one of MPI_Isendrecv is both
_NOWHERE = 15  # the location of a buffer that there is none of
_UNKNOWN = 0xFFFFFFFF  # a root that there is none of


def to_otf2(folder: Path, target: Path, iterations: tuple[int, int] | None = None, progress: Progress | None = None) -> int:
    """The archive target/traces.otf2; the calls written. StrettoError: nothing to write, nowhere, or nothing to write it with."""
    try:
        import _otf2
        import otf2
    except ImportError:
        raise StrettoError(
            "OTF2 archives are written by the package otf2, which is not installed here: pip install otf2"
        ) from None
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StrettoError(f"{target} is there already: name a folder that is not")
    job = job_with_events(folder)
    wanted = windows(job, iterations)
    try:
        with otf2.writer.open(str(target), timer_resolution=10**9) as archive:
            return _Writer(otf2, archive, job).write(wanted, progress)
    except (otf2.error.Error, _otf2.ErrorCodes.Error, OSError) as error:
        raise StrettoError(f"cannot write {target}: {error}") from None


class _Writer:
    def __init__(self, otf2: Any, archive: Any, job: Job) -> None:
        self.otf2, self.job = otf2, job
        self.archive, self.definitions = archive, archive.definitions
        self.regions: dict[str, Any] = {}
        self.locations: dict[tuple[str, int, int], Any] = {}
        self.newest: dict[tuple[str, int, int], int] = {}
        self.origin = -min(0, *(_start(process) for process in job.processes))
        self._define_locations()
        self.comms = self._communicators()
        self.operations = self._operations()

    def _define_locations(self) -> None:
        tree, nodes = self.definitions.system_tree_node("job"), {}
        for process in self.job.processes:
            host = process.trace.header.host or f"node {process.node}"
            if host not in nodes:
                nodes[host] = self.definitions.system_tree_node(host, parent=tree)
            name = f"rank {process.rank}" + (" NCCL" if process.library == "NCCL" else "")
            group = self.definitions.location_group(name, system_tree_parent=nodes[host])
            for thread in sorted({0, *process.trace.event_threads()}):
                names = process.trace.thread_names
                called = names[thread] if thread < len(names) and names[thread] else f"thread {thread}"
                self.locations[process.library, process.rank, thread] = self.definitions.locations.create(called, group=group)

    def _communicators(self) -> dict[int, Any]:
        """By identity. Members count by their first threads."""
        firsts = {process.rank: self.locations["MPI", process.rank, 0] for process in self.job.mpi}
        mpi, kinds = self.otf2.Paradigm.MPI, self.otf2.GroupType
        ranks = sorted(firsts)
        members = tuple(firsts[rank] for rank in ranks)
        if not members:
            return {}
        self.definitions.group("ranks", group_type=kinds.COMM_LOCATIONS, paradigm=mpi, members=members)
        found: dict[int, Any] = {}
        groups: dict[tuple[int, ...], Any] = {}
        for one in (one for process in self.job.mpi for one in process.trace.communicators):
            if one.identity in found or one.remote_size:
                continue
            inside = tuple(one.members.tolist())  # in the order of their ranks, which messages and roots are told by
            if not inside or any(rank not in firsts for rank in inside):
                continue
            if inside not in groups:
                locations = tuple(firsts[rank] for rank in inside)
                groups[inside] = self.definitions.group(
                    f"group {len(groups)}", group_type=kinds.COMM_GROUP, paradigm=mpi, members=locations
                )
            found[one.identity] = self.definitions.comm(self.job.groups["MPI", one.identity].label, group=groups[inside])
        return found

    def _operations(self) -> dict[str, Any]:
        """OTF2's names of collectives, by the letters of MPI's."""
        names = [name for name in dir(self.otf2.CollectiveOp) if name.isupper()]
        return {name.replace("_", "").lower(): getattr(self.otf2.CollectiveOp, name) for name in names}

    def _region(self, name: str) -> Any:
        if name not in self.regions:
            library = self.otf2.Paradigm.MPI if name.startswith("MPI_") else self.otf2.Paradigm.NONE
            self.regions[name] = self.definitions.region(name, paradigm=library)
        return self.regions[name]

    def write(self, wanted: list[Window | None], progress: Progress | None) -> int:
        written, seen, there = 0, 0, event_count(self.job)
        for process, window in zip(self.job.processes, wanted, strict=True):
            sends = _sends(process)
            for frame in frames(process, window):
                for group in _calls_with_parts(frame.with_columns(sends=np.isin(frame["request"], sends))):
                    self._call(process, group)
                    written += not group[0]["function"].startswith(KERNEL)
                seen += frame.height
                if progress:
                    progress(min(1.0, seen / there))
        return written

    def _call(self, process: Process, group: list[dict[str, Any]]) -> None:
        """A call, and the parts that it started or completed."""
        call, parts = group[0], group[1:]
        function, place = call["function"], (process.library, process.rank, call["thread"])
        writer = self.archive.event_writer_from_location(self.locations[place])
        # Times were rounded to ns one by one; OTF2 takes none that lies before the one told last.
        begin = max(call["t_entry_ns"] + self.origin, self.newest.get(place, 0))
        end = self.newest[place] = max(call["t_exit_ns"] + self.origin, begin)
        region, comm = self._region(function), self.comms.get(call["comm_id"])
        writer.enter(begin, region)
        if comm is not None and COLLECTIVE.fullmatch(function) and not function.startswith("MPI_I"):
            writer.mpi_collective_begin(begin)
            root = call["peer"] if call["peer"] >= 0 else _UNKNOWN
            sent, received = call["bytes_sent"], call["bytes_received"]
            writer.mpi_collective_end(end, self._operation(function), comm, root, sent, received)
        elif COMPLETES.fullmatch(function):
            for one in parts or [call]:
                self._completion(writer, one, end)
        elif function == "MPI_Startall" or (function == "MPI_Start" and not parts):
            for one in parts or [call]:
                self._start(writer, one, begin)
        elif comm is not None:
            self._message(writer, call, begin, end, comm)
            for part in parts if function.startswith("MPI_Sendrecv") else ():
                if part["peer"] >= 0:
                    writer.mpi_recv(end, part["peer"], comm, max(0, part["tag"]), part["bytes_received"])
        writer.leave(end, region)

    def _operation(self, function: str) -> Any:
        name = function.removeprefix("MPI_").removesuffix("_c").replace("_", "").lower().removeprefix("neighbor")
        return self.operations.get(name, self.operations["barrier"])

    def _message(self, writer: Any, call: dict[str, Any], begin: int, end: int, comm: Any) -> None:
        function, peer, tag = call["function"], call["peer"], max(0, call["tag"])
        if _ISEND.fullmatch(function) and peer >= 0:
            writer.mpi_isend(begin, peer, comm, tag, call["bytes_sent"], call["request"])
        if _IRECEIVE.fullmatch(function) and call["request"] and (peer != NO_PEER or function.startswith("MPI_Isendrecv")):
            writer.mpi_irecv_request(begin, call["request"] + _RECEIVED)
        if _SEND.fullmatch(function) and peer >= 0:
            writer.mpi_send(begin, peer, comm, tag, call["bytes_sent"])
        elif _RECEIVE.fullmatch(function) and peer >= 0:
            writer.mpi_recv(end, peer, comm, tag, call["bytes_received"])

    def _start(self, writer: Any, one: dict[str, Any], begin: int) -> None:
        """Of a persistent request: the call MPI_Start, or the part of MPI_Startall."""
        comm, started = self.comms.get(one["comm_id"]), one["function"]
        if comm is None or one["peer"] < 0 or not one["request"]:
            return
        if one["sends"]:
            writer.mpi_isend(begin, one["peer"], comm, max(0, one["tag"]), one["bytes_sent"], one["request"])
        elif started == "MPI_Start" or _RECEIVE_INIT.fullmatch(started):
            writer.mpi_irecv_request(begin, one["request"] + _RECEIVED)

    def _completion(self, writer: Any, one: dict[str, Any], end: int) -> None:
        """Of a request: a part, or the call where it has none."""
        function, peer, tag, request = one["function"], one["peer"], max(0, one["tag"]), one["request"]
        comm = self.comms.get(one["comm_id"])
        if comm is None or not request or one["flags"] & INCOMPLETE:
            return
        if one["flags"] & CANCELLED:
            writer.mpi_request_cancelled(end, request + (0 if one["sends"] else _RECEIVED))
            return
        if one["sends"] and (peer >= 0 or function.startswith("MPI_Isendrecv")):
            writer.mpi_isend_complete(end, request)
        if peer < 0:
            return
        if _IRECEIVE.fullmatch(function) or _RECEIVE_INIT.fullmatch(function):
            writer.mpi_irecv(end, peer, comm, tag, one["bytes_received"], request + _RECEIVED)


def _sends(process: Process) -> NDArray[np.uint32]:
    """Numbers of the requests that send. An MPI_Start does where there is a buffer to send from alone; parts, which tell of
    collectives and of what was received, belong to none of them."""
    trace, none = process.trace, np.zeros(0, np.uint32)
    sends = np.array([*(bool(_ISEND.fullmatch(name) or _SEND_INIT.fullmatch(name)) for name in trace.functions), False])
    start = np.array([*(name == "MPI_Start" for name in trace.functions), False])
    found, started, others = [none], [none], [none]
    for thread in trace.event_threads():
        for batch in trace.batches(thread, 1 << 20):
            rows = batch.rows[batch.rows["request"] != 0]
            function = np.minimum(rows["function"], len(sends) - 1)
            found.append(np.unique(rows["request"][sends[function]]))
            sends_only = (rows["location"] & 15 != _NOWHERE) & (rows["location"] >> 4 == _NOWHERE)
            started.append(rows["request"][start[function] & sends_only])
            others.append(rows["request"][(rows["flags"] & PART != 0) & ~sends[function]])
    return np.union1d(np.concatenate(found), np.setdiff1d(np.concatenate(started), np.concatenate(others)))


def _start(process: Process) -> int:
    """ns of the job before which the process made no call. MPI_Init may begin before the trace is there."""
    began = [int(process.trace.header.start_ticks), *(int(ticks) for ticks in process.trace.cells["first_ticks"] if ticks)]
    return int(process.line.at(min(began)) * 1e9) - 1


def _calls_with_parts(frame: pl.DataFrame) -> Iterator[list[dict[str, Any]]]:
    """Calls in the order of their ends, each with the parts that follow it."""
    group: list[dict[str, Any]] = []
    for row in frame.with_columns(pl.col(pl.Categorical).cast(pl.String)).iter_rows(named=True):
        if not row["part"]:
            if group:
                yield group
            group = [row]
        elif group:
            group.append(row)
    if group:
        yield group
