"""Plays a scenario in one call: what users' own tests, and the pytest plugin, are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from replaylife.building import build_engine
from replaylife.cli.errors import CannotWork
from replaylife.cli.locate import scenario_file
from replaylife.cli.options import Options, prepare
from replaylife.engines import EngineUnavailable
from replaylife.lifecycle.scenario.loader import Scenario
from replaylife.lifecycle.scenario.player import Played, Player, Verdict
from replaylife.lifecycle.snapshot import Snapshot, Transition, Violation
from replaylife.view.explanation import explanation
from replaylife.view.heading import REFERENCE, Run


class Found(NamedTuple):
    """A violation, and the step (from 1) in which this invariant and subject first broke."""

    step: int
    violation: Violation


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """What a played scenario came to.

    ``steps`` are the applied actions, each with the engine's snapshot before and after; ``violations`` each
    (invariant, subject) once, those that the scenario expects included; ``failures`` the expectations that
    do not hold, as ``file:line: message``.
    """

    run: Run
    verdict: Verdict
    played: tuple[Played, ...]

    @property
    def held(self) -> bool:
        """Whether every expectation and every invariant held, violations that were expected aside."""
        return self.verdict.held

    @property
    def steps(self) -> tuple[Transition, ...]:
        """The applied actions in order."""
        return tuple(played.transition for played in self.played)

    @property
    def violations(self) -> tuple[Found, ...]:
        """What broke, in order."""
        return tuple(Found(step, violation) for step, violation in self.verdict.violations)

    @property
    def failures(self) -> tuple[str, ...]:
        """The expectations that do not hold."""
        return tuple(f"{self.run.path}:{failed.line}: {failed.message}" for failed in self.verdict.failures)

    @property
    def snapshot(self) -> Snapshot:
        """The state after the last step."""
        return self.played[-1].transition.after

    @property
    def explanation(self) -> str:
        """The proofs, the failed expectations and the command that repeats the run, as plain text."""
        return "\n".join(explanation(self.run, self.verdict, self.played))

    def __repr__(self) -> str:
        return f"<Result of {self.explanation.splitlines()[0]}>"

    def assert_held(self) -> None:
        """Raise ``AssertionError`` with the explanation unless everything held."""
        __tracebackhide__ = True  # pytest then shows the line of the test
        assert self.held, f"\n{self.explanation}"


def play(
    scenario: str | Path,
    *,
    engine: str = REFERENCE,
    backend: str = "none",
    device: str = "auto",
    faults: Iterable[str] = (),
) -> Result:
    """Play a scenario, a shipped one by name or a file by path, and check every invariant after each step.

    ``engine`` is ``reference`` or the name of an adapter (``sglang``). ``backend`` is ``none`` (ledger only),
    ``torch`` or ``triton``; ``faults`` are seeded beside the scenario's own. Raises
    :class:`~replaylife.lifecycle.scenario.errors.ScenarioError` for a file that cannot be played and
    ``ValueError`` for arguments that cannot be met here.
    """
    options = Options(engine=engine, backend=backend, device=device, faults=tuple(faults))
    try:
        options.check()
        with scenario_file(str(scenario)) as path:
            loaded, run = prepare(str(scenario), path, options)
        return play_loaded(loaded, run)
    except CannotWork as error:
        raise ValueError(error.message) from None
    except EngineUnavailable as error:
        raise ValueError(str(error)) from None


def play_loaded(scenario: Scenario, run: Run) -> Result:
    """Play a scenario that has been read."""
    player = Player(scenario, build_engine(run))
    played = tuple(_actions(player))
    return Result(run, player.verdict, played)


def _actions(player: Player) -> Iterator[Played]:
    for outcome in player.play():
        if isinstance(outcome, Played):
            yield outcome
