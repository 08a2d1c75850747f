"""Random walks of the reference engine, replayed on SGLang: every invariant that breaks, once for each kind.

Run: python bench/sglang_walks.py [--seeds 30] [--strategy no_buffer] [--engine sglang-rust]

Mixed steps are split, so that what finding c does to everything after it does not hide the rest. Actions that
SGLang refuses or does not have are counted and left out. A pool as small as these runs dry where a server's
would not (it limits its running requests): its own assertion then ends the walk, and is counted.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from replaylife.engines import adapter_of
from replaylife.lifecycle.actions import Action, Forward
from replaylife.lifecycle.config import CacheConfig, EngineConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.invariants import Checker
from replaylife.lifecycle.protocol import ActionRefused, CannotExpress, transit
from replaylife.lifecycle.wander.walk import Walk

CONFIGS = {
    "no_buffer": CacheConfig(slots=10, kv_tokens=96, ring_length=4, track_interval=6, track="fold-only"),
    "no_buffer, ReplaySSM off": CacheConfig(slots=10, kv_tokens=96, replayssm=False),
    "extra_buffer": CacheConfig(
        strategy="extra_buffer", slots=20, kv_tokens=96, chunk_grid=2, track_interval=6, replayssm=False
    ),
}


def actions(config: EngineConfig, seed: int, length: int) -> Iterator[Action]:
    """Yield what a random walk of the reference engine does, mixed steps split, padding left out."""
    for taken in Walk(EngineFactory(config)).wander(seed, length):
        action = taken.transition.action
        if not isinstance(action, Forward):
            yield action
            continue
        if action.chunks:
            yield Forward((), action.chunks)
        if action.rows:
            yield replace(action, chunks=(), pad_to=None)


def walk(engine_name: str, config: EngineConfig, seed: int, length: int, seen: Counter[str]) -> None:
    engine, steps = adapter_of(engine_name).build(config), 0
    checker = Checker(engine.capabilities)
    for action in actions(config, seed, length):
        try:
            transition = transit(engine, action, steps + 1)
        except (ActionRefused, CannotExpress):
            seen["(actions left out)"] += 1
            continue
        except RuntimeError as error:
            seen[f"(walks ended by: {str(error).splitlines()[0][:70]})"] += 1
            return
        steps += 1
        seen["(steps)"] += 1
        for violation in checker.check(transition):
            seen[f"{violation.invariant}: {violation.subject.split()[0]}"] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--length", type=int, default=60)
    parser.add_argument("--engine", default="sglang")
    parser.add_argument("--strategy", choices=CONFIGS, action="append")
    args = parser.parse_args()
    for name in args.strategy or CONFIGS:
        seen: Counter[str] = Counter()
        for seed in range(args.seeds):
            walk(args.engine, EngineConfig(cache=CONFIGS[name]), seed, args.length, seen)
        print(f"{name} on {args.engine}, {args.seeds} walks")
        for what, times in sorted(seen.items()):
            print(f"  {times:6,}  {what}")


if __name__ == "__main__":
    main()
