"""Claims about copying a slot's checkpoint."""

from __future__ import annotations

from collections.abc import Iterable

from replaylife.lifecycle.events import CheckpointCopied, CopyFinished
from replaylife.lifecycle.events_outside import from_to
from replaylife.lifecycle.invariants.base import Invariant, requests_of, slot_view
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import CopyView, Transition, Violation


class CowSourceFolded(Invariant):
    """No copy reads a slot whose ring is not empty."""

    id = "cow-source-folded"
    claim = "the source of a slot copy has nothing pending in its ring"

    def applies_to(self, capabilities: Capabilities) -> bool:
        """Only with ReplaySSM on there is a ring."""
        return capabilities.replayssm

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check every copy of this action, and every copy that is still to come."""
        for event in t.events:
            if isinstance(event, CheckpointCopied) and event.pending:
                yield self._explain(t, event.src, event.dst, event.pending, event.length, "was copied")
            elif isinstance(event, CopyFinished) and event.pending:
                yield self.broken(
                    f"slot {event.src}",
                    f"left with {event.pending} records pending",
                    "write_pos 0",
                    f"The {event.kind} of {event.of} took slot {event.src} to {event.place} place "
                    f"{event.dst} (step {t.step}, {t.action}).",
                    f"Temporal covers {event.length} tokens and {event.pending} more are in the ring, which "
                    "stays.",
                    f"Then what arrives lacks the last {event.pending} tokens.",
                )
        for request in t.after.requests:
            source = None if request.pending_cow is None else slot_view(t, request.pending_cow[0])
            if source is not None and request.pending_cow is not None and source.write_pos:
                dst, length = request.pending_cow[1], source.temporal.length
                yield self._explain(t, source.index, dst, source.write_pos, length, "is to be copied")

    def _explain(self, t: Transition, src: int, dst: int, pending: int, length: int, verb: str) -> Violation:
        return self.broken(
            f"slot {src}",
            f"copied with {pending} records pending",
            "write_pos 0",
            f"Slot {src} {verb} to slot {dst} (step {t.step}, {t.action}).",
            f"Its temporal covers {length} tokens and {pending} more are in its ring; a copy takes no ring.",
            f"Then slot {dst} lacks the last {pending} tokens.",
        )


class CowSourcePinned(Invariant):
    """The source of a copy that is still to come cannot go away."""

    id = "cow-source-pinned"
    claim = "until a copy has run, what it reads is the state of a node that its request or the copy locks"

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check every request with a copy recorded, and every copy of a node that is in flight."""
        for copy in t.after.copies:
            yield from self._in_flight(t, copy)
        for request in t.after.requests:
            if request.pending_cow is None:
                continue
            source = request.pending_cow[0]
            node = None if request.locked is None else t.after.node(request.locked)
            if node is None or node.state != source or node.state_lock < 1:
                holder = "no node" if node is None else f"node {node.id} (state {node.state})"
                yield self.broken(
                    f"request {request.id}",
                    f"copy source slot {source}, locked: {holder}",
                    f"a lock on the node whose state is slot {source}",
                    f"Let request {request.id} be about to copy slot {source} to {request.pending_cow[1]}.",
                    f"It locks {holder}.",
                    f"Then slot {source} may be evicted and written by another request before the copy runs.",
                )

    def _in_flight(self, t: Transition, copy: CopyView) -> Iterable[Violation]:
        """An offload reads the slot of a node, a load its copy in host memory."""
        if copy.kind == "transfer":
            return
        node = None if copy.locked is None else t.after.node(copy.locked)
        host = None if node is None else t.after.host_copy(node.id)
        source = node.state if node is not None and copy.kind == "offload" else None
        if copy.kind == "load":
            source = None if host is None else host.index
        if node is None or source != copy.src or node.state_lock < 1:
            holder = "no node" if node is None else f"node {node.id}"
            yield self.broken(
                copy.of,
                f"{copy.kind} {from_to(copy)}, locked: {holder}",
                f"a lock on {copy.of}",
                f"Let the {copy.kind} of {copy.of} be in flight, {from_to(copy)}.",
                f"It locks {holder}.",
                "Then what it reads may be evicted and written by another before it arrives.",
            )


class CowOnce(Invariant):
    """A copy-on-write runs exactly once."""

    id = "cow-once"
    claim = "each copy-on-write runs exactly once, before the request's first forward"
    judges = (requests_of,)

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check every request: at most one copy, and none left over once it has run tokens of its own."""
        for request in requests_of(t):
            late = request.pending_cow is not None and request.executed > request.cached
            if request.copies <= 1 and not late:
                continue
            left = "and one more is recorded" if request.pending_cow is not None else "and none is recorded"
            yield self.broken(
                f"request {request.id}",
                f"{request.copies} copies run, {left}",
                "one copy, then none recorded",
                f"Let request {request.id} have executed {request.executed} tokens, {request.cached} of them "
                "cached.",
                f"Its copy-on-write has run {request.copies} times, {left}.",
                "Then a copy puts its state back to the cached prefix while its tokens are further on.",
            )
