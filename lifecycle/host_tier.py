"""Checkpoints outside the pool: in host memory, and in the pool of another engine."""

from __future__ import annotations

from dataclasses import dataclass

from replaylife.lifecycle.events import (
    Cancelled,
    CopyAborted,
    CopyFinished,
    CopyKind,
    CopyRefused,
    CopyStarted,
    PlaceFreed,
    PlaceKind,
    Published,
)
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.store import StateStore
from replaylife.pool import EMPTY, CheckpointPool, Fold, Moved
from replaylife.radix import Match, Node


@dataclass(slots=True)
class CopyInFlight:
    """A copy that has begun: see :class:`CopyStarted`. ``node`` is what it is of, ``locked`` what it pins."""

    kind: CopyKind
    of: str
    src: int
    dst: int
    node: Node | None = None
    request: Request | None = None
    locked: Node | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request that waits for its return: the checkpoint of ``tokens`` lies in ``place``."""

    where: PlaceKind
    place: int
    tokens: tuple[int, ...]

    @property
    def fold(self) -> Fold:
        """The tokens that the checkpoint covers."""
        return EMPTY.after(self.tokens)


class HostTier:
    """Moves checkpoints between slots and places outside the pool, whole and only after a fold.

    A copy of a tree node's state is begun, then finished or aborted. Until then the node is pinned, so that
    neither the source nor the target can be handed to anybody else; nothing is claimed of the target before
    the copy has arrived. A retracted request's state is backed up, and restored, at once. ``copies`` are
    those in flight by what they are of, ``queue`` the names of requests that were rejected, retracted or
    transferred and may come back, ``waiting`` what some of them left outside the pool.
    """

    def __init__(
        self, store: StateStore, host: CheckpointPool | None = None, peer: CheckpointPool | None = None
    ) -> None:
        self.store, self.host, self.peer = store, host, peer
        self.copies: dict[str, CopyInFlight] = {}
        self.waiting: dict[str, Waiting] = {}
        self.queue: set[str] = set()

    def places(self, where: PlaceKind) -> CheckpointPool:
        """Return the places of a kind. Raises ``RuntimeError`` where the configuration has none."""
        places = self.host if where == "host" else self.peer
        if places is None:
            raise RuntimeError(f"there are no {where} places; raise cache.{where}_slots")
        return places

    # -- copies of tree nodes ------------------------------------------------------------------------

    def offload(self, node: Node) -> None:
        """Begin to copy the node's state to host memory, or say why that cannot be."""
        of = f"node {node.id}"
        place = self.places("host").allocate()
        if place is None:
            self._refuse("offload", of, "no place free in host memory")
            return
        slot = node.state
        assert slot is not None
        self._begin(CopyInFlight("offload", of, slot, place, node=node))

    def load(self, node: Node) -> bool:
        """Begin to copy the node's checkpoint in host memory to a slot, or say why that cannot be."""
        of, place = f"node {node.id}", node.host
        assert place is not None
        self.store.tree.lock(node)  # making room must not take the copy away
        slot = self.store.take_slot(f"load of node {node.id}")
        self.store.tree.unlock(node)
        if slot is None:
            self._refuse("load", of, "no slot free, none to evict")
            return False
        self._begin(CopyInFlight("load", of, place, slot, node=node))
        return True

    def load_now(self, node: Node) -> bool:
        """Copy the node's checkpoint in host memory to a slot at once; ``False`` if that cannot be now."""
        if f"node {node.id}" in self.copies or not self.load(node):
            return False
        self.finish(f"node {node.id}")
        return True

    def _begin(self, copy: CopyInFlight) -> None:
        self.copies[copy.of] = copy
        self._pin(copy)
        places = self.peer if copy.kind == "transfer" else self.host
        listed = () if places is None else places.components()
        self.store.events.append(CopyStarted(copy.kind, copy.of, copy.src, copy.dst, listed))

    def _pin(self, copy: CopyInFlight) -> None:
        """Lock the node that the copy is of: neither end may change hands before the copy has ended."""
        if copy.node is not None:
            self.store.tree.lock(copy.node)
            copy.locked = copy.node

    def _unpin(self, copy: CopyInFlight) -> None:
        if copy.locked is not None:
            self.store.tree.unlock(copy.locked)
            copy.locked = None

    def finish(self, of: str) -> Request | None:
        """A copy in flight arrives: what it brought is claimed. Returns a request that has left with it."""
        copy = self.copies.pop(of)
        match copy.kind:
            case "offload":
                self._arrive(copy, self.places("host").save(copy.src, copy.dst))
                self._claim_host(copy)
            case "load":
                self._arrive(copy, self.places("host").load(copy.src, copy.dst))
                self._claim_slot(copy)
            case _:
                self._arrive(copy, self.places("peer").save(copy.src, copy.dst), "peer")
                self._claim_peer(copy)
        self._unpin(copy)
        return copy.request

    def _arrive(self, copy: CopyInFlight, moved: Moved, where: PlaceKind = "host") -> None:
        self._moved(copy.kind, copy.of, moved, where)

    def _moved(self, kind: CopyKind, of: str, moved: Moved, where: PlaceKind) -> None:
        listed = self.places(where).components()
        self.store.events.append(
            CopyFinished(kind, of, moved.src, moved.dst, moved.pending, moved.length, listed, where)
        )

    def _claim_host(self, copy: CopyInFlight) -> None:
        assert copy.node is not None
        self.store.tree.attach_host(copy.node, copy.dst)

    def _claim_slot(self, copy: CopyInFlight) -> None:
        """The node has a state again; one that it got from elsewhere meanwhile stays, this one goes."""
        node, store = copy.node, self.store
        assert node is not None
        if node.state is not None:
            store.free_slot(copy.dst, "the node has a state by now")
            return
        store.tree.attach_state(node, copy.dst)
        store.published[node.id] = store.pool.step
        store.events.append(Published("", node.id, copy.dst, node.key_len, "load"))

    def abort(self, of: str) -> None:
        """A copy in flight fails: its target goes back to the free list, once, and its source is let go."""
        copy = self.copies.pop(of)
        self.store.events.append(CopyAborted(copy.kind, of, copy.src, copy.dst))
        self._give_back_target(copy)
        self._unpin(copy)
        if copy.request is not None:
            copy.request.closing = None

    def _give_back_target(self, copy: CopyInFlight) -> None:
        if copy.kind == "load":
            self.store.free_slot(copy.dst, "its load was aborted")
        else:
            self.free("peer" if copy.kind == "transfer" else "host", copy.dst, f"its {copy.kind} was aborted")

    def _refuse(self, kind: CopyKind, of: str, reason: str) -> None:
        self.store.events.append(CopyRefused(kind, of, reason))

    def free(self, where: PlaceKind, place: int, reason: str) -> None:
        """Put a place back on its free list."""
        self.places(where).deallocate(place)
        self.store.events.append(PlaceFreed(where, place, reason))

    # -- requests that leave and come back -----------------------------------------------------------

    def back_up(self, request: Request) -> None:
        """Keep a retracted request's state in host memory, if there is a place: what its ring held included.

        Nothing is kept of a slot that has not been filled yet. Tokens that the host has not seen are no part
        of the request: a state that has absorbed some is kept as of the last fold before them, or not at all.
        """
        if self.host is None or request.pending_cow is not None:
            return
        length = request.committed
        if request.executed == length:
            self._settle(request)
        else:
            length = request.folded
            self.store.pool.reset_cursor(request.held_slot)
        if not 0 < length <= request.committed:
            return
        place = self.host.allocate()
        if place is None:
            self._refuse("backup", f"request {request.id}", "no place free in host memory")
            return
        moved = self.host.save(request.held_slot, place)
        self._moved("backup", f"request {request.id}", moved, "host")
        self._remember(request, "host", place, length)

    def _settle(self, request: Request) -> None:
        """Fold what is in the ring: a checkpoint outside the pool takes no ring."""
        self.store.fold(request, request.held_slot)

    def _remember(self, request: Request, where: PlaceKind, place: int, length: int) -> None:
        self.waiting[request.id] = Waiting(where, place, tuple(request.tokens[:length]))

    def returning(self, name: str, tokens: tuple[int, ...], beyond: int) -> Waiting | None:
        """Return what a request left outside the pool, if that covers more than ``beyond`` tokens."""
        kept = self.waiting.get(name)
        if kept is None or not beyond < len(kept.tokens) < len(tokens):
            return None
        return kept if tokens[: len(kept.tokens)] == kept.tokens else None

    def look_up(self, name: str, tokens: tuple[int, ...], met: Match) -> tuple[Waiting | None, Match]:
        """Look outside the pool for more than ``met``: what the request left there, or a node's copy.

        A node's copy in host memory is loaded, so that the match finds its state; what the request itself
        left is only returned: its slot is still to be taken.
        """
        reach = met.state_len if met.host_node is None else met.host_node.key_len
        kept = self.returning(name, tokens, reach)
        if kept is None and met.host_node is not None and self.load_now(met.host_node):
            met = self.store.tree.match(tokens, limit=len(tokens) - 1)
        return kept or self.returning(name, tokens, met.state_len), met

    def restore(self, request: Request, kept: Waiting) -> None:
        """Fill the request's slot, which nobody has written, with what it left outside the pool."""
        moved = self.places(kept.where).load(kept.place, request.held_slot)
        self._moved("restore", f"request {request.id}", moved, kept.where)

    def forget(self, name: str, reason: str) -> None:
        """Give up what a request left outside the pool, if it left anything."""
        kept = self.waiting.pop(name, None)
        if kept is not None:
            self.free(kept.where, kept.place, reason)

    def welcome(self, name: str) -> None:
        """A request runs, for the first time or again: what it left outside the pool has served."""
        self.forget(name, "its request is back")
        self.queue.discard(name)

    def end_session(self, name: str) -> None:
        """A conversation is over: its last turn does not come back from the queue."""
        self.forget(name, "its session has ended")
        self.queue.discard(name)

    def cancel(self, name: str) -> None:
        """A request leaves the waiting queue for good: nothing of it stays behind."""
        self.forget(name, "its request was cancelled")
        self.queue.discard(name)
        self.store.rejected.pop(name, None)
        self.store.retracted.pop(name, None)
        self.store.events.append(Cancelled(name))

    # -- transfer to another pool --------------------------------------------------------------------

    def transfer(self, request: Request) -> None:
        """Begin to send a request's checkpoint to another pool, folded first, or say why that cannot be.

        The request holds its slot, and nobody runs it, until the other side has acknowledged.
        """
        of = f"request {request.id}"
        place = self.places("peer").allocate()
        if place is None:
            self._refuse("transfer", of, "no slot free in the other pool")
            return
        self._settle_to_send(request)
        request.closing = "transfer"
        self._begin(CopyInFlight("transfer", of, request.held_slot, place, request=request))

    def _settle_to_send(self, request: Request) -> None:
        """Fold what is in the ring: the ring does not go along, and the receiver starts with an empty one."""
        self.store.fold(request, request.held_slot)

    def _claim_peer(self, copy: CopyInFlight) -> None:
        assert copy.request is not None
        self._remember(copy.request, "peer", copy.dst, copy.request.committed)
