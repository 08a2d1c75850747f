"""What ``replaylife explore`` says of a search: for people, and for programs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from replaylife.lifecycle.explore.found import Ending, never
from replaylife.lifecycle.explore.graph import words

if TYPE_CHECKING:
    from replaylife.lifecycle.explore.counterexample import Counterexample
    from replaylife.lifecycle.explore.found import Found
    from replaylife.lifecycle.explore.schema import Scope
    from replaylife.lifecycle.snapshot import Violation
    from replaylife.lifecycle.wander.moves import Move

ENDINGS = {
    Ending.EXHAUSTED: "every state was seen, and nothing is broken",
    Ending.VIOLATION: "an invariant is violated",
    Ending.BUDGET: "stopped at its budget, nothing found",
    Ending.INTERRUPTED: "interrupted, nothing found so far",
}


def listing() -> str:
    """Return the shipped scopes, a line each."""
    from replaylife.lifecycle.explore.loader import shipped_scope, shipped_scopes

    names = shipped_scopes()
    width = max(map(len, names))
    return "\n".join(f"{name:{width}}  {shipped_scope(name).title}" for name in names)


def json_report(
    name: str,
    scope: Scope,
    faults: tuple[str, ...],
    found: Found,
    example: Counterexample | None,
    code: int,
    options: dict[str, Any],
) -> str:
    """Return one JSON object."""
    return json.dumps(
        {
            "type": "exploration",
            "scope": name,
            "title": scope.title,
            "faults": [*scope.faults, *faults],
            "symmetry": scope.symmetry and not options["no_symmetry"],
            "ending": found.ending.value,
            "exit_code": code,
            "states": found.states,
            "transitions": found.transitions,
            "depth": found.depth,
            "levels": found.levels,
            "cut": found.cut,
            "seconds": round(found.seconds, 3),
            "actions": dict(sorted(found.kinds.items())),
            "situations": {key: count for key, count in found.situations.items() if count},
            "never": never(scope, found),
            "violations": [] if example is None else list(_violations(example)),
        }
    )


def _violations(example: Counterexample) -> Iterator[dict[str, Any]]:
    common = {"moves": [words(move) for move in example.moves], "scenario": example.scenario}
    if example.breakdown:
        yield {**common, "invariant": None, "breakdown": example.breakdown}
    for violation in example.violations:
        yield {**common, **violation_json(violation), "breakdown": None}


def violation_json(violation: Violation) -> dict[str, Any]:
    """Return a violation as an object."""
    return {
        "invariant": violation.invariant,
        "subject": violation.subject,
        "found": violation.found,
        "expected": violation.expected,
        "proof": list(violation.proof),
    }


def text_report(
    name: str,
    scope: Scope,
    faults: tuple[str, ...],
    found: Found,
    example: Counterexample | None,
    code: int,
    options: dict[str, Any],
) -> str:
    """Return the report for people."""
    return "\n".join(_lines(name, scope, faults, found, example, code, options))


def _lines(
    name: str,
    scope: Scope,
    faults: tuple[str, ...],
    found: Found,
    example: Counterexample | None,
    code: int,
    options: dict[str, Any],
) -> Iterator[str]:
    yield f"{name}: {scope.title}"
    if seeded := [*scope.faults, *faults]:
        yield f"faults      {', '.join(seeded)}"
    yield f"states      {found.states:,} distinct, {found.transitions:,} transitions, depth {found.depth}"
    rate = f", {found.states / found.seconds:,.0f} states/s" if found.seconds > 0.1 else ""
    yield f"time        {found.seconds:.1f} s{rate}"
    yield from _wrapped("actions", found.kinds)
    yield from _wrapped("situations", {key: count for key, count in found.situations.items() if count})
    missing = never(scope, found)
    if missing and not found.troubles:
        yield f"never       {', '.join(missing)}"
    if found.cut:
        yield f"cut         {found.cut:,} states at depth {found.depth}, the scope's, were not gone on from"
    if example is not None:
        yield from _story(example, options)
    verdict = ENDINGS[found.ending]
    if missing and found.ending is Ending.EXHAUSTED:
        verdict = "every state was seen, and situations that the scope must reach never came about"
    yield ""
    yield f"{'✓' if code == 0 else '✗' if code == 1 else '·'} {name}: {verdict} (exit code {code})"


def _wrapped(head: str, counts: Any) -> Iterator[str]:
    """Counts in lines of about 100 characters under one head; nothing where there are none."""
    if not counts:
        return
    line = f"{head:11}"
    for key, count in sorted(counts.items()):
        part = f" {key} {count:,}"
        if len(line) + len(part) > 100:
            yield line
            line = " " * 11
        line += part
    yield line


def _story(example: Counterexample, options: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield f"the shortest way there, {len(example.moves)} actions:"
    yield from way_lines(example.moves, example.violations, example.breakdown)
    yield ""
    if options["out"] is not None:
        yield f"reproduce: replaylife run {shlex.quote(options['out'])}"
    else:
        yield "as a scenario (--out FILE writes it, 'replaylife run FILE' plays it):"
        yield ""
        yield from (f"  {line}" for line in example.scenario.splitlines())


def way_lines(moves: Sequence[Move], violations: Sequence[Violation], breakdown: str = "") -> Iterator[str]:
    """A way, move by move, and what it comes to."""
    yield from (f"  {number:3}  {words(move)}" for number, move in enumerate(moves, start=1))
    if breakdown:
        yield f"  the engine breaks down: {breakdown}"
    for violation in violations:
        numbers = f"{violation.found}, expected {violation.expected}"
        yield from ("", f"  {violation.invariant}, {violation.subject}: {numbers}")
        yield from (f"    {sentence}" for sentence in violation.proof)
