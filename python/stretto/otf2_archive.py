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

import polars as pl

from stretto.errors import StrettoError
from stretto.exports import Progress, event_count, frames, job_with_events
from stretto.profile.job import Job, Process
from stretto.profile.matching import COLLECTIVE

_SEND = re.compile(r"MPI_[SBR]?send(_c)?|MPI_Sendrecv(_replace)?(_c)?")
_ISEND = re.compile(r"MPI_I[sbr]?send(_c)?")
_RECEIVE = re.compile(r"MPI_M?recv(_c)?")
_IRECEIVE = re.compile(r"MPI_Im?recv(_c)?")
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
    try:
        with otf2.writer.open(str(target), timer_resolution=10**9) as archive:
            return _Writer(otf2, archive, job).write(iterations, progress)
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
        for (library, identity), one in self.job.groups.items():
            if library != "MPI" or not one.members or any(rank not in firsts for rank in one.members):
                continue
            if one.members not in groups:
                inside = tuple(firsts[rank] for rank in one.members)
                groups[one.members] = self.definitions.group(
                    f"group {len(groups)}", group_type=kinds.COMM_GROUP, paradigm=mpi, members=inside
                )
            found[identity] = self.definitions.comm(one.label, group=groups[one.members])
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

    def write(self, iterations: tuple[int, int] | None, progress: Progress | None) -> int:
        written, seen, there = 0, 0, event_count(self.job)
        for process in self.job.processes:
            for frame in frames(process, iterations):
                for group in _calls_with_parts(frame):
                    self._call(process, group)
                    written += 1
                seen += frame.height
                if progress:
                    progress(min(1.0, seen / there))
        return written

    def _call(self, process: Process, group: list[dict[str, Any]]) -> None:
        """A call, and the parts that it completed."""
        call, parts = group[0], group[1:]
        place = process.library, process.rank, call["thread"]
        writer = self.archive.event_writer_from_location(self.locations[place])
        # Times were rounded to ns one by one; OTF2 takes none that lies before the one told last.
        begin = max(call["t_entry_ns"] + self.origin, self.newest.get(place, 0))
        end = self.newest[place] = max(call["t_exit_ns"] + self.origin, begin)
        region, comm = self._region(call["function"]), self.comms.get(call["comm_id"])
        writer.enter(begin, region)
        if comm is not None and COLLECTIVE.fullmatch(call["function"]) and not call["function"].startswith("MPI_I"):
            writer.mpi_collective_begin(begin)
            root = call["peer"] if call["peer"] >= 0 else _UNKNOWN
            operation = self._operation(call["function"])
            sent, received = call["bytes_sent"], call["bytes_received"]
            writer.mpi_collective_end(end, operation, comm, root, sent, received)
        elif comm is not None:
            self._message(writer, call, begin, end, comm)
        for part in parts:
            comm = self.comms.get(part["comm_id"])
            if comm is not None:
                self._completion(writer, part, end, comm)
        if re.fullmatch(r"MPI_(Wait|Test)", call["function"]) and not parts and call["request"]:
            writer.mpi_isend_complete(end, call["request"])
        writer.leave(end, region)

    def _operation(self, function: str) -> Any:
        name = function.removeprefix("MPI_").removesuffix("_c").replace("_", "").lower().removeprefix("neighbor")
        return self.operations.get(name, self.operations["barrier"])

    def _message(self, writer: Any, call: dict[str, Any], begin: int, end: int, comm: Any) -> None:
        function, peer, tag = call["function"], call["peer"], max(0, call["tag"])
        if _IRECEIVE.fullmatch(function):
            if call["request"]:
                writer.mpi_irecv_request(begin, call["request"])
        elif peer < 0:
            return
        elif _ISEND.fullmatch(function):
            writer.mpi_isend(begin, peer, comm, tag, call["bytes_sent"], call["request"])
        elif _SEND.fullmatch(function):
            writer.mpi_send(begin, peer, comm, tag, call["bytes_sent"])
        elif _RECEIVE.fullmatch(function):
            writer.mpi_recv(end, peer, comm, tag, call["bytes_received"])

    def _completion(self, writer: Any, part: dict[str, Any], end: int, comm: Any) -> None:
        function, peer, tag = part["function"], part["peer"], max(0, part["tag"])
        if _ISEND.fullmatch(function) and part["request"]:
            writer.mpi_isend_complete(end, part["request"])
        elif _IRECEIVE.fullmatch(function) and part["request"] and peer >= 0:
            writer.mpi_irecv(end, peer, comm, tag, part["bytes_received"], part["request"])
        elif function.startswith("MPI_Sendrecv") and peer >= 0:
            writer.mpi_recv(end, peer, comm, tag, part["bytes_received"])


def _start(process: Process) -> int:
    """ns of the job before which the process made no call. MPI_Init may begin before the trace is there."""
    began = [int(process.trace.header.start_ticks), *(int(ticks) for ticks in process.trace.cells["first_ticks"] if ticks)]
    return int(process.line.at(min(began)) * 1e9) - 1


def _calls_with_parts(frame: pl.DataFrame) -> Iterator[list[dict[str, Any]]]:
    """Calls in the order of their ends, each with the parts that follow it; parts at the begin of a block are lost."""
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
