"""Claims about which tokens a state has absorbed."""

from __future__ import annotations

from collections.abc import Iterable

from replaylife.lifecycle.invariants.base import (
    Invariant,
    compare,
    nodes_of,
    requests_of,
    slot_view,
    tokens_between,
)
from replaylife.lifecycle.invariants.places import claims_of, places_of
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import NodeView, RequestView, SlotView, Transition, Violation
from replaylife.pool import Fold

_UNWRITTEN = -2  # stands for a ring entry that nobody wrote: no token has this id


class KeyMatchesState(Invariant):
    """Key length and content against the tokens folded into the node's temporal."""

    id = "key-matches-state"
    claim = "a node's key and the tokens folded into its temporal are the same sequence"
    judges = (nodes_of, places_of)

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check every node that carries a state."""
        for node in nodes_of(t):
            slot = slot_view(t, node.state)
            if slot is not None and slot.temporal != node.key:
                yield self._explain(t, node, slot)
        for subject, place, holder, due in claims_of(t):
            if place.temporal != due:
                found, expected = compare(place.temporal, due)
                yield self.broken(
                    subject,
                    f"temporal covers {found} tokens",
                    f"the {holder}'s {expected} tokens",
                    f"Let a {holder} claim that {subject} holds its {expected} tokens.",
                    f"Temporal there has absorbed {found} tokens (written in step {place.written}).",
                    "Then whoever gets it back continues from a state that its tokens did not make.",
                )

    def _explain(self, t: Transition, node: NodeView, slot: SlotView) -> Violation:
        found, expected = compare(slot.temporal, node.key)
        proof = [
            f"Let node {node.id} claim {expected} tokens; its state is slot {slot.index}.",
            f"Temporal of slot {slot.index} has absorbed {found} tokens (written in step {slot.written}).",
        ]
        was = t.before.slots[slot.index]
        lost = len(was.ring) - len(slot.ring)
        if slot.written < t.step and lost > 0:
            first = was.temporal.length
            proof.append(
                f"Before step {t.step} its ring held {lost} more, {tokens_between(first, first + lost)}; "
                f"step {t.step} ({t.action}) set the cursor to {slot.write_pos} without folding them."
            )
        if slot.temporal.length < node.key.length:
            missing = tokens_between(slot.temporal.length, node.key.length)
            proof.append(f"Then {missing} are in no state: whoever reuses the node continues without them.")
        elif slot.temporal.length > node.key.length:
            ahead = tokens_between(node.key.length, slot.temporal.length)
            proof.append(f"Then whoever reuses the node finds {ahead} in the state and feeds them again.")
        else:
            proof.append("Then whoever reuses the node continues from another conversation's state.")
        return self.broken(
            f"node {node.id}", f"temporal covers {found} tokens", f"the key's {expected} tokens", *proof
        )


class ComponentsAgree(Invariant):
    """Temporal and convolution window of a checkpoint stand at one position."""

    id = "components-agree"
    claim = "temporal, conv and any side state of one checkpoint stand at the same position"
    judges = (nodes_of, places_of)

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check every node's state, and both windows of it."""
        for node in nodes_of(t):
            slot = slot_view(t, node.state)
            if slot is None:
                continue
            windows = {"conv": slot.conv, "conv_checkpoint": slot.conv_checkpoint}
            apart = {name: at for name, at in windows.items() if at is not None and at != slot.temporal}
            if apart:
                yield self._explain(node, slot, apart)
        for subject, place, holder, _ in claims_of(t):
            if place.conv != place.temporal:
                found, expected = compare(place.conv, place.temporal)
                yield self.broken(
                    subject,
                    f"conv at {found}",
                    f"temporal's position {expected}",
                    f"Let {subject} hold a checkpoint of a {holder} (written in step {place.written}).",
                    f"Its temporal has absorbed {expected} tokens, its window ends at token {found}.",
                    "Then the first tokens after its return are convolved with the wrong inputs.",
                )

    def _explain(self, node: NodeView, slot: SlotView, apart: dict[str, Fold]) -> Violation:
        name, window = next(iter(apart.items()))
        found, expected = compare(window, slot.temporal)
        names = " and ".join(apart)
        return self.broken(
            f"node {node.id}",
            f"{names} at {found}",
            f"temporal's position {expected}",
            f"Let node {node.id} claim {node.key.length} tokens; its state is slot {slot.index}.",
            f"Temporal of slot {slot.index} has absorbed {expected} tokens (written in step {slot.written}), "
            f"while {name} is the window that ends at token {found}.",
            "Then the first tokens of whoever reuses the node are convolved with the wrong inputs.",
        )


class LiveStateComplete(Invariant):
    """Checkpoint + ring of a running request, and its live window."""

    id = "live-state-complete"
    claim = "checkpoint + ring of a running request is exactly its executed tokens, and conv is there too"
    judges = (requests_of,)

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check every request whose slot is filled."""
        for request in requests_of(t):
            slot = slot_view(t, request.slot)
            if slot is None or request.pending_cow is not None:
                continue
            live = slot.temporal
            if slot.ring:
                live = live.after([_UNWRITTEN if record is None else record.token for record in slot.ring])
            if live != request.tokens:
                yield self._explain(request, slot, "checkpoint + ring", live)
            if slot.conv != request.tokens:
                yield self._explain(request, slot, "conv", slot.conv)

    def _explain(self, request: RequestView, slot: SlotView, part: str, at: Fold) -> Violation:
        found, expected = compare(at, request.tokens)
        return self.broken(
            f"request {request.id}",
            f"{part} covers {found} tokens",
            f"the {expected} executed tokens",
            f"Let request {request.id} have executed {expected} tokens in slot {slot.index}.",
            f"Temporal covers {slot.temporal.length}, the ring holds {len(slot.ring)} records, "
            f"conv ends at {slot.conv.length}.",
            f"Then {part} is {found}: the next token is computed from a state that is not this request's.",
        )


class RingOwned(Invariant):
    """Each pending record belongs to the slot's owner and to its position."""

    id = "ring-owned"
    claim = "each pending record was written by the slot's present owner for the position it stands for"
    judges = (requests_of,)

    def applies_to(self, capabilities: Capabilities) -> bool:
        """Only with ReplaySSM on there is a ring."""
        return capabilities.replayssm

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check the pending records of every running request's slot."""
        for request in requests_of(t):
            slot = slot_view(t, request.slot)
            if slot is None:
                continue
            first = request.executed - len(slot.ring)
            for index, record in enumerate(slot.ring):
                expected = (request.id, first + index)
                if record is None or record[:2] != expected:
                    found = (
                        "nothing ever written"
                        if record is None
                        else f"{record.request}'s token {record.position + 1}"
                    )
                    yield self.broken(
                        f"slot {slot.index}",
                        f"ring[{index}] holds {found}",
                        f"{request.id}'s token {first + index + 1}",
                        f"Let slot {slot.index} belong to request {request.id}, {request.executed} "
                        f"tokens executed, the last {len(slot.ring)} of them in the ring.",
                        f"Pending record {index} stands for token {first + index + 1} of {request.id}, "
                        f"but holds {found}.",
                        "Then the next read or fold absorbs a token that is not the request's.",
                    )
                    break
