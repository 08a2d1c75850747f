"""Broken invariants: the contradiction in numbers, and the proof of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from replaylife.lifecycle.snapshot import Measurement, Violation
from replaylife.view.look import BAD, BOLD, DIM, GUTTER, Look, count, joined, under_gutter

MAX_SHOWN = 12
KEYWORDS = ("Let", "Then", "Contradiction")


def violation_panel(
    step: int, violations: Sequence[Violation], look: Look, proved: Collection[str] = ()
) -> RenderableType:
    """Return a panel with what was found, what was expected, and the proof of each violation.

    Invariants in ``proved`` have had a proof in this run; theirs is the line with the two numbers.
    """
    lines: list[Text] = []
    told, was_brief = set(proved), False
    for violation in violations[:MAX_SHOWN]:
        brief = violation.invariant in told
        if lines and not (brief and was_brief):
            lines.append(Text())
        was_brief = brief
        lines += _brief(violation) if brief else _proof(violation)
        told.add(violation.invariant)
    if len(violations) > MAX_SHOWN:
        more = count(len(violations) - MAX_SHOWN, "more violation")
        lines += [Text(), Text(f"and {more}; --format json has them all", DIM)]
    panel = Panel(
        joined(lines, "\n"),
        title=_title(step, violations, look),
        title_align="left",
        border_style=BAD,
        box=box.ROUNDED,
        width=look.width - GUTTER,
    )
    return Padding(panel, (0, 0, 0, GUTTER), expand=False)


def _title(step: int, violations: Sequence[Violation], look: Look) -> Text:
    broken = list(dict.fromkeys(violation.invariant for violation in violations))
    what = broken[0] if len(broken) == 1 else count(len(broken), "invariant")
    return Text(f"{look.signs.bad} step {step} breaks {what}", BAD)


def _brief(violation: Violation) -> list[Text]:
    return [_numbers(violation, f"{violation.invariant}, {violation.subject}")]


def _numbers(violation: Violation, subject: str) -> Text:
    return Text.assemble(
        (subject, BOLD), ": ", (violation.found, BAD), ", expected ", (violation.expected, BOLD)
    )


def _proof(violation: Violation) -> list[Text]:
    lines = [_numbers(violation, violation.subject)]
    for sentence in violation.proof:
        text = Text(sentence)
        for word in KEYWORDS:
            if sentence.startswith(word):
                text.stylize(BOLD, 0, len(word))
        lines.append(text)
    return lines


def standing_lines(
    violations: Iterable[Violation], look: Look, measured: Iterable[Measurement]
) -> Iterator[Text]:
    """Say what was broken before and still is: invariants by subject, and how far the logits are off."""
    by_subject: dict[str, dict[str, None]] = {}
    for violation in violations:
        by_subject.setdefault(violation.subject, {})[violation.invariant] = None
    if not by_subject:
        return
    parts = [f"{subject}: {', '.join(invariants)}" for subject, invariants in by_subject.items()]
    shown = parts[:MAX_SHOWN] + ([f"and {len(parts) - MAX_SHOWN} more"] if len(parts) > MAX_SHOWN else [])
    yield from under_gutter(
        Text("still broken  " + f" {look.signs.dot} ".join(shown), "red"), look, deeper=14
    )
    logits = [m for m in measured if m.kind == "logits" and m.exceeded]
    if logits:
        worst = max(logits, key=lambda m: m.error)
        times = f"{worst.error / worst.tolerance:,.0f} times the tolerance"
        text = f"logits part from the cold run's by up to {times} (position {worst.position})"
        yield from under_gutter(Text(text, "red"), look, deeper=14)
