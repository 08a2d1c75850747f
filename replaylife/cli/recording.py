"""Records a run in a trace file, if one is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from replaylife.cli.errors import CannotWork
from replaylife.view.verdict import Ending

if TYPE_CHECKING:
    from replaylife.cli.options import Options
    from replaylife.lifecycle.protocol import Engine
    from replaylife.lifecycle.scenario.loader import Scenario
    from replaylife.lifecycle.scenario.player import Outcome, Verdict
    from replaylife.lifecycle.trace.lines import Header
    from replaylife.lifecycle.trace.writer import TraceWriter
    from replaylife.view.heading import Run


@dataclass(frozen=True, slots=True)
class Recorder:
    """Passes a run on to a trace file, or to nowhere. A file that cannot be written ends the run."""

    path: str = ""
    writer: TraceWriter | None = None

    def tell(self, outcome: Outcome) -> None:
        """Record one outcome. Raises :class:`CannotWork` if it cannot be written."""
        if self.writer is not None:
            with _said(self.path):
                self.writer.tell(outcome)

    def end(self, verdict: Verdict, ending: Ending) -> None:
        """Record what the run came to. Raises :class:`CannotWork` if it cannot be written."""
        if self.writer is not None:
            with _said(self.path):
                self.writer.end(verdict, ending)


@contextmanager
def recording(options: Options, scenario: Scenario, run: Run, engine: Engine) -> Iterator[Recorder]:
    """Yield what records the run; the file is opened now and closed, however the run ends."""
    if options.trace is None:
        yield Recorder()
        return
    from replaylife.lifecycle.trace.errors import TraceExists
    from replaylife.lifecycle.trace.writer import TraceWriter

    try:
        with _said(options.trace):
            header = _header(scenario, run, engine)
            writer = TraceWriter(Path(options.trace), header, force=options.force)
    except TraceExists as error:
        raise CannotWork(f"--trace {error}") from None
    with writer:
        yield Recorder(options.trace, writer)


@contextmanager
def _said(path: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CannotWork(f"--trace {path}: cannot be written: {error.strerror or error}") from None


def _header(scenario: Scenario, run: Run, engine: Engine) -> Header:
    from replaylife.lifecycle.trace.lines import Header

    return Header(
        tool=f"replaylife {version('replaylife')}",
        scenario=run.name,
        title=run.title,
        path=run.path,
        digest=scenario.digest,
        seed=run.config.model.seed,
        capabilities=engine.capabilities,
        config=run.config,
        faults=run.faults,
        command=run.command,
        engine=run.engine,
    )
