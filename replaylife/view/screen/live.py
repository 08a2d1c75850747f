"""A run that is still going on, as pages: what has been played so far can be turned back to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from replaylife.lifecycle.scenario.player import Failed, Held, Played
from replaylife.lifecycle.snapshot import Transition, Violation
from replaylife.lifecycle.trace.causes import Causes
from replaylife.lifecycle.trace.chain import Chain
from replaylife.view.book import Page, line_words
from replaylife.view.subject import Subject


class LivePages:
    """The pages of a run so far; ``note`` and ``going_on`` as in any source."""

    def __init__(self) -> None:
        self._pages: list[Page] = []
        self._causes = Causes()
        self.violating: list[int] = []
        self.going_on = True
        self.note = ""

    first = 1

    @property
    def last(self) -> int:
        """The last step played."""
        return len(self._pages)

    def add(self, played: Played) -> Page:
        """Take a step that has just been played."""
        page = Page(played)
        self._pages.append(page)
        self._causes.follow(played.transition, played.fresh)
        if played.fresh:
            self.violating.append(page.step)
        return page

    def judge(self, judged: Failed | Held) -> None:
        """Take what an expectation after the last step came to."""
        if self._pages:
            page = self._pages[-1]
            self._pages[-1] = Page(page.played, (*page.judged, judged))

    def page(self, step: int) -> Page:
        """Return a step's page. Raises ``LookupError`` for a step that has not been played."""
        if not 1 <= step <= len(self._pages):
            raise LookupError(f"step {step} has not been played")
        return self._pages[step - 1]

    def change(self, subject: Subject, step: int, *, forward: bool) -> int | None:
        """Return the nearest step played that changes ``subject``."""
        return next((n for n in self._away(step, forward) if subject.changes_in(self._played(n))), None)

    def find(self, words: str, step: int, *, forward: bool) -> int | None:
        """Return the nearest step played whose action or events have ``words``."""
        wanted = words.casefold()
        return next((n for n in self._away(step, forward) if wanted in _words(self._played(n))), None)

    def chain(self, step: int, violation: Violation) -> Chain | None:
        """Return the causes of a violation, and what has come of it so far."""
        return self._causes.of.get((step, violation.invariant, violation.subject))

    def _played(self, step: int) -> Transition:
        return self._pages[step - 1].played.transition

    def _away(self, step: int, forward: bool) -> Iterable[int]:
        return range(step + 1, self.last + 1) if forward else range(min(step, self.last + 1) - 1, 0, -1)


def _words(t: Transition) -> str:
    parts = [{"type": type(part).__name__, **asdict(part)} for part in (t.action, *t.events)]
    return line_words({"action": parts[0], "events": parts[1:]}).casefold()
