"""Plays a scenario on an engine: one action at a time, every invariant after each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from replaylife.lifecycle.actions import (
    Abort,
    Action,
    Admit,
    Checkpoint,
    EvictKv,
    EvictStates,
    Finish,
    Flush,
    Forward,
    Prefill,
    Probe,
    Retract,
)
from replaylife.lifecycle.events import Decoded, Event, Matched, Prefilled
from replaylife.lifecycle.invariants import Checker
from replaylife.lifecycle.protocol import ActionRefused, Engine
from replaylife.lifecycle.scenario import schema
from replaylife.lifecycle.scenario.expectations import Chronicle, judge
from replaylife.lifecycle.scenario.loader import NumberedStep, Scenario
from replaylife.lifecycle.scenario.prompts import prompt_tokens
from replaylife.lifecycle.snapshot import Transition, Violation

_OF_REQUEST: dict[str, type[Checkpoint | Finish | Flush | Retract | Abort]] = {
    "checkpoint": Checkpoint,
    "finish": Finish,
    "fold": Flush,
    "retract": Retract,
    "abort": Abort,
}


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


class Player:
    """Plays one scenario on one engine.

    Iterate over :meth:`play` for the outcomes as they come; ``verdict`` is complete afterwards. A violation
    does not end the run: what it does to the next turn is what users suffer from. A refused action does.
    """

    def __init__(self, scenario: Scenario, engine: Engine) -> None:
        self.scenario, self.engine = scenario, engine
        self.verdict = Verdict()
        self._checker = Checker(engine.capabilities)
        self._transcripts: dict[str, list[int]] = {}
        self._chronicle = Chronicle(numeric=engine.capabilities.numeric)
        self._seen: set[tuple[str, str]] = set()

    @property
    def num_actions(self) -> int:
        """Actions that the scenario will come to, as far as lengths alone tell (for a progress bar)."""
        steps = [entry.step for entry in self.scenario.steps]
        decodes = sum(step.decode.n for step in steps if step.decode is not None)
        prefills = sum(len(step.prefill.chunks or [0]) for step in steps if step.prefill is not None)
        others = sum(step.decode is None and step.prefill is None and step.expect is None for step in steps)
        return decodes + prefills + others

    def play(self) -> Iterator[Outcome]:
        """Apply every step; yield one outcome per action and per expectation."""
        for entry in self.scenario.steps:
            if entry.step.expect is not None:
                yield from self._judge(entry.line, entry.step.expect)
                continue
            try:
                for action in self._actions(entry):
                    played = self._apply(entry.line, action)
                    yield played
                    if entry.step.match is not None:
                        yield from self._judge_match(entry.line, entry.step.match, played)
            except ActionRefused as refused:
                failed = Failed(entry.line, f"refused: {refused}")
                self.verdict.failures.append(failed)
                yield failed
                return

    def run(self) -> Verdict:
        """Play to the end and return the verdict."""
        for _ in self.play():
            pass
        return self.verdict

    def _actions(self, entry: NumberedStep) -> Iterator[Action]:
        step = entry.step
        if step.admit is not None:
            yield self._admission(step.admit)
        elif step.resume is not None:
            yield Admit(step.resume.request, tuple(self._transcripts[step.resume.request]))
        elif step.prefill is not None:
            yield from self._chunks(step.prefill)
        elif step.decode is not None:
            yield from (Forward((step.decode.request,)) for _ in range(step.decode.n))
        elif step.evict is not None and step.evict.states is not None:
            yield EvictStates(step.evict.states)
        elif step.evict is not None and step.evict.kv_tokens is not None:
            yield EvictKv(step.evict.kv_tokens)
        elif step.match is not None:
            yield Probe(self._prompt(step.match, "match"))
        else:
            named = {name: of for name in _OF_REQUEST if (of := getattr(step, name)) is not None}
            yield from (_OF_REQUEST[name](of.request) for name, of in named.items())

    def _admission(self, step: schema.Admit) -> Admit:
        tokens = self._prompt(step, step.request)
        self._transcripts[step.request] = list(tokens)
        return Admit(step.request, tokens)

    def _prompt(self, step: schema.Admit | schema.Match, owner: str) -> tuple[int, ...]:
        model = self.scenario.model
        before = [] if step.continues is None else self._transcripts[step.continues]
        return (*before, *prompt_tokens(step.prompt, owner, model.vocab, model.seed))

    def _chunks(self, step: schema.Prefill) -> Iterator[Prefill]:
        if step.chunks is not None:
            yield from (Prefill(step.request, count) for count in step.chunks)
            return
        request = self.engine.snapshot().request(step.request)
        if request is None:
            raise ActionRefused(f"prefill {step.request}: it is not running (its admission was rejected)")
        yield Prefill(step.request, request.prompt_len - request.executed)

    def _apply(self, line: int, action: Action) -> Played:
        before = self.engine.snapshot()
        events = self.engine.apply(action)
        self.verdict.steps += 1
        transition = Transition(
            step=self.verdict.steps,
            before=before,
            action=action,
            events=events,
            after=self.engine.snapshot(),
            changed=self.engine.changed(),
        )
        self._listen(events)
        played = self._book(line, transition)
        self._chronicle.listen(events, transition.after.measurements)
        self._chronicle.fresh = played.fresh
        return played

    def _listen(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, Decoded | Prefilled):
                sampled = [] if event.sampled is None else [event.sampled]
                self._transcripts[event.request].extend(sampled)

    def _book(self, line: int, transition: Transition) -> Played:
        violations = self._checker.check(transition)
        fresh = tuple(v for v in violations if (v.invariant, v.subject) not in self._seen)
        self._seen |= {(v.invariant, v.subject) for v in fresh}
        self.verdict.violations += [(transition.step, violation) for violation in fresh]
        return Played(line, transition, violations, fresh)

    def _judge_match(self, line: int, step: schema.Match, played: Played) -> Iterator[Outcome]:
        met = next(event for event in played.transition.events if isinstance(event, Matched))
        wanted = {"key-value": (met.kv_len, step.kv), "state": (met.state_len, step.state)}
        wrong = [(what, *pair) for what, pair in wanted.items() if pair[1] is not None and pair[0] != pair[1]]
        failed = [
            Failed(line, f"match: {what} found {found}, expected {want}") for what, found, want in wrong
        ]
        yield from self._book_failures(line, failed)

    def _book_failures(self, line: int, failed: list[Failed]) -> Iterator[Outcome]:
        self.verdict.failures += failed
        if not failed:
            yield Held(line)
        yield from failed

    def _judge(self, line: int, expect: schema.Expect) -> Iterator[Outcome]:
        announced = expect.violations or (expect.numeric and self._chronicle.numeric)
        if announced and self.verdict.caught_at is None:
            self.verdict.caught_at = self.verdict.steps
        failures = judge(expect, self.engine.snapshot(), self._chronicle)
        yield from self._book_failures(line, [Failed(line, message) for message in failures])
