"""Leads an engine that cannot be put back through a scope: along the reference's ways, each from its start.

The reference engine says which actions are possible and which states there are. Each of its transitions is
played on the other engine at the end of a shortest way there, on a fresh engine; every step is checked.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from replaylife.lifecycle.explore.found import NO_PARENT, Budget, Edge, Ending, Found
from replaylife.lifecycle.explore.schema import Scope
from replaylife.lifecycle.explore.search import BREAKDOWNS, Search
from replaylife.lifecycle.explore.world import factory_of
from replaylife.lifecycle.invariants import Checker
from replaylife.lifecycle.protocol import ActionRefused, CannotExpress, Engine, transit
from replaylife.lifecycle.snapshot import Violation
from replaylife.lifecycle.wander.moves import Cast, Move

MAX_STATES = 50_000


class Way(NamedTuple):
    """A way through the reference's states: ``states[i]`` is where ``moves[i]`` starts, first reached so."""

    moves: tuple[Move, ...]
    states: tuple[int, ...]


@dataclass(slots=True)
class Broken:
    """What broke in the same way: on ``count`` ways, the shortest of them ``moves``."""

    moves: tuple[Move, ...]
    violations: tuple[Violation, ...]
    breakdown: str
    count: int = 0

    @property
    def name(self) -> str:
        """The invariants, or what was raised."""
        return self.breakdown or ", ".join(
            dict.fromkeys(violation.invariant for violation in self.violations)
        )


@dataclass(slots=True)
class Led:
    """What leading an engine through a scope has seen.

    ``held`` of the ``ways`` went through to their end. On the others the engine broke something
    (``broken``) or refused what the reference took (``parted``, by reason); ``beyond`` are those not gone
    because they lead through such a place. ``lacking`` has the kinds of actions left out, and why.
    """

    reference: Found
    ways: int = 0
    gone: int = 0
    held: int = 0
    beyond: int = 0
    actions: int = 0
    broken: dict[str, Broken] = field(default_factory=dict)
    parted: Counter[str] = field(default_factory=Counter)
    lacking: dict[str, str] = field(default_factory=dict)
    ending: Ending = Ending.EXHAUSTED
    seconds: float = 0.0

    def first(self) -> Broken | None:
        """Return what broke by the shortest way."""
        return min(self.broken.values(), key=lambda broken: len(broken.moves), default=None)


