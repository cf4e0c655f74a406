"""What a result has to say about the machine it was taken on: enough to judge it, nothing that names its owner."""

from __future__ import annotations

import datetime
import os
import platform
import re
from pathlib import Path

# Virtual machines often hide the model behind a bare "AMD EPYC": (vendor, family, first model, last model) -> name.
_GENERATIONS = [
    ("AuthenticAMD", 23, 0x00, 0x2F, "AMD EPYC Naples"),
    ("AuthenticAMD", 23, 0x30, 0x3F, "AMD EPYC Rome"),
    ("AuthenticAMD", 25, 0x00, 0x0F, "AMD EPYC Milan"),
    ("AuthenticAMD", 25, 0x10, 0x1F, "AMD EPYC Genoa"),
    ("AuthenticAMD", 25, 0xA0, 0xAF, "AMD EPYC Bergamo"),
    ("AuthenticAMD", 26, 0x00, 0x1F, "AMD EPYC Turin"),
    ("GenuineIntel", 6, 85, 85, "Intel Xeon Cascade Lake"),
    ("GenuineIntel", 6, 106, 106, "Intel Xeon Ice Lake"),
    ("GenuineIntel", 6, 143, 143, "Intel Xeon Sapphire Rapids"),
    ("GenuineIntel", 6, 207, 207, "Intel Xeon Emerald Rapids"),
    ("GenuineIntel", 6, 173, 173, "Intel Xeon Granite Rapids"),
]


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _cpuinfo() -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in _read("/proc/cpuinfo").splitlines():
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip(), value.strip())
    return fields


def cores() -> int:
    """CPUs this process may use."""
    return len(os.sched_getaffinity(0))


def physical_cores() -> int:
    """Cores to which these CPUs belong: fewer where a core has several hardware threads."""
    topology = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    return len({_read(topology.format(cpu)) or str(cpu) for cpu in os.sched_getaffinity(0)})


def cpu_model() -> str:
    info = _cpuinfo()
    try:
        family, model = int(info.get("cpu family", "")), int(info.get("model", ""))
    except ValueError:
        family = model = -1
    for vendor, of_family, first, last, name in _GENERATIONS:
        if info.get("vendor_id") == vendor and family == of_family and first <= model <= last:
            return name
    return info.get("model name") or platform.machine()


def name() -> str:
    """The folder of this machine's results, such as amd-epyc-turin-2core."""
    words = re.sub(r"\(r\)|\(tm\)|\bcpu\b|@.*|\b\d+-core\b|processor", " ", cpu_model().lower())
    return re.sub(r"[^a-z0-9]+", "-", words).strip("-") + f"-{cores()}core"


def _caches() -> str:
    found = []
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if _read(f"{index}/type") != "Instruction":
            shared = _read(f"{index}/shared_cpu_list")
            found.append(f"L{_read(f'{index}/level')} {_read(f'{index}/size')} (CPUs {shared})")
    return ", ".join(found) or "unknown"


def _memory_gib() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)


def describe() -> dict[str, str]:
    hypervisor = "hypervisor" in _cpuinfo().get("flags", "").split()
    return {
        "cpu": cpu_model() + (" (virtual machine)" if hypervisor else ""),
        "cores": str(cores()),
        "caches": _caches(),
        "memory": f"{_memory_gib()} GiB",
        "kernel": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "transparent huge pages": _read("/sys/kernel/mm/transparent_hugepage/enabled") or "unknown",
        "date": datetime.date.today().isoformat(),
    }
