"""Random legal walks, written and read again: whatever the engine does must follow by the table."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from replaylife.lifecycle.actions import Action, Admit, Draft, Forward, Schedule, Verify
from replaylife.lifecycle.config import CacheConfig, EngineConfig, ModelConfig
from replaylife.lifecycle.engine import ReferenceEngine
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.protocol import ActionRefused
from replaylife.lifecycle.snapshot import Transition
from replaylife.lifecycle.trace.judge import judge
from replaylife.lifecycle.trace.reader import TraceReader
from replaylife.lifecycle.trace.writer import TraceWriter

from .support import HEADER

ACTIONS = 300
LONGEST = 40
VOCAB = 16
WEIGHTS = {
    "Retract": 0.08, "Abort": 0.08, "Finish": 0.35, "EvictStates": 0.1, "EvictKv": 0.1, "Checkpoint": 0.1,
    "Flush": 0.15, "Forward": 4.0, "Schedule": 6.0, "Execute": 3.0, "Commit": 3.0,
}  # fmt: skip
GRIDS = {"no_buffer": (1, 1), "extra_buffer": (2, 4), "extra_buffer_lazy": (2, 4), "align": (4, 1)}


@dataclass(slots=True)
class Player:
    """Applies random legal actions to an engine; prompts continue what earlier requests said."""

    engine: ReferenceEngine
    random: random.Random
    born: int = 0
    said: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def play(self, num_actions: int) -> Iterator[Transition]:
        step = 0
        while step < num_actions:
            before, action = self.engine.snapshot(), self._choose()
            try:
                events = self.engine.apply(action)
            except ActionRefused:
                continue
            step += 1
            for request in self.engine.requests.values():
                self.said[request.id] = tuple(request.tokens[: request.committed + 1])
            yield Transition(step, before, action, events, self.engine.snapshot(), self.engine.changed())

    def _choose(self) -> Action:
        actions = list(self.engine.enabled())
        weights = [WEIGHTS.get(type(action).__name__, 0.4) for action in actions]
        coming = 2.0 if len(self.engine.requests) < 4 else 0.1
        (action,) = self.random.choices([*actions, None], [*weights, coming])
        if action is None:
            return self._admission()
        if isinstance(action, Forward) and action.rows and self.random.random() < 0.3:
            return self._windows()
        return self._widened(action) if isinstance(action, Forward | Schedule) else action

    def _admission(self) -> Admit:
        self.born += 1
        earlier = [tokens for tokens in [*self.said.values()][-8:] if 0 < len(tokens) < LONGEST - 8]
        start = self.random.choice(earlier) if earlier and self.random.random() < 0.6 else ()
        if start and self.random.random() < 0.3:
            start = start[: self.random.randint(1, len(start))]
        own = [self.random.randrange(VOCAB) for _ in range(self.random.randint(1, 6))]
        return Admit(f"r{self.born}", (*start, *own)[:LONGEST])

    def _windows(self) -> Verify | Draft:
        """Windows of any length and outcome; those that do not fit are refused."""
        going = [r.id for r in self.engine.requests.values() if r.scheduled >= r.prompt_len]
        rows = self.random.sample(going, self.random.randint(1, min(3, len(going))))
        windows = [(name, self.random.randint(1, 4)) for name in rows]
        kind = self.random.choice((Verify, Draft))
        return kind(tuple((name, window, self.random.randint(1, window)) for name, window in windows))

    def _widened(self, action: Forward | Schedule) -> Forward | Schedule:
        """More rows, and a chunk beside them."""
        if not action.rows or self.random.random() < 0.3:
            return action
        going = [request for request in self.engine.requests.values() if request.closing is None]
        more = [r.id for r in going if r.scheduled >= r.prompt_len and r.id not in action.rows]
        left = {r.id: r.prompt_len - r.scheduled for r in going if r.scheduled < r.prompt_len}
        chunks = [(name, self.random.randint(1, count)) for name, count in left.items()]
        rows = (*action.rows, *more[: self.random.randint(0, 3)])
        return replace(action, rows=rows, chunks=tuple(chunks[: self.random.randint(0, 1)]))


def walk(path: Path, seed: int, cache: CacheConfig) -> tuple[Counter[str], Counter[str]]:
    """Write a walk's trace; return how often each action and event was in it."""
    config = EngineConfig(ModelConfig(vocab=VOCAB), cache)
    engine = EngineFactory(config).build()
    player = Player(engine, random.Random(seed))
    actions: Counter[str] = Counter()
    events: Counter[str] = Counter()
    header = replace(HEADER, config=config, capabilities=engine.capabilities)
    with TraceWriter(path, header) as trace:
        for t in player.play(ACTIONS):
            actions[type(t.action).__name__] += 1
            events.update(type(event).__name__ for event in t.events)
            events["discarded"] += sum(len(getattr(event, "discarded", ())) for event in t.events)
            events["stamped"] += any(request.stamps for request in t.after.requests)
            events["mixed"] += isinstance(t.action, Forward | Schedule) and bool(
                t.action.rows and t.action.chunks
            )
            trace.step(t)
        trace.finish()
    return actions, events


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("strategy", GRIDS)
def test_whatever_the_engine_does_follows(strategy: str, overlap: bool, tmp_path: Path) -> None:
    page, chunk_grid = GRIDS[strategy]
    cache = CacheConfig(
        strategy=strategy, slots=14, kv_tokens=120, page=page, chunk_grid=chunk_grid, ring_length=4,
        track_interval=6, overlap=overlap,
    )  # fmt: skip
    actions: Counter[str] = Counter()
    events: Counter[str] = Counter()
    for seed, policy in enumerate(({"finish": "truncate"}, {"finish": "fold"}, {"replayssm": False})):
        path = tmp_path / f"{seed}.jsonl"
        for total, more in zip((actions, events), walk(path, seed, replace(cache, **policy)), strict=True):
            total.update(more)
        with TraceReader(path) as trace:
            judgement = judge(trace)
        found = [(f.step, f.violation.subject, f.violation.found) for f in judgement.violations]
        assert (found, judgement.differences, judgement.damage) == ([], [], None)
        assert judgement.steps == ACTIONS
    assert actions.total() == 3 * ACTIONS
    kinds = {"Admit", "Schedule", "Execute", "Commit", "Finish", "Retract", "Abort", "EvictKv", "EvictStates"}
    for kind in kinds if overlap else kinds - {"Schedule", "Execute", "Commit"} | {"Forward", "Prefill"}:
        assert actions[kind] >= 3, kind
    least = {
        "Published": 30,
        "CheckpointCopied": 60,
        "Evicted": 30,
        "Decoded": 90,
        "Prefilled": 90,
        "mixed": 8,
    }
    least |= {"discarded": 50} if overlap else {"Drafted": 20, "Accepted": 20, "CheckpointFolded": 3}
    least |= {"stamped": 100} if strategy.startswith("extra") else {}
    for name, count in least.items():
        assert events[name] >= count, name