class Leader:
    """Leads engines from ``build`` through the ways of a scope. ``led`` is complete as far as it has come.

    Kinds of actions that the engine does not have are left out of the scope first. What breaks only
    invariants of ``ignore`` does not end a way, and is not reported.
    """

    def __init__(
        self,
        scope: Scope,
        build: Callable[[], Engine],
        *,
        ignore: Collection[str] = (),
        symmetry: bool | None = None,
        budget: Budget | None = None,
        told: Callable[[Led], None] | None = None,
    ) -> None:
        self._build, self._ignore = build, frozenset(ignore)
        self._symmetry, self._budget, self._told = symmetry, budget or Budget(), told
        self._scope, self._model = scope, factory_of(scope).config.model
        self.led = Led(Found())
        self._closed: set[int] = set()  # states that the other engine does not reach

    def run(self) -> Led:
        """Search with the reference, then go every way. Raises ``ValueError`` if the reference breaks."""
        led, begun = self.led, time.monotonic()
        last_told = begun
        try:
            for way in self._plan():
                self._go(way)
                now = time.monotonic()
                led.seconds = now - begun
                if self._told is not None and now - last_told >= 1:
                    last_told = now
                    self._told(led)
                if self._budget.seconds is not None and led.seconds >= self._budget.seconds:
                    led.ending = Ending.BUDGET
                    break
        except KeyboardInterrupt:
            led.ending = Ending.INTERRUPTED
        led.seconds = time.monotonic() - begun
        return led

    def _plan(self) -> list[Way]:
        """Search the scope with the reference, without the kinds that the engine lacks; shortest first."""
        led, scope = self.led, self._scope
        most = min(self._budget.states or MAX_STATES, MAX_STATES)
        while True:
            edges: list[Edge] = []
            budget = Budget(states=most)
            search = Search(scope, symmetry=self._symmetry, stop=False, budget=budget, edge=edges.append)
            led.reference = found = search.run()
            if found.troubles:
                raise ValueError("the reference breaks an invariant in this scope; explore it alone first")
            lacking = self._lacking(found, edges)
            if not lacking:
                break
            actions = [kind for kind in scope.actions if kind not in lacking]
            scope = scope.model_copy(update={"actions": actions})
        ways = sorted(_ways(found, edges), key=lambda way: len(way.moves))
        led.ways, led.ending = len(ways), found.ending
        return ways

    def _lacking(self, found: Found, edges: Iterable[Edge]) -> set[str]:
        """Return the kinds that the engine says it has not, each tried where the reference first takes it."""
        first = {edge.kind: edge for edge in reversed(list(edges))}
        lacking = set()
        for kind, edge in first.items():
            engine, cast = self._build(), Cast(self._model)
            for move in (*found.path(edge.source), edge.move):
                action = cast.action(move)
                if action is None:
                    break
                try:
                    cast.listen(action, engine.apply(action))
                except CannotExpress as reason:
                    if move is edge.move:
                        lacking.add(kind)
                        self.led.lacking[kind] = str(reason)
                    break
                except (ActionRefused, *BREAKDOWNS):
                    break
        return lacking

    def _go(self, way: Way) -> None:
        """Go one way on a fresh engine, to its end or to where it stops."""
        led = self.led
        if self._closed.intersection(way.states):
            led.beyond += 1
            return
        led.gone += 1
        engine, cast = self._build(), Cast(self._model)
        checker = Checker(engine.capabilities)
        for step, move in enumerate(way.moves, start=1):
            if not self._take(engine, cast, checker, move, way.moves[:step]):
                self._closed.update(way.states[step : step + 1])
                return
        led.held += 1

    def _take(
        self, engine: Engine, cast: Cast, checker: Checker, move: Move, so_far: tuple[Move, ...]
    ) -> bool:
        """Take one move and check it; whether the way goes on."""
        led = self.led
        action = cast.action(move)
        if action is None:
            led.parted["an earlier turn ended otherwise"] += 1
            return False
        try:
            transition = transit(engine, action, len(so_far))
        except ActionRefused as reason:
            led.parted[f"{type(action).__name__.lower()} refused: {str(reason).rpartition(': ')[2]}"] += 1
            return False
        except BREAKDOWNS as error:
            self._broke(so_far, (), f"{type(error).__name__}: {error}")
            return False
        led.actions += 1
        cast.listen(action, transition.events)
        violations = tuple(v for v in checker.check(transition) if v.invariant not in self._ignore)
        if violations:
            self._broke(so_far, violations, "")
        return not violations

    def _broke(self, moves: tuple[Move, ...], violations: tuple[Violation, ...], breakdown: str) -> None:
        new = Broken(moves, violations, breakdown)
        kind = f"{type(moves[-1]).__name__}: {new.name}"
        known = self.led.broken.setdefault(kind, new)
        known.count += 1
        if len(moves) < len(known.moves):
            known.moves, known.violations = moves, violations


def _ways(found: Found, edges: list[Edge]) -> Iterator[Way]:
    """Yield ways that go over every transition at least once: those that end where no other goes on."""
    goes_on = {edge.source for edge in edges}
    for edge in edges:
        if edge.target in goes_on and _is_first(found, edge):
            continue
        states = [edge.source]
        while found.parents[states[-1]] != NO_PARENT:
            states.append(found.parents[states[-1]])
        yield Way((*found.path(edge.source), edge.move), tuple(reversed(states)))


def _is_first(found: Found, edge: Edge) -> bool:
    """Whether a transition is how its target was reached first."""
    if not edge.target:
        return False
    return found.parents[edge.target] == edge.source and found.moves[found.via[edge.target]] == edge.move
