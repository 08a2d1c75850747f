"""What a screen shows of one step, pane by pane: lines of text, each as wide as it is given room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from replaylife.lifecycle.scenario.player import Failed, Held
from replaylife.lifecycle.snapshot import RequestView, SlotView, Snapshot, Violation
from replaylife.lifecycle.trace.chain import Chain
from replaylife.view.book import Page
from replaylife.view.chain import chain_lines
from replaylife.view.look import (
    BAD,
    BOLD,
    DIM,
    GOOD,
    RING,
    STATE,
    Look,
    clean,
    gauge,
    hang,
    joined,
    shorten,
    spans,
)
from replaylife.view.places import free_places, outside_sentences, owners_of, place_lines
from replaylife.view.requests import slot_of
from replaylife.view.step import action_text
from replaylife.view.subject import Subject
from replaylife.view.tree import MAX_RAILS, Row, rows
from replaylife.view.violations import KEYWORDS
from replaylife.view.words import sentences

NEW, CHANGED = "+", "~"
MAX_PROOFS = 12


@dataclass(frozen=True, slots=True)
class Sight:
    """One page as it is looked at: ``subject`` is followed, ``chains`` belong to the page's violations.

    ``num_invariants`` is 0 where nobody has counted them.
    """

    page: Page
    subject: Subject | None = None
    chains: Sequence[Chain | None] = ()
    num_invariants: int = 0

    @property
    def after(self) -> Snapshot:
        """The state after the step."""
        return self.page.played.transition.after

    def broken(self, subject: str) -> bool:
        """Whether an invariant names this subject after the step."""
        return any(violation.subject == subject for violation in self.page.played.violations)

    def mark(self, kind: str, view: object, before: object) -> Text:
        """Return one column: new, changed, or nothing; reversed for what is followed."""
        identity = getattr(view, "id", getattr(view, "index", None))
        sign = " " if view == before else NEW if before is None else CHANGED
        followed = self.subject is not None and (self.subject.kind, self.subject.id) == (kind, identity)
        return Text.assemble((sign, "reverse bold" if followed else f"bold {RING}"))


def what_lines(sight: Sight, look: Look) -> list[Text]:
    """Say what was done in the step, what it changed, and what the scenario expected there."""
    played = sight.page.played
    lines = list(hang(action_text(clean(str(played.transition.action))), 0, look.width, deeper=2))
    for judged in sight.page.judged:
        if isinstance(judged, Failed):
            text = f"{look.signs.bad} line {judged.line}: {clean(judged.message)}"
            lines += hang(Text(text, BAD), 2, look.width, deeper=2)
    for sentence in sentences(played.transition.events, look.signs):
        lines += hang(Text(clean(sentence)), 2, look.width, deeper=2)
    for judged in sight.page.judged:
        if isinstance(judged, Held):
            lines.append(Text(f"  {look.signs.good} as the scenario expects (line {judged.line})", GOOD))
    return lines


def tree_lines(sight: Sight, look: Look) -> list[Text]:
    """Draw the radix tree: keys, states, tombstones, locks."""
    drawn = rows(sight.after.nodes, look)
    before = {node.id: node for node in sight.page.played.transition.before.nodes}
    word = "node " if look.width >= 50 else ""
    name = max((min(len(row.rails), MAX_RAILS) + len(f"{word}{row.node.id}") for row in drawn), default=1)
    length = max((len(str(row.node.key.length)) for row in drawn), default=1)
    lines = [_node(sight, row, before.get(row.node.id), look, (word, name, length)) for row in drawn]
    lines += [
        Text.assemble(("-", BAD), (f" node {node} is gone", DIM))
        for node in sorted(before.keys() - {row.node.id for row in drawn})
    ]
    return lines or [Text(" empty", DIM)]


def _node(sight: Sight, row: Row, before: object, look: Look, columns: tuple[str, int, int]) -> Text:
    word, name, length = columns
    node, slot = row.node, slot_of(sight.after, row.node.state)
    gap = "  " if look.width >= 36 else " "
    rails = row.rails if len(row.rails) <= MAX_RAILS else look.signs.cut + row.rails[1 - MAX_RAILS :]
    style = BAD if sight.broken(f"node {node.id}") else STATE
    sign = look.signs.no_state if slot is None else look.signs.state
    text = sight.mark("node", node, before).append(rails, DIM).append(f"{sign} {word}{node.id}", style)
    text.pad_right(max(0, name + 3 - text.cell_len))
    text.append(f"{gap}key ", DIM).append(f"{node.key.length:>{length}}")
    if slot is None:
        text.append(f"{gap}no state", DIM)
    else:
        apart = slot.temporal != node.key
        text.append(f"{gap}state ", DIM)
        text.append(f"{slot.temporal.length:>{length}}", BAD if apart else STATE)
        if slot.conv != slot.temporal:
            text.append(" conv ", DIM).append(str(slot.conv.length), BAD)
        text.append(f"{gap}slot {node.state}", DIM)
    if node.state_lock or node.kv_lock:
        text.append(f"{gap}lock {node.state_lock}/{node.kv_lock}", RING)
    return text


def slot_lines(sight: Sight, look: Look) -> list[Text]:
    """List the slots in use: owner, where temporal and conv stand, and the ring."""
    after, before = sight.after, sight.page.played.transition.before
    used = [slot for slot in after.slots if slot.index and any(o.kind != "free" for o in slot.owners)]
    used += [slot for slot in after.slots if slot.index and not slot.owners]
    room = max(6, min(16, look.width - 34))
    lines = [Text(f"{'slot':>4} {'owner':<{room}} {'state':>5} {'conv':>5} ring", DIM)]
    for slot in sorted(used, key=lambda slot: slot.index):
        was = slot_of(before, slot.index)
        fresh = was is not None and any(owner.kind == "free" for owner in was.owners)
        lines.append(_slot(sight, slot, None if fresh else was, look, room))
    free = f" free {spans(after.free_slots)}" if after.free_slots else " no slot is free"
    lines.append(Text(f"{free} ({len(after.free_slots)} of {len(after.slots) - 1})", DIM))
    broken = {violation.subject for violation in sight.page.played.violations}
    lines += place_lines(after, before, look, room, broken)
    lines += [Text(f" {words}", DIM) for words in free_places(after)]
    lines.append(Text(f" key-value {after.kv_free} of {after.kv_capacity} free", DIM))
    return lines


def _slot(sight: Sight, slot: SlotView, was: SlotView | None, look: Look, room: int) -> Text:
    owner = owners_of(slot.owners)
    style = BAD if len(slot.owners) != 1 or sight.broken(f"slot {slot.index}") else "none"
    text = sight.mark("slot", slot, was)
    text.append(f"{slot.index:>3} ", style).append(f"{shorten(look.signs, owner, room):<{room}} ", style)
    text.append(f"{slot.temporal.length:>5}", STATE).append(f" {slot.conv.length:>5} ")
    length = sight.after.ring_length
    if length is None or slot.write_pos is None:
        return text.append("off", DIM)
    numbers = f" {slot.write_pos}/{length}"
    cells = min(length, look.width - text.cell_len - len(numbers))
    if cells >= min(length, 4):
        text.append_text(gauge(look.signs, slot.write_pos, length, cells))
    return text.append(numbers if cells >= min(length, 4) else numbers.strip(), style="none")


def request_lines(sight: Sight, look: Look) -> list[Text]:
    """Say of each request how far it is, and what it holds."""
    before = sight.page.played.transition.before
    lines: list[Text] = []
    for request in sight.after.requests:
        text = sight.mark("request", request, before.request(request.id))
        style = BAD if sight.broken(f"request {request.id}") else BOLD
        text.append(shorten(look.signs, clean(request.id), 20), style).append(f" {request.phase}  ", DIM)
        lines += hang(text.append_text(_standing(request, look)), 0, look.width, deeper=4)
    gone = [r.id for r in before.requests if sight.after.request(r.id) is None]
    lines += [Text(f"- {shorten(look.signs, clean(name), 40)} has ended", DIM) for name in gone]
    for step in sight.after.in_flight:
        rows_ = ", ".join(f"{clean(name)} {start + 1}..{end}" for name, start, end in step.rows)
        stage = "scheduled" if step.executed_at is None else f"executed in step {step.executed_at}"
        lines += hang(Text(f" in flight: step {step.number}, {stage}: {rows_}", DIM), 0, look.width, deeper=4)
    for sentence in outside_sentences(sight.after, look.signs):
        lines += hang(Text(f" {sentence}", DIM), 0, look.width, deeper=4)
    return lines or [Text(" no request is running", DIM)]


def _standing(request: RequestView, look: Look) -> Text:
    parts: list[str | tuple[str, str]] = [("committed ", DIM), str(request.committed)]
    if (request.scheduled, request.executed) != (request.committed, request.committed):
        parts += [f" (executed {request.executed}, scheduled {request.scheduled})"]
    parts += [("  of prompt ", DIM), str(request.prompt_len), ("  cached ", DIM), str(request.cached)]
    if request.slot is not None:
        parts += [("  slot ", DIM), str(request.slot)]
    if request.track_slots:
        parts += [("  track ", DIM), " ".join(map(str, request.track_slots))]
    parts += [f"  stamp {stamp.length} in slot {slot}" for slot, stamp in request.stamps]
    if request.locked is not None:
        parts += [("  pins node ", DIM), str(request.locked)]
    if request.pending_cow is not None:
        source, target = request.pending_cow
        parts += [(f"  copy {source} {look.signs.arrow} {target} pending", RING)]
    return Text.assemble(*parts)


def invariant_lines(sight: Sight, look: Look, *, apart: bool = True) -> list[Text]:
    """Say which invariants are broken after the step, and by whom: a line each, or in a row."""
    by_invariant: dict[str, list[str]] = {}
    for violation in sight.page.played.violations or sight.page.played.fresh:
        by_invariant.setdefault(violation.invariant, []).append(violation.subject)
    total = sight.num_invariants
    hold = f"{total - len(by_invariant)} others" if total else "the others"
    if not by_invariant:
        return [Text(f"{look.signs.good} all {total or ''} invariants hold".replace("  ", " "), GOOD)]
    fresh = {violation.invariant for violation in sight.page.played.fresh}
    parts = []
    for name, named in by_invariant.items():
        text = Text.assemble((f"{look.signs.bad} {clean(name)}", BAD), ": ")
        text.append(clean(", ".join(dict.fromkeys(named))))
        parts.append(text.append("" if name in fresh else " (still)", DIM))
    parts.append(Text(f"{look.signs.good} {hold} hold", GOOD))
    if apart:
        return [line for part in parts for line in hang(part, 0, look.width, deeper=2)]
    return list(hang(joined(parts, "  "), 0, look.width, deeper=2))


def why_lines(sight: Sight, look: Look) -> list[Text]:
    """Explain what the step broke for the first time: numbers, proof, chain; then what was broken before."""
    played = sight.page.played
    lines: list[Text] = []
    told: list[Chain] = []
    for index, violation in enumerate(played.fresh[:MAX_PROOFS]):
        lines += _proof(violation, look)
        chain = sight.chains[index] if index < len(sight.chains) else None
        if chain is not None and chain not in told:
            told.append(chain)
            lines += chain_lines(chain, look)
    if len(played.fresh) > MAX_PROOFS:
        lines.append(Text(f"and {len(played.fresh) - MAX_PROOFS} more violations", DIM))
    new = {(violation.invariant, violation.subject) for violation in played.fresh}
    old = [v for v in played.violations if (v.invariant, v.subject) not in new]
    for violation in old[:MAX_PROOFS]:
        numbers = f"{violation.found}, expected {violation.expected}"
        text = f"still: {violation.subject} {violation.invariant}: {numbers}"
        lines += hang(Text(clean(text), "red"), 0, look.width, deeper=2)
    return lines


def _proof(violation: Violation, look: Look) -> list[Text]:
    numbers = Text.assemble(
        (f"{look.signs.bad} {clean(violation.invariant)}", BAD), f", {clean(violation.subject)}: ",
        (clean(violation.found), BAD), ", expected ", (clean(violation.expected), BOLD),
    )  # fmt: skip
    lines = list(hang(numbers, 0, look.width, deeper=2))
    for sentence in violation.proof:
        text = Text(clean(sentence))
        for word in KEYWORDS:
            if sentence.startswith(word):
                text.stylize(BOLD, 0, len(word))
        lines += hang(text, 2, look.width, deeper=2)
    return lines
