"""Message sizes by function, and what the messages are for: control messages told from gradients (thesis section 3.3.4)."""

from __future__ import annotations

import polars as pl

from stretto.profile.job import Job
from stretto.profile_model import TABLES

CONTROL_BYTES = 4096  # largest bin of control messages
GRADIENT_BYTES = 1024  # smallest bin of gradients (thesis: gradients are above, negotiation is below)
PARAMETER_BYTES = 4096  # smallest bin of parameters
BEGINNING = 0.2  # of the run time: when parameters are distributed

_LOGICAL = "^(MPI_(BAND|BOR|BXOR|LAND|LOR|LXOR))$"
SUM = "^(MPI_SUM|ncclSum|ncclAvg|ncclPreMulSum|user)$"  # user: sums of half precision, as in Horovod
FLOATING = "FLOAT|DOUBLE|REAL|HALF|ncclFloat|ncclBfloat|ncclHalf|ncclDouble|COMPLEX|^derived$"
REDUCTION = "(?i)^(MPI_I?(all)?reduce(_scatter)?(_block)?(_init)?(_c)?|nccl(AllReduce|Reduce|ReduceScatter))$"
_ALLREDUCE = "(?i)^(MPI_I?allreduce(_init)?(_c)?|ncclAllReduce)$"
_GATHER = "(?i)^MPI_I?(all)?gatherv?(_init)?(_c)?$"
_BCAST = "(?i)^(MPI_I?bcast(_init)?(_c)?|nccl(Bcast|Broadcast))$"


def is_negotiation() -> pl.Expr:
    """As Horovod's ranks tell one another what is ready."""
    return pl.col("function").str.contains(_ALLREDUCE) & pl.col("op").str.contains(_LOGICAL)


def use(run_time: float) -> pl.Expr:
    """The use of a row of cells: "sums", "control", "parameters" or ""."""
    function, op, upper = pl.col("function"), pl.col("op"), pl.col("upper")
    summed = function.str.contains(REDUCTION) & op.str.contains(SUM)
    floating = pl.col("datatype").str.contains(FLOATING)
    control = is_negotiation()
    control |= function.str.contains(f"{_GATHER}|{_BCAST}") & (upper > 0) & ~floating
    parameters = function.str.contains(_BCAST) & (upper >= PARAMETER_BYTES) & (pl.col("last") <= BEGINNING * run_time)
    return (
        pl.when(summed & floating & (upper >= GRADIENT_BYTES))
        .then(pl.lit("sums"))
        .when(parameters)
        .then(pl.lit("parameters"))
        .when(control & (upper <= CONTROL_BYTES))
        .then(pl.lit("control"))
        .otherwise(pl.lit(""))
    )


def sizes(job: Job, cells: pl.DataFrame) -> pl.DataFrame:
    """Summed over ranks and threads. `bytes`: the larger of sent and received, call by call as far as the sums tell."""
    longest = max((process.end for process in job.processes), default=0.0)
    keys = ["library", "function", "communicator", "datatype", "op", "location", "upper", "stretto"]
    moved = pl.max_horizontal("sent", "received")
    grouped = cells.with_columns(bytes=moved).group_by(keys).agg(pl.col("calls", "bytes", "time").sum(), pl.col("last").max())
    return grouped.with_columns(use=use(longest)).select(list(TABLES["sizes"])).sort(keys)
