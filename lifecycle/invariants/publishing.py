"""Claims about what the tree may say of a checkpoint, and when."""

from __future__ import annotations

from collections.abc import Iterable

from replaylife.lifecycle.actions import Draft, Execute, Forward, Verify
from replaylife.lifecycle.events import (
    Allocated,
    CheckpointCopied,
    CheckpointFolded,
    Evicted,
    Freed,
    Published,
)
from replaylife.lifecycle.events_outside import from_to
from replaylife.lifecycle.invariants.base import Invariant, nodes_of, requests_of, slot_view, slots_of
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import CopyView, SlotView, Transition, Violation


class WrittenBeforePublished(Invariant):
    """The tree claims nothing that a step in flight is still to prove."""

    id = "written-before-published"
    claim = "a checkpoint in the tree was written by a committed step"

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check every state of the tree against the steps and the copies in flight."""
        if t.after.copies:
            yield from self._copies(t)
        if not t.after.in_flight:
            return
        unproved = {step.executed_at: step for step in t.after.in_flight if step.executed_at is not None}
        promised = {slot: step for step in t.after.in_flight for slot in step.copies}
        for node in t.after.nodes:
            slot = slot_view(t, node.state)
            if slot is None:
                continue
            step = promised.get(slot.index) or unproved.get(slot.written)
            if step is not None:
                stage = "has executed" if step.executed_at is not None else "is only scheduled"
                yield self.broken(
                    f"node {node.id}",
                    f"slot {slot.index} is written by step {step.number}, which {stage}",
                    "a committed step",
                    f"Let node {node.id} offer slot {slot.index} for its {node.key.length} tokens.",
                    f"That slot is written by step {step.number}, which {stage} and has not committed.",
                    "Then a match now copies what may never be written, or be rolled back.",
                )

    def _copies(self, t: Transition) -> Iterable[Violation]:
        """A slot or place that a copy in flight is still to fill is nobody's state yet."""
        filled = {copy.dst: copy for copy in t.after.copies if copy.kind == "load"}
        for node in t.after.nodes:
            if node.state in filled:
                yield self._unfilled(f"node {node.id}", f"slot {node.state}", filled[node.state])
        sent = {copy.dst: copy for copy in t.after.copies if copy.kind == "offload"}
        for place in t.after.host_places:
            if place.index in sent and any(owner.kind == "tree" for owner in place.owners):
                name = f"host place {place.index}"
                yield self._unfilled(name, name, sent[place.index])

    def _unfilled(self, subject: str, target: str, copy: CopyView) -> Violation:
        article = "an" if copy.kind == "offload" else "a"
        return self.broken(
            subject,
            f"{target} is filled by {article} {copy.kind} that has not arrived",
            "a copy that has arrived",
            f"Let the {copy.kind} of {copy.of} be in flight, {from_to(copy)}.",
            f"The tree offers {target} already.",
            "Then a match now reads what its last owner left there, and keeps it if the copy fails.",
        )


class CheckpointImmutable(Invariant):
    """What the tree owns does not change."""

    id = "checkpoint-immutable"
    claim = "a tree-owned slot does not change after it was published"
    judges = (slots_of,)

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check every changed slot that one node owned before and still does, without an eviction between."""
        for slot in slots_of(t):
            owner = slot.owners[0] if len(slot.owners) == 1 else None
            if owner is None or owner.kind != "tree":
                continue
            was = slot_view_before(t, slot.index)
            if was is None or was.owners != slot.owners or slot.index in _evicted(t):
                continue
            if _contents(was) != _contents(slot):
                found = _difference(was, slot)
                yield self.broken(
                    f"slot {slot.index}",
                    found,
                    "as published",
                    f"Let node {owner.id} own slot {slot.index} before and after step {t.step} ({t.action}).",
                    f"That step wrote the slot: {found}.",
                    "Then the key is no longer what the state is, for whoever matches it next.",
                )


class CheckpointOnGrid(Invariant):
    """Checkpoint lengths lie on the grid, counted from token 0."""

    id = "checkpoint-on-grid"
    claim = "checkpoint lengths are multiples of page and chunk grid, counted from token 0"
    judges = (nodes_of,)

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check the key of every state, where the strategy has a grid."""
        if t.after.grid is None:
            return
        for node in nodes_of(t):
            if node.state is not None and node.key.length % t.after.grid:
                yield self.broken(
                    f"node {node.id}",
                    f"a state at {node.key.length}",
                    f"a multiple of {t.after.grid}",
                    f"Let node {node.id} carry a state (slot {node.state}) under a key of {node.key.length}.",
                    f"{node.key.length} = {node.key.length // t.after.grid} x {t.after.grid} + "
                    f"{node.key.length % t.after.grid}: it was counted from somewhere else than token 0.",
                    "Then kernels that work in chunks restart from a state that no chunk of theirs ends at.",
                )


