"""Which launcher belongs to which MPI, on made-up installations."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stretto import preload, programs, session
from stretto.errors import StrettoError
from stretto.launchers import Launcher, Style, identify


def program(path: Path, output: str = "", script: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    says = f"echo '{output}'"
    path.write_text(f"#!/bin/sh\n{script or says}\n")
    path.chmod(0o755)
    return path


def test_by_the_name_behind_links(tmp_path: Path) -> None:
    real = program(tmp_path / "bin" / "mpiexec.hydra", "not asked")
    (tmp_path / "alternatives").mkdir()
    (tmp_path / "alternatives" / "mpirun").symlink_to(real)
    link = tmp_path / "bin" / "mpirun"
    link.symlink_to("../alternatives/mpirun")
    found = identify(str(link))
    assert (found.style, found.abi, found.path) == (Style.HYDRA, "mpich", link)


@pytest.mark.parametrize(
    ("neighbour", "style", "abi"),
    [
        ("prterun", Style.OPENMPI, "ompi"),
        ("orterun", Style.OPENMPI, "ompi4"),
        ("hydra_pmi_proxy", Style.HYDRA, "mpich"),
    ],
)
def test_by_the_files_beside_it(tmp_path: Path, neighbour: str, style: Style, abi: str) -> None:
    program(tmp_path / neighbour)
    found = identify(str(program(tmp_path / "mpirun", script="exit 1")))
    assert (found.style, found.abi) == (style, abi)


@pytest.mark.parametrize(
    ("output", "style", "abi", "version"),
    [
        ("mpirun (Open MPI) 5.0.11", Style.OPENMPI, "ompi", "Open MPI 5.0.11"),
        ("mpirun (OpenRTE) 4.1.4", Style.OPENMPI, "ompi4", "Open MPI 4.1.4"),
        ("HYDRA build details:\n  Version:   4.0.2", Style.HYDRA, "mpich", "Hydra 4.0.2"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.19 Build 1", Style.HYDRA, "mpich", "Intel MPI 2021.19"),
        ("slurm 23.02.6", Style.SLURM, "", "Slurm 23.02.6"),
    ],
)
def test_by_what_it_says(tmp_path: Path, output: str, style: Style, abi: str, version: str) -> None:
    program(tmp_path / "prterun")
    program(tmp_path / "mpiexec.hydra")  # two process managers in one folder: they do not tell
    found = identify(str(program(tmp_path / "mpirun", output)))
    assert (found.style, found.abi, found.version) == (style, abi, version)


@pytest.mark.parametrize(("library", "abi"), [("ls", "mpich3"), ("libstretto_mpich.so", "mpich")])
def test_an_mpich_without_mpi_4_by_the_library_below_its_prefix(tmp_path: Path, library: str, abi: str) -> None:
    (tmp_path / "lib").mkdir()
    built = preload.folder() / library
    stand_in = built if library.endswith(".so") else Path(shutil.which(library) or "")
    if not stand_in.is_file():
        pytest.skip(f"needs ./dev build: {built}")
    shutil.copy(stand_in, tmp_path / "lib" / "libmpi.so.12")
    program(tmp_path / "bin" / "hydra_pmi_proxy")
    found = identify(str(program(tmp_path / "bin" / "mpirun", script="exit 1")))
    assert (found.style, found.abi) == (Style.HYDRA, abi)


def test_unknown_and_absent(tmp_path: Path) -> None:
    with pytest.raises(StrettoError, match="no launcher that Stretto knows"):
        identify(str(program(tmp_path / "jsrun", "1.0")))
    with pytest.raises(StrettoError, match="not found") as error:
        identify("no-such-launcher")
    assert error.value.exit_code == 127


def test_the_program_behind_options_and_wrappers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("app", "node", "numactl", "env"):
        program(tmp_path / name).write_bytes(b"binary")
    monkeypatch.setenv("PATH", str(tmp_path))
    app = tmp_path / "app"
    assert programs.find_program("-n 4 --map-by node app x".split()) == app
    assert programs.find_program("--oversubscribe -n 4 numactl --localalloc app".split()) == app
    assert programs.find_program("-n 2 env A=1 app".split()) == app
    assert programs.find_program("-n 2 absent".split()) is None
    assert programs.find_program("--mca node app -n 2 numactl app".split()) == app
    assert programs.certain_program("-n 2 --mca leave_pinned node -genv PIN app".split()) is None
    assert programs.certain_program("-n4 app node".split()) == app
    assert programs.certain_program("-genv PIN=1 app node".split()) == app
    assert programs.certain_program("-wnode app".split()) is None
    assert programs.certain_program("-wnode app".split(), letters=True) == app


@pytest.mark.parametrize(
    ("text", "found"),
    [("# ranks program\n0-1,3 app x\n* other", True), ("* env A=1 app", True), ("app", False), ("0 absent", False)],
)
def test_the_first_of_several_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, found: bool) -> None:
    for name in ("app", "env"):
        program(tmp_path / name).write_bytes(b"binary")
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "several").write_text(text)
    words = ["-n", "2", "--multi-prog", str(tmp_path / "several")]
    assert programs.find_program(words) == (tmp_path / "app" if found else None)


def test_several_programs_are_read_from_the_last_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "app").write_bytes(b"binary")
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "printed").write_text("0 ls\n")
    (tmp_path / "several").write_text("0 app it's\n")
    words = ["-o", str(tmp_path / "printed"), f"--export=ALL,A={'a' * 5000}", "--multi-prog", str(tmp_path / "several")]
    assert programs.find_program(words) is None  # a quote that does not end
    (tmp_path / "several").write_text("0 app its\n")
    assert programs.find_program(words) == tmp_path / "app"
    assert programs.find_program(["--multi-prog", str(tmp_path)]) is None


@pytest.mark.parametrize("name", ["sbatch", "salloc"])
def test_what_only_asks_for_nodes_is_no_launcher(tmp_path: Path, name: str) -> None:
    with pytest.raises(StrettoError, match=f"{name} asks for nodes and starts no ranks: write"):
        identify(str(program(tmp_path / name, "slurm 23.02.6")))


def test_a_scripts_interpreter_is_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = program(tmp_path / "python3")
    script = program(tmp_path / "train.py")
    script.write_text("#!/usr/bin/env python3\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert programs.find_program(["-n", "2", str(script)]) == interpreter


@pytest.mark.parametrize(
    ("name", "abi"),
    [
        ("libmpi.so.12", "mpich"),
        ("libmpich.so.12", "mpich"),
        ("libmpi.so.40", "ompi"),
        ("libmpi_abi.so.1", "abi"),
        ("libmpi_gnu_123.so.12", "mpich"),
        ("libmpi_cray.so.12", "mpich"),
        ("libmpifort_cray.so.12", ""),
        ("libmpi_cxx.so.40", ""),
        ("libm.so.6", ""),
    ],
)
def test_abi_of_a_librarys_name(tmp_path: Path, name: str, abi: str) -> None:
    assert programs.abi_of_library(tmp_path / name) == abi


@pytest.mark.parametrize(("runs_with", "abi"), [("mpich", "mpich"), ("mpich3", "mpich3"), ("", "mpich3")])
def test_an_old_launcher_and_the_library_its_program_has(monkeypatch: pytest.MonkeyPatch, runs_with: str, abi: str) -> None:
    monkeypatch.setattr(programs, "loaded_abi", lambda _: runs_with)
    launcher = Launcher(Path("mpirun"), Style.HYDRA, "mpich3", "Hydra")
    assert session._choose_abi(launcher, Path("absent")) == (abi, "")
