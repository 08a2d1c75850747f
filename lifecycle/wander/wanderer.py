"""Chooses random legal moves, so that the situations that matter come about often."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from replaylife.lifecycle.actions import (
    Abort,
    AbortCopy,
    Cancel,
    Checkpoint,
    Chunks,
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
from replaylife.lifecycle.config import CacheConfig
from replaylife.lifecycle.snapshot import RequestView, Snapshot
from replaylife.lifecycle.stepper import MAX_IN_FLIGHT
from replaylife.lifecycle.wander.moves import Ask, Cast, Leave, Move, Open, Passage, Resume, Retry

Options: TypeAlias = dict[str, Callable[[], Move]]

WEIGHTS = {
    "open": 9.0,
    "resume": 5.0,
    "retry": 3.0,
    "prefill": 22.0,
    "forward": 34.0,
    "mixed": 10.0,
    "verify": 12.0,
    "draft": 9.0,
    "schedule": 88.0,
    "execute": 44.0,
    "commit": 44.0,
    "checkpoint": 6.0,
    "flush": 2.5,
    "finish": 9.0,
    "abort": 2.0,
    "retract": 4.0,
    "evict_states": 6.0,
    "evict_kv": 2.0,
    "probe": 2.0,
    "offload": 9.0,
    "load": 7.0,
    "transfer": 4.0,
    "finish_copy": 12.0,
    "abort_copy": 4.0,
    "evict_host": 3.0,
    "cancel": 1.5,
    "end_session": 1.5,
}
# Overlap needs three moves for a step and leaves few requests idle; a grid leaves few lengths to publish at.
UNDER_OVERLAP = {
    "open": 1.6,
    "prefill": 2.4,
    "forward": 2.1,
    "checkpoint": 5.0,
    "flush": 12.0,
    "finish": 0.8,
    "abort": 3.6,
    "evict_states": 4.0,
    "evict_kv": 1.4,
    "verify": 8.0,
    "draft": 10.0,
    "probe": 1.5,
    "retract": 1.2,
    "end_session": 2.0,
}
ON_A_GRID = {"checkpoint": 4.0}


@dataclass(frozen=True, slots=True)
class Habits:
    """How a wanderer chooses.

    ``weights`` says how often each kind of move is taken when several can be. Prompts begin with up to
    ``text_tokens`` tokens of one of ``texts`` shared texts; chunks tend to end, and texts to be cut, at
    multiples of ``grid`` (the cache's own where it has one), so that requests meet in the tree. No request
    gets longer than ``max_length``. After every ``retract_every`` steps a request is retracted.
    """

    weights: dict[str, float] = field(default_factory=lambda: dict(WEIGHTS))
    texts: int = 2
    text_tokens: int = 12
    own_tokens: int = 5
    grid: int = 4
    max_length: int = 40
    retract_every: int | None = None


class Wanderer:
    """A seeded player: looks at snapshots and at its cast, returns the next move.

    The move is legal wherever the snapshot tells the truth; an admission may still be rejected.
    """

    def __init__(self, cast: Cast, cache: CacheConfig, seed: int, habits: Habits | None = None) -> None:
        self.cast, self.cache, self.habits = cast, cache, habits or Habits()
        self._grid = cache.grid if cache.grid > 1 else self.habits.grid
        self._random = random.Random(seed)
        self._born = 0
        self._forwards = 0
        self._last_rows: tuple[str, ...] = ()

    def choose(self, snapshot: Snapshot) -> Move:
        """Return a legal move: first what kind, by weight, then one of that kind."""
        options = self._options(snapshot)
        weights = [self._weight(kind) for kind in options]
        kind = self._random.choices(list(options), weights)[0]
        self._forwards += kind in ("forward", "mixed", "schedule")
        return options[kind]()

    def _weight(self, kind: str) -> float:
        overlap = UNDER_OVERLAP.get(kind, 1.0) if self.cache.overlap else 1.0
        grid = ON_A_GRID.get(kind, 1.0) if self.cache.grid > 1 else 1.0
        return self.habits.weights[kind] * overlap * grid

    def _options(self, snapshot: Snapshot) -> Options:
        """Return how to make one move of each kind that is possible."""
        live = [view for view in snapshot.requests if view.phase != "closing"]
        options: Options = {"open": self._open, "probe": self._ask}
        options |= self._comings() | self._steps(snapshot, live) | self._goings(snapshot, live)
        if self.cache.host_slots or self.cache.peer_slots:
            options |= self._copies(snapshot, live)
        forced = self.habits.retract_every
        if forced and self._forwards >= forced and "retract" in options:
            self._forwards = 0
            return {"retract": options["retract"]}
        return options

    def _comings(self) -> Options:
        pick, cast = self._random.choice, self.cast
        options: Options = {}
        if cast.retracted:
            options["resume"] = lambda: Resume(pick(list(cast.retracted)))
        if cast.rejected:
            options["retry"] = lambda: Retry(pick(list(cast.rejected)))
        return options

    def _steps(self, snapshot: Snapshot, live: list[RequestView]) -> Options:
        """Whole steps where none is in flight, and the three parts of one under overlap."""
        waiting = [view for view in live if view.scheduled < view.prompt_len]
        longest = self.habits.max_length
        rows = [view.id for view in live if view.prompt_len <= view.scheduled < longest]
        room = snapshot.kv_free + sum(node.kv_tokens for node in snapshot.nodes if node.kv_lock == 0)
        limit = min(len(rows), room, self.cache.graph_rows or len(rows))
        flight = snapshot.in_flight
        options: Options = {}
        if not flight:
            if waiting:
                options["prefill"] = lambda: Prefill(*self._chunk(self._random.choice(waiting)))
            if limit:
                options["forward"] = lambda: Forward(*self._rows(rows, limit, []))
            if limit and waiting:
                options["mixed"] = lambda: Forward(*self._rows(rows, limit, waiting))
            if limit and self.cache.replayssm:
                options["verify"] = lambda: Verify(self._windows(live, room))
                options["draft"] = lambda: Draft(self._windows(live, room))
        drafts = any(view.drafts for view in snapshot.requests)
        if self.cache.overlap and not drafts and len(flight) < MAX_IN_FLIGHT and (limit or waiting):
            options["schedule"] = lambda: self._schedule(rows, limit, waiting)
        if any(step.executed_at is None for step in flight):
            options["execute"] = Execute
        if flight and flight[0].executed_at is not None:
            options["commit"] = Commit
        return options

    def _goings(self, snapshot: Snapshot, live: list[RequestView]) -> Options:
        """Ends, with steps in flight or not, folds, checkpoints and evictions."""
        pick = self._random.choice
        busy = {name for step in snapshot.in_flight for name, _, _ in step.rows}
        ready = [view for view in live if view.committed >= view.prompt_len]
        idle = [view for view in ready if view.id not in busy]
        grid = snapshot.grid or 1
        on_grid = [view for view in idle if view.committed % grid == 0]
        options: Options = {}
        if ready:
            options["finish"] = lambda: Finish(pick(ready).id)
        if idle:
            options["flush"] = lambda: Flush(pick(idle).id)
        if on_grid:
            options["checkpoint"] = lambda: Checkpoint(pick(on_grid).id)
        if live:
            options["abort"] = lambda: Abort(pick(live).id)
            options["retract"] = lambda: Retract(pick(ready or live).id)
        if snapshot.lru:
            options["evict_states"] = lambda: EvictStates(self._random.randint(1, 2))
            options["evict_kv"] = lambda: EvictKv(self._random.randint(1, 2 * self._grid))
        return options

    def _copies(self, snapshot: Snapshot, live: list[RequestView]) -> Options:
        """Copies to and from places outside the pool: begun, arrived, failed; and who leaves the queue."""
        pick, options = self._random.choice, Options()
        moving = {copy.of for copy in snapshot.copies}
        kept = {int(o.id) for place in snapshot.host_places for o in place.owners if o.kind == "tree"}
        idle = [node for node in snapshot.nodes if f"node {node.id}" not in moving]
        away = [node.id for node in idle if node.state is not None and node.id not in kept]
        back = [node.id for node in idle if node.state is None and node.id in kept]
        busy = {name for step in snapshot.in_flight for name, _, _ in step.rows}
        ready = [view.id for view in live if view.committed >= view.prompt_len and view.id not in busy]
        if away and (snapshot.host_free or (self.cache.host_slots and self._random.random() < 0.1)):
            options["offload"] = lambda: Offload(pick(away))
        if back:
            options["load"] = lambda: Load(pick(back))
        if kept:
            options["evict_host"] = lambda: EvictHost(1)
        if self.cache.peer_slots and ready:
            options["transfer"] = lambda: Transfer(pick(ready))
        if moving:
            options["finish_copy"] = lambda: FinishCopy(pick(sorted(moving)))
            options["abort_copy"] = lambda: AbortCopy(pick(sorted(moving)))
        waiting = sorted(self.cast.retracted.keys() | self.cast.rejected.keys())
        if waiting:
            stored = [view.id for view in snapshot.waiting if view.id in waiting]
            options["cancel"] = lambda: Cancel(pick(stored or waiting))
        if self.cast.ended:
            options["end_session"] = lambda: Leave(pick(list(self.cast.ended)[-3:]))
        return options

    def _schedule(self, rows: list[str], limit: int, waiting: list[RequestView]) -> Schedule:
        """Decode rows, a chunk, or both."""
        if not limit or (waiting and self._random.random() < 0.22):
            return Schedule((), (self._chunk(self._random.choice(waiting)),))
        mixed = waiting and self._random.random() < 0.4
        return Schedule(*self._rows(rows, limit, waiting if mixed else []))

    def _rows(
        self, rows: list[str], limit: int, waiting: list[RequestView]
    ) -> tuple[tuple[str, ...], Chunks, int | None]:
        """Decode rows, a chunk of one or two of those ``waiting``, and sometimes padding.

        The rows are those of the last step without the first, or any.
        """
        stayed = [name for name in self._last_rows[1:] if name in rows][:limit]
        if not stayed or self._random.random() < 0.2:
            stayed = self._random.sample(rows, self._random.randint(1, limit))
        self._last_rows = chosen = tuple(stayed)
        count = len(chosen)
        several = self._random.sample(waiting, min(len(waiting), self._random.randint(1, 2)))
        padded = count + self._random.randint(0, 3)
        limit = self.cache.graph_rows or padded
        pad_to = min(padded, limit) if self._random.random() < 0.3 else None
        return chosen, tuple(self._chunk(view) for view in several), pad_to

    def _windows(self, live: list[RequestView], room: int) -> Windows:
        """A window each for one to three requests, of any length that ring, tokens and habits allow."""
        pick, longest = self._random.randint, self.habits.max_length
        rows = [view for view in live if view.prompt_len <= view.scheduled < longest]
        chosen = self._random.sample(rows, min(len(rows), room, pick(1, 3)))
        left, windows = room - len(chosen), []
        for view in chosen:
            most = min(self.cache.ring_length, longest - view.scheduled, 1 + left)
            window = pick(1, most)
            left -= window - 1
            windows.append((view.id, window, window if pick(0, 3) == 0 else pick(1, window)))
        return tuple(windows)

    def _chunk(self, view: RequestView) -> tuple[str, int]:
        """A chunk to the end, to the grid, or of any length where the strategy has no blocks."""
        left = view.prompt_len - view.scheduled
        to_grid = self._grid - view.scheduled % self._grid
        free = to_grid + self._grid if self.cache.strategy == "align" else self._random.randint(1, left)
        often = left if self.cache.grid > 1 else to_grid  # long edges are what prompts branch off in
        return view.id, min(left, self._random.choice((left, to_grid, often, free)))

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
        cuts = max(1, self.habits.text_tokens // self._grid)
        length = self._grid * self._random.randint(1, cuts)
        if self._random.random() < 0.25:
            length = self._random.randint(1, self.habits.text_tokens)
        shared = Passage(length, f"t{self._random.randrange(self.habits.texts)}")
        return (shared, own)
