"""A world: one ledger-only engine, the conversations that visit it, and the way back to any state."""

from __future__ import annotations

from typing import NamedTuple

from replaylife.lifecycle.actions import Action, Admit, EndSession
from replaylife.lifecycle.config import CacheConfig, EngineConfig
from replaylife.lifecycle.events import AdmissionRejected, Cancelled, Finished, Released
from replaylife.lifecycle.explore.conversations import (
    IDLE,
    OVER,
    REJECTED,
    RETRACTED,
    RUNNING,
    Conversation,
    Lineage,
    Progress,
    conversations,
)
from replaylife.lifecycle.explore.kinds import KINDS
from replaylife.lifecycle.explore.memento import Memento, Saved
from replaylife.lifecycle.explore.options import Option
from replaylife.lifecycle.explore.schema import Scope
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.protocol import ActionRefused, transit
from replaylife.lifecycle.snapshot import RequestView, Snapshot, Transition

ENDS = frozenset({"finish", "abort", "retract", "commit", "arrive"})
"""Kinds of actions in which a request may end."""


class Place(NamedTuple):
    """One state of a world: the engine's, each conversation's, and how often what is bounded has happened."""

    engine: Saved
    cast: tuple[Progress, ...]
    counts: tuple[int, ...]


class World:
    """An engine and its conversations, at one state after another.

    :meth:`options` says what may be possible, :meth:`apply` does it, :meth:`save` and :meth:`load` go back.
    """

    def __init__(self, scope: Scope, faults: tuple[str, ...] = (), *, symmetry: bool | None = None) -> None:
        self.scope = scope
        self.symmetry = scope.symmetry if symmetry is None else symmetry
        self.factory = factory_of(scope, faults)
        self.engine = self.factory.build()
        self.memento = Memento(self.engine)
        self.people = conversations(scope)
        self.chunks, self.windows = tuple(scope.chunks), tuple(scope.windows)
        self.lineage = Lineage(self.factory.config.model.vocab)
        self.cast: tuple[Progress, ...] = tuple(Progress() for _ in self.people)
        self.bounded = {kind: index for index, kind in enumerate(sorted(scope.at_most))}
        self._most = tuple(scope.at_most[kind] for kind in self.bounded)
        self.counts: tuple[int, ...] = (0,) * len(self.bounded)
        self._kinds = tuple((kind, KINDS[kind]) for kind in KINDS if kind in scope.actions)
        self._who = {w.request(turn): w for w in self.people for turn in range(len(w.turns))}
        model = self.factory.config.model
        self._added = {
            (w.index, turn): w.added(turn, model.vocab, model.seed)
            for w in self.people
            for turn in range(len(w.turns))
        }
        self._tokens_before: dict[str, tuple[int, ...]] = {}

    # -- what there is -------------------------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        """The engine's present state."""
        return self.engine.snapshot()

    def who(self, request: str) -> Conversation:
        """The conversation that a request belongs to."""
        return self._who[request]

    def added(self, who: Conversation, turn: int) -> tuple[int, ...]:
        """The tokens that a turn (from 0) adds."""
        return self._added[who.index, turn]

    def idle(self) -> list[tuple[Conversation, Progress]]:
        """Conversations between two turns, or before the first."""
        return self._those(IDLE)

    def rejected(self) -> list[tuple[str, tuple[int, ...]]]:
        """Requests whose first admission was rejected, with their tokens."""
        return [(who.request(progress.turn), progress.tokens) for who, progress in self._those(REJECTED)]

    def retracted(self) -> list[tuple[str, tuple[int, ...]]]:
        """Requests whose memory was taken away, with their tokens."""
        return [(who.request(progress.turn), progress.tokens) for who, progress in self._those(RETRACTED)]

    def _those(self, status: int) -> list[tuple[Conversation, Progress]]:
        return [(who, p) for who, p in zip(self.people, self.cast, strict=True) if p.status == status]

    def may_decode(self, view: RequestView, tokens: int = 1) -> bool:
        """Whether the turn has so many decode steps left."""
        who = self._who[view.id]
        progress = self.cast[who.index]
        return view.scheduled + tokens - progress.bounds[-1][1] <= who.turns[progress.turn].decode

    def options(self) -> list[tuple[str, Option]]:
        """What may be possible now, by kind; the engine may refuse it."""
        found: list[tuple[str, Option]] = []
        for kind, moves in self._kinds:
            bound = self.bounded.get(kind)
            if bound is None or self.counts[bound] < self._most[bound]:
                found += [(kind, option) for option in moves(self)]
        return found

    # -- going on and back ---------------------------------------------------------------------------

    def apply(self, kind: str, action: Action, step: int) -> Transition:
        """Apply an action. Raises ``ActionRefused``, and changes nothing, where it is not possible."""
        requests = self.engine.requests.items() if kind in ENDS else ()
        self._tokens_before = {name: tuple(request.tokens) for name, request in requests}
        try:
            transition = transit(self.engine, action, step)
        except ActionRefused:
            raise
        except BaseException:
            self.memento.broken()
            raise
        self.memento.applied(self.engine.changed())
        self._listen(transition)
        bound = self.bounded.get(kind)
        if bound is not None:
            self.counts = (*self.counts[:bound], self.counts[bound] + 1, *self.counts[bound + 1 :])
        return transition

    def save(self) -> Place:
        """Return the present state."""
        return Place(self.memento.save(), self.cast, self.counts)

    def load(self, place: Place) -> None:
        """Go back to a state."""
        self.memento.load(place.engine)
        self.cast, self.counts = place.cast, place.counts

    def _listen(self, t: Transition) -> None:
        """Take note of who has come and gone."""
        action = t.action
        if isinstance(action, Admit):
            self._admitted(action, any(isinstance(event, AdmissionRejected) for event in t.events))
        elif isinstance(action, EndSession):
            self._set(self._who[action.request], Progress(OVER))
        for event in t.events:
            if isinstance(event, Cancelled):
                self._set(self._who[event.request], Progress(OVER))
            elif isinstance(event, Finished | Released):
                self._ended(event)

    def _admitted(self, action: Admit, rejected: bool) -> None:
        who = self._who[action.request]
        was, tokens = self.cast[who.index], action.tokens
        bounds = was.bounds
        if was.status == IDLE:
            bounds = (*bounds, (len(was.tokens), len(tokens)))
        turned_away = RETRACTED if was.status == RETRACTED else REJECTED
        self._set(who, Progress(turned_away if rejected else RUNNING, was.turn, tokens, bounds, rejected))

    def _ended(self, event: Finished | Released) -> None:
        """Keep the tokens that the host has seen, nothing cut within the prompt; none if this is the end."""
        who = self._who[event.request]
        was = self.cast[who.index]
        tokens, known = self._tokens_before.get(event.request, was.tokens), event.committed + 1
        tokens = tokens[:known] if known > len(was.tokens) else tokens
        if isinstance(event, Finished):
            more = was.turn + 1 < len(who.turns)
            progress = Progress(IDLE, was.turn + 1, tokens, was.bounds) if more else Progress(OVER)
        else:
            progress = (
                Progress(RETRACTED, was.turn, tokens, was.bounds) if event.retracted else Progress(OVER)
            )
        self._set(who, progress)

    def _set(self, who: Conversation, progress: Progress) -> None:
        self.cast = (*self.cast[: who.index], progress, *self.cast[who.index + 1 :])


def factory_of(scope: Scope, faults: tuple[str, ...] = ()) -> EngineFactory:
    """Return the recipe for a scope's engines, its own faults and ``faults`` seeded."""
    cache = CacheConfig(**scope.cache.model_dump(exclude={"profile"}))
    return EngineFactory(EngineConfig(cache=cache), tuple(dict.fromkeys((*scope.faults, *faults))))
