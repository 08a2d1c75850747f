"""Many replays of one log: each point once, whoever plays it, whatever dies on the way."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from replaylife.lifecycle.workload.executors import cluster, local
from replaylife.lifecycle.workload.log import LogError
from replaylife.lifecycle.workload.point import Point
from replaylife.lifecycle.workload.sweep import ATTEMPTS, Played, Results, grid, play, sweep

from .support import line

BASE = Point(slots=24, kv_tokens=40_000, rows=4, chunk=1_024)
AXES = {"finish": ("truncate", "fold"), "ring": (4, 16)}


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join([line(0, (1, 2, 3), 100, 30), line(900, (1, 2, 4, 5), 50, 20)]) + "\n")
    return str(path)


@contextmanager
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


class Breaking(ThreadPoolExecutor):
    """Plays one point, then breaks as a pool does whose worker was killed."""

    def __init__(self) -> None:
        super().__init__(1)
        self._left = 1

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        if self._left:
            self._left -= 1
            return super().submit(*args, **kwargs)
        broken: Future[Any] = Future()
        broken.set_exception(BrokenExecutor("a worker was killed"))
        return broken


def swept(points: list[Point], log: str | None, pool: Any, results: Results) -> list[Played]:
    return list(sweep(points, log, pool, results))


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text().splitlines()]


def test_a_grid_has_every_combination_once() -> None:
    points = grid(BASE, {**AXES, "slots": (24, 24, 30)})
    assert len(points) == len(set(points)) == 8
    assert {(p.finish, p.ring, p.slots) for p in points} == {
        (f, r, s) for f in ("truncate", "fold") for r in (4, 16) for s in (24, 30)
    }


def test_what_a_sweep_finds_is_what_each_replay_finds_alone(log: str) -> None:
    points = grid(BASE, AXES)
    results = Results(None, log)
    swept(points, log, threads, results)
    assert results.of(points) == [play(point, log) for point in points]


def test_processes_of_this_machine_find_the_same(log: str) -> None:
    points = grid(BASE, {"finish": ("truncate", "fold")})
    results = Results(None, log)
    assert len(swept(points, log, local(1), results)) == 2
    assert results.of(points) == [play(point, log) for point in points]


def test_a_sweep_that_was_stopped_goes_on_with_what_is_missing(log: str, tmp_path: Path) -> None:
    points, path = grid(BASE, AXES), tmp_path / "out.jsonl"
    running = sweep(points, log, threads, Results(path, log))
    first = next(running)
    running.close()
    again = Results(path, log)
    kept = set(again.played)
    assert first.key in kept
    rest = swept(points, log, threads, again)
    assert {one.key for one in rest}.isdisjoint(kept)
    assert len(lines_of(path)) == 1 + len(points)
    assert swept(points, log, threads, Results(path, log)) == [], "nothing is left"


def test_a_last_line_cut_short_is_dropped_and_played_again(log: str, tmp_path: Path) -> None:
    points, path = grid(BASE, {"ring": (4, 16)}), tmp_path / "out.jsonl"
    swept(points, log, threads, Results(path, log))
    path.write_bytes(path.read_bytes()[:-25])
    again = Results(path, log)
    assert len(again.missing(points)) == 1
    swept(points, log, threads, again)
    assert [one["point"]["ring"] for one in lines_of(path)[1:]] == [4, 16]


def test_results_of_another_log_are_refused_by_line(log: str, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    Results(path, log)
    with pytest.raises(ValueError, match=r"out\.jsonl:1: .*results of another log"):
        Results(path, None)
    path.write_text(path.read_text() + "{}\n")
    with pytest.raises(ValueError, match=r"out\.jsonl:2: KeyError\('point'\); expected a file that sweep"):
        Results(path, log)


def test_a_result_that_arrives_twice_is_counted_once(log: str, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    results = Results(path, log)
    played = play(BASE, log)
    results.add(played)
    results.add(Played(dict(played.point), dict(played.totals)))
    assert len(results.played) == 1
    assert len(lines_of(path)) == 2


def test_a_pool_that_breaks_is_replaced_and_what_was_played_is_kept(log: str, tmp_path: Path) -> None:
    points, path, pools = grid(BASE, {"ring": (4, 16)}), tmp_path / "out.jsonl", []

    @contextmanager
    def breaking() -> Iterator[Executor]:
        pools.append(1)
        with Breaking() as executor:
            yield executor

    results = Results(path, log)
    swept(points, log, breaking, results)
    assert len(pools) == 2
    assert len(results.of(points)) == 2
    assert len(lines_of(path)) == 3


def test_a_killed_process_of_this_machine_loses_nothing(tmp_path: Path) -> None:
    points, path, killed = grid(Point(limit=3, slots=64), {"ring": (2, 4, 8)}), tmp_path / "out.jsonl", 0
    results = Results(path, None)
    for _ in sweep(points, None, local(2), results):
        if not killed:
            killed = multiprocessing.active_children()[0].pid or 0
            os.kill(killed, signal.SIGKILL)
    assert killed
    assert [one.point["ring"] for one in results.of(points)] == [2, 4, 8]
    assert len(lines_of(path)) == 1 + 3


def test_a_pool_that_breaks_every_time_is_given_up(log: str) -> None:
    pools = []

    class Dead(Breaking):
        def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
            self._left = 0
            return super().submit(*args, **kwargs)

    @contextmanager
    def dead() -> Iterator[Executor]:
        pools.append(1)
        with Dead() as executor:
            yield executor

    with pytest.raises(BrokenExecutor):
        swept(grid(BASE, {"ring": (4, 16)}), log, dead, Results(None, log))
    assert len(pools) == ATTEMPTS


def test_a_bad_log_ends_the_sweep_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("x\n")
    with pytest.raises(LogError, match="line 1: no JSON"):
        swept([BASE], str(path), threads, Results(None, str(path)))


def test_a_cluster_loses_nothing_and_counts_nothing_twice_when_a_worker_is_killed(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="needs the extra `cluster`")
    points = grid(Point(limit=6, slots=64), {"ring": (2, 4, 8, 16), "finish": ("truncate", "fold")})
    path, killed = tmp_path / "out.jsonl", 0
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as workers:
        victim = next(iter(workers.workers.values())).pid
        results = Results(path, None)
        for _ in sweep(points, None, cluster(workers.scheduler_address), results):
            if not killed:
                os.kill(victim, signal.SIGKILL)
                killed = victim
    assert killed
    assert [one.point["ring"] for one in results.of(points)] == [point.ring for point in points]
    keys = [Played(told["point"], told["totals"]).key for told in lines_of(path)[1:]]
    assert len(keys) == len(set(keys)) == len(points) == 8
    assert results.of(points)[0] == play(points[0], None)
