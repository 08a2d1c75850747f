"""Building blocks for tests of traces."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from replaylife.lifecycle.actions import Action, Admit, Finish, Forward, Prefill
from replaylife.lifecycle.config import CacheConfig, EngineConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import Transition
from replaylife.lifecycle.trace.judge import Judgement, judge
from replaylife.lifecycle.trace.lines import Header
from replaylife.lifecycle.trace.reader import TraceReader
from replaylife.lifecycle.trace.writer import TraceWriter

from ..support import SCENARIOS, Run

SHIPPED = sorted(path.stem for path in SCENARIOS.glob("*.yaml"))
HEADER = Header(tool="test", scenario="made up", capabilities=Capabilities(True, False, False))


def write(run: Run, path: Path, **header: Any) -> None:
    """Write the trace of a played scenario."""
    engine = run.engine
    known = replace(
        HEADER,
        scenario=run.scenario.name,
        capabilities=engine.capabilities,
        config=engine.config,
        faults=run.scenario.faults,
        **header,
    )
    with TraceWriter(path, known) as trace:
        for outcome in run.outcomes:
            trace.tell(outcome)
        trace.end(run.verdict)


@cache
def recorded(name: str, keyframe_every: int = 64, *, without_its_faults: bool = False) -> bytes:
    """The trace of a shipped scenario, ledger only."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        run = Run(name, without_its_faults=without_its_faults)
        write(run, path, keyframe_every=keyframe_every)
        return path.read_bytes()


def lines_of(raw: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in raw.splitlines()]


def joined(lines: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def judged(raw: bytes, folder: Path) -> Judgement:
    path = folder / "judged.jsonl"
    path.write_bytes(raw)
    with TraceReader(path) as reader:
        return judge(reader)


def steps_of(lines: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (line for line in lines if line["type"] == "step")


def tampered(
    raw: bytes, choose: Callable[[dict[str, Any]], bool], change: Callable[[Any], None]
) -> tuple[int, bytes]:
    """Change the first step that ``choose`` picks; return its number and the trace."""
    lines = lines_of(raw)
    step = next(line for line in steps_of(lines) if choose(line))
    change(step)
    return step["step"], joined(lines)


def transitions(num_steps: int, *, prompt: int = 3, decodes: int = 6) -> Iterator[Transition]:
    """Play conversation after conversation on a small pool, ledger only, one transition at a time."""
    cache = CacheConfig(slots=6, kv_tokens=64, ring_length=4, track_interval=64)
    engine = EngineFactory(EngineConfig(cache=cache)).build()
    for step, action in zip(range(1, num_steps + 1), _conversations(prompt, decodes), strict=False):
        before = engine.snapshot()
        events = engine.apply(action)
        yield Transition(step, before, action, events, engine.snapshot(), engine.changed())


def _conversations(prompt: int, decodes: int) -> Iterator[Action]:
    number = 0
    while True:
        number += 1
        name = f"r{number}"
        yield Admit(name, tuple((number * 7 + place) % 256 for place in range(prompt)))
        yield Prefill(name, prompt)
        yield from (Forward((name,)) for _ in range(decodes))
        yield Finish(name)
