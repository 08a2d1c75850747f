"""Tells a run as it goes: outcomes in, renderables out, uneventful decode forwards drawn together."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from replaylife.lifecycle.scenario.player import Failed, Held, Outcome, Played
from replaylife.view.heading import Run, reproduce_line
from replaylife.view.look import BAD, GOOD, GUTTER, Look, hang
from replaylife.view.step import continues, group_lines, step_lines, uneventful
from replaylife.view.violations import violation_panel


class Narrator:
    """Remembers what the reader has seen: the decode forwards not yet told, the proofs, what is broken."""

    def __init__(self, run: Run, look: Look, *, together: bool = True) -> None:
        self._run, self._look, self._together = run, look, together
        self._group: list[Played] = []
        self._proved: set[str] = set()
        self._broken: set[str] = set()

    def tell(self, outcome: Outcome) -> Iterator[RenderableType]:
        """Yield what there is to show once this outcome is known; it may be held back until the next."""
        if not isinstance(outcome, Played):
            yield from self.flush()
            yield from expectation_lines(outcome, self._run.path, self._look)
        elif uneventful(outcome):
            if self._group and not (self._together and continues(self._group[-1], outcome)):
                yield from self.flush()
            self._group.append(outcome)
            if not self._together:
                yield from self.flush()
        else:
            yield from self.flush()
            yield from self._step(outcome)

    def flush(self) -> Iterator[RenderableType]:
        """Yield what was held back."""
        group, self._group = self._group, []
        if group:
            yield Text()
            yield from group_lines(group, self._look)

    def draw_together(self) -> None:
        """From now on tell uneventful decode forwards in a row as one."""
        self._together = True

    def violations(self, played: Played) -> Iterator[RenderableType]:
        """Yield the panel of what a step broke for the first time, and how to see it again."""
        if not played.fresh:
            return
        yield violation_panel(played.transition.step, played.fresh, self._look, self._proved)
        if not self._proved:
            yield reproduce_line(self._run)
        self._proved |= {violation.invariant for violation in played.fresh}

    def _step(self, played: Played) -> Iterator[RenderableType]:
        self._broken |= {violation.subject for violation in played.violations}
        yield Text()
        yield from step_lines(played, self._look, self._broken)
        yield from self.violations(played)


def expectation_lines(outcome: Failed | Held, path: str, look: Look) -> Iterator[Text]:
    """Yield whether the scenario's expectation at this point holds, and where it is written."""
    signs = look.signs
    if isinstance(outcome, Held):
        yield Text(f"{signs.good:>{GUTTER - 2}}  as the scenario expects (line {outcome.line})", GOOD)
        return
    sign = Text(f"{signs.bad:>{GUTTER - 2}}  ", BAD)
    message = Text(f"{path}:{outcome.line}: {outcome.message}", BAD)
    for number, line in enumerate(hang(message, 0, look.width - GUTTER, deeper=2)):
        yield (sign if not number else Text(" " * GUTTER)).append_text(line)
