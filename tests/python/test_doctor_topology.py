"""What doctor says of sockets, NUMA nodes and caches, on machines made of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stretto import machine


def write_cpu(root: Path, cpu: int, socket: int, node: int | None, cache: str) -> None:
    folder = root / "cpu" / f"cpu{cpu}"
    files = {"topology/physical_package_id": str(socket), "cache/index0/level": "1", "cache/index0/shared_cpu_list": str(cpu)}
    files |= {"cache/index3/level": "3", "cache/index3/shared_cpu_list": cache}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text + "\n")
    if node is not None:
        (folder / f"node{node}").mkdir()


def allow(monkeypatch: pytest.MonkeyPatch, *cpus: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(cpus))
    monkeypatch.delenv("STRETTO_TOPOLOGY", raising=False)


def test_two_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cpu in range(8):
        write_cpu(tmp_path, cpu, cpu // 4, cpu // 2, f"{cpu // 4 * 4}-{cpu // 4 * 4 + 3}")
    allow(monkeypatch, *range(8))
    (one,) = machine.domains(tmp_path)
    assert (one.state, one.value) == ("ok", "2 sockets, 4 NUMA nodes, 2 last-level caches")
    assert "bind ranks" in one.advice
    allow(monkeypatch, 2, 3)
    (one,) = machine.domains(tmp_path)
    assert (one.value, one.advice) == ("1 socket, 1 NUMA node, 1 last-level cache", "")


def test_without_numa(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cpu in range(2):
        write_cpu(tmp_path, cpu, 0, None, "0-1")
    allow(monkeypatch, 0, 1)
    assert machine.domains(tmp_path)[0].value == "1 socket, 1 NUMA node, 1 last-level cache"


def test_made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "machine"
    file.write_text("rank 0..1 numa=0\n")
    monkeypatch.setenv("STRETTO_TOPOLOGY", str(file))
    assert (machine.domains()[0].state, str(file) in machine.domains()[0].value) == ("note", True)
    file.unlink()
    assert machine.domains()[0].state == "missing"
    os.mkfifo(file)
    assert machine.domains()[0].state == "missing"
