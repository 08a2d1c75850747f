"""The shortest list of moves that still breaks the same invariant, written as a scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from replaylife.lifecycle.actions import (
    Abort,
    Checkpoint,
    EvictKv,
    EvictStates,
    Finish,
    Flush,
    Forward,
    Prefill,
    Retract,
)
from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.wander.moves import Ask, Move, Open, Passage, Resume
from replaylife.lifecycle.wander.walk import Walk, replay

_VERBS: dict[type, str] = {
    Checkpoint: "checkpoint",
    Flush: "fold",
    Finish: "finish",
    Abort: "abort",
    Retract: "retract",
    Resume: "resume",
}


def shortest(moves: Sequence[Move], fails: Callable[[Sequence[Move]], bool]) -> list[Move]:
    """Return a sublist that still fails and from which no single move can be left out.

    Delta debugging: leaves out ever smaller stretches as long as ``fails`` stays true.
    """
    left = list(moves)
    size = max(1, len(left) // 2)
    while True:
        start, shrunk = 0, False
        while start < len(left):
            candidate = left[:start] + left[start + size :]
            if candidate and fails(candidate):
                left, shrunk = candidate, True
            else:
                start += size
        if size == 1 and not shrunk:
            return left
        size = max(1, size // 2)


def shortest_violation(factory: EngineFactory, moves: Sequence[Move], invariant: str) -> list[Move]:
    """Return the shortest list of moves found that breaks ``invariant`` on a fresh engine."""

    def fails(candidate: Sequence[Move]) -> bool:
        return any(violation.invariant == invariant for violation in replay(factory, candidate))

    return _possible(factory, shortest(moves, fails))


def _possible(factory: EngineFactory, moves: Sequence[Move]) -> list[Move]:
    walk = Walk(factory)
    return [move for move in moves if walk.take(move) is not None]


def as_scenario(config: EngineConfig, faults: Sequence[str], moves: Sequence[Move], title: str) -> str:
    """Write moves as a scenario file.

    A forward of several rows becomes one decode step each, which the language can say.
    """
    cache = config.cache
    lines = [
        f"title: {title}",
        f"model: {{gate: {config.model.gate}, vocab: {config.model.vocab}, seed: {config.model.seed}}}",
        f"cache: {{slots: {cache.slots}, kv_tokens: {cache.kv_tokens}, ring_length: {cache.ring_length}, "
        f"track_interval: {cache.track_interval}, finish: {cache.finish}, track: {cache.track}, "
        f"replayssm: {'on' if cache.replayssm else 'off'}}}",
        f"faults: [{', '.join(faults)}]",
        "steps:",
    ]
    steps = [step for move in moves for step in _steps(move)]
    for step, same in groupby(steps):
        count = sum(1 for _ in same)
        if step.startswith("decode"):
            lines.append(f"  - {step.replace('n: 1', f'n: {count}')}")
        else:
            lines += [f"  - {step}"] * count
    return "\n".join(lines) + "\n"


def _steps(move: Move) -> Iterator[str]:
    match move:
        case Open(name, prompt, continues):
            turn = f", continues: {continues}" if continues else ""
            yield f"admit: {{request: {name}{turn}, prompt: {_prompt(prompt)}}}"
        case Ask():
            return  # changes nothing
        case Prefill(name, count):
            yield f"prefill: {{request: {name}, chunks: [{count}]}}"
        case Forward(rows):
            yield from (f"decode: {{request: {name}, n: 1}}" for name in rows)
        case EvictStates(count):
            yield f"evict: {{states: {count}}}"
        case EvictKv(tokens):
            yield f"evict: {{kv_tokens: {tokens}}}"
        case _:
            yield f"{_VERBS[type(move)]}: {{request: {move.request}}}"


def _prompt(prompt: Sequence[Passage]) -> str:
    parts = [f"{{text: {p.text}, tokens: {p.tokens}}}" if p.text else str(p.tokens) for p in prompt]
    return f"[{', '.join(parts)}]"