class StampIsTrue(Invariant):
    """A stamped track slot holds what its stamp says."""

    id = "stamp-is-true"
    claim = "a stamped track slot holds exactly the tokens of its stamp, temporal and conv alike"
    judges = (requests_of,)

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check every stamp of every request."""
        for request in requests_of(t):
            for index, stamp in request.stamps:
                slot = slot_view(t, index)
                if slot is None or (slot.temporal == stamp and slot.conv == stamp):
                    continue
                yield self.broken(
                    f"slot {index}",
                    f"temporal at {slot.temporal.length}, conv at {slot.conv.length}",
                    f"the stamped {stamp.length}",
                    f"Let request {request.id} hold track slot {index}, stamped {stamp.length}.",
                    f"Its temporal covers {slot.temporal.length} tokens, conv ends at {slot.conv.length}.",
                    "Then finish donates it under a key that is not its state's.",
                )


class StepWritesItsRows(Invariant):
    """A step changes the slots of its rows and of the checkpoints they leave."""

    id = "step-writes-its-rows"
    claim = "a step writes only what its rows own and what they leave in the tree"

    def applies_to(self, capabilities: Capabilities) -> bool:
        """Every engine that runs steps."""
        return capabilities.steps

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check the slots that changed in a step."""
        if not isinstance(t.action, Forward | Execute | Verify | Draft):
            return
        allowed = _written_by(t)
        for slot in slots_of(t):
            was = slot_view_before(t, slot.index)
            if was is None or slot.index in allowed or _contents(was) == _contents(slot):
                continue
            found = _difference(was, slot)
            yield self.broken(
                f"slot {slot.index}",
                found,
                "unchanged",
                f"Let step {t.step} ({t.action}) run; slot {slot.index} belongs to none of its rows.",
                f"After it: {found}.",
                "Then a row has written into somebody else's state.",
            )


class PaddingInert(Invariant):
    """Padded rows leave no trace in the tensors."""

    id = "padding-inert"
    claim = "padded rows change no slot: tensors of every slot outside the batch are the same bit for bit"
    from_tensors = True

    def applies_to(self, capabilities: Capabilities) -> bool:
        """Only where there are tensors to compare."""
        return capabilities.numeric

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check the slots that the tensors say were touched."""
        for measured in t.after.measurements:
            if measured.kind == "untouched" and measured.exceeded:
                yield self.broken(
                    measured.subject,
                    measured.detail,
                    "none",
                    f"Let step {t.step} ({t.action}) run with padding; {measured.subject} is in no row.",
                    f"After it {measured.detail}.",
                    "Then whoever owns that slot has absorbed a token of nobody.",
                )


def slot_view_before(t: Transition, index: int) -> SlotView | None:
    """Return the slot with this index before ``t``."""
    return t.before.slots[index] if index < len(t.before.slots) else None


def _evicted(t: Transition) -> set[int]:
    return {slot for event in t.events if isinstance(event, Evicted) for slot in event.slots}


def _contents(slot: SlotView) -> tuple[object, ...]:
    return slot.temporal, slot.conv, slot.conv_checkpoint, slot.write_pos, slot.written


def _difference(was: SlotView, slot: SlotView) -> str:
    """Name what changed in a slot, in lengths where they differ."""
    pairs = {
        "temporal": (was.temporal, slot.temporal),
        "conv": (was.conv, slot.conv),
        "conv_checkpoint": (was.conv_checkpoint, slot.conv_checkpoint),
    }
    parts = [
        f"{name} {old.length} -> {new.length}" if old.length != new.length else f"{name} (other tokens)"
        for name, (old, new) in pairs.items()
        if old is not None and new is not None and old != new
    ]
    if was.write_pos != slot.write_pos:
        parts.append(f"write_pos {was.write_pos} -> {slot.write_pos}")
    return ", ".join(parts) or f"written again, in step {slot.written}"


def _written_by(t: Transition) -> set[int]:
    """The slots that a step may write: its requests' own, and those that it took, copied to or gave away."""
    named = {getattr(event, "request", None) for event in t.events}
    slots: set[int] = set()
    for request in (*t.before.requests, *t.after.requests):
        if request.id in named:
            slots.update(request.slots)
    for event in t.events:
        if isinstance(event, CheckpointCopied | CheckpointFolded):
            slots.add(event.dst)
        elif isinstance(event, Allocated | Freed | Published):
            slots.add(event.slot)
        elif isinstance(event, Evicted):
            slots.update(event.slots)
    return slots
