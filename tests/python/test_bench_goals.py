"""The benchmark of collectives: runs that are kept, merged into cells and judged (bench/collective)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import goals
import launchers
import peers
import report
from kept import Kept, merged, resumed
from runs import Run, distances
from tables import COLLECTIVES, GROUPS, Cell, Key, Timing, Variant, lost, means, merge

PLAIN, ARENA = Variant("openmpi"), Variant("openmpi", "arena")


def point(collective: str, size: int, us: float, **more: Any) -> dict[str, Any]:
    side = {"median_us": us, "p10_us": us}
    line = {"kind": "point", "collective": collective, "bytes": size, "ranks": 2, "mode": "balanced", "hop_ns": [60, 60]}
    return {**line, "mpi": side, "pmpi": {"median_us": 2 * us, "p10_us": us}, "ratio": 0.5, "wrong": 0, **more}


def run(peer: str, points: list[dict[str, Any]], way: str = "", config: str = "defaults") -> Run:
    setup = {"kind": "setup", "library": {"openmpi": "Open MPI v5", "mpich": "MPICH Version: 5"}[peer]}
    return Run(peer, config, way, "2 ranks, all", [setup, *points])


def cell(collective: str, size: int, ratio: float, variant: Variant = PLAIN, **more: Any) -> Cell:
    """Of 2 ranks with a core each, unless `more` says otherwise."""
    key = {"ranks": 2, "mode": "balanced", "apart_ns": 60, **more}
    made = Cell(Key(collective, size, **key), {"mpich": Timing(10, 10, "defaults")}, {variant: Timing(10 * ratio, 1, "defaults")})
    made.in_run[variant] = ratio
    return made


def verdict(cells: list[Cell], words: str) -> goals.Verdict:
    (found,) = [one for one in goals.judge(cells, []) if words in one.goal]
    return found


def test_a_peer_counts_at_its_best_settings_and_ways_stand_apart() -> None:
    runs = [
        run("openmpi", [point("bcast", 8, 4)]),
        run("openmpi", [point("bcast", 8, 3)], config="no CMA"),
        run("openmpi", [point("bcast", 8, 1.5)], way="stretto"),
        run("openmpi", [point("bcast", 8, 1.2, floor_us=0.6)], way="arena"),
        run("openmpi", [point("bcast", 8, 1.2, floor_us=0.9)], way="arena"),
    ]
    (found,) = merge(runs, distances(runs))
    assert found.peers == {"openmpi": Timing(6, 3, "no CMA")}
    assert found.ratio(PLAIN) == 0.25
    assert found.ratio(ARENA) == pytest.approx(0.2)
    assert PLAIN not in found.of_floor
    assert found.of_floor[ARENA] == pytest.approx(0.625)
    stored = found.as_json()
    assert stored["stretto"]["openmpi"]["us"] == 1.5
    assert stored["arena"]["openmpi"]["of_floor"] == 0.625


def test_points_without_all_peers_are_not_judged() -> None:
    runs = [run("openmpi", [point("bcast", 8, 4)]), run("mpich", [point("bcast", 64, 4)])]
    runs.append(run("openmpi", [point("bcast", 8, 1)], way="stretto"))
    cells = merge(runs, distances(runs))
    assert [found.ratio(PLAIN) for found in cells] == [None, None]
    verdicts = goals.judge(cells, [])
    assert verdicts and all(one.met is None for one in verdicts)
    assert goals.markdown(verdicts).startswith(f"0 of 0 are met. {len(verdicts)} more could not be judged")
    assert "not measured |" not in goals.markdown(verdicts)


def test_each_collective_has_its_mean() -> None:
    cells = [cell("gather", 8, 0.3), cell("gather", 64, 0.3), cell("scan", 8, 0.4), cell("scan", 64, 1.0)]
    found = verdict(cells, "every collective at most 0.6")
    assert found.met is False
    assert found.measured.startswith("1 of 2 collectives")
    assert "scan 0.63" in found.measured
    assert verdict(cells[:3], "every collective at most 0.6").met


@pytest.mark.parametrize(("ratio", "met"), [(1.04, True), (1.06, False)])
def test_five_per_cent_are_noise(ratio: float, met: bool) -> None:
    found = verdict([cell("gather", 8, 0.1), cell("gather", 64, ratio)], "slower than the best peer by more than 5 %")
    assert found.met is met
    assert ("gather 64 B" in found.measured) is not met


def test_the_arena_is_judged_from_64_kib() -> None:
    cells = [cell("bcast", 1024, 3, ARENA), cell("bcast", 65536, 0.4, ARENA), cell("bcast", 1 << 20, 0.5, ARENA)]
    assert verdict(cells, "at most 0.45").met  # 0.447
    assert verdict(cells, "by more than 5 %").met
    assert not verdict([*cells, cell("bcast", 4 << 20, 0.6, ARENA)], "at most 0.45").met


def test_shares_of_the_floor() -> None:
    large, small, other = cell("gather", 1 << 20, 0.4), cell("gather", 65536, 0.4), cell("scan", 1 << 20, 0.4)
    large.of_floor[PLAIN], small.of_floor[PLAIN], other.of_floor[PLAIN] = 0.7, 0.1, 0.1
    assert verdict([large, small, other], "60 % of the floor").met
    large.of_floor[PLAIN] = 0.5
    found = verdict([large, small, other], "60 % of the floor")
    assert found.met is False
    assert found.measured == "0 of 1 points; below: gather 1 MiB 0.50"


def test_many_ranks_are_judged_over_all_sizes() -> None:
    shared = {"ranks": 4, "apart_ns": 0, "crowded": True}
    cells = [cell("scan", 8, 0.2, mode="batch", **shared), cell("scan", 1 << 20, 0.9, **shared)]
    assert verdict(cells, "4 ranks: every collective at most 0.6").met
    assert not verdict(cells[1:], "4 ranks: every collective at most 0.6").met
    assert verdict(cells, "small messages").met is None  # a goal of the first four collectives
    far = [cell("scan", 8, 0.9, **{**shared, "apart_ns": 240})]
    assert verdict([*cells, *far], "4 ranks: every collective at most 0.6").met
    assert not verdict([*cells, *far], "4 ranks, cores 240 ns apart: every collective at most 0.6").met


@pytest.mark.parametrize(("told", "crowded"), [({"crowded": True}, True), ({"crowded": False}, False), ({}, False)])
def test_where_ranks_share_cores_their_distance_counts_too(told: dict[str, bool], crowded: bool) -> None:
    """Series from before that was told have it of ranks with a core each alone."""
    ranks = 4 if crowded else 2
    one = {"kind": "point", "collective": "bcast", "bytes": 8, "ranks": ranks, "mode": "balanced", "wrong": 0, **told}
    times = {"median_us": 1.0, "p10_us": 1.0}
    lines = [{**one, "hop_ns": hops, "pmpi": times} for hops in ([50, 60], [240, 250], [50, 240])]
    runs = [Run("mpich", "", "", "", lines)]
    found = [cell.key for cell in merge(runs, distances(runs))]
    assert [(key.apart_ns, key.crowded) for key in found] == [(50, crowded), (240, crowded)]


def test_of_many_ranks_with_a_core_each_two_do_not_tell_the_placement() -> None:
    one = {"kind": "point", "collective": "bcast", "ranks": 16, "mode": "balanced", "crowded": False, "wrong": 0}
    times = {"median_us": 1.0, "p10_us": 1.0}
    hops = ([160, 170], [20, 25], [150, 20], [180, 185], [190, 170])
    lines = [{**one, "bytes": 8 << n, "hop_ns": pair, "pmpi": times} for n, pair in enumerate(hops)]
    runs = [Run("mpich", "", "", "", lines)]
    assert [cell.key.apart_ns for cell in merge(runs, distances(runs))] == [165] * len(hops)


def test_what_is_lost_stands_worst_first() -> None:
    cells = [cell("scan", 8, 1.2), cell("gather", 8, 3.0), cell("bcast", 8, 0.9)]
    rows = lost(cells, {"mpich": "MPICH", "openmpi": "Open MPI"}).splitlines()[2:]
    assert [row.split(" | ")[1] for row in rows] == ["gather", "scan"]
    assert lost(cells[2:], {"mpich": "MPICH"}) == "Nowhere.\n"
    assert "| gather | 3.00 (3.00) |" in means(cells, {"mpich": "MPICH", "openmpi": "Open MPI"})


def test_a_series_is_kept_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "series.runs"
    kept = Kept(path)
    kept.command("first")
    kept.run(run("openmpi", [point("bcast", 8, 4)]))
    kept.failure("why")
    kept.decline({"call": "Send"})
    kept.other("slow", {"a": 1})
    path.write_text(path.read_text() + '{"run": {"peer": "ope')  # killed while it wrote
    again = resumed(path)
    assert (again.commands, again.failures, again.declining) == (["first"], ["why"], [{"call": "Send"}])
    assert again.others == {"slow": {"a": 1}}
    assert again.runs == kept.runs
    again.run(run("mpich", [point("bcast", 8, 3)]))
    assert [one.peer for one in merged([path]).runs] == ["openmpi", "mpich"]


def test_partial_series_become_one_page(tmp_path: Path) -> None:
    paths = []
    for name, us in (("bcast", 4.0), ("scan", 6.0)):
        paths.append(tmp_path / name)
        kept = Kept(paths[-1])
        kept.command(f"bench/run.py --collectives {name}")
        kept.run(run("openmpi", [point(name, 8, us)]))
        kept.run(run("openmpi", [point(name, 8, us / 4)], way="stretto"))
    page, document = report.make(merged(paths))
    assert [one["collective"] for one in document["cells"]] == ["bcast", "scan"]
    assert page.count("- command: ") == 2
    assert "| scan | 8 B | **12.0** | 1.50 | 0.12 | 0.50 |" in page


def test_what_was_cut_off_is_said() -> None:
    kept = Kept()
    kept.run(run("openmpi", [point("bcast", 8, 4), {"kind": "cut", "seconds": 60}]))
    page, _ = report.make(kept)
    assert "cut off after 60 s, 1 points measured" in page


def test_what_is_there_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def pretend(peer: launchers.Peer, *arguments: Any, **_: Any) -> list[dict[str, Any]]:
        asked.append((peer.key, arguments[3].arguments[1]))
        if peer.key == "intel":
            raise launchers.RunFailed("not here")
        return [{"kind": "setup", "library": ""}]

    monkeypatch.setattr(launchers, "run", pretend)
    monkeypatch.setattr(launchers.Peer, "available", lambda _: True)
    options = peers.Options([64], 2, collectives=("scan", "bcast"), say=lambda _: None)
    kept = Kept()
    peers.measure(options, kept)
    whole = len(asked)
    assert {names for _, names in asked} == {"scan", "bcast"}
    asked.clear()
    peers.measure(options, kept)
    assert asked and {key for key, _ in asked} == {"intel"}
    del kept.runs[0]
    asked.clear()
    peers.measure(options, kept)
    assert len([key for key, _ in asked if key != "intel"]) == 1
    assert whole == 2 * len(peers.plan(options))


def test_what_peers_are_compared_with_ran_alone() -> None:
    alone = point("bcast", 8, 1.5)
    del alone["pmpi"], alone["ratio"]
    runs = [run("openmpi", [point("bcast", 8, 3)]), *(run("openmpi", [p], way="stretto") for p in (point("bcast", 8, 2), alone))]
    (found,) = merge(runs, distances(runs))
    assert found.ratio(PLAIN) == 0.25
    assert found.in_run[PLAIN] == 0.5


def test_bare_calls_stand_beside_the_goals_of_small_messages() -> None:
    runs = [
        run("openmpi", [point("allreduce", 8, 2)]),
        run("openmpi", [point("allreduce", 8, 2)], way="stretto"),
        run("openmpi", [point("allreduce", 8, 1)], way="bare"),
    ]
    cells = merge(runs, distances(runs))
    assert cells[0].bare_ratio() == 0.25  # 1 us of 4
    assert cells[0].as_json()["bare"]["us"] == 1
    found = verdict(cells, "allreduce to 1 KiB")
    assert found.measured == "0.50 (worst 0.50: allreduce 8 B); bare calls, without any library: 0.25"
    assert found.met is False
    (job,) = [job for job in peers.plan(peers.Options([2], peers=("openmpi",), preloads=Path())) if job.bare]
    words = peers.program(job, peers.Options()).arguments
    assert words[-1] == "--bare"
    assert words[words.index("--sizes") + 1] == "8,32,128,512,1K"


def test_the_arena_has_runs_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchers.Peer, "available", lambda _: True)
    options = peers.Options([64], collectives=("barrier", "bcast"), preloads=tmp_path)
    assert {job.way for job in peers.plan(options)} == {"", "stretto", "bare"}
    (tmp_path / "libstretto_arena.so").touch()
    jobs = peers.plan(options)
    arena, in_turn = [job for job in jobs if job.way == "arena" and job.peer.key == "mpich"]
    assert arena.identity != in_turn.identity
    assert [peers.program(job, options).arguments[-1] for job in (arena, in_turn)] == ["mpi", "both"]
    assert arena.stretto
    assert arena.stretto.for_ranks()["LD_PRELOAD"] == f"{tmp_path}/libstretto_mpich.so:{tmp_path}/libstretto_arena.so"
    words = peers.program(arena, options).arguments
    assert words[:4] == ("--collectives", "bcast", "--sizes", "16K,64K,256K,1M,4M,16M")


def stand_in(home: Path, script: str) -> launchers.Peer:
    """A peer whose launcher is a shell script; $OUT is where it is to write its lines."""
    (home / "bin").mkdir(parents=True)
    path = home / "bin/mpirun"
    path.write_text('#!/bin/sh\nfor OUT; do :; done\nsetup=\'{"kind": "setup", "library": "Test", "ranks": 99, "cores": 1,'
                    f' "stretto": null, "accelerating": false, "cpus": [[0]]}}\'\n{script}\n')  # fmt: skip
    path.chmod(0o755)
    return launchers.Peer("test", "Test", home, "mpirun", "test", "Test", "", (launchers.Config("defaults"),))


def launch(peer: launchers.Peer, **more: Any) -> list[dict[str, Any]]:
    return launchers.run(peer, peer.configs[0], 99, 1, launchers.Program(Path("/program")), **more)


def test_a_run_that_takes_too_long_is_cut_off(tmp_path: Path) -> None:
    peer = stand_in(tmp_path, 'echo "$setup" > "$OUT"; echo \'{"kind": "point"}\' >> "$OUT"; printf \'{"ki\' >> "$OUT"; sleep 60')
    lines = launch(peer, limit=1)
    assert [line["kind"] for line in lines] == ["setup", "point", "cut"]
    assert Run("test", "", "", "", lines).cut_after() == 1


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 3", "exit code 3"),
        ("exit 0", "no results"),
        ("sleep 60", "nothing within 1 s"),
        ('echo "$setup" | sed s/Test/Other/ > "$OUT"', "ran under Other"),
    ],
)
def test_runs_that_give_nothing_fail(tmp_path: Path, script: str, why: str) -> None:
    with pytest.raises(launchers.RunFailed, match=why):
        launch(stand_in(tmp_path, script), limit=1)


def test_a_run_in_which_stretto_took_no_part_fails(tmp_path: Path) -> None:
    peer = stand_in(tmp_path, 'echo "$setup" | sed s/null/1/ > "$OUT"')
    with pytest.raises(launchers.RunFailed, match="took no part"):
        launch(peer, stretto=launchers.Stretto(Path("/lib.so")))
    launch(peer, stretto=launchers.Stretto(Path("/lib.so"), settings={"STRETTO_ACCELERATE": "off"}))


def test_the_program_knows_every_collective() -> None:
    text = (launchers.ROOT / "bench/collective/operation.c").read_text()
    assert all(f'"{name}"' in text for name in COLLECTIVES)
    assert len(COLLECTIVES) == sum(map(len, GROUPS)) == 16
