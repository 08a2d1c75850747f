"""Two traces side by side, from the first step where they part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from replaylife.lifecycle.invariants import Checker
from replaylife.lifecycle.scenario.player import Played
from replaylife.lifecycle.trace.parting import Difference, Parting
from replaylife.lifecycle.trace.reader import RecordedStep, TraceReader
from replaylife.view.book import Page, run_of
from replaylife.view.look import BOLD, DIM, GOOD, Look, clean, count
from replaylife.view.panes import Sight, invariant_lines, request_lines, slot_lines, tree_lines, what_lines

MAX_FACTS = 24  # told of one step


def compared(
    left: TraceReader, right: TraceReader, found: Iterable[Parting], look: Look, steps: int
) -> Iterator[RenderableType]:
    """Yield the first parting in full, then what changes in up to ``steps`` more; nothing without one."""
    partings = iter(found)
    first = next(partings, None)
    if first is None:
        return
    for letter, name in zip("AB", names_of(left, right), strict=True):
        yield Text(f"{letter}: {name}")
    same = f"the same up to step {first.place - 1}; " if first.place > 1 else ""
    yield Text(f"{same}they part in step {first.place}", BOLD)
    yield Text()
    yield _facts(first.differences, look)
    yield Text()
    yield _panes(first, left, right, look)
    known = set(first.differences)
    shown = 0
    for parting in partings:
        fresh = [difference for difference in parting.differences if difference not in known]
        known = set(parting.differences)
        if not fresh:
            continue
        if shown == steps:
            yield Text(f"{look.signs.more} they go on to differ; --steps N shows more", DIM)
            return
        shown += 1
        step = parting.left or parting.right
        action = "" if step is None else str(step.transition.action)
        yield Text()
        yield Text.assemble((f"step {parting.place}", BOLD), f"  {clean(action)}")
        yield _facts(fresh, look)


def names_of(left: TraceReader, right: TraceReader) -> tuple[str, str]:
    """Return what to call the two: by scenario and faults, by engine where those are the same."""
    runs = [run_of(reader.header) for reader in (left, right)]
    names = [" with ".join(dict.fromkeys([run.name, *run.faults])) for run in runs]
    if names[0] == names[1]:
        names = [
            f"{name} on {clean(reader.header.engine)}"
            for name, reader in zip(names, (left, right), strict=True)
        ]
    if names[0] == names[1]:
        names = [clean(reader.path) for reader in (left, right)]
    return names[0], names[1]


def _facts(found: Iterable[Difference], look: Look) -> Table:
    listed = list(found)
    table = Table(box=None, width=look.width, pad_edge=False, header_style=DIM)
    table.add_column("differs", style=DIM, overflow="fold", ratio=1)
    table.add_column("A", overflow="fold", ratio=2)
    table.add_column("B", overflow="fold", ratio=2)
    for difference in islice(listed, MAX_FACTS):
        sides = [Text(clean(side)) if side is not None else Text("not there", DIM) for side in difference[1:]]
        table.add_row(Text(clean(difference.fact)), *sides)
    if len(listed) > MAX_FACTS:
        table.add_row(Text(f"and {count(len(listed) - MAX_FACTS, 'more difference')}"), "", "")
    return table


def _panes(parting: Parting, left: TraceReader, right: TraceReader, look: Look) -> Table:
    """The whole of the step on both sides: what was done, tree, slots, requests, invariants."""
    half = replace(look, width=(look.width - 3) // 2)
    table = Table.grid(padding=(0, 1))
    table.add_column(width=half.width)
    table.add_column(width=1, style=DIM)
    table.add_column(width=half.width)
    columns = [_column(step, reader, half) for step, reader in ((parting.left, left), (parting.right, right))]
    bar = "|" if look.signs.full == "#" else "│"
    for index in range(max(map(len, columns))):
        sides = [column[index] if index < len(column) else Text() for column in columns]
        table.add_row(sides[0], bar, sides[1])
    return table


def _column(step: RecordedStep | None, reader: TraceReader, look: Look) -> list[Text]:
    if step is None:
        return [Text("the trace has ended", DIM)]
    checker = Checker(reader.header.capabilities)
    t = step.transition
    sight = Sight(
        Page(Played(step.line or 0, t, checker.check(t), step.violations)), None, (), len(checker.invariants)
    )
    parts = {
        f"step {t.step}": what_lines(sight, look),
        "tree": tree_lines(sight, look),
        "slots": slot_lines(sight, look),
        "requests": request_lines(sight, look),
        "invariants": invariant_lines(sight, look),
    }
    lines: list[Text] = []
    dash = "-" if look.signs.full == "#" else "─"
    for name, part in parts.items():
        lines.append(Text(f"{dash} {name} ".ljust(look.width, dash), DIM))
        lines += part
    for line in lines:
        line.no_wrap = True
        line.truncate(look.width, overflow="crop")
    return lines


def same_line(look: Look) -> Text:
    """Say that two traces do not differ."""
    return Text(f"{look.signs.good} the same, step by step", GOOD)
