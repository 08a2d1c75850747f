"""``replaylife conformance``: shipped scenarios on every engine that is installed, in one table."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from replaylife.cli.complete import complete_scenarios
from replaylife.cli.errors import CannotWork

if TYPE_CHECKING:
    from replaylife.conformance import Comparison, Difference

HELP = """Play shipped scenarios on our reference engine and on the engines that are installed, and compare.

One row for each scenario and engine: tokens taken from the tree at each admission (cached), lengths of keys
that carried a state (keys), where temporal and convolution of those stood (positions), evictions. What an
engine cannot express is skipped, with the reason. Each difference is named: a defect of theirs
(docs/findings.md), a policy that their code states (docs/sglang.md), or unexplained.

With SCENARIO only those, by name or file.

\b
Exit codes:
  0  every difference is explained
  1  a difference is unexplained, or an engine broke down
  2  no engine is installed to compare with, or a scenario cannot be read
"""


@click.command("conformance", help=HELP, context_settings={"max_content_width": 100})
@click.argument("scenarios", metavar="[SCENARIO]...", nargs=-1, shell_complete=complete_scenarios)
@click.option("--engine", "engines", multiple=True, metavar="NAME", help="Only this engine; may be repeated.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(scenarios: tuple[str, ...], engines: tuple[str, ...], form: str) -> None:
    """Compare; the parsed arguments come from click."""
    chosen = _engines(engines)
    compared = list(_compare_all(scenarios or _shipped(), chosen))
    if form == "json":
        for one in compared:
            click.echo(json.dumps(_record(one)))
    else:
        for line in _table(compared):
            click.echo(line)
    sys.exit(int(any(_unexplained(one) or _breakdowns(one) for one in compared)))


def _shipped() -> tuple[str, ...]:
    from replaylife.cli.locate import shipped_scenarios

    return tuple(shipped_scenarios())


def _engines(names: tuple[str, ...]) -> dict[str, str]:
    """Return the engines to compare with, with their titles. Raises :class:`CannotWork` if there is none."""
    from replaylife.engines import ENGINES, EngineUnavailable, adapter_of
    from replaylife.lifecycle.names import nearest

    titles: dict[str, str] = {}
    reasons: list[str] = []
    for name in names or ENGINES:
        if name not in ENGINES:
            raise CannotWork(f"no engine is named {name!r}{nearest(name, ENGINES)}")
        try:
            titles[name] = adapter_of(name).title
        except EngineUnavailable as error:
            reasons.append(f"{name}: {error}")
    if not titles or (names and reasons):
        raise CannotWork("nothing to compare with: " + "; ".join(dict.fromkeys(reasons)))
    return titles


def _compare_all(scenarios: Sequence[str], engines: dict[str, str]) -> Iterator[Comparison]:
    from replaylife.cli.locate import readable_path, scenario_file
    from replaylife.conformance import compare
    from replaylife.engines import EngineUnavailable
    from replaylife.lifecycle.scenario.errors import ScenarioError
    from replaylife.lifecycle.scenario.loader import load_scenario

    for argument in scenarios:
        with ExitStack() as stack:
            path = stack.enter_context(scenario_file(argument))
            try:
                scenario = load_scenario(path)
            except ScenarioError as error:
                readable = readable_path(path)
                raise CannotWork(f"{readable} cannot be played", readable, error.problems) from None
            for engine in engines:
                try:
                    yield compare(scenario, engine)
                except EngineUnavailable as error:
                    raise CannotWork(f"{engine}: {error}") from None


def _explained(comparison: Comparison) -> list[tuple[Difference, str]]:
    """Return each difference with the id of what explains it, empty for none."""
    from replaylife.known_differences import explanation

    named = ((difference, explanation(comparison, difference)) for difference in comparison.differences)
    return [(difference, "" if known is None else known.id) for difference, known in named]


def _unexplained(comparison: Comparison) -> list[Difference]:
    return [difference for difference, known in _explained(comparison) if not known]


def _breakdowns(comparison: Comparison) -> list[str]:
    """What ended the run on the other engine before the scenario did."""
    failures = [failed.message for failed in comparison.theirs.verdict.failures]
    return [message for message in failures if message.startswith(("refused", "the engine broke down"))]


def _record(comparison: Comparison) -> dict[str, Any]:
    return {
        "scenario": comparison.scenario,
        "engine": comparison.engine,
        "skipped": comparison.skipped,
        "admissions": len(comparison.theirs.cached),
        "keys": len(comparison.theirs.states),
        "evicted": dict(zip(("states", "kv_tokens"), comparison.theirs.evicted, strict=True)),
        "differences": [{**one._asdict(), "explained_by": known} for one, known in _explained(comparison)],
        "broke_down": _breakdowns(comparison),
        "violations": [
            {"step": step, "invariant": violation.invariant, "subject": violation.subject}
            for step, violation in comparison.theirs.verdict.violations
        ],
    }


def _table(compared: Sequence[Comparison]) -> Iterator[str]:
    from replaylife.conformance import COLUMNS

    rows = [["scenario", "engine", *COLUMNS, "why"]]
    rows += [_row(one) for one in compared if one.skipped is None]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield ""
    yield from _skipped(compared)
    yield from _reasons(compared)
    for one in compared:
        for difference in _unexplained(one):
            yield f"UNEXPLAINED {one.scenario} on {one.engine}, step {difference.step}: {_words(difference)}"
        for message in _breakdowns(one):
            yield f"BROKE DOWN {one.scenario} on {one.engine}: {message}"


def _row(comparison: Comparison) -> list[str]:
    from replaylife.conformance import COLUMNS

    theirs, explained = comparison.theirs, _explained(comparison)
    counts = Counter(difference.column for difference, _ in explained)
    states, tokens = theirs.evicted
    same = {
        "cached": "+".join("-" if taken is None else str(taken) for _, taken, _ in theirs.cached),
        "keys": f"{len(theirs.states)}",
        "positions": f"{len(theirs.states)}",
        "evictions": f"{states}/{tokens}",
    }
    if len(same["cached"]) > 24:
        same["cached"] = f"{len(theirs.cached)} admissions"
    cells = [same[name] + (f" ({counts[name]} differ)" if counts[name] else "") for name in COLUMNS]
    why = ", ".join(dict.fromkeys(known or "UNEXPLAINED" for _, known in explained))
    return [comparison.scenario, comparison.engine, *cells, why]


def _skipped(compared: Sequence[Comparison]) -> Iterator[str]:
    """List the skipped scenarios by reason; those that seed a fault of ours in one line."""
    by_reason: dict[str, list[str]] = {}
    for one in compared:
        if one.skipped is not None:
            reason = "it seeds a fault of the reference engine" if "seeds" in one.skipped else one.skipped
            by_reason.setdefault(reason, []).append(one.scenario)
    for reason, names in sorted(by_reason.items()):
        yield f"skipped, {reason}: {', '.join(dict.fromkeys(names))}"


def _reasons(compared: Sequence[Comparison]) -> Iterator[str]:
    from replaylife.known_differences import KNOWN

    used = Counter(known for one in compared for _, known in _explained(one))
    yield ""
    for known in KNOWN:
        if used[known.id]:
            yield f"{known.kind} {known.id} ({used[known.id]} differences, docs/{known.where}): {known.claim}"
    total = sum(used.values())
    yield f"{total} differences, {used['']} unexplained"


def _words(difference: Difference) -> str:
    return f"{difference.column} of {difference.subject}: ours {difference.ours}, theirs {difference.theirs}"
