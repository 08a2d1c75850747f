"""Chooses random legal moves, so that the situations that matter come about often."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

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
from replaylife.lifecycle.snapshot import RequestView, Snapshot
from replaylife.lifecycle.wander.moves import Ask, Cast, Move, Open, Passage, Resume

WEIGHTS = {
    "open": 8.0,
    "resume": 5.0,
    "prefill": 22.0,
    "forward": 34.0,
    "checkpoint": 6.0,
    "flush": 2.5,
    "finish": 9.0,
    "abort": 2.0,
    "retract": 4.0,
    "evict_states": 6.0,
    "evict_kv": 2.0,
    "probe": 2.0,
}


@dataclass(frozen=True, slots=True)
class Habits:
    """How a wanderer chooses.

    ``weights`` says how often each kind of move is taken when several can be. Prompts begin with up to
    ``text_tokens`` tokens of one of ``texts`` shared texts; chunks tend to end, and texts to be cut, at
    multiples of ``grid``, so that requests meet in the tree. No request gets longer than ``max_length``.
    """

    weights: dict[str, float] = field(default_factory=lambda: dict(WEIGHTS))
    texts: int = 2
    text_tokens: int = 12
    own_tokens: int = 5
    grid: int = 4
    max_length: int = 40


class Wanderer:
    """A seeded player: looks at snapshots and at its cast, returns the next move.

    The move is legal wherever the snapshot tells the truth; an admission may still be rejected.
    """

    def __init__(self, cast: Cast, seed: int, habits: Habits | None = None) -> None:
        self.cast, self.habits = cast, habits or Habits()
        self._random = random.Random(seed)
        self._born = 0

    def choose(self, snapshot: Snapshot) -> Move:
        """Return a legal move: first what kind, by weight, then one of that kind."""
        options = self._options(snapshot)
        weights = [self.habits.weights[kind] for kind in options]
        kind = self._random.choices(list(options), weights)[0]
        return options[kind]()

    def _options(self, snapshot: Snapshot) -> dict[str, Callable[[], Move]]:
        """Return how to make one move of each kind that is possible."""
        pick, cast = self._random.choice, self.cast
        running = snapshot.requests
        prefilling = [view for view in running if view.phase == "prefill"]
        decoding = [view for view in running if view.phase == "decode"]
        rows = [view.id for view in decoding if view.committed < self.habits.max_length]
        room = snapshot.kv_free + sum(node.kv_tokens for node in snapshot.nodes if node.kv_lock == 0)
        options: dict[str, Callable[[], Move]] = {"open": self._open, "probe": self._ask}
        if cast.retracted:
            options["resume"] = lambda: Resume(pick(list(cast.retracted)))
        if prefilling:
            options["prefill"] = lambda: self._prefill(pick(prefilling))
        if rows and room:
            options["forward"] = lambda: self._forward(rows, room)
        if decoding:
            options["checkpoint"] = lambda: Checkpoint(pick(decoding).id)
            options["flush"] = lambda: Flush(pick(decoding).id)
            options["finish"] = lambda: Finish(pick(decoding).id)
        if running:
            options["abort"] = lambda: Abort(pick(running).id)
            options["retract"] = lambda: Retract(pick(decoding or running).id)
        if snapshot.lru:
            options["evict_states"] = lambda: EvictStates(self._random.randint(1, 2))
            options["evict_kv"] = lambda: EvictKv(self._random.randint(1, 2 * self.habits.grid))
        return options

    def _forward(self, rows: list[str], room: int) -> Forward:
        count = self._random.randint(1, min(len(rows), room))
        return Forward(tuple(self._random.sample(rows, count)))

    def _prefill(self, view: RequestView) -> Prefill:
        """A chunk to the end, to the grid, or of any length."""
        left = view.prompt_len - view.executed
        to_grid = self.habits.grid - view.executed % self.habits.grid
        wanted = self._random.choice((left, to_grid, to_grid, self._random.randint(1, left)))
        return Prefill(view.id, min(left, wanted))

    def _open(self) -> Open:
        self._born += 1
        continues = self._turn()
        return Open(f"r{self._born}", self._prompt(later=bool(continues)), continues)

    def _ask(self) -> Ask:
        continues = self._turn()
        return Ask(self._prompt(later=bool(continues)), continues)

    def _turn(self) -> str:
        """Return, in half of the cases, an ended request that is short enough for one more turn."""
        longest = self.habits.max_length - self.habits.own_tokens
        ended = [name for name, tokens in self.cast.ended.items() if len(tokens) <= longest]
        return self._random.choice(ended) if ended and self._random.random() < 0.5 else ""

    def _prompt(self, *, later: bool) -> tuple[Passage, ...]:
        own = Passage(self._random.randint(1, self.habits.own_tokens))
        if later or self._random.random() < 0.1:
            return (own,)
        cuts = self.habits.text_tokens // self.habits.grid
        length = self.habits.grid * self._random.randint(1, cuts)
        if self._random.random() < 0.25:
            length = self._random.randint(1, self.habits.text_tokens)
        shared = Passage(length, f"t{self._random.randrange(self.habits.texts)}")
        return (shared, own)
