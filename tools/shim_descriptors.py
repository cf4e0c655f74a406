"""The table that tells a profile what each wrapped function's parameters mean (src/shim/profile/descriptor.hpp).

What a call sends and receives is found by the names that the parameters have in src/shim/functions.txt: they say which part each
plays in a function of its shape. tools/generate_shim.py writes the table.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shim_table import Function

BUFFERS = {
    "send_buffer": ("sendbuf", "origin_addr"),
    "send_count": ("sendcount", "origin_count"),
    "send_counts": ("sendcounts",),
    "send_type": ("sendtype", "origin_datatype"),
    "send_types": ("sendtypes",),
    "receive_buffer": ("recvbuf", "result_addr"),
    "receive_count": ("recvcount", "result_count"),
    "receive_counts": ("recvcounts",),
    "receive_type": ("recvtype", "result_datatype"),
    "receive_types": ("recvtypes",),
}
ROLES = {
    **BUFFERS,
    "destination": ("dest", "target_rank", "rank"),
    "source": ("source",),
    "root": ("root",),
    "tag": ("tag", "sendtag"),
    "receive_tag": ("recvtag",),
    "communicator": ("comm", "comm_old", "local_comm", "intercomm"),
    "op": ("op",),
    "window": ("win",),
    "request": ("request", "array_of_requests"),
    "count": ("count", "incount"),
    "flag": ("flag",),
    "index": ("index",),
    "indices": ("array_of_indices",),
    "out_count": ("outcount",),
    "status": ("status", "array_of_statuses"),
    "message": ("message",),
    "partition": ("partitions", "partition", "partition_low", "array_of_partitions"),
    "made": ("newcomm", "comm_cart", "comm_graph", "comm_dist_graph", "newintercomm", "newintracomm"),
}
# Functions that share a shape beyond their own name: which shape of shim/profile/descriptor.hpp.
SHAPES = {
    "scan": ("Scan",),
    "allgather": ("Allgather", "Allgatherv"),
    "alltoall": ("Alltoall", "Alltoallv", "Alltoallw"),
    "gather": ("Gather", "Gatherv"),
    "scatter": ("Scatter", "Scatterv"),
    "send": ("Send", "Bsend", "Ssend", "Rsend", "Psend"),
    "receive": ("Recv", "Precv"),
    "probe": ("Probe", "Iprobe", "Mprobe", "Improbe"),
    "matched_receive": ("Mrecv",),
    "ready": ("Pready", "Pready_range", "Pready_list", "Parrived"),
    "wait": ("Wait", "Test"),
    "wait_all": ("Waitall", "Testall"),
    "wait_any": ("Waitany", "Testany"),
    "wait_some": ("Waitsome", "Testsome"),
    "put": ("Put", "Accumulate", "Rput", "Raccumulate"),
    "get": ("Get", "Rget"),
    "get_accumulate": ("Get_accumulate", "Rget_accumulate", "Fetch_and_op", "Compare_and_swap"),
    "make_window": ("Win_create", "Win_allocate", "Win_allocate_shared", "Win_create_dynamic"),
    "split": ("Comm_split", "Comm_split_type", "Cart_sub"),
    "duplicate": ("Comm_dup", "Comm_dup_with_info"),
    "later_duplicate": ("Comm_idup", "Comm_idup_with_info"),
    "subgroup": ("Comm_create",),
    "subgroup_alone": ("Comm_create_group",),
    "from_group": ("Comm_create_from_group", "Intercomm_create_from_groups"),
    "topology": ("Cart_create", "Graph_create", "Dist_graph_create", "Dist_graph_create_adjacent"),
    "join_groups": ("Intercomm_create",),
    "merge": ("Intercomm_merge",),
    "release": ("Comm_free", "Comm_disconnect"),
    "connect": ("Comm_spawn", "Comm_spawn_multiple", "Comm_accept", "Comm_connect", "Comm_join"),
}
SHAPE_OF = {name: shape for shape, names in SHAPES.items() for name in names}
OWN_SHAPES = (
    "Allreduce Barrier Bcast Exscan Reduce Reduce_scatter Reduce_scatter_block Sendrecv Sendrecv_replace "
    "Start Startall Cancel Request_free Request_get_status Win_free"
).split()
SENDING_SHAPES = ("send", "put", "sendrecv_replace", "bcast", "reduce", "allreduce", "scan", "exscan")
# How the word of a Fortran call becomes that of the C call; pointers, to handles too, are passed on as they are.
FORTRAN_KINDS = {
    "int": "i",
    "MPI_Count": "n",
    "MPI_Aint": "n",
    "MPI_Comm": "C",
    "MPI_Datatype": "D",
    "MPI_Op": "O",
    "MPI_Win": "W",
    "MPI_Request": "R",
}


def split_name(function: Function) -> tuple[str, str, bool]:
    """The plain operation that a function does, whether it does, starts or prepares it, and whether among neighbours."""
    name = function.short.removesuffix("_c")
    prepares = name.endswith("_init") and any(p.name == "request" for p in function.parameters)
    name = name.removesuffix("_init") if prepares else name
    starts = re.match(r"I[a-z]", name) and name not in SHAPE_OF and any(p.name == "request" for p in function.parameters)
    name = name[1:].capitalize() if starts else name
    way = "prepares" if prepares else "starts" if starts or name.startswith(("Rput", "Rget", "Racc")) else "does"
    neighbours = name.startswith("Neighbor_")
    return name.removeprefix("Neighbor_").capitalize() if neighbours else name, way, neighbours


def shape_of(function: Function) -> tuple[str, str, bool]:
    name, way, neighbours = split_name(function)
    shape = SHAPE_OF.get(name, name.lower() if name in OWN_SHAPES else "other")
    return shape, way, neighbours


def role_names(shape: str) -> dict[str, str]:
    """Role by parameter name. A lone buffer is what is sent, or received, as the shape has it."""
    roles = {name: role for role, names in ROLES.items() for name in names}
    side = "send" if shape in SENDING_SHAPES else "receive"
    if shape in ("wait_all", "wait_any", "wait_some", "startall", "other"):
        return roles
    own = {"buf": "buffer", "buffer": "buffer", "count": "count", "datatype": "type"}
    made = {"intercomm": "made"} if shape == "connect" else {}
    return {**roles, **{name: f"{side}_{what}" for name, what in own.items()}, **made}


def descriptor(function: Function) -> str:
    """A row of the table in shim/profile/descriptor.hpp: shape, way and the positions of the parameters by role."""
    shape, way, neighbours = shape_of(function)
    roles = role_names(shape)
    positions: dict[str, int] = {}
    for position, parameter in enumerate(function.parameters):
        if parameter.name in roles:
            positions.setdefault(roles[parameter.name], position)
    wide = any("MPI_Count" in p.type and p.name.endswith(("count", "counts")) for p in function.parameters)
    kinds = "".join(FORTRAN_KINDS.get(p.value_type.removeprefix("const "), "p") for p in function.parameters)
    fields = [f".shape = Shape::{shape}, .way = Way::{way}"]
    fields += [f'.neighbours = {str(neighbours).lower()}, .wide = {str(wide).lower()}, .kinds = "{kinds}"']
    fields += [f".{role} = {positions[role]}" for role in (*ROLES,) if role in positions]
    return f"    /* {function.short} */ {{{', '.join(fields)}}},"
