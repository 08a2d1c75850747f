"""A run that did not hold, in plain text: for test reports, where nothing wraps and nothing is coloured."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from replaylife.lifecycle.scenario.player import Played, Verdict
from replaylife.lifecycle.snapshot import Violation
from replaylife.view.heading import Run, engine_words
from replaylife.view.look import clean, count

MAX_LATER = 8  # steps after the first violating one that are told, a line for each violation


def explanation(run: Run, verdict: Verdict, played: Sequence[Played]) -> Iterator[str]:
    """Yield the proofs of the first violating step, what broke after it, what failed, and how to see it."""
    yield f"{run.path}: {_headline(verdict)}"
    yield f"engine: {engine_words(run)}"
    if run.faults:
        yield f"faults: {', '.join(run.faults)}"
    unexpected = [id(violation) for _, violation in verdict.unexpected]
    told = 0
    for step in played:
        fresh = [violation for violation in step.fresh if id(violation) in unexpected]
        if not fresh:
            continue
        told += 1
        yield from _step(run, step, fresh, brief=told > 1)
        if told > MAX_LATER:
            yield "  (later steps are left out; the command below shows them)"
            break
    if verdict.failures:
        yield ""
        yield from (f"{run.path}:{failed.line}: {clean(failed.message)}" for failed in verdict.failures)
    yield ""
    yield f"reproduce: {shlex.join(run.command)}"


def _headline(verdict: Verdict) -> str:
    broken = {violation.invariant for _, violation in verdict.unexpected}
    parts = [f"{count(len(broken), 'invariant')} violated"] if broken else []
    if verdict.failures:
        parts.append(f"{count(len(verdict.failures), 'expectation')} failed")
    return ", ".join(parts) or "everything held"


def _step(run: Run, step: Played, fresh: Sequence[Violation], *, brief: bool) -> Iterator[str]:
    where = f"step {step.transition.step} ({step.transition.action}, {run.path}:{step.line})"
    yield ""
    yield f"{where} breaks {', '.join(dict.fromkeys(violation.invariant for violation in fresh))}"
    for violation in fresh:
        numbers = f"{violation.subject}: {violation.found}, expected {violation.expected}"
        if brief:
            yield f"  {numbers}"
            continue
        yield f"  {violation.invariant}, {numbers}"
        yield from (f"    {sentence}" for sentence in violation.proof)
