"""Nodes emulated on one machine: sets of namespaces with a network, host name, IPC, process numbers, boot id and /dev/shm of
their own, so that an MPI takes them for machines and nothing passes between them but through the network.

Needs root, iproute2 and util-linux, and a system that allows namespaces: refusal() says what is missing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SUBNET = "10.79.{}.{}"
_SECONDS = 15.0  # for a node to come up

# Becomes the first process of a node. $1: host name, $2: folder with hosts and boot ids.
_NODE = """
set -e
hostname "$1"
mount -t tmpfs -o mode=1777,size=2g none /dev/shm
mount -t tmpfs -o mode=1777 none /var/tmp
mount --bind "$2/hosts" /etc/hosts
mount --bind "$2/$1.boot" /proc/sys/kernel/random/boot_id
ip link set lo up
touch "$2/$1.ready"
exec sleep infinity
"""
# What launchers call instead of ssh: AGENT [options] host command...
_AGENT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
pid=$(cat FOLDER/$1.pid); shift
exec nsenter -t "$pid" -n -u -i -m -p --wd="$PWD" env TMPDIR=/var/tmp sh -c "$*"
"""


def refusal() -> str:
    """Why nodes cannot be emulated here; empty where they can."""
    for tool in ("ip", "unshare", "nsenter"):
        if shutil.which(tool) is None:
            return f"no {tool} (Debian: iproute2, util-linux)"
    if os.geteuid() != 0:
        return "needs root"
    tried = [*_UNSHARE, "sh", "-c", "ip link set lo up && mount -t tmpfs none /dev/shm"]
    done = subprocess.run(tried, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"no namespaces: {(done.stderr or done.stdout).strip().splitlines()[-1:]}"
    with contextlib.suppress(OSError):
        network = Network(0)
        try:
            network.up([])
            return ""
        except subprocess.CalledProcessError as error:
            return f"no bridge: {error.stderr.strip()}"
        finally:
            network.down()
    return "no bridge"


_UNSHARE = ("unshare", "--net", "--uts", "--ipc", "--pid", "--mount", "--fork", "--mount-proc", "--propagation", "private")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@dataclass
class Network:
    """`count` nodes n0, n1, ... on a bridge of the machine. rate: as tc has it, such as 1gbit; empty: as fast as it goes."""

    count: int
    rate: str = ""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    pids: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        for self.number in range(1, 250):
            self.bridge = f"strettobr{self.number}"
            with contextlib.suppress(subprocess.CalledProcessError):
                if not Path(f"/sys/class/net/{self.bridge}").exists():
                    _ip("link", "add", self.bridge, "type", "bridge")
                    break
        else:
            raise OSError("no bridge can be made")
        self.folder = Path(tempfile.mkdtemp(prefix="stretto-nodes-"))

    @property
    def subnet(self) -> str:
        return SUBNET.format(self.number, "0/24")

    def address(self, node: int) -> str:
        return SUBNET.format(self.number, node + 1)

    @property
    def agent(self) -> Path:
        return self.folder / "agent"

    def up(self, names: list[str] | None = None) -> None:
        names = [f"n{i}" for i in range(self.count)] if names is None else names
        head = SUBNET.format(self.number, 254)
        hosts = ["127.0.0.1 localhost", f"{head} head", *(f"{self.address(i)} {name}" for i, name in enumerate(names))]
        (self.folder / "hosts").write_text("\n".join(hosts) + "\n")
        self.agent.write_text(_AGENT.replace("FOLDER", str(self.folder)))
        self.agent.chmod(0o755)
        _ip("addr", "add", f"{head}/24", "dev", self.bridge)
        _ip("link", "set", self.bridge, "up")
        for node, name in enumerate(names):
            self._start(node, name)

    def _start(self, node: int, name: str) -> None:
        (self.folder / f"{name}.boot").write_text(f"{uuid.uuid4()}\n")
        process = subprocess.Popen(
            [*_UNSHARE, "sh", "-c", _NODE, "sh", name, str(self.folder)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self.processes.append(process)
        deadline = time.monotonic() + _SECONDS
        while not (self.folder / f"{name}.ready").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"node {name} did not come up")
            time.sleep(0.01)
        pid = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        self.pids.append(pid)
        (self.folder / f"{name}.pid").write_text(str(pid))
        outer = f"sv{self.number}-{node}"
        _ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        _ip("link", "set", outer, "master", self.bridge, "up")
        self.inside(node, "ip", "addr", "add", f"{self.address(node)}/24", "dev", "eth0")
        self.inside(node, "ip", "link", "set", "eth0", "up")
        if self.rate:
            shape = f"root tbf rate {self.rate} burst 256k latency 50ms".split()
            self.inside(node, "tc", "qdisc", "add", "dev", "eth0", *shape)
            subprocess.run(["tc", "qdisc", "add", "dev", outer, *shape], check=True, capture_output=True)

    def inside(self, node: int, *command: str) -> str:
        """Runs a command in the network of a node; what it prints."""
        done = subprocess.run(["nsenter", "-t", str(self.pids[node]), "-n", *command], check=True, capture_output=True, text=True)
        return done.stdout

    def bytes_out(self, node: int) -> int:
        """Bytes that have left the node."""
        return int(Path(f"/sys/class/net/sv{self.number}-{node}/statistics/rx_bytes").read_text())

    def kill(self, node: int) -> None:
        """As if its power failed: all its processes die at once, and with them its network."""
        os.kill(self.pids[node], signal.SIGKILL)

    def down(self) -> None:
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            if process.poll() is None:
                process.kill()
                process.wait()
        for name in [f"sv{self.number}-{node}" for node in range(len(self.processes))] + [self.bridge]:
            subprocess.run(["ip", "link", "del", name], capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def end_in_order() -> None:
    """From now on SIGTERM ends this process as an exception does, so that no node is left behind. Once: `timeout` sends two."""

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(143)

    signal.signal(signal.SIGTERM, end)


@contextlib.contextmanager
def network(count: int, rate: str = "") -> Iterator[Network]:
    nodes = Network(count, rate)
    try:
        nodes.up()
        yield nodes
    finally:
        nodes.down()


def on_launch_host(nodes: Network, command: list[str]) -> list[str]:
    """The command as run on a machine that launches onto the nodes: called head, and knowing their names."""
    script = f'hostname head && mount --bind {nodes.folder}/hosts /etc/hosts && exec "$@"'
    return ["unshare", "--mount", "--uts", "--propagation", "private", "sh", "-c", script, "sh", *command]


def launch(family: str, launcher: str, nodes: Network, ranks: list[int], program: list[str], by_node: bool = False) -> list[str]:
    """The launcher's command for ranks[i] ranks on node i; one node after the other, or in turn (MPICH: as many on each)."""
    hosts = ",".join(f"n{i}:{n}" for i, n in enumerate(ranks))
    total = str(sum(ranks))
    if family == "openmpi":
        mapping = "node" if by_node else "slot"
        return [
            launcher, "--prtemca", "plm_ssh_agent", str(nodes.agent), "--prtemca", "prte_if_include", nodes.subnet,
            "--host", hosts, "-n", total, "--map-by", f"{mapping}:OVERSUBSCRIBE", "--bind-to", "none",
            "--mca", "pml", "ob1", "--mca", "btl", "self,sm,tcp", "--mca", "btl_tcp_if_include", nodes.subnet,
            "--mca", "mpi_yield_when_idle", "1", "--mca", "op", "^avx", "--mca", "osc", "^ucx", *program,
        ]  # fmt: skip
    order = ["-ppn", "1"] if by_node else []
    return [
        launcher, "-launcher", "ssh", "-launcher-exec", str(nodes.agent), "-localhost", "head", "-hosts", hosts, *order,
        "-n", total, "-genv", "UCX_NET_DEVICES", "eth0", *program,
    ]  # fmt: skip
