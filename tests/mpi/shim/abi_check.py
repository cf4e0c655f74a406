"""Builds check_abi.cpp against Stretto's headers and against a real mpi.h, and compares what the two programs print."""

import re
import subprocess

from mpi_job import BUILD, ROOT, Mpi, run

HERE = ROOT / "tests" / "mpi" / "shim"
SHIM = ROOT / "src" / "shim"


def handle_names(abi: str) -> list[str]:
    return re.findall(r'\{"(MPIX?_\w+)"', (SHIM / abi / "predefined.cpp").read_text())


def write_handle_list(abi: str) -> None:
    """abi_handles.inc: every predefined handle Stretto knows; a real header may lack some."""
    folder = BUILD / f"abi-{abi}"
    folder.mkdir(parents=True, exist_ok=True)
    lines = (f"#if !defined(REAL_MPI) || defined({name})\nHANDLE({name});\n#endif\n" for name in handle_names(abi))
    (folder / "abi_handles.inc").write_text("".join(lines))


def generate() -> None:
    subprocess.run([ROOT / "tools" / "generate_shim.py", SHIM / "functions.txt", "--output", BUILD / "generated"], check=True)


def facts(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)


def own_facts(abi: str, flags: list[str]) -> dict[str, str]:
    program = BUILD / f"check_abi-own-{abi}"
    includes = [f"-I{BUILD / f'abi-{abi}'}", f"-I{BUILD / 'generated'}", f"-I{ROOT / 'src'}"]
    sources = [HERE / "check_abi.cpp", SHIM / abi / "predefined.cpp"]
    command = ["g++", "-std=gnu++20", f"-DSTRETTO_MPI_{abi.upper()}", *flags, *includes, *sources, "-o", program]
    subprocess.run(command, check=True)
    return facts(subprocess.run([program], check=True, capture_output=True, text=True).stdout)


def real_facts(mpi: Mpi, compiler: str, abi: str, flags: list[str]) -> dict[str, str]:
    program = BUILD / f"check_abi-real-{abi}-{mpi.name}"
    includes = [f"-I{BUILD / f'abi-{abi}'}", f"-I{BUILD / 'generated'}"]
    source = HERE / "check_abi.cpp"
    subprocess.run([compiler, "-std=gnu++20", "-w", "-DREAL_MPI", *flags, *includes, source, "-o", program, "-ldl"], check=True)
    return facts(run(mpi, mpi.launch(1, program), 60).output)


def difference(mpi: Mpi, compiler: str, abi: str, flags: list[str]) -> str:
    """What differs, or nothing. Types that came after a real header was written may be missing there."""
    write_handle_list(abi)
    own, real = own_facts(abi, flags), real_facts(mpi, compiler, abi, flags)
    if len(real) < 300:
        return f"the program for the real header printed only {len(real)} lines"
    wrong = [f"{key}: Stretto has {own.get(key)}, mpi.h {value}" for key, value in real.items() if own.get(key) != value]
    wrong = [line for line in wrong if not ("MPI_INTEGER16" in line and "0xc000000" in line)]  # a null handle in some builds
    missing = [key for key in own if key not in real and not key.startswith("handle ")]
    return "\n".join(wrong + [f"{key}: not in mpi.h" for key in missing])
