"""``replaylife replay``: a request log through the lifecycle, every invariant checked after every action."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any, get_args

import click

from replaylife.cli.columns import columns
from replaylife.cli.errors import CannotWork
from replaylife.cli.progress import Bar
from replaylife.lifecycle.config import FinishPolicy
from replaylife.lifecycle.faults import FAULTS
from replaylife.lifecycle.names import nearest
from replaylife.lifecycle.protocol import ActionRefused, CannotExpress
from replaylife.lifecycle.strategies import STRATEGIES
from replaylife.lifecycle.workload.log import LogError
from replaylife.lifecycle.workload.point import EXCERPT, Point, Result, replay

HELP = """Play a request log in Mooncake's JSON Lines format through the lifecycle, by the ledger alone.

Requests are batched continuously by their arrival times; all position invariants are checked after every
action. Reply tokens are those of the later request that extends this one, where there is one, else they are
new. FILE is read line by line, of any length; without it the shipped excerpt of 300 requests is played. One
column a strategy.
"""
ROWS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("requests", "requests", lambda n: f"{n:,}"),
    ("tokens of prompts", "prompt", lambda n: f"{n:,}"),
    ("  reused", "hit", lambda n: f"{n:,}"),
    ("  hit rate", "hit_rate", lambda n: f"{n:.2%}"),
    ("  requests that hit", "hits", lambda n: f"{n:,}"),
    ("tokens prefilled", "prefilled", lambda n: f"{n:,}"),
    ("  again, cut at finish", "again_truncated", lambda n: f"{n:,}"),
    ("  again, no state there", "again_stateless", lambda n: f"{n:,}"),
    ("tokens decoded", "decoded", lambda n: f"{n:,}"),
    ("folds", "folds", lambda n: f"{n:,}"),
    ("  forced in mid-ring", "forced_folds", lambda n: f"{n:,}"),
    ("checkpoint copies", "copies", lambda n: f"{n:,}"),
    ("states evicted", "evicted_states", lambda n: f"{n:,}"),
    ("key-value tokens evicted", "evicted_kv", lambda n: f"{n:,}"),
    ("admissions rejected", "rejected", lambda n: f"{n:,}"),
    ("retractions", "retracted", lambda n: f"{n:,}"),
    ("peak slots in use", "peak_slots", lambda n: f"{n:,}"),
    ("steps", "steps", lambda n: f"{n:,}"),
    ("violations", "violations", lambda n: f"{n:,}"),
)


def workload_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that replay and sweep share: the server, and how the log is read."""
    options = (
        click.option(
            "--kv-tokens", type=click.IntRange(1), default=2_000_000, show_default=True, help="Of the pool."
        ),
        click.option(
            "--page", type=click.IntRange(1), default=512, show_default=True, help="Block of align."
        ),
        click.option(
            "--chunk-grid",
            type=click.IntRange(1),
            default=64,
            show_default=True,
            help="Grid of extra_buffer.",
        ),
        click.option(
            "--rows", type=click.IntRange(1), default=64, show_default=True, help="Requests at once."
        ),
        click.option(
            "--chunk", type=click.IntRange(1), default=8_192, show_default=True, help="Prompt tokens a step."
        ),
        click.option(
            "--step-ms",
            type=click.FloatRange(min=0, min_open=True),
            default=30.0,
            show_default=True,
            help="How long a step takes: turns arrival times into steps.",
        ),
        click.option("--block", type=click.IntRange(1), default=512, show_default=True, help="Of hash_ids."),
        click.option("--limit", type=click.IntRange(1), help="Play only so many requests."),
        click.option("--no-check", is_flag=True, help="Count only; check no invariant."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def base_point(*, limit: int | None, no_check: bool, **asked: Any) -> Point:
    """Return the point that the shared options describe. Raises :class:`CannotWork` for a bad combination."""
    if asked["chunk"] < max(asked["page"], asked["chunk_grid"]):
        raise CannotWork(
            f"--chunk {asked['chunk']}: need at least a block of --page {asked['page']} and of --chunk-grid "
            f"{asked['chunk_grid']}: a chunk that is not the last ends on the grid"
        )
    return Point(limit=limit or 0, check=not no_check, **asked)


@click.command("replay", help=HELP)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--strategy", type=click.Choice(list(STRATEGIES)), multiple=True, help="May be repeated; no_buffer."
)
@click.option("--slots", type=click.IntRange(2), default=256, show_default=True, help="Slot 0 is reserved.")
@click.option(
    "--ring", type=click.IntRange(0, 64), default=16, show_default=True, help="L; 0: ReplaySSM off."
)
@click.option(
    "--track-interval", type=click.IntRange(1), default=256, show_default=True, help="Between checkpoints."
)
@click.option(
    "--finish",
    type=click.Choice(get_args(FinishPolicy)),
    default="truncate",
    show_default=True,
    help="What becomes of records in the ring.",
)
@click.option("--fault", multiple=True, help="Seed a fault; may be repeated.")
@workload_options
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    file: Path | None, strategy: tuple[str, ...], fault: tuple[str, ...], form: str, **asked: Any
) -> None:
    """Play the log once per strategy; the parsed arguments come from click."""
    for name in fault:
        if name not in FAULTS:
            raise CannotWork(f"no fault is named {name!r}{nearest(name, FAULTS)}")
    point = replace(base_point(**asked), faults=fault)
    results = [
        play(replace(point, strategy=name), file) for name in dict.fromkeys(strategy or ("no_buffer",))
    ]
    if form == "json":
        told = [
            {"point": r.point.record(), "totals": r.totals.record(), "violations": _first(r)} for r in results
        ]
        click.echo(json.dumps(told, indent=1))
    else:
        click.echo("\n".join(table(results, file)))
    if any(result.totals.violations for result in results):
        raise click.exceptions.Exit(1)


