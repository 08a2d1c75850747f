"""The shortest list of moves that still breaks the same invariant, written as a scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from replaylife.lifecycle.actions import (
    Abort,
    AbortCopy,
    Cancel,
    Checkpoint,
    Commit,
    Draft,
    EvictHost,
    EvictKv,
    EvictStates,
    Execute,
    Finish,
    FinishCopy,
    Flush,
    Forward,
    Load,
    Offload,
    Prefill,
    Retract,
    Schedule,
    Transfer,
    Verify,
    Windows,
)
from replaylife.lifecycle.config import CacheConfig, EngineConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.wander.moves import Ask, Leave, Move, Open, Passage, Resume, Retry
from replaylife.lifecycle.wander.walk import Walk, replay

_VERBS: dict[type, str] = {
    Checkpoint: "checkpoint",
    Flush: "fold",
    Finish: "finish",
    Abort: "abort",
    Retract: "retract",
    Resume: "resume",
    Retry: "retry",
    Cancel: "cancel",
    Leave: "end_session",
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
    """Write moves as a scenario file: a decode step for a forward of one row, a batch for any other.

    The moves are played once, without tensors, to see which admissions the scenario must expect to be
    rejected.
    """
    lines = [
        f"title: {title}",
        f"model: {{gate: {config.model.gate}, vocab: {config.model.vocab}, seed: {config.model.seed}}}",
        f"cache: {{{', '.join(f'{key}: {value}' for key, value in _cache(config.cache).items())}}}",
        f"faults: [{', '.join(faults)}]",
        "steps:",
    ]
    played = Walk(EngineFactory(replace(config, backend="none"), tuple(faults)))
    steps = [step for move in moves for step in _told(played, move)]
    for step, same in groupby(steps):
        count = sum(1 for _ in same)
        if step.startswith("decode"):
            lines.append(f"  - {step.replace('n: 1', f'n: {count}')}")
        else:
            lines += [f"  - {step}"] * count
    return "\n".join(lines) + "\n"


def _told(walk: Walk, move: Move) -> Iterator[str]:
    """Take the move; say after an admission that is rejected who has been so by now. Then it is a retry.

    A chunk that is all that is left of a prompt is told as that: a faulty engine may have less left than the
    prompt has tokens.
    """
    before = walk.cast.turned_away
    again = isinstance(move, Resume) and move.request in before
    if isinstance(move, Prefill) and move.count == _left(walk, move.request):
        yield f"prefill: {{request: {move.request}}}"
    else:
        yield from _steps(Retry(move.request) if isinstance(move, Resume) and again else move)
    walk.take(move)
    if isinstance(move, Open | Resume | Retry) and move.request in walk.cast.turned_away:
        yield f"expect: {{rejected: [{', '.join(sorted(walk.cast.turned_away))}]}}"


def _left(walk: Walk, name: str) -> int:
    view = walk.engine.snapshot().request(name)
    return 0 if view is None else view.prompt_len - view.scheduled


def _cache(cache: CacheConfig) -> dict[str, object]:
    """The policies and sizes as a scenario says them; graph mode and places only where there are any."""
    said: dict[str, object] = {
        "strategy": cache.strategy,
        "slots": cache.slots,
        "kv_tokens": cache.kv_tokens,
        "page": cache.page,
        "chunk_grid": cache.chunk_grid,
        "ring_length": cache.ring_length,
        "track_interval": cache.track_interval,
        "finish": cache.finish,
        "track": cache.track,
        "replayssm": "on" if cache.replayssm else "off",
        "overlap": "on" if cache.overlap else "off",
    }
    sizes = {"graph_rows": cache.graph_rows, "host_slots": cache.host_slots, "peer_slots": cache.peer_slots}
    return {**said, **{name: size for name, size in sizes.items() if size}}


def _steps(move: Move) -> Iterator[str]:
    match move:
        case Open(name, prompt, continues):
            turn = f", continues: {continues}" if continues else ""
            yield f"admit: {{request: {name}{turn}, prompt: {_prompt(prompt)}}}"
        case Ask():
            return  # changes nothing
        case Prefill(name, count):
            yield f"prefill: {{request: {name}, chunks: [{count}]}}"
        case Forward((name,), (), None):
            yield f"decode: {{request: {name}, n: 1}}"
        case Forward():
            yield f"batch: {_rows(move)}"
        case Schedule():
            yield f"schedule: {_rows(move)}"
        case Verify(rows) | Draft(rows):
            yield f"{type(move).__name__.lower()}: {_windows(rows)}"
        case Execute() | Commit():
            yield f"{type(move).__name__.lower()}: {{}}"
        case EvictStates(count):
            yield f"evict: {{states: {count}}}"
        case EvictHost(count):
            yield f"evict: {{host: {count}}}"
        case Offload(node) | Load(node):
            yield f"{type(move).__name__.lower()}: {{node: {node}, arrives: later}}"
        case Transfer(name):
            yield f"transfer: {{request: {name}, arrives: later}}"
        case FinishCopy(of) | AbortCopy(of):
            kind, _, name = of.partition(" ")
            verb = "arrive" if isinstance(move, FinishCopy) else "abort_copy"
            yield f"{verb}: {{{kind}: {name}}}"
        case EvictKv(tokens):
            yield f"evict: {{kv_tokens: {tokens}}}"
        case _:
            yield f"{_VERBS[type(move)]}: {{request: {move.request}}}"


def _rows(step: Forward | Schedule) -> str:
    parts = []
    if step.rows:
        parts.append(f"decode: [{', '.join(step.rows)}]")
    if step.chunks:
        parts.append(f"prefill: {{{', '.join(f'{name}: {count}' for name, count in step.chunks)}}}")
    if step.pad_to is not None:
        parts.append(f"pad_to: {step.pad_to}")
    return f"{{{', '.join(parts)}}}"


def _windows(rows: Windows) -> str:
    """One request's window, or several under ``rows``."""
    told = [f"{{request: {name}, window: {window}, keep: {keep}}}" for name, window, keep in rows]
    return told[0] if len(told) == 1 else f"{{rows: [{', '.join(told)}]}}"


def _prompt(prompt: Sequence[Passage]) -> str:
    parts = [f"{{text: {p.text}, tokens: {p.tokens}}}" if p.text else str(p.tokens) for p in prompt]
    return f"[{', '.join(parts)}]"
