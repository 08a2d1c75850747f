"""Claims about who owns slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from replaylife.lifecycle.invariants.base import Invariant, slots_of
from replaylife.lifecycle.invariants.places import places_of
from replaylife.lifecycle.snapshot import NodeView, Transition, Violation


class SlotHasOneOwner(Invariant):
    """Every slot has exactly one owner."""

    id = "slot-has-one-owner"
    claim = "every slot is owned once: free list, tree, request, step or copy in flight, or reserved"

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check the owners of every slot."""
        wrong = [(f"slot {slot.index}", slot.owners) for slot in slots_of(t) if len(slot.owners) != 1]
        wrong += [(subject, place.owners) for subject, place in places_of(t) if len(place.owners) != 1]
        for subject, holders in wrong:
            owners = ", ".join(map(str, holders)) or "nobody"
            consequence = (
                "Then one owner's writes change the other's state."
                if holders
                else "Then it is lost until the server restarts."
            )
            yield self.broken(
                subject,
                f"owned by {owners}",
                "one owner",
                f"After step {t.step} ({t.action}) {subject} is in the hands of {owners}.",
                consequence,
            )


class SlotsConserved(Invariant):
    """The counts of slots and of key-value tokens add up."""

    id = "slots-conserved"
    claim = "slots and key-value tokens in use and free add up, and the free list holds only free, real slots"

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check the free list, the number of slots and the number of key-value tokens."""
        after = t.after
        tree, kv_in_tree = _in_tree(after.nodes)
        held = [slot for request in after.requests for slot in request.slots]
        held += [slot for step in after.in_flight for slot in step.copies]
        held += [copy.dst for copy in after.copies if copy.kind == "load"]
        if _wrong(after.free_slots, 1, len(after.slots)):
            yield from self._free_list(t)
        if after.host_free or after.peer_free:
            yield from self._places(t)
        counted, total = len({0, *after.free_slots, *tree, *held}) - 1, len(after.slots) - 1
        if counted != total:
            yield self.broken(
                "pool",
                f"{counted} slots accounted for",
                f"{total}",
                f"After {t.action}: free {len(set(after.free_slots))}, tree {len(tree)}, requests and steps "
                f"{len(set(held))}.",
                f"Then {total - counted} of {total} slots are in nobody's hands.",
            )
        kv_held = sum([request.kv_tokens for request in after.requests])
        if kv_in_tree + kv_held + after.kv_free != after.kv_capacity:
            yield self.broken(
                "key-value tokens",
                f"{kv_in_tree} in the tree + {kv_held} in requests + {after.kv_free} free",
                f"{after.kv_capacity}",
                f"After step {t.step} ({t.action}) {kv_in_tree + kv_held + after.kv_free} tokens are "
                "accounted for.",
            )

    def _free_list(self, t: Transition) -> Iterable[Violation]:
        for slot, times in _wrong(t.after.free_slots, 1, len(t.after.slots)):
            found = f"{times} times on the free list"
            yield self.broken(
                f"slot {slot}",
                found,
                f"each of slots 1..{len(t.after.slots) - 1} at most once",
                f"After step {t.step} ({t.action}) slot {slot} is {found}.",
                "Then it will be handed to two requests, or to one that may not have it.",
            )

    def _places(self, t: Transition) -> Iterable[Violation]:
        """The free lists of places outside the pool."""
        for where in ("host", "peer"):
            free, total = getattr(t.after, f"{where}_free"), len(getattr(t.after, f"{where}_places"))
            for place, times in _wrong(free, 0, total):
                yield self.broken(
                    f"{where} place {place}",
                    f"{times} times on the free list",
                    f"each of places 0..{total - 1} at most once",
                    f"After step {t.step} ({t.action}) {where} place {place} is {times} times on its "
                    "free list.",
                    "Then two checkpoints will be written to one place.",
                )


def _wrong(free: tuple[int, ...], first: int, end: int) -> Iterable[tuple[int, int]]:
    """Return what is on a free list more than once or is none of ``first..end - 1``, and how often."""
    if not free or (len(set(free)) == len(free) and first <= min(free) and max(free) < end):
        return ()
    return [(one, times) for one, times in Counter(free).items() if times > 1 or not first <= one < end]


def _in_tree(nodes: tuple[NodeView, ...]) -> tuple[frozenset[int], int]:
    """Return the slots and the number of key-value tokens that the nodes own; counted once per tree."""
    global _counted
    of, slots, tokens = _counted
    if of is not nodes:
        slots = frozenset(node.state for node in nodes if node.state is not None)
        tokens = sum(node.kv_tokens for node in nodes)
        _counted = (nodes, slots, tokens)
    return slots, tokens


_counted: tuple[tuple[NodeView, ...] | None, frozenset[int], int] = (None, frozenset(), 0)
