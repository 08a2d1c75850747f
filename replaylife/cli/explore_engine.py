"""``replaylife explore --engine``: lead another project's engine through a scope, and say what came of it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from replaylife.cli.errors import EXIT_BUDGET, EXIT_INTERRUPTED, CannotWork
from replaylife.cli.explore_report import violation_json, way_lines
from replaylife.lifecycle.explore.found import Budget, Ending
from replaylife.lifecycle.explore.graph import words
from replaylife.lifecycle.explore.led import Leader
from replaylife.lifecycle.explore.world import factory_of
from replaylife.lifecycle.wander.shrink import as_scenario

if TYPE_CHECKING:
    from replaylife.lifecycle.explore.led import Broken, Led
    from replaylife.lifecycle.explore.schema import Scope
    from replaylife.lifecycle.protocol import Engine

NOT_HERE = ("graph", "trace")


def explore_engine(name: str, scope: Scope, faults: tuple[str, ...], options: dict[str, Any]) -> int:
    """Lead the engine, print the report, write ``--out``; return the exit code."""
    engine, form = options["engine"], options["form"]
    _check(scope, faults, options)
    title, build = _builder(engine, scope)
    try:
        led = Leader(
            scope,
            build,
            ignore=options["ignored"],
            symmetry=False if options["no_symmetry"] else None,
            budget=Budget(options["max_states"], options["max_seconds"]),
            told=_progress(),
        ).run()
    except ValueError as error:
        raise CannotWork(str(error)) from None
    code = _exit_code(led)
    scenario = _scenario(scope, led, options)
    report = _json_report if form == "json" else _text_report
    click.echo(report(name, title, led, code, options, scenario))
    return code


def _builder(engine: str, scope: Scope) -> tuple[str, Callable[[], Engine]]:
    from replaylife.engines import ENGINES, EngineUnavailable, adapter_of
    from replaylife.lifecycle.names import nearest

    if engine not in ENGINES:
        raise CannotWork(f"--engine {engine}: there is no such engine{nearest(engine, ENGINES)}")
    adapter, config = adapter_of(engine), factory_of(scope).config
    reason = adapter.inexpressible(config)
    if reason is not None:
        raise CannotWork(f"--engine {engine} cannot express this scope: {reason}")
    try:
        title = adapter.title
    except EngineUnavailable as error:
        raise CannotWork(f"--engine {engine}: {error}") from None
    return title, lambda: adapter.build(config)


def _check(scope: Scope, faults: tuple[str, ...], options: dict[str, Any]) -> None:
    from replaylife.lifecycle.invariants import INVARIANTS
    from replaylife.lifecycle.names import nearest

    seeded = [*scope.faults, *faults]
    if seeded:
        raise CannotWork(f"{', '.join(seeded)}: a fault is of the reference engine's code, not of --engine")
    for option in NOT_HERE:
        if options[option] is not None:
            raise CannotWork(f"--{option} is for the reference engine, not for --engine")
    for ignored in options["ignored"]:
        if ignored not in INVARIANTS:
            raise CannotWork(f"--ignore {ignored}: there is no such invariant{nearest(ignored, INVARIANTS)}")


def _exit_code(led: Led) -> int:
    if led.broken:
        return 1
    if led.ending is Ending.INTERRUPTED:
        return EXIT_INTERRUPTED
    return EXIT_BUDGET if led.ending is Ending.BUDGET else 0


def _scenario(scope: Scope, led: Led, options: dict[str, Any]) -> str | None:
    """Return what broke by the shortest way as a scenario, written to ``--out`` if that was given."""
    first = led.first()
    if first is None:
        return None
    title = f"{first.name} after {len(first.moves)} actions, found by exploring"
    scenario = as_scenario(factory_of(scope).config, (), list(first.moves), title)
    if options["out"] is not None:
        try:
            Path(options["out"]).write_text(scenario, encoding="utf-8")
        except OSError as error:
            raise CannotWork(f"--out {options['out']}: cannot be written: {error.strerror}") from None
    return scenario


def _progress() -> Callable[[Led], None] | None:
    """Return what shows on stderr how far it is; nothing where stderr is no terminal."""
    from rich.console import Console

    if not Console(stderr=True).is_terminal:
        return None
    return lambda led: click.echo(
        f"{led.gone + led.beyond:,} of {led.ways:,} ways, {led.actions:,} actions, {led.seconds:.0f} s",
        err=True,
    )


def _json_report(
    name: str, title: str, led: Led, code: int, options: dict[str, Any], scenario: str | None
) -> str:
    broken = sorted(led.broken.values(), key=lambda b: len(b.moves))
    return json.dumps(
        {
            "type": "led exploration",
            "scope": name,
            "engine": options["engine"],
            "title": title,
            "ending": led.ending.value,
            "exit_code": code,
            "states": led.reference.states,
            "transitions": led.reference.transitions,
            "ways": led.ways,
            "gone": led.gone,
            "held": led.held,
            "beyond": led.beyond,
            "actions": led.actions,
            "seconds": round(led.seconds, 3),
            "ignored": list(options["ignored"]),
            "lacking": led.lacking,
            "parted": dict(led.parted),
            "broken": [_as_json(each) for each in broken],
            "scenario": scenario,
        }
    )


def _as_json(broken: Broken) -> dict[str, Any]:
    return {
        "ways": broken.count,
        "moves": [words(move) for move in broken.moves],
        "breakdown": broken.breakdown or None,
        "violations": [violation_json(violation) for violation in broken.violations],
    }


def _text_report(
    name: str, title: str, led: Led, code: int, options: dict[str, Any], scenario: str | None
) -> str:
    return "\n".join(_lines(name, title, led, code, options, scenario))


def _lines(
    name: str, title: str, led: Led, code: int, options: dict[str, Any], scenario: str | None
) -> Iterator[str]:
    found = led.reference
    yield f"{name} on {title}"
    yield f"reference   {found.states:,} states, {found.transitions:,} transitions, depth {found.depth}"
    yield f"played      {led.gone:,} of {led.ways:,} ways, {led.actions:,} actions, {led.seconds:.0f} s"
    yield f"held        {led.held:,} ways to their end"
    if led.beyond:
        yield f"beyond      {led.beyond:,} ways lead through what broke or parted, and were not gone"
    for kind, reason in led.lacking.items():
        yield f"left out    {kind} ({reason.partition(': ')[2] or reason})"
    for reason, count in led.parted.most_common():
        yield f"parted      {count:,} ways: {reason}"
    if options["ignored"]:
        yield f"ignored     {', '.join(options['ignored'])}"
    for broken in sorted(led.broken.values(), key=lambda b: len(b.moves)):
        yield from _broken(broken)
    if scenario is not None:
        yield from _reproduce(scenario, options)
    verdict = VERDICTS[led.ending]
    if led.broken:
        broke_down = all(broken.breakdown for broken in led.broken.values())
        verdict = "the engine breaks down" if broke_down else "an invariant is violated"
    yield ""
    yield f"{'✓' if code == 0 else '✗' if code == 1 else '·'} {name}: {verdict} (exit code {code})"


VERDICTS = {
    Ending.EXHAUSTED: "every way was gone, and nothing is broken",
    Ending.BUDGET: "stopped at its budget, nothing found",
    Ending.INTERRUPTED: "interrupted, nothing found so far",
}


def _broken(broken: Broken) -> Iterator[str]:
    yield ""
    yield f"{broken.count:,} ways break {broken.name}; the shortest, {len(broken.moves)} actions:"
    yield from way_lines(broken.moves, broken.violations)


def _reproduce(scenario: str, options: dict[str, Any]) -> Iterator[str]:
    yield ""
    if options["out"] is not None:
        yield f"reproduce: replaylife run {shlex.quote(options['out'])} --engine {options['engine']}"
        return
    yield "the shortest as a scenario (--out FILE writes it, 'replaylife run FILE --engine ...' plays it):"
    yield ""
    yield from (f"  {line}" for line in scenario.splitlines())
