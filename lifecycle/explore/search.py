"""Breadth-first search through every state of a world, each transition checked."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from replaylife.lifecycle.explore.fingerprint import fingerprint_of
from replaylife.lifecycle.explore.found import Budget, Edge, Ending, Found, Mark, Trouble
from replaylife.lifecycle.explore.options import Option
from replaylife.lifecycle.explore.schema import Scope
from replaylife.lifecycle.explore.world import Place, World
from replaylife.lifecycle.invariants import Checker
from replaylife.lifecycle.protocol import ActionRefused
from replaylife.lifecycle.snapshot import Transition, Violation
from replaylife.lifecycle.wander.situations import situations_of

BREAKDOWNS = (ValueError, KeyError, RuntimeError, IndexError, AssertionError)
TICK = 1024  # transitions between two looks at the clock
BATCH = 64  # states that are gone on from before their transitions are checked


@contextmanager
def _few_collections() -> Iterator[None]:
    """Have the collector look at young objects only: the many old ones hold each other for good reason."""
    before = gc.get_threshold()
    gc.set_threshold(20_000, 1_000_000, 1_000_000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Search:
    """Explores one scope. ``found`` is complete as far as :meth:`run` has come, also after an interrupt.

    With ``stop`` the search ends at the first violation, which no shorter path has; otherwise it goes on, and
    never from a state that a violating transition leads to. ``told`` is called about every second; ``edge``
    with every transition.

    Transitions are checked some states at a time, which is faster: the same code runs on one after the other.
    Until then they are taken to be right; a batch with one that is not is undone, and gone through again
    with each transition checked before the next.
    """

    def __init__(
        self,
        scope: Scope,
        faults: tuple[str, ...] = (),
        *,
        budget: Budget | None = None,
        symmetry: bool | None = None,
        stop: bool = True,
        told: Callable[[Found], None] | None = None,
        edge: Callable[[Edge], None] | None = None,
    ) -> None:
        self.scope, self.world = scope, World(scope, faults, symmetry=symmetry)
        self.found = Found()
        self._budget, self._stop = budget or Budget(), stop
        self._told, self._edge = told, edge
        self._checker = Checker(self.world.engine.capabilities)
        self._fingerprint = fingerprint_of(self.world)
        self._seen: dict[bytes, int] = {}
        self._arrived: list[bytes] = []  # what was seen first since the batch began
        self._unchecked: list[Transition] | None = None
        self._edges: list[Edge] = []
        self._begun = self._last_told = 0.0

    def run(self) -> Found:
        """Search until nothing new can happen, something breaks, or a budget is spent."""
        self._begun = self._last_told = time.monotonic()
        try:
            with _few_collections():
                self.found.ending = self._levels()
        except KeyboardInterrupt:
            self.found.ending = Ending.INTERRUPTED
        self.found.seconds = time.monotonic() - self._begun
        return self.found

    def _levels(self) -> Ending:
        found = self.found
        self._seen[self._fingerprint()] = 0
        level = [(0, self.world.save())]
        while level:
            if self.scope.depth is not None and found.depth >= self.scope.depth:
                found.cut = len(level)
                break
            following: list[tuple[int, Place]] = []
            level.reverse()
            while level:
                batch = level[-BATCH:]
                del level[-BATCH:]  # let go of as soon as they have been gone on from
                batch.reverse()
                ending = self._advance(batch, following)
                if ending is not None:
                    return ending
            if following:
                found.depth += 1
                found.levels.append(len(following))
            level = following
        return Ending.VIOLATION if found.troubles else Ending.EXHAUSTED

    def _advance(self, batch: list[tuple[int, Place]], following: list[tuple[int, Place]]) -> Ending | None:
        """Go on from some states: at once if all goes well, else step by step."""
        mark, size, ending, well = self.found.mark(), len(following), None, False
        unchecked = self._unchecked = list[Transition]()
        self._arrived.clear()
        try:
            ending = self._expand_all(batch, following)
            well = not any(map(self._checker.check, unchecked))
        except Exception:  # a broken engine, or what comes of a broken state: it is met again below
            self.world.memento.broken()
        finally:  # an interrupt, too, leaves nothing unchecked behind
            self._unchecked = None
            if not well:
                self._undo(mark, size, following)
        if not well:
            return self._expand_all(batch, following)
        self._count_situations(unchecked)
        for edge in self._edges:
            self._tell(edge)
        self._edges.clear()
        return ending

    def _undo(self, mark: Mark, size: int, following: list[tuple[int, Place]]) -> None:
        self.found.back_to(mark)
        for key in self._arrived:
            del self._seen[key]
        del following[size:]
        self._edges.clear()

    def _tell(self, edge: Edge) -> None:
        if self._edge is not None and self._unchecked is not None:
            self._edges.append(edge)
        elif self._edge is not None:
            self._edge(edge)

    def _expand_all(
        self, batch: list[tuple[int, Place]], following: list[tuple[int, Place]]
    ) -> Ending | None:
        for number, place in batch:
            ending = self._expand(number, place, following)
            if ending is not None:
                return ending
        return None

    def _expand(self, number: int, place: Place, following: list[tuple[int, Place]]) -> Ending | None:
        """Take every action that is possible in one state."""
        world, found = self.world, self.found
        world.load(place)
        for kind, option in world.options():
            world.load(place)
            try:
                transition = world.apply(kind, option.action, found.depth + 1)
            except ActionRefused:
                found.refused += 1
                continue
            except BREAKDOWNS as error:
                if self._unchecked is not None:
                    raise
                self._count(kind)
                self._trouble(
                    Trouble(number, kind, option.move, None, (), f"{type(error).__name__}: {error}")
                )
                if self._stop:
                    return Ending.VIOLATION
                continue
            self._count(kind)
            if kind == "retry":
                found.situations["rejected-tried-again"] += 1
            violations = self._judge(transition)
            if violations:
                self._trouble(Trouble(number, kind, option.move, transition, violations))
                if self._stop:
                    return Ending.VIOLATION
                continue
            self._arrive(number, kind, option, following)
            if self._spent():
                return Ending.BUDGET
        return None

    def _judge(self, transition: Transition) -> tuple[Violation, ...]:
        if self._unchecked is not None:
            self._unchecked.append(transition)
            return ()
        self._count_situations([transition])
        return self._checker.check(transition)

    def _count_situations(self, transitions: list[Transition]) -> None:
        counts = self.found.situations
        for transition in transitions:
            for name in situations_of(transition):
                counts[name] += 1

    def _count(self, kind: str) -> None:
        self.found.transitions += 1
        self.found.kinds[kind] += 1

    def _arrive(self, number: int, kind: str, option: Option, following: list[tuple[int, Place]]) -> None:
        key = self._fingerprint()
        target = self._seen.get(key)
        if target is None:
            target = self._seen[key] = self.found.add(number, option.move)
            self._arrived.append(key)
            following.append((target, self.world.save()))
        if self._edge is not None:
            self._tell(Edge(number, target, kind, option.move))

    def _trouble(self, trouble: Trouble) -> None:
        self.found.troubles.append(trouble)
        self._tell(Edge(trouble.parent, None, trouble.kind, trouble.move))

    def _spent(self) -> bool:
        budget, found = self._budget, self.found
        if budget.states is not None and found.states >= budget.states:
            return True
        if found.transitions % TICK:
            return False
        now = time.monotonic()
        if self._told is not None and now - self._last_told >= 1:
            self._last_told, found.seconds = now, now - self._begun
            self._told(found)
        return budget.seconds is not None and now - self._begun >= budget.seconds
