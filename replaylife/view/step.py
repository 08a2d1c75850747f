"""One step of a run: the action, what it changed, and where requests, tree and slots stand afterwards."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from rich.text import Text

from replaylife.lifecycle.actions import Commit, Execute, Forward, Schedule
from replaylife.lifecycle.events import Decoded, Event, Finished, StepCommitted, StepScheduled
from replaylife.lifecycle.scenario.player import Played
from replaylife.view.look import BOLD, DIM, GUTTER, Look, consecutive, hang, shorten, under_gutter
from replaylife.view.reply import reply_lines
from replaylife.view.requests import MAX_NAME, request_lines, ring_text, slot_of
from replaylife.view.tree import changed_nodes, tree_lines
from replaylife.view.violations import standing_lines
from replaylife.view.words import sentences


def step_lines(played: Played, look: Look, broken: Collection[str] = ()) -> Iterator[Text]:
    """Yield the lines of one step. ``broken`` has the subjects that an invariant has named so far."""
    t = played.transition
    title = Text.assemble(step_number(t.step, t.step), action_text(str(t.action)))
    yield from hang(title, 0, look.width, deeper=GUTTER + 2)
    for sentence in sentences(t.events, look.signs):
        yield from under_gutter(Text(sentence), look)
    for event in t.events:
        if isinstance(event, Finished):
            yield from reply_lines(event, look)
    yield from request_lines(t, look, broken)
    yield from tree_lines(t, look, broken)
    old = [violation for violation in played.violations if violation not in played.fresh]
    yield from standing_lines(old, look, t.after.measurements if not played.fresh else ())


def step_number(first: int, last: int) -> Text:
    """Return the step's number, or the first and last of several, in the gutter."""
    label = str(first) if first == last else f"{first}..{last}"
    return Text(label.rjust(GUTTER - 2) + "  ", DIM)


def action_text(action: str) -> Text:
    """Return an action with its verb in bold and what is in parentheses dimmed."""
    verb, _, rest = action.partition(" ")
    subject, bracket, detail = rest.partition(" (")
    text = Text.assemble((verb, BOLD), " ", (subject, BOLD))
    return text.append(f"  {detail.removesuffix(')')}" if bracket else "", DIM)


def uneventful(played: Played) -> bool:
    """Whether a step is a decode forward, or a part of one, that did nothing but add one record per row.

    One that folded, tracked, copied, broke something new, or moved a cursor in any other way is eventful.
    """
    t = played.transition
    return (
        isinstance(t.action, Forward | Schedule | Execute | Commit)
        and not played.fresh
        and all(_plain(event) for event in t.events)
        and not changed_nodes(t)
    )


def _overlap_lines(group: Sequence[Played], look: Look) -> Iterator[Text]:
    """Yield a title for a run of schedules, executes and commits, and where each request stands after it."""
    first, last = group[0].transition, group[-1].transition
    kinds = [type(played.transition.action).__name__.lower() for played in group]
    numbers = {kind: kinds.count(kind) for kind in kinds}
    counted = ", ".join(
        kind if number == 1 else f"{kind} {look.signs.times}{number}" for kind, number in numbers.items()
    )
    yield from hang(
        Text.assemble(step_number(first.step, last.step), (counted, BOLD)), 0, look.width, deeper=GUTTER + 2
    )
    yield from request_lines(replace(last, before=first.before), look, ())
    measured = [m for played in group for m in played.transition.after.measurements]
    yield from standing_lines(group[-1].violations, look, measured)


def _plain(event: Event) -> bool:
    if isinstance(event, StepCommitted):
        return not event.discarded
    if not isinstance(event, Decoded):
        return isinstance(event, StepScheduled) and all(end - start == 1 for _, start, end in event.rows)
    before, after = event.cursor_before, event.cursor_after
    moved = (before, after) == (None, None) or (before is not None and after == before + 1)
    return moved and not event.tracked


def continues(earlier: Played, later: Played) -> bool:
    """Whether two uneventful steps read as one: the same rows, in sequence, with the same things broken."""
    if _overlapped(earlier) and _overlapped(later):
        return _standing(earlier) == _standing(later)
    return (
        earlier.transition.action == later.transition.action
        and _standing(earlier) == _standing(later)
        and _follow(earlier, later)
    )


def _overlapped(played: Played) -> bool:
    return isinstance(played.transition.action, Schedule | Execute | Commit)


def _standing(played: Played) -> set[tuple[str, str]]:
    return {(violation.invariant, violation.subject) for violation in played.violations}


def _decoded(played: Played) -> list[Decoded]:
    return [event for event in played.transition.events if isinstance(event, Decoded)]


def _follow(earlier: Played, later: Played) -> bool:
    pairs = zip(_decoded(earlier), _decoded(later), strict=True)
    return all(consecutive((a.position, b.position)) and a.cursor_after == b.cursor_before for a, b in pairs)


def group_lines(group: Sequence[Played], look: Look) -> Iterator[Text]:
    """Yield one line for a run of uneventful decode forwards, and one more per row of a larger batch."""
    first, last = group[0].transition, group[-1].transition
    if _overlapped(group[0]):
        yield from _overlap_lines(group, look)
        return
    title = Text.assemble(step_number(first.step, last.step), action_text(str(last.action)))
    if len(group) > 1:
        title.append(f" {look.signs.times}{len(group)}", BOLD)
    starts, ends = _decoded(group[0]), _decoded(group[-1])
    if len(ends) == 1:
        line = _progress(title.append("  "), group, starts[0], ends[0], look)
        yield from hang(line, 0, look.width, deeper=GUTTER + 2)
    else:
        yield from hang(title, 0, look.width, deeper=GUTTER + 2)
        for start, end in zip(starts, ends, strict=True):
            lead = Text.assemble(" " * GUTTER, (shorten(look.signs, end.request, MAX_NAME), BOLD), "  ")
            yield from hang(_progress(lead, group, start, end, look), 0, look.width, deeper=GUTTER + 2)
    measured = [m for played in group for m in played.transition.after.measurements]
    yield from standing_lines(group[-1].violations, look, measured)


def _progress(lead: Text, group: Sequence[Played], start: Decoded, end: Decoded, look: Look) -> Text:
    after = group[-1].transition.after
    slot = slot_of(after, end.slot)
    text = lead.append("committed ", DIM).append(_range(start.position + 1, end.position + 1))
    filled = None if slot is None else slot.write_pos
    if filled is None or start.cursor_after is None:
        return text
    label = _range(start.cursor_after, filled)
    return text.append_text(ring_text(filled, after.ring_length, look, look.width - text.cell_len, label))


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"
