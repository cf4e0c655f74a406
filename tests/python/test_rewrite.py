"""How launchers' command lines are rewritten."""

from __future__ import annotations

import pytest

from stretto.errors import StrettoError
from stretto.launchers import Style
from stretto.rewrite import merge, rewrite

LIB = "/opt/libstretto.so"


def line(style: Style, text: str, others: dict[str, str] | None = None, **env: str) -> str:
    return " ".join(rewrite(style, text.split(), LIB, others or {}, env))


def test_openmpi_goes_right_after_the_launcher() -> None:
    expected = f"mpirun -x LD_PRELOAD={LIB} -x STRETTO_JOB=7 -n 4 python a.py -x y"
    assert line(Style.OPENMPI, "mpirun -n 4 python a.py -x y", {"STRETTO_JOB": "7"}) == expected


def test_openmpi_sets_every_context_of_an_mpmd_line() -> None:
    one = f"-x LD_PRELOAD={LIB} -x A=1"
    assert line(Style.OPENMPI, "mpirun -n 1 a : -n 2 b", {"A": "1"}) == f"mpirun {one} -n 1 a : {one} -n 2 b"


def test_openmpi_merges_what_the_user_preloads() -> None:
    assert line(Style.OPENMPI, "mpirun -x LD_PRELOAD=/u.so -n 1 a") == f"mpirun -x LD_PRELOAD=/u.so:{LIB} -n 1 a"
    assert line(Style.OPENMPI, "mpirun -n 1 -x LD_PRELOAD a", LD_PRELOAD="/e.so") == f"mpirun -x LD_PRELOAD=/e.so:{LIB} -n 1 a"
    assert line(Style.OPENMPI, "mpirun a", LD_PRELOAD="/e.so") == f"mpirun -x LD_PRELOAD=/e.so:{LIB} a"


def test_openmpi_keeps_other_exports() -> None:
    assert line(Style.OPENMPI, "mpirun -x PATH -x B=2 a") == f"mpirun -x LD_PRELOAD={LIB} -x PATH -x B=2 a"


def test_hydra() -> None:
    assert line(Style.HYDRA, "mpiexec -n 1 a : -n 2 b", {"A": "1"}) == f"mpiexec -genv LD_PRELOAD {LIB} -genv A 1 -n 1 a : -n 2 b"


@pytest.mark.parametrize("users", ["-genv LD_PRELOAD /u.so", "-genv LD_PRELOAD=/u.so"])
def test_hydra_merges_genv(users: str) -> None:
    assert line(Style.HYDRA, f"mpiexec {users} -n 1 a", LD_PRELOAD="/e.so") == f"mpiexec -genv LD_PRELOAD /u.so:{LIB} -n 1 a"


def test_hydra_merges_a_contexts_own_env() -> None:
    found = line(Style.HYDRA, "mpiexec -n 1 a : -n 1 -env LD_PRELOAD /u.so b")
    assert found == f"mpiexec -genv LD_PRELOAD {LIB} -n 1 a : -n 1 -env LD_PRELOAD /u.so:{LIB} b"


@pytest.mark.parametrize(
    ("text", "exported"),
    [
        ("srun -n 2 a", f"ALL,LD_PRELOAD={LIB},A=1"),
        ("srun --export=ALL,B=2 -n 2 a", f"ALL,B=2,LD_PRELOAD={LIB},A=1"),
        ("srun --export NONE -n 2 a", f"LD_PRELOAD={LIB},A=1"),
        ("srun --export=PATH,LD_PRELOAD=/u.so -n 2 a", f"PATH,LD_PRELOAD=/u.so:{LIB},A=1"),
    ],
)
def test_srun(text: str, exported: str) -> None:
    assert line(Style.SLURM, text, {"A": "1"}) == f"srun --export={exported} -n 2 a"


def test_srun_and_the_environment() -> None:
    assert line(Style.SLURM, "srun a", LD_PRELOAD="/e.so") == f"srun --export=ALL,LD_PRELOAD=/e.so:{LIB} a"
    assert line(Style.SLURM, "srun a", SLURM_EXPORT_ENV="HOME", LD_PRELOAD="/e.so") == f"srun --export=HOME,LD_PRELOAD={LIB} a"
    assert line(Style.SLURM, "srun a : b") == f"srun --export=ALL,LD_PRELOAD={LIB} a : --export=ALL,LD_PRELOAD={LIB} b"


@pytest.mark.parametrize(
    ("style", "text", "rest"),
    [
        (Style.SLURM, "srun -n 2 a --export results.csv", "-n 2 a --export results.csv"),
        (
            Style.SLURM,
            "srun -n2 -wnode1 a --export=x : -n 1 b",
            f"-n2 -wnode1 a --export=x : --export=ALL,LD_PRELOAD={LIB} -n 1 b",
        ),
        (Style.OPENMPI, "mpirun --mca x y -n 2 a -x LD_PRELOAD", "--mca x y -n 2 a -x LD_PRELOAD"),
        (Style.OPENMPI, "mpirun --oversubscribe env A=1 a -x LD_PRELOAD=b", "--oversubscribe env A=1 a -x LD_PRELOAD=b"),
        (Style.HYDRA, "mpiexec -genv A=1 a -env LD_PRELOAD b", "-genv A=1 a -env LD_PRELOAD b"),
        (Style.HYDRA, "mpiexec -n 1 a -genv LD_PRELOAD b : -n 1 b", "-n 1 a -genv LD_PRELOAD b : -n 1 b"),
    ],
)
def test_what_the_program_is_given_is_left_alone(style: Style, text: str, rest: str) -> None:
    assert line(style, text).endswith(f"LD_PRELOAD{' ' if style is Style.HYDRA else '='}{LIB} {rest}")


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(StrettoError, match="comma"):
        line(Style.SLURM, "srun a", {"STRETTO_RECORD_DIR": "/tmp/a,b"})
    with pytest.raises(StrettoError, match="space or a colon"):
        rewrite(Style.OPENMPI, ["mpirun", "a"], "/with space/lib.so", {}, {})


def test_merge_keeps_order_and_drops_repetitions() -> None:
    assert merge("/a.so /b.so", "/b.so:/c.so", "", "/a.so") == "/a.so:/b.so:/c.so"
