"""How many actions a second the ledger-only engine takes, and what checking costs: one core, one table.

Run: OMP_NUM_THREADS=1 python bench/ledger_speed.py
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from replaylife.lifecycle.actions import Action, Forward
from replaylife.lifecycle.config import CacheConfig, EngineConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.invariants import Checker
from replaylife.lifecycle.snapshot import Transition
from replaylife.lifecycle.wander.walk import Walk
from replaylife.lifecycle.wander.wanderer import Habits

SMALL = EngineConfig(cache=CacheConfig(slots=10, kv_tokens=96, ring_length=4, track_interval=6))
SERVER = EngineConfig(cache=CacheConfig(slots=64, kv_tokens=16_384, ring_length=16, track_interval=64))
LONG = Habits(max_length=400, text_tokens=64, own_tokens=16, grid=16)


class Workload(NamedTuple):
    """Actions recorded from a random walk, forwards one row at a time."""

    name: str
    factory: EngineFactory
    actions: Sequence[Action]


def record(name: str, config: EngineConfig, num_actions: int, habits: Habits | None = None) -> Workload:
    factory = EngineFactory(config)
    walk, actions = Walk(factory), list[Action]()
    for taken in walk.wander(1, num_actions, habits):
        actions.append(taken.transition.action)
    return Workload(name, factory, _one_row_each(factory, actions))


def _one_row_each(factory: EngineFactory, actions: Sequence[Action]) -> list[Action]:
    """Split forwards of several rows; leave out the few actions that are then refused."""
    from replaylife.lifecycle.protocol import ActionRefused

    engine, kept = factory.build(), list[Action]()
    for action in actions:
        parts = [Forward((row,)) for row in action.rows] if isinstance(action, Forward) else [action]
        for part in parts:
            try:
                engine.apply(part)
            except ActionRefused:
                continue
            kept.append(part)
    return kept


def play(workload: Workload, *, check: bool, everything: bool = False) -> int:
    """Apply all actions, checking every invariant after each if ``check``; return how many violations."""
    engine = workload.factory.build()
    checker, num_violations = Checker(engine.capabilities), 0
    for number, action in enumerate(workload.actions, start=1):
        before = engine.snapshot()
        events = engine.apply(action)
        if check:
            t = Transition(number, before, action, events, engine.snapshot(), engine.changed())
            num_violations += len(checker.check(replace(t, changed=None) if everything else t))
    return num_violations


def best_rate(workload: Workload, repeats: int, *, check: bool, everything: bool = False) -> float:
    """Return the actions per second of the fastest of ``repeats`` runs."""
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        broken = play(workload, check=check, everything=everything)
        seconds.append(time.perf_counter() - begun)
        assert broken == 0
    return len(workload.actions) / min(seconds)


def profile(workload: Workload, rows: int = 14) -> None:
    profiler = cProfile.Profile()
    profiler.runcall(play, workload, check=True)
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--actions", type=int, default=5_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    args = parser.parse_args()
    workloads = [
        record("small pool: 10 slots, 96 tokens", SMALL, args.actions),
        record("server: 64 slots, 16,384 tokens", SERVER, args.actions, LONG),
    ]
    for workload in workloads:
        unchecked = best_rate(workload, args.repeats, check=False)
        rates = {
            "no invariants": unchecked,
            "all, of what changed": best_rate(workload, args.repeats, check=True),
            "all, of everything": best_rate(workload, args.repeats, check=True, everything=True),
        }
        print(f"{workload.name}; {len(workload.actions):,} actions, best of {args.repeats}")
        for name, rate in rates.items():
            print(f"  {name:22} {rate:9,.0f} actions/s   {rate / unchecked:5.2f}")
        if args.profile:
            profile(workload)


if __name__ == "__main__":
    main()
