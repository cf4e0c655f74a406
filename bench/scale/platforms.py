"""Simulated machines as SimGrid platform files: a fat tree or a dragonfly, nodes whose ranks share memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TOPOLOGIES = ("fat-tree", "dragonfly")
_HEAD = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">\n'


@dataclass(frozen=True)
class Speeds:
    """Bytes per second, seconds. `copy`, `add`: one core's, all of its node at work; `flag`: until another rank sees one."""

    link: float = 12.5e9  # 100 Gb/s in each direction
    hop: float = 0.3e-6
    message: float = 0.4e-6  # of a core's time, at each end
    copy: float = 10e9
    add: float = 10e9
    flag: float = 0.3e-6


def near_square(number: int) -> tuple[int, int]:
    """Two powers of two, the first not below the other, whose product is `number`, itself one."""
    power = number.bit_length() - 1
    return 1 << (power + 1) // 2, 1 << power // 2


def fat_tree(nodes: int) -> str:
    """Two levels: leaf switches with half as many cables up as nodes, each to a switch of its own."""
    below, leaves = near_square(nodes)
    return f'topology="FAT_TREE" topo_parameters="2;{below},{leaves};1,{max(below // 2, 1)};1,1"'


def dragonfly(nodes: int) -> str:
    """Groups of chassis of routers, each router with up to four nodes. SimGrid 3.32 fails where a chassis has fewer routers than
    there are groups, so it has as many."""
    on_router = 4 if nodes >= 64 else 2 if nodes >= 8 else 1
    groups = near_square(nodes // on_router)[1]
    chassis = nodes // on_router // groups**2
    return f'topology="DRAGONFLY" topo_parameters="{groups},1;{chassis},1;{groups},1;{on_router}"'


def platform(topology: str, nodes: int, speeds: Speeds) -> str:
    """`nodes` is a power of two. Within a node a message is one copy, as by cross-memory attach."""
    if nodes < 2 or nodes & (nodes - 1):
        raise ValueError(f"{nodes} nodes: not a power of two above one")
    shape = {"fat-tree": fat_tree, "dragonfly": dragonfly}[topology](nodes)
    links = f'bw="{speeds.link:.0f}Bps" lat="{speeds.hop * 1e9:.0f}ns" sharing_policy="SPLITDUPLEX"'
    inside = f'loopback_bw="{speeds.copy:.0f}Bps" loopback_lat="{speeds.flag * 1e9:.0f}ns"'
    names = f'id="machine" prefix="node-" suffix="" radical="0-{nodes - 1}" speed="1Gf" core="64"'
    return f"{_HEAD}<cluster {names} {links} {inside} {shape}/>\n</platform>\n"


def write(folder: Path, topology: str, nodes: int, per_node: int, speeds: Speeds, in_turn: bool) -> tuple[Path, Path]:
    """(platform file, host file with the ranks in blocks or dealt out in turn)."""
    machine, hosts = folder / f"{topology}-{nodes}.xml", folder / f"hosts-{nodes}x{per_node}"
    machine.write_text(platform(topology, nodes, speeds))
    order = [rank % nodes if in_turn else rank // per_node for rank in range(nodes * per_node)]
    hosts.write_text("".join(f"node-{node}\n" for node in order))
    return machine, hosts
