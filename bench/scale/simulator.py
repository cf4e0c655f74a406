"""Builds the simulated program with SimGrid's SMPI and runs it on a simulated machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import platforms

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "scale"
PER_NODE = 4
FACTOR = 5.85  # the paper's Table 1: mean of the worst-case imbalance factors of large messages, Horovod's ResNet50
STREAMED_SLICE = 256 << 10  # src/collective/hierarchy/across.hpp
LIMIT = 1800.0
SPEEDS = platforms.Speeds()
OPERATIONS = {
    "barrier": ("leader",),
    "bcast": ("leader", "pipelined", "chain", "comers"),
    "reduce": ("leader", "rsa", "pipelined", "chain"),
    "allreduce": ("leader", "rsa", "leaders", "streamed", "pipelined", "presence", "domains"),
}
_PRODUCT = [
    *sorted((ROOT / "src" / "collective" / "hierarchy").glob("*.cpp")),
    ROOT / "src" / "shim" / "rails.cpp",
]
_FLAGS = ["-std=gnu++20", "-O2", "-fPIC", "-w", f"-I{HERE}", f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}"]
# Lossless links without TCP's limits; messages up to 16 KiB are sent before the receiver asks, those up to 64 KiB buffered.
_SETTINGS = {
    "smpi/simulate-computation": "no",
    "smpi/host-speed": "1Gf",
    "smpi/display-timing": "no",
    "smpi/bw-factor": "0:1",
    "smpi/lat-factor": "0:1",
    "smpi/test": "1e-6",
    "smpi/iprobe": "1e-6",
    "smpi/grow-injected-times": "no",
    "smpi/os": f"0:{SPEEDS.message}:0",
    "smpi/or": f"0:{SPEEDS.message}:0",
    "smpi/async-small-thresh": "16384",
    "smpi/send-is-detached-thresh": "65536",
    "smpi/shared-malloc": "global",
    "smpi/shared-malloc-blocksize": "16777216",
    "network/TCP-gamma": "0",
    "network/crosstraffic": "0",
    "contexts/stack-size": "2048",
}


@dataclass(frozen=True)
class Job:
    """One run of the simulator. `selector`: who chooses the MPI's own algorithms; `allreduce`: the one that it must choose."""

    topology: str
    nodes: int
    selector: str
    rows: tuple[str, ...]
    sizes: tuple[int, ...]
    factors: tuple[float, ...]
    repeats: int = 2
    direct: bool = False
    operation: str = "allreduce"
    allreduce: str = ""
    check: bool = False
    link: float = SPEEDS.link
    in_turn: bool = False  # ranks are dealt out to the nodes, else in blocks
    per_node: int = PER_NODE
    domains: int = 2  # of a node: what the row `domains` has leaders for

    @property
    def name(self) -> str:
        inside = "direct" if self.direct else "staged"
        what = f"{self.operation} of {', '.join(map(str, self.sizes))} bytes, {self.link * 8e-9:.0f} Gb/s"
        ranks = f" x {self.per_node}" if self.per_node != PER_NODE else ""
        where = f"{self.topology} of {self.nodes} nodes{ranks}{', in turn' if self.in_turn else ''}, {inside}"
        return f"{what}, {where}, {self.allreduce or self.selector}: {', '.join(self.rows)}"


@dataclass(frozen=True)
class Measured:
    """Simulated seconds. after_last: last exit - last arrival; inside_mean: a rank's mean time in the call (the paper's)."""

    topology: str
    selector: str
    in_node: str
    operation: str
    row: str
    ranks: int
    bytes: int
    factor: float
    repeat: int
    alpha: float
    after_last: float
    inside_mean: float
    link: float = SPEEDS.link  # bytes per second
    placement: str = "block"  # or "in turn"
    wrong: int = 0

    def as_json(self) -> dict[str, Any]:
        found = asdict(self)
        del found["wrong"]
        return found


def read(path: Path) -> list[Measured]:
    return [Measured(**one) for one in json.loads(path.read_text())["measurements"]]


def model() -> dict[str, Any]:
    return {"ranks_per_node": PER_NODE, **asdict(SPEEDS), "smpi": _SETTINGS}


def missing() -> str:
    """What is not to be had here; "" nothing."""
    tools = [name for name in ("smpicxx", "smpirun", "g++") if not shutil.which(name)]
    return f"no {', no '.join(tools)} (Debian: apt-get install libsimgrid-dev)" if tools else ""


def program() -> Path:
    """Built where it is older than a source or a header."""
    made = BUILD / "simulated"
    sources = [HERE / "node.cpp", HERE / "simulated.cpp", *_PRODUCT]
    headers = [*HERE.rglob("*.hpp"), *(ROOT / "src" / "collective").rglob("*.hpp")]
    if made.exists() and made.stat().st_mtime > max(one.stat().st_mtime for one in [*sources, *headers]):
        return made
    BUILD.mkdir(parents=True, exist_ok=True)
    objects = []
    for source in sources:
        objects.append(BUILD / f"{source.stem}.o")
        compiler = "smpicxx" if source.stem == "simulated" else "g++"
        subprocess.run([compiler, *_FLAGS, "-c", str(source), "-o", str(objects[-1])], check=True)
    subprocess.run(["smpicxx", *map(str, objects), "-o", str(made)], check=True)
    return made


def measure(folder: Path, job: Job) -> list[Measured]:
    machine, hosts = platforms.write(folder, job.topology, job.nodes, job.per_node, replace(SPEEDS, link=job.link), job.in_turn)
    settings = {**_SETTINGS, "smpi/coll-selector": job.selector, "smpi/tmpdir": str(folder)}
    if job.allreduce:
        settings["smpi/allreduce"] = job.allreduce
    command = [
        "smpirun",
        "-np",
        str(job.nodes * job.per_node),
        "-platform",
        str(machine),
        "-hostfile",
        str(hosts),
        "-no-privatize",
    ]
    command += [f"--cfg={name}:{value}" for name, value in settings.items()] + ["--log=root.thres:warning", str(program())]
    words = {
        "operation": job.operation,
        "rows": ",".join(job.rows),
        "sizes": ",".join(map(str, job.sizes)),
        "factors": ",".join(map(str, job.factors)),
        "per_node": job.per_node,
        "domains": job.domains,
        "repeats": job.repeats,
        "direct": int(job.direct),
        "check": int(job.check),
        "in_turn": int(job.in_turn),
        "copy": SPEEDS.copy,
        "add": SPEEDS.add,
        "tell": SPEEDS.flag,
    }
    command += [f"{name}={value}" for name, value in words.items()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, cwd=folder, env={**os.environ})
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        sys.exit(f"{job.name}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    who: dict[str, Any] = {
        "topology": job.topology,
        "selector": job.allreduce or job.selector,
        "in_node": "direct" if job.direct else "staged",
        "link": job.link,
        "placement": "in turn" if job.in_turn else "block",
    }
    found = [Measured(**who, **line) for line in lines]
    return [replace(one, in_node="") if one.row == "flat" else one for one in found]
