"""Plays a scenario on an engine: one action at a time, every invariant after each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from replaylife.lifecycle.actions import Action
from replaylife.lifecycle.invariants import Checker
from replaylife.lifecycle.protocol import ActionRefused, CannotExpress, Engine, transit
from replaylife.lifecycle.scenario.expectations import Chronicle
from replaylife.lifecycle.scenario.loader import NumberedStep, Scenario
from replaylife.lifecycle.scenario.scene import Scene
from replaylife.lifecycle.snapshot import Transition, Violation


@dataclass(frozen=True, slots=True)
class Played:
    """One applied action. ``fresh`` are the violations whose (invariant, subject) had not occurred before."""

    line: int
    transition: Transition
    violations: tuple[Violation, ...]
    fresh: tuple[Violation, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """An expectation that does not hold, or an action that the engine refused."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Held:
    """The expectations of one step hold."""

    line: int


Outcome: TypeAlias = Played | Failed | Held


@dataclass(slots=True)
class Verdict:
    """What a whole run came to.

    ``violations`` has each (invariant, subject) once, with the step in which it first occurred.
    ``caught_at`` is the first step whose violations the scenario expected: those, and what follows from
    them, are what it set out to show.
    """

    steps: int = 0
    violations: list[tuple[int, Violation]] = field(default_factory=list)
    caught_at: int | None = None
    failures: list[Failed] = field(default_factory=list)

    @property
    def unexpected(self) -> list[tuple[int, Violation]]:
        """The violations that the scenario did not set out to show."""
        return [entry for entry in self.violations if self.caught_at is None or entry[0] < self.caught_at]

    @property
    def held(self) -> bool:
        """Whether every expectation and every invariant held, violations that were expected aside."""
        return not self.failures and not self.unexpected


class _BrokenDown(Exception):  # noqa: N818 - a finding about the engine under test
    """The engine raised something that is no answer of its protocol."""


class Player:
    """Plays one scenario on one engine.

    Iterate over :meth:`play` for the outcomes as they come; ``verdict`` is complete afterwards. A violation
    does not end the run: what it does to the next turn is what users suffer from. A refused action does,
    and so does an engine that breaks down: that is a finding, too.
    """

    def __init__(self, scenario: Scenario, engine: Engine) -> None:
        self.scenario, self.engine = scenario, engine
        self.verdict = Verdict()
        self._checker = Checker(engine.capabilities)
        self._scene = Scene(scenario.model, engine.snapshot(), Chronicle(engine.capabilities.numeric))
        self._seen: set[tuple[str, str]] = set()

    @property
    def num_actions(self) -> int:
        """Actions that the scenario will come to, as far as lengths alone tell (for a progress bar)."""
        return sum(entry.step.body.num_actions for entry in self.scenario.steps)

    def play(self) -> Iterator[Outcome]:
        """Apply every step; yield one outcome per action and per expectation."""
        for entry in self.scenario.steps:
            try:
                for action in entry.step.body.actions(self._scene):
                    yield self._apply(entry.line, action)
            except ActionRefused as refused:
                yield self._fail(entry.line, f"refused: {refused}")
                return
            except _BrokenDown as broken:
                yield self._fail(entry.line, f"the engine broke down: {broken}")
                return
            yield from self._judge(entry)

    def _fail(self, line: int, message: str) -> Failed:
        failed = Failed(line, message)
        self.verdict.failures.append(failed)
        return failed

    def run(self) -> Verdict:
        """Play to the end and return the verdict."""
        for _ in self.play():
            pass
        return self.verdict

    def _apply(self, line: int, action: Action) -> Played:
        transition = self._transit(action)
        self.verdict.steps += 1
        played = self._book(line, transition)
        scene, events = self._scene, transition.events
        scene.listen(events)
        scene.snapshot, scene.events = transition.after, events
        scene.chronicle.listen(events, transition.after.measurements)
        scene.chronicle.fresh = played.fresh
        return played

    def _transit(self, action: Action) -> Transition:
        """Apply the action; only what the engine itself raises counts as its breakdown."""
        try:
            return transit(self.engine, action, self.verdict.steps + 1)
        except CannotExpress:
            raise
        except (ValueError, RuntimeError) as error:
            raise _BrokenDown(str(error)) from error

    def _book(self, line: int, transition: Transition) -> Played:
        violations = self._checker.check(transition)
        fresh = tuple(v for v in violations if (v.invariant, v.subject) not in self._seen)
        self._seen |= {(v.invariant, v.subject) for v in fresh}
        self.verdict.violations += [(transition.step, violation) for violation in fresh]
        return Played(line, transition, violations, fresh)

    def _judge(self, entry: NumberedStep) -> Iterator[Outcome]:
        body = entry.step.body
        if body.announces_violations(self._scene) and self.verdict.caught_at is None:
            self.verdict.caught_at = self.verdict.steps
        failures = body.judge(self._scene)
        if failures is None:
            return
        failed = [Failed(entry.line, message) for message in failures]
        self.verdict.failures += failed
        yield from failed
        if not failed:
            yield Held(entry.line)
