"""One point of a sweep: everything that a replay depends on, and the replay itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from replaylife.lifecycle.config import CacheConfig, EngineConfig, FinishPolicy
from replaylife.lifecycle.snapshot import Violation
from replaylife.lifecycle.workload.conversation import Conversations, Turn
from replaylife.lifecycle.workload.log import BLOCK, read_entries
from replaylife.lifecycle.workload.script import ScriptedFactory
from replaylife.lifecycle.workload.server import Pace, Server
from replaylife.lifecycle.workload.tally import Totals

EXCERPT = "mooncake_conversation_300.jsonl"


@dataclass(frozen=True, slots=True)
class Point:
    """What a replay depends on beside the log. Picklable; ``record`` names it for JSON and for resuming.

    ``ring`` is L, 0 with ReplaySSM off. ``page`` is the block of ``align``, ``chunk_grid`` the grid of the
    other strategies that have one. ``limit`` stops after so many requests of the log, 0 for none.
    """

    strategy: str = "no_buffer"
    ring: int = 16
    track_interval: int = 256
    finish: FinishPolicy = "truncate"
    slots: int = 256
    kv_tokens: int = 2_000_000
    page: int = 512
    chunk_grid: int = 64
    rows: int = 64
    chunk: int = 8_192
    step_ms: float = 30.0
    block: int = BLOCK
    limit: int = 0
    check: bool = True
    faults: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "faults": list(self.faults)}

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all fields."""
        return tuple(field.name for field in fields(cls))

    def cache(self) -> CacheConfig:
        """Return the cache that this point describes."""
        return CacheConfig(
            strategy=self.strategy,
            slots=self.slots,
            kv_tokens=self.kv_tokens,
            page=self.page if self.strategy == "align" else 1,
            chunk_grid=self.chunk_grid if self.strategy.startswith("extra_buffer") else 1,
            replayssm=self.ring > 0,
            ring_length=self.ring or 16,
            track_interval=self.track_interval,
            finish=self.finish,
        )

    def server(self) -> Server:
        """Return a fresh server. Raises ``ValueError`` for sizes that do not go together."""
        factory = ScriptedFactory(EngineConfig(cache=self.cache()), self.faults)
        return Server(factory, Pace(self.rows, self.chunk, self.step_ms), check=self.check)


class Result(NamedTuple):
    """What a replay came to: the sums, and the first violations with the action that each belongs to."""

    point: Point
    totals: Totals
    violations: list[tuple[int, Violation]]


def turns_of(path: str | None, point: Point) -> Iterator[Turn]:
    """Yield the turns of a log, of the shipped excerpt for ``None``; the file is read as they are taken.

    Raises ``LogError`` for a line that is no request, ``OSError`` for a file that cannot be read.
    """
    where = resources.files("replaylife.lifecycle.workload.data") / EXCERPT if path is None else Path(path)
    with where.open(encoding="utf-8", errors="replace") as lines:  # what is no text is told with its line
        turns = Conversations(read_entries(lines, point.block))
        yield from islice(turns, point.limit or None)


def replay(point: Point, path: str | None, progress: Callable[[int], None] = lambda _: None) -> Result:
    """Play a log through the lifecycle; ``progress`` hears after each step how many requests have come in.

    Raises what :func:`turns_of` raises, and ``CannotExpress`` for a request that can never be admitted.
    """
    server = point.server()
    for taken in server.run(turns_of(path, point)):
        progress(taken)
    return Result(point, server.totals, server.violations)
