"""Claims about the ring's cursor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from replaylife.lifecycle.events import Accepted, CheckpointFolded, Decoded, Drafted, StateFolded
from replaylife.lifecycle.invariants.base import Invariant, slots_of
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import Transition, Violation


class CursorInRange(Invariant):
    """write_pos is 0..L-1 between steps (L in an open verify window), and host and device agree."""

    id = "cursor-in-range"
    claim = "between steps write_pos is 0..L-1, the same on host and device, and 0 in every tree-owned slot"
    judges = (slots_of,)

    def applies_to(self, capabilities: Capabilities) -> bool:
        """Only with ReplaySSM on there is a cursor."""
        return capabilities.replayssm

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check the cursor of every slot."""
        length = t.after.ring_length or 1
        for slot in slots_of(t):
            if slot.write_pos is None or slot.write_pos == 0 == slot.device_write_pos:
                continue
            upper = length - 1
            if slot.write_pos > upper:  # an open window may fill the ring
                windows = {request.slot for request in t.after.requests if request.drafts}
                upper += slot.index in windows
            if slot.device_write_pos != slot.write_pos:
                yield self._explain(
                    t, slot.index, f"{slot.device_write_pos} on the device", f"{slot.write_pos}"
                )
            if not 0 <= slot.write_pos <= upper:
                yield self._explain(t, slot.index, f"{slot.write_pos}", f"0..{upper}")
            if slot.write_pos and any(owner.kind == "tree" for owner in slot.owners):
                yield self._explain(t, slot.index, f"{slot.write_pos} in a tree-owned slot", "0")

    def _explain(self, t: Transition, slot: int, found: str, expected: str) -> Violation:
        return self.broken(
            f"slot {slot}",
            f"write_pos {found}",
            expected,
            f"After step {t.step} ({t.action}) write_pos of slot {slot} is {found}.",
            "Then the kernels read records that are not there, or miss some that are.",
        )


class CursorResetOnReuse(Invariant):
    """A slot's new owner starts with an empty ring."""

    id = "cursor-reset-on-reuse"
    claim = "a slot that leaves the free list has write_pos 0"
    judges = (slots_of,)

    def applies_to(self, capabilities: Capabilities) -> bool:
        """Only with ReplaySSM on there is a cursor."""
        return capabilities.replayssm

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check every slot that got an owner in this action, unless that owner has decoded since."""
        pending = [slot for slot in slots_of(t) if slot.write_pos]
        if not pending:
            return
        was_free = set(t.before.free_slots)
        decoded = {event.slot for event in t.events if isinstance(event, Decoded | Drafted)}
        for slot in pending:
            passed_on = slot.index in was_free and t.before.slots[slot.index].owners != slot.owners
            taken = passed_on and any(owner.kind != "free" for owner in slot.owners)
            if taken and slot.index not in decoded:
                yield self.broken(
                    f"slot {slot.index}",
                    f"write_pos {slot.write_pos}",
                    "0",
                    f"Let slot {slot.index} leave the free list in step {t.step} ({t.action}).",
                    f"Its cursor still counts {slot.write_pos} records of an earlier owner.",
                    "Then the new owner's first read absorbs them.",
                )


class CursorAdvancesOnce(Invariant):
    """One token, one step of the cursor."""

    id = "cursor-advances-once"
    claim = "each kept token advances its row's cursor by one, and what is folded is what the cursor counted"
    only_after = frozenset({Decoded, Drafted, Accepted})

    def applies_to(self, capabilities: Capabilities) -> bool:
        """Only with ReplaySSM on there is a cursor."""
        return capabilities.replayssm

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check every row of a decode step, and every window opened or closed."""
        folded: defaultdict[int, int] = defaultdict(int)
        due: defaultdict[tuple[str, int], int] = defaultdict(int)
        for event in t.events:
            match event:
                case StateFolded(slot, records):
                    folded[slot] += records
                case Decoded(name, slot):
                    due[name, slot] += 1
                case Drafted(name, slot):
                    due[name, slot] += len(event.tokens)
                case Accepted(name, slot):
                    due[name, slot] -= event.window - len(event.tokens)
        for (name, slot), tokens in due.items():
            before, after = t.before.slots[slot].write_pos, t.after.slots[slot].write_pos
            if before is None or after is None:
                continue
            moved = after + folded[slot] - before
            if moved != tokens:
                went = f"decode {_tokens(tokens)}" if tokens > 0 else f"reject {_tokens(-tokens)}"
                yield self.broken(
                    f"slot {slot}",
                    f"cursor moved by {moved}",
                    f"{tokens}",
                    f"Let request {name} {went} in slot {slot} (step {t.step}).",
                    f"Its cursor went from {before} to {after}, {folded[slot]} records folded.",
                    "Then the ring counts records that nobody wrote, or loses one.",
                )


def _tokens(count: int) -> str:
    return "one token" if count == 1 else f"{count} tokens"


class TrackedMeansFolded(Invariant):
    """At a track point a row is folded at exactly that length, within a verify window into another slot."""

    id = "tracked-means-folded"
    claim = "every row that reaches a track point is folded at exactly that length in that step"
    only_after = frozenset({Decoded, CheckpointFolded})

    def applies_to(self, capabilities: Capabilities) -> bool:
        """Only with ReplaySSM on there is something to fold."""
        return capabilities.replayssm

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check every row of a decode step whose new length is a track point, and folds inside windows."""
        for event in t.events:
            if isinstance(event, CheckpointFolded):
                yield from self._inside(t, event)
            if not isinstance(event, Decoded) or (event.position + 1) % t.after.track_point:
                continue
            slot, length = t.after.slots[event.slot], event.position + 1
            if slot.write_pos or slot.temporal.length != length:
                yield self.broken(
                    f"request {event.request}",
                    f"temporal at {slot.temporal.length}, {slot.write_pos} pending",
                    f"temporal at {length}, 0 pending",
                    f"Let request {event.request} reach {length} tokens, a track point.",
                    f"After that step temporal of slot {slot.index} covers {slot.temporal.length} tokens and "
                    f"{slot.write_pos} records are pending.",
                    "Then a snapshot taken here would be of another length than its key.",
                )

    def _inside(self, t: Transition, event: CheckpointFolded) -> Iterable[Violation]:
        slot = t.after.slots[event.dst]
        if slot.temporal.length != event.length or slot.conv.length != event.length:
            yield self.broken(
                f"request {event.request}",
                f"temporal at {slot.temporal.length}, conv at {slot.conv.length}",
                f"both at {event.length}",
                f"Let request {event.request} pass {event.length} tokens, a track point, inside a verify "
                f"window; its checkpoint goes to slot {event.dst}.",
                f"After that step temporal of slot {event.dst} covers {slot.temporal.length} tokens, of "
                f"{event.records} records folded, and conv ends at {slot.conv.length}.",
                "Then the snapshot taken here is of another length than its key.",
            )
