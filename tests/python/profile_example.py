"""A profile made by hand, of any number of ranks: a training whose one rank comes late. What the reports are tested with."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from stretto.profile_model import TABLES, Finding, Overhead, Profile, Severity, empty_table

HOSTILE = "</title><script>document.title='taken'</script><img src=x onerror=alert(1)>\"'&amp;\x1b[31m\x1b]0;taken\x07\u202e"
RUN = 63.2  # seconds between MPI_Init and MPI_Finalize
LATE, SINCE = 5, 21.0
BUCKETS = (67_108_864, 29_884_416)


def frame(name: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=TABLES[name]) if rows else empty_table(name)


def example(ranks: int = 8, text: str = "", noisy: bool = False, nccl: bool = True) -> Profile:
    """`text` goes into every name that comes from the job; `noisy`: arrivals that the clocks cannot resolve."""
    nodes = max(1, ranks // 4)
    late = min(LATE, ranks - 1)
    many = ranks > 1
    tables = {name: empty_table(name) for name in TABLES}
    tables["ranks"] = _ranks(ranks, nodes, text)
    tables["functions"] = _functions(ranks, late, nccl)
    tables["sizes"] = _sizes(ranks, text, nccl)
    tables["partners"] = _partners(ranks)
    tables["communicators"] = _communicators(ranks, nodes, text)
    if many:
        tables["invocations"] = _invocations(ranks, late, text)
        tables["arrival"] = _arrival(ranks, noisy, text)
        tables["late"] = _late(ranks, late, text)
        tables["raster"] = _raster(ranks, late, text)
    tables["overlap"] = _overlap(ranks)
    tables["requests"] = _requests()
    tables["buckets"] = _buckets(text)
    tables["takeover"] = _takeover()
    return Profile(
        folder="/home/ada/runs/stretto-profile-1",
        job="5f0c2e9a7b314f06a1d2",
        command=f"mpirun -n {ranks} python train.py --model resnet50 --batch 64 {text}",
        mode="full",
        started="2026-05-04T09:12:31+02:00",
        wall_seconds=66.8,
        world_size=ranks,
        complete=ranks != 1024,
        tables=tables,
        unavailable={
            "queues": f"this MPI (Open MPI 5.0.11) offers no queue variables: its point-to-point layer is not ob1 {text}".strip(),
            **({} if many else {"arrival": "one rank alone waits for nobody"}),
        },
        verdict=_verdict(late, many, text),
        overhead=Overhead(calls=412_000 * ranks, nanoseconds_per_call=61.0, seconds=0.0251 * ranks, share=0.0251 / RUN),
        problems=[f"rank-4711.trace: 1204 events dropped: the limit of 512 MiB was reached {text}".strip()] if ranks > 8 else [],
    )


def _ranks(ranks: int, nodes: int, text: str) -> pl.DataFrame:
    rows = []
    for rank in range(ranks):
        node = rank * nodes // ranks
        calls = 412_000 + 37 * (rank % 7)
        rows.append(
            {
                "rank": rank,
                "library": "MPI",
                "host": f"node{node + 1:02}{text}",
                "node": node,
                "pid": 4000 + rank,
                "version": f"Open MPI v5.0.11{text}",
                "state": "finished" if rank != 3 else "no MPI_Finalize",
                "run_time": RUN,
                "library_time": 19.0 + rank % 5 * 0.4,
                "calls": calls,
                "events": calls,
                "lost": 1204 if rank == 9 else 0,
                "threads": 2,
                "clock_error": 0.0 if node == 0 else 1.9e-6,
            }
        )
    return frame("ranks", rows)


def _functions(ranks: int, late: int, nccl: bool) -> pl.DataFrame:
    kinds = [
        ("MPI", "MPI_Allreduce", 9_480, 13.4, 29_000_000_000),
        ("MPI", "MPI_Bcast", 1_612, 1.9, 410_000_000),
        ("MPI", "MPI_Waitall", 6_000, 1.1, 0),
        ("MPI", "MPI_Gather", 1_600, 0.42, 51_200),
        ("MPI", "MPI_Gatherv", 1_600, 0.38, 1_300_000),
        ("MPI", "MPI_Isend", 12_000, 0.11, 98_000_000),
        ("MPI", "MPI_Irecv", 12_000, 0.07, 0),
        ("MPI", "MPI_Iprobe", 367_000, 0.61, 0),
        ("MPI", "MPI_Barrier", 24, 0.8, 0),
        ("MPI", "MPI_Comm_rank", 640, 0.00002, 0),
    ]
    if nccl:
        kinds += [("NCCL", "ncclAllReduce", 900, 4.1, 60_000_000_000), ("NCCL", "ncclBroadcast", 12, 0.05, 102_000_000)]
    rows = []
    for rank in range(ranks):
        for library, function, calls, time, size in kinds:
            waits = function in ("MPI_Allreduce", "MPI_Barrier")
            spent = time * (0.25 if waits and rank == late and ranks > 1 else 1.0) * (1 + 0.04 * np.sin(rank * 1.7))
            calls_here = calls * (2 if function == "MPI_Iprobe" and rank == 0 else 1)
            rows.append(
                {
                    "rank": rank,
                    "library": library,
                    "function": function,
                    "calls": calls_here,
                    "time": spent,
                    "share": spent / RUN,
                    "sent": size,
                    "received": size,
                }
            )
    return frame("functions", rows)


def _sizes(ranks: int, text: str, nccl: bool) -> pl.DataFrame:
    left = f"MPI: spans nodes{text}"
    world = f"MPI_COMM_WORLD{text}"
    cells = [
        ("MPI", "MPI_Allreduce", "MPI_BYTE", "MPI_BAND", "host", 8, "control", 7_900, 6.1, ""),
        ("MPI", "MPI_Allreduce", "MPI_BYTE", "MPI_BAND", "host", 32, "control", 480, 0.6, ""),
        ("MPI", "MPI_Allreduce", "MPI_FLOAT", "MPI_SUM", "host", 4096, "", 150, 0.2, ""),
        ("MPI", "MPI_Allreduce", "MPI_FLOAT", "MPI_SUM", "device", 1 << 20, "sums", 110, 0.4, left),
        ("MPI", "MPI_Allreduce", "MPI_FLOAT", "MPI_SUM", "device", 1 << 25, "sums", 300, 2.1, left),
        ("MPI", "MPI_Allreduce", "MPI_FLOAT", "MPI_SUM", "device", 1 << 26, "sums", 300, 3.6, left),
        ("MPI", "MPI_Allreduce", "MPI_FLOAT", "MPI_SUM", "host", 1 << 26, "sums", 40, 0.4, left),
        ("MPI", "MPI_Bcast", "MPI_INT", "", "host", 4, "control", 1_600, 1.2, ""),
        ("MPI", "MPI_Bcast", "MPI_FLOAT", "", "host", 1 << 24, "parameters", 12, 0.7, ""),
        ("MPI", "MPI_Gather", "MPI_INT", "", "host", 4, "control", 1_600, 0.42, ""),
        ("MPI", "MPI_Gatherv", "MPI_BYTE", "", "host", 1024, "control", 1_600, 0.38, ""),
        ("MPI", "MPI_Barrier", "", "", "none", 0, "control", 24, 0.8, ""),
    ]
    if nccl:
        cells += [("NCCL", "ncclAllReduce", "float", "sum", "device", 1 << 26, "sums", 900, 4.1, "")]
    names = ("library", "function", "datatype", "op", "location", "upper", "use", "calls", "time", "stretto")
    rows = []
    for cell in cells:
        row: dict[str, Any] = dict(zip(names, cell, strict=True))
        calls = row["calls"] * ranks
        row |= {"calls": calls, "time": row["time"] * ranks, "bytes": int(row["upper"] * 0.8) * calls, "communicator": world}
        rows.append(row)
    return frame("sizes", rows)


def _partners(ranks: int) -> pl.DataFrame:
    rows = []
    for rank in range(ranks if ranks > 1 else 0):
        for step, calls in ((1, 6000), (-1, 6000)):
            rows.append({"source": rank, "target": (rank + step) % ranks, "how": "sent", "calls": calls, "bytes": calls * 8192})
        if rank:
            rows.append({"source": rank, "target": 0, "how": "sent", "calls": 40, "bytes": 40 * 64})
            rows.append({"source": 0, "target": rank, "how": "put", "calls": 4, "bytes": 1 << 22})
    return frame("partners", rows)


def _communicators(ranks: int, nodes: int, text: str) -> pl.DataFrame:
    world: dict[str, Any] = {"identity": 1, "name": f"MPI_COMM_WORLD{text}", "parent": "", "size": ranks, "nodes": nodes}
    use = {"calls": 11_200 * ranks, "bytes": 29_000_000_000 * ranks, "time": 15.0 * ranks}
    split = {"identity": (1 << 63) + 5, "name": f"split of MPI_COMM_WORLD{text}", "parent": f"MPI_COMM_WORLD{text}"}
    more = {"size": max(ranks // nodes, 1), "nodes": 1, "calls": 1_600 * ranks, "bytes": 1_300_000 * ranks, "time": 0.4 * ranks}
    return frame("communicators", [world | use, split | more])


def _invocations(ranks: int, late: int, text: str) -> pl.DataFrame:
    noise = np.random.default_rng(7)
    rows = []
    kinds = (("MPI_Allreduce", 1500, 8, 11e-6), ("MPI_Allreduce", 600, BUCKETS[0], 12e-3), ("MPI_Barrier", 24, 0, 6e-6))
    for function, count, size, alpha in kinds:
        for number in range(count):
            at = RUN * (number + 0.5) / count
            spread = noise.lognormal(np.log(3e-4), 0.5) * (40 if at > SINCE else 1) * (1 if size < 1e6 else 0.3)
            last = late if at > SINCE and noise.random() < 0.93 else int(noise.integers(ranks))
            rows.append(
                {
                    "library": "MPI",
                    "communicator": f"MPI_COMM_WORLD{text}",
                    "function": function,
                    "sequence": number,
                    "at": at,
                    "bytes": size,
                    "omega": spread,
                    "delta": spread * 0.22,
                    "omega_factor": spread / alpha,
                    "delta_factor": spread * 0.22 / alpha,
                    "last_rank": last,
                    "waiting": spread * 0.8 * (ranks - 1),
                    "transfer": alpha * ranks,
                }
            )
    return frame("invocations", rows)


def _arrival(ranks: int, noisy: bool, text: str) -> pl.DataFrame:
    rows = []
    classes = (("small", 8_530, 11e-6, 1.4e-3), ("medium", 110, 240e-6, 1.1e-3), ("large", 640, 6e-3, 2.9e-3))
    for scope, factor in (("cluster", 1.0), ("node", 0.24)):
        for size_class, invocations, alpha, omega in classes:
            omega *= factor
            rows.append(
                {
                    "scope": scope,
                    "library": "MPI",
                    "function": "MPI_Allreduce",
                    "communicator": f"MPI_COMM_WORLD{text}",
                    "size_class": size_class,
                    "invocations": invocations,
                    "of_invocations": invocations,
                    "alpha": alpha if size_class != "medium" else None,
                    "omega_mean": omega,
                    "omega_median": omega * 0.8,
                    "omega_most": omega * 21,
                    "delta_mean": omega * 0.2,
                    "omega_factor": omega / alpha if size_class != "medium" else None,
                    "delta_factor": omega * 0.2 / alpha if size_class != "medium" else None,
                    "waiting": omega * 0.8 * invocations * (ranks - 1),
                    "transfer": alpha * invocations * ranks,
                    "in_noise": noisy or (scope == "node" and size_class == "medium"),
                }
            )
    barrier = rows[0] | {"function": "MPI_Barrier", "size_class": "none", "invocations": 24, "of_invocations": 24}
    rows.append(barrier | {"waiting": 0.5 * ranks, "transfer": 0.3 * ranks, "omega_mean": 2.1e-2})
    return frame("arrival", rows)


def _late(ranks: int, late: int, text: str) -> pl.DataFrame:
    rows = []
    for function, of in (("MPI_Allreduce", 9280), ("MPI_Barrier", 24)):
        for rank in range(ranks):
            share = 0.66 if rank == late else 0.34 / max(ranks - 1, 1)
            rows.append(
                {
                    "library": "MPI",
                    "communicator": f"MPI_COMM_WORLD{text}",
                    "function": function,
                    "rank": rank,
                    "invocations": of,
                    "last": round(of * share),
                    "share": share,
                    "behind": 6.1e-3 if rank == late else -8.7e-4,
                    "caused": (9.2 if rank == late else 0.3) * of / 9280,
                    "since": SINCE if rank == late else None,
                }
            )
    return frame("late", rows)


def _raster(ranks: int, late: int, text: str) -> pl.DataFrame:
    noise = np.random.default_rng(3)
    shown = sorted({int(rank) for rank in np.linspace(0, ranks - 1, min(ranks, 64))} | {late})[:64]
    rows = []
    for number in range(0, 9216, 36):
        after = noise.lognormal(np.log(2e-4), 0.6, len(shown))
        after[0] = 0.0
        if number > 9216 * SINCE / RUN and late in shown:
            after[shown.index(late)] = 9e-3 * (1 + 0.2 * noise.random())
        for rank, seconds in zip(shown, after, strict=True):
            cell = {"communicator": f"MPI_COMM_WORLD{text}", "function": "MPI_Allreduce", "sequence": number}
            rows.append(cell | {"rank": rank, "after_first": float(seconds)})
    return frame("raster", rows)


def _overlap(ranks: int) -> pl.DataFrame:
    rows = [{"rank": r, "library": "MPI", "most": 2, "overlapped": 0.09, "calls_overlapped": 640} for r in range(ranks)]
    return frame("overlap", rows)


def _requests() -> pl.DataFrame:
    cells = (("MPI_Isend", 96_000, 0, 41.0, 3.1, 0.92), ("MPI_Irecv", 95_998, 2, 88.0, 52.0, 0.41))
    names = ("function", "completed", "open", "in_flight", "waited", "hidden_share")
    return frame("requests", [dict(zip(names, cell, strict=True)) for cell in cells])


def _buckets(text: str) -> pl.DataFrame:
    fixed = {"communicator": f"MPI_COMM_WORLD{text}", "function": "MPI_Allreduce", "datatype": "MPI_FLOAT", "iterations": 300}
    return frame("buckets", [fixed | {"bytes": size, "per_iteration": per} for size, per in zip(BUCKETS, (1, None), strict=True)])


def _takeover() -> pl.DataFrame:
    cells = (
        ("MPI_Allreduce", 8, "would take over", 63_200, 48.8, 21.0),
        ("MPI_Allreduce", 1 << 26, "left: spans nodes", 2_720, 32.0, None),
        ("MPI_Bcast", 4, "would take over", 12_800, 9.6, 5.2),
    )
    names = ("function", "upper", "outcome", "calls", "time", "expected_gain")
    return frame("takeover", [dict(zip(names, cell, strict=True)) for cell in cells])


def _verdict(late: int, many: bool, text: str) -> list[Finding]:
    if not many:
        return [Finding(Severity.fine, "One rank: nothing was waited for", "The program ran alone.", "", "functions")]
    return [
        Finding(
            Severity.bad,
            f"Waiting for rank {late} takes 16 % of the run time{text}",
            f"Rank {late} on node02 came last in 66 % of 9,280 allreduces, in 93 % of them since 21 s into the run; "
            "the others waited 10.1 s each.",
            f"Look at what else runs on node02: compare rank {late}'s compute time with its neighbours'.",
            "late",
        ),
        Finding(
            Severity.notable,
            "Control messages are 88 % of the allreduces",
            "63,200 allreduces of 8 B with MPI_BAND take 9.7 % of the run time.",
            "With Horovod, raise HOROVOD_CYCLE_TIME.",
            "sizes",
        ),
        Finding(
            Severity.notable,
            "Stretto would take over 76,000 calls",
            "Expected gain: 26.2 s summed over the ranks, 5.2 % of the run time.",
            "Run it with stretto run.",
            "takeover",
        ),
        Finding(Severity.fine, "Ranks do not share cores", "8 ranks, 8 cores.", "", ""),
    ]
