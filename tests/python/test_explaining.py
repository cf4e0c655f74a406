"""What stretto tune --explain says of a call."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stretto import preload
from stretto.benchmark import chooser, explain
from stretto.errors import StrettoError


@pytest.mark.parametrize(
    ("text", "number"), [("8", 8), ("64K", 65536), ("1m", 1 << 20), ("2KiB", 2048), ("1G", 1 << 30), ("4KB", 4096)]
)
def test_sizes_of_questions(text: str, number: int) -> None:
    assert explain.parse_bytes(text) == number


@pytest.mark.parametrize("text", ["", "K", "1T", "-8", "8 K"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(StrettoError):
        explain.parse_bytes(text)


def test_libraries_of_which_the_same_is_to_be_said_are_told_of_together() -> None:
    class Asked(chooser.Chooser):
        built_in = "gatherv library=mpich staged\ngatherv mpi\n"
        tuned_path, header = None, ""

        def __init__(self) -> None:
            pass

        def explain(self, rules: str | None, question: chooser.Question) -> chooser.Answer:
            taken = rules is None and question.collective == "gatherv" and question.library == "mpich"
            return chooser.Answer("staged", 1) if taken else chooser.Answer("mpi", 2)

    gatherv = explain.explain(Asked(), chooser.Question("gatherv", 8, 2, False), {}, 2)[0]
    assert "  under any other MPI: the MPI library" in gatherv and "  under MPICH: staged" in gatherv
    alltoallv = explain.explain(Asked(), chooser.Question("alltoallv", 8, 2, False), {}, 2)[0]
    assert [line for line in alltoallv if "under" in line] == ["  under any MPI: the MPI library"]


@pytest.mark.parametrize(
    ("rules", "ranks", "said"),
    [
        ("allreduce flat\n", 2, ["the MPI library", "flat does no more than 1072 bytes, and no other rule holds", "line 1 of "]),
        ("allreduce mpi\n", 2, ["the MPI library", "line 1 of "]),
        ("bcast flat\n", 2, ["the MPI library", "no rule of "]),
        ("allreduce slices\n", 513, ["the MPI library", "Stretto takes at most 512 ranks of a node"]),
        ("", 2, ["is refused, and all is left to the MPI library: no rules in it"]),
        (
            "allreduce slices\nallreduce speed=7 flat\n",
            2,
            ["left to the MPI library: line 2: not a rule: speed=7 is no condition"],
        ),
    ],
)
def test_why_mpi_does_it_is_told(rules: str, ranks: int, said: list[str], tmp_path: Path) -> None:
    file = tmp_path / "my.rules"
    file.write_text(rules)
    question = chooser.Question("allreduce", 65536, ranks, False)
    asked = chooser.Chooser(preload.any_library())
    lines, _ = explain.explain(asked, question, {"STRETTO_RULES": str(file)}, 2)
    assert len(lines) == 1 + len(said)
    assert all(part in line for part, line in zip(said, lines[1:], strict=True)), lines


def test_nobody_is_told_to_tune_what_stretto_does_not_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    asked = chooser.Chooser(preload.any_library())
    told = {ranks: explain.explain(asked, chooser.Question("allreduce", 8, ranks, True), {}, 2)[0] for ranks in (512, 513)}
    assert ["would" in lines[-1] for lines in told.values()] == [True, False]


def test_first_calls_are_told_where_they_differ() -> None:
    class Asked(chooser.Chooser):
        built_in = "bcast handover\nreduce pair\nbcast fresh=yes direct\nreduce fresh=yes pair\n"
        tuned_path, header = None, ""

        def __init__(self) -> None:
            pass

        def explain(self, rules: str | None, question: chooser.Question) -> chooser.Answer:
            assert rules is None
            of_bcast = chooser.Answer("direct", 3) if question.fresh else chooser.Answer("handover", 1)
            of_reduce = chooser.Answer("pair", 4 if question.fresh else 2)
            return of_bcast if question.collective == "bcast" else of_reduce

    bcast = explain.explain(Asked(), chooser.Question("bcast", 8, 2, False), {}, 2)[0]
    assert bcast[-3:-1] == ["    a communicator's first calls: direct", "      line 3: bcast fresh=yes direct"]
    assert len(explain.explain(Asked(), chooser.Question("reduce", 8, 2, False), {}, 2)[0]) == 4


def test_what_was_not_measured_here_is_told_last(tmp_path: Path) -> None:
    class Asked(chooser.Chooser):
        built_in = "bcast handover\n"
        header = "tuned build=01 machine=02 mpi=00"
        tuned_path = tmp_path / "02-03.rules"

        def __init__(self) -> None:
            pass

        def explain(self, rules: str | None, _: chooser.Question) -> chooser.Answer:
            return chooser.Answer("handover", 4 if rules else 1)

    def told(environment: dict[str, str]) -> str:
        return explain.explain(Asked(), chooser.Question("bcast", 8, 3, False), environment, 4)[0][-1]

    last = "  nothing was measured for this on this machine: stretto tune -- mpirun -n 3 would"
    assert told({}) == last
    assert told({"STRETTO_RULES": "builtin"}) != last, "tuned rules would not be used"
    Asked.tuned_path.write_text(
        "# Rules measured by stretto tune\ntuned build=01 machine=02 mpi=03\n#   8 B: handover 1.00 us\nbcast handover\n"
    )
    assert told({}) != last
    stale = tmp_path / "stale.rules"
    stale.write_text("tuned build=09 machine=02 mpi=03\nbcast handover\n")
    question = chooser.Question("bcast", 8, 3, False)
    lines, refused = explain.explain(Asked(), question, {"STRETTO_RULES": str(stale)}, 4)
    assert refused and "is refused: measured with another build" in lines[-1]
    assert not explain.explain(Asked(), question, {"STRETTO_RULES": str(Asked.tuned_path)}, 4)[1]
    os.mkfifo(tmp_path / "pipe")
    lines, refused = explain.explain(Asked(), question, {"STRETTO_RULES": str(tmp_path / "pipe")}, 4)
    assert refused and "pipe: not a regular file" in lines[-1]