def play(point: Point, file: Path | None) -> Result:
    """Play a log with a bar. Raises :class:`CannotWork` for a log or a point that cannot be played."""
    bar, shown = Bar(), 0

    def move(taken: int) -> None:
        nonlocal shown
        while shown < taken:
            bar.advance()
            shown += 1

    try:
        point.server()
    except (CannotExpress, ValueError) as error:  # sizes or faults that do not go together
        raise CannotWork(str(error)) from None
    try:
        bar.start(point.strategy, point.limit or _count_lines(file))
        return replay(point, None if file is None else str(file), move)
    except LogError as error:
        raise CannotWork(str(error), str(file or EXCERPT), error.problems) from None
    except OSError as error:
        raise CannotWork(f"{file}: {error.strerror or error}; expected a request log") from None
    except (CannotExpress, ActionRefused, ValueError) as error:
        raise CannotWork(f"{file or EXCERPT}: {error}") from None
    finally:
        bar.stop()


def _count_lines(file: Path | None) -> int:
    if file is None:
        return 300
    with file.open("rb") as lines:
        return sum(1 for _ in lines)


def table(results: Sequence[Result], file: Path | None) -> Iterator[str]:
    """A line a count, a column a strategy; then the first violations."""
    point = results[0].point
    ring = f"L {point.ring}" if point.ring else "ReplaySSM off"
    yield f"{file or EXCERPT}"
    yield f"{ring}, track interval {point.track_interval}, finish {point.finish}"
    yield f"{point.slots:,} slots, {point.kv_tokens:,} key-value tokens"
    yield ""
    records = [result.totals.record() for result in results]
    head = ("", *(result.point.strategy for result in results))
    rows = [(title, *(shown(record[name]) for record in records)) for title, name, shown in ROWS]
    if not point.check:
        rows[-1] = (rows[-1][0], *("not checked" for _ in results))
    yield from columns([head, *rows], num_left=1)
    width = max(40, get_terminal_size().columns)
    for result in results:
        for step, violation in result.violations[:3]:
            yield ""
            yield f"{result.point.strategy}, action {step}: {violation.subject}: {violation.found}"
            for line in violation.proof:
                yield from wrap(line, width, initial_indent="  ", subsequent_indent="    ")


def _first(result: Result) -> list[dict[str, Any]]:
    return [
        {
            "action": step,
            "invariant": v.invariant,
            "subject": v.subject,
            "found": v.found,
            "expected": v.expected,
        }
        for step, v in result.violations
    ]
