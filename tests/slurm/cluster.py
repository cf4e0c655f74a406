"""A Slurm cluster of emulated nodes: munged, slurmctld and one slurmd a node, as Debian's packages have them, with a
configuration and an authentication key of its own. Nothing of a Slurm that the machine may have is touched.

Needs what emulated.refusal() asks for, and Debian's slurmctld, slurmd, slurm-client and munge.
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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "nodes"))

import emulated

CPUS = 2  # of a node, as Slurm counts them; more than the machine has are refused by task/affinity
_SECONDS = 20.0  # for the daemons to answer
_SECONDS_TO_END = 10.0
_TOOLS = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "srun": "slurm-client"}

_CONFIGURATION = """
ClusterName=stretto
SlurmctldHost=head({head})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
KillWait=2
TmpFS=/var/tmp
NodeName=n[0-{last}] CPUs={cpus} RealMemory=1000
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def refusal() -> str:
    """Why there can be no cluster here; empty where there can."""
    missing = sorted({package for tool, package in _TOOLS.items() if shutil.which(tool) is None})
    return f"no {', '.join(missing)} (Debian's packages)" if missing else emulated.refusal()


@dataclass
class Cluster:
    """Nodes n0, n1, ... that take jobs from srun, sbatch and salloc."""

    nodes: emulated.Network
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def on_head(self, command: list[str]) -> list[str]:
        """The command as a user types it on the login node."""
        return emulated.on_launch_host(self.nodes, command)

    def start(self) -> None:
        last, head = self.nodes.count - 1, emulated.SUBNET.format(self.nodes.number, 254)
        (self.folder / "slurm.conf").write_text(_CONFIGURATION.format(folder=self.folder, head=head, last=last, cpus=CPUS))
        for name in ("state", *(f"spool-n{node}" for node in range(self.nodes.count))):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        files = [f"--{option}={self.folder}/munge.{ending}" for option, ending in _MUNGE.items()]
        self._daemon(["munged", "--force", *files])
        self._daemon(self.on_head(["slurmctld", "-c"]))
        for node in range(self.nodes.count):
            self._daemon([str(self.nodes.agent), f"n{node}", "slurmd", "-N", f"n{node}"])
        self._await_idle()

    def _daemon(self, command: list[str]) -> None:
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, **self.environment})

    def _await_idle(self) -> None:
        deadline = time.monotonic() + _SECONDS
        command = self.on_head(["sinfo", "--noheader", "--format=%D", "--states=idle"])
        while time.monotonic() < deadline:
            done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **self.environment})
            if done.stdout.strip() == str(self.nodes.count):
                return
            time.sleep(0.1)
        raise RuntimeError(f"the nodes do not become idle:\n{self.logs()}")

    def logs(self) -> str:
        """The last lines of what the daemons have written."""
        texts = [f"{file.name}: {line}" for file in sorted(self.folder.glob("*.log")) for line in _tail(file)]
        return "\n".join(texts)

    def stop(self) -> None:
        """Returns when the daemons are gone: at their end they save what they know into the folder."""
        pids = []
        for pid_file in self.folder.glob("*.pid"):
            with contextlib.suppress(ValueError, OSError):
                if not pid_file.name.startswith("slurmd"):  # numbers of the nodes' own, who die with them
                    pids.append(int(pid_file.read_text()))
        deadline = time.monotonic() + _SECONDS_TO_END
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
                while time.monotonic() < deadline:
                    os.kill(pid, 0)
                    time.sleep(0.02)
                os.kill(pid, signal.SIGKILL)


_MUNGE = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}


def _tail(file: Path) -> list[str]:
    return file.read_text(errors="replace").splitlines()[-8:]


@contextlib.contextmanager
def cluster(count: int) -> Iterator[Cluster]:
    with (
        tempfile.TemporaryDirectory(prefix="stretto-slurm-", ignore_cleanup_errors=True) as folder,
        emulated.network(count) as nodes,
    ):
        slurm = Cluster(nodes, Path(folder))
        try:
            slurm.start()
            yield slurm
        finally:
            slurm.stop()
