"""Plays one scenario from file to summary, and tells a reporter."""

from __future__ import annotations

import os
from typing import Protocol

from replaylife.building import build_engine
from replaylife.cli.errors import CannotWork, wants_traceback
from replaylife.cli.locate import readable_path, scenario_file
from replaylife.cli.options import Options, prepare
from replaylife.cli.recording import Recorder, recording
from replaylife.engines import EngineUnavailable
from replaylife.lifecycle.engine import ReferenceEngine
from replaylife.lifecycle.invariants import Checker
from replaylife.lifecycle.protocol import CannotExpress, Engine
from replaylife.lifecycle.scenario.errors import ScenarioError
from replaylife.lifecycle.scenario.loader import Scenario
from replaylife.lifecycle.scenario.player import Outcome, Played, Player
from replaylife.view.heading import Run
from replaylife.view.verdict import Ending, Summary, Tally


class Stop(Exception):  # noqa: N818 - a wish, not an error
    """The user has seen enough."""


class Reporter(Protocol):
    """What shows a run to somebody."""

    def begin(self, run: Run, num_actions: int) -> None:
        """Show what is about to be played; ``num_actions`` is an estimate."""
        ...

    def tell(self, outcome: Outcome) -> None:
        """Show one outcome. May raise :class:`Stop`."""
        ...

    def end(self, summary: Summary) -> None:
        """Show what the run came to; called once after ``begin``, however the run ended."""
        ...

    def cannot(self, argument: str, error: CannotWork) -> None:
        """Show that a scenario could not be played (to its end)."""
        ...

    def close(self, results: list[tuple[str, int, str]]) -> None:
        """Show what all runs came to: name, exit code, headline of each."""
        ...


def play_file(argument: str, options: Options, reporter: Reporter) -> Summary:
    """Find, read and play one scenario. Raises :class:`CannotWork` when that cannot be done."""
    with scenario_file(argument) as path:
        try:
            scenario, run = prepare(argument, path, options)
        except ScenarioError as error:
            readable = readable_path(path)
            raise CannotWork(f"{readable} cannot be played", readable, error.problems) from None
        except CannotExpress as error:
            raise CannotWork(f"{path.stem} cannot be played on {options.engine}: {error}") from None
        engine = _build(run)
        with recording(options, scenario, run, engine) as recorder:
            return _play(scenario, run, engine, reporter, recorder)


def _play(scenario: Scenario, run: Run, engine: Engine, reporter: Reporter, recorder: Recorder) -> Summary:
    player, tally = Player(scenario, engine), Tally()
    ending: Ending = "complete"
    reporter.begin(run, player.num_actions)
    try:
        for outcome in player.play():
            _count(tally, outcome)
            recorder.tell(outcome)
            reporter.tell(outcome)
    except KeyboardInterrupt:
        ending = "interrupted"
    except Stop:
        ending = "stopped"
    except CannotExpress as error:
        raise CannotWork(f"{run.name}: step {player.verdict.steps + 1} cannot be played: {error}") from None
    except (BrokenPipeError, CannotWork):
        raise
    except Exception as error:
        if wants_traceback(os.environ):
            raise
        raise CannotWork.internal(error, f"{run.name}, step {player.verdict.steps + 1}") from None
    recorder.end(player.verdict, ending)
    summary = Summary(
        run=run,
        verdict=player.verdict,
        tally=tally,
        num_invariants=len(Checker(engine.capabilities).invariants),
        launches=_launches(engine),
        ending=ending,
    )
    reporter.end(summary)
    return summary


def _build(run: Run) -> Engine:
    try:
        return build_engine(run)
    except (CannotExpress, EngineUnavailable) as error:
        raise CannotWork(f"{run.name} cannot be played on {run.engine}: {error}") from None
    except (ValueError, RuntimeError, ImportError) as error:
        raise CannotWork(f"{run.name}: no engine on backend {run.config.backend}: {error}") from None


def _count(tally: Tally, outcome: Outcome) -> None:
    if isinstance(outcome, Played):
        transition = outcome.transition
        tally.count(transition.step, outcome.line, transition.after.measurements)
    else:
        tally.judged.add(outcome.line)


def _launches(engine: Engine) -> dict[str, int]:
    """Return how often each kernel of ours ran; nothing where there are none."""
    tensors = engine.store.pool.tensors if isinstance(engine, ReferenceEngine) else None
    return {} if tensors is None else dict(tensors.kernels.launches)
