"""Where pool and tree meet: taking slots and tokens, publishing checkpoints, moving locks."""

from __future__ import annotations

from replaylife.lifecycle.config import CacheConfig
from replaylife.lifecycle.events import (
    Allocated,
    CheckpointCopied,
    CheckpointFolded,
    Event,
    Evicted,
    Freed,
    Published,
    PublishSkipped,
    StateFolded,
)
from replaylife.lifecycle.planned import PlannedCopy
from replaylife.lifecycle.request import PendingCow, Request
from replaylife.pool import CheckpointPool, Copied, KvBudget, MambaPool
from replaylife.radix import Evicted as TreeEvicted
from replaylife.radix import Node, RadixTree


class StateStore:
    """Pool, tree and key-value budget, and the moves that touch more than one of them.

    Every method appends what happened to ``events``, which the engine empties after each action.
    ``published`` has the step in which each node's state came in, ``retracted`` the records that were in
    the ring of each request whose memory was taken away, ``rejected`` the slot that each request was about to
    copy when its admission was rejected. ``host`` are the places in host memory, if there are any.
    """

    def __init__(
        self, cache: CacheConfig, pool: MambaPool, tree: RadixTree, host: CheckpointPool | None = None
    ) -> None:
        self.cache, self.pool, self.tree, self.host = cache, pool, tree, host
        self.kv = KvBudget(cache.kv_tokens)
        self.events: list[Event] = []
        self.published: dict[int, int] = {}
        self.retracted: dict[str, int] = {}
        self.rejected: dict[str, int] = {}

    # -- making room ---------------------------------------------------------------------------------

    def take_slot(self, holder: str) -> int | None:
        """Take a slot for ``holder``, evicting the least recently used state if none is free."""
        if not self.pool.allocator.num_free:
            self.evict_states(1)
        return self.take_free_slot(holder)

    def take_free_slot(self, holder: str) -> int | None:
        """Take a slot for ``holder`` if one is free; nothing is evicted for it."""
        slot = self.pool.alloc()
        if slot is not None:
            self.events.append(Allocated(slot, holder))
        return slot

    def free_slot(self, slot: int, reason: str) -> None:
        """Return a slot that its holder gives up to the free list."""
        self.pool.free(slot)
        self.events.append(Freed(slot, reason))

    def can_take_kv(self, count: int) -> bool:
        """Whether ``count`` key-value tokens are free or can be evicted. Changes nothing."""
        short = count - self.kv.num_free
        return short <= 0 or short <= sum(len(n.edge) for n in self.tree.nodes() if n.kv_lock == 0)

    def take_kv(self, count: int) -> bool:
        """Take ``count`` key-value tokens, evicting leaves as needed; ``False`` if there are too few."""
        if count > self.kv.num_free:
            self.evict_kv(count - self.kv.num_free)
        if count > self.kv.num_free:
            return False
        self.kv.take(count)
        return True

    def evict_states(self, count: int) -> None:
        """Evict the ``count`` least recently used states that nobody pins."""
        self._give_up("state", self.tree.evict_states(count))

    def evict_kv(self, tokens: int) -> None:
        """Evict leaves, least recently used first, until ``tokens`` key-value tokens are freed."""
        self._give_up("kv", self.tree.evict_kv(tokens))

    def evict_hosts(self, count: int) -> None:
        """Evict the ``count`` least recently used copies in host memory that nobody pins."""
        self._give_up("host", self.tree.evict_hosts(count))

    def release_branch(self, tokens: tuple[int, ...]) -> None:
        """Give up the states, copies and key-value of a conversation that no other one shares."""
        self._give_up("session", self.tree.release_branch(tokens))

    def _give_up(self, purpose: str, evicted: TreeEvicted) -> None:
        for slot in evicted.slots:
            self.pool.free(slot)
        for place in evicted.hosts:
            if self.host is not None:
                self.host.deallocate(place)
        self.kv.give_back(evicted.kv_tokens)
        for node in (*evicted.tombstoned, *evicted.removed):
            self.published.pop(node, None)
        if evicted.slots or evicted.kv_tokens or evicted.hosts:
            self.events.append(Evicted(purpose, *evicted))

    # -- copies --------------------------------------------------------------------------------------

    def pin(self, request: Request, node: Node) -> None:
        """Lock the node whose state the request takes: it must stay until the copy is done."""
        self.tree.lock(node)
        request.locked = node

    def fill(self, request: Request, slot: int, source: int | None) -> None:
        """Give a request its fresh slot: empty, or with a copy of ``source`` recorded for later."""
        request.slot = slot
        if source is None:
            self.pool.clear(slot)
        else:
            request.pending_cow = PendingCow(source, slot)

    def run_cow(self, request: Request) -> None:
        """Run the copy recorded at match time, if any, and forget it."""
        if request.pending_cow is not None:
            self._copy_for(request, request.pending_cow)
            request.pending_cow = None

    def _copy_for(self, request: Request, cow: PendingCow) -> None:
        copied = self.pool.copy_from(cow.src, cow.dst)
        request.copies += 1
        self._copied(copied, "cow", request)

    def _copied(self, copied: Copied, purpose: str, request: Request) -> None:
        self.events.append(
            CheckpointCopied(copied.src, copied.dst, copied.pending, copied.length, purpose, request.id)
        )

    def fold(self, request: Request, slot: int) -> None:
        """Fold whatever is pending in the ring of the request's ``slot``; often nothing is."""
        for folded in self.pool.fold([slot]):
            request.folded = folded.length
            self.events.append(StateFolded(*folded, forced=True))

    # -- publishing ----------------------------------------------------------------------------------

    def has_state(self, request: Request, length: int) -> bool:
        """Whether the tree has a state for the request's first ``length`` tokens, as the host knows them."""
        if length > max(request.prompt_len, request.committed + 1):
            return False  # the last of them has been sampled by a step that the host has not seen
        return self.tree.match(self._key(request, length)).state_len == length

    def copy_checkpoint(self, request: Request, slot: int, copy: PlannedCopy) -> None:
        """Copy the checkpoint in the request's ``slot`` to one that its step has reserved.

        The ring must be empty: a copy takes no ring.
        """
        self._copied(self.pool.copy_from(slot, copy.dst), "publish", request)

    def checkpoint_in_window(
        self, request: Request, slot: int, records: int, position: int, copy: PlannedCopy
    ) -> None:
        """Fold the state after ``position`` tokens of an open verify window into the slot of a copy.

        By then ``records`` were in the ring. The request's slot is left alone.
        """
        self.pool.checkpoint_in_window(slot, records, position, copy.dst)
        self.events.append(CheckpointFolded(slot, copy.dst, records, copy.length, request.id))

    def publish(self, request: Request, copy: PlannedCopy, purpose: str) -> None:
        """Give the tree the slot of a copy; freed if the key has a state by now. The lock moves there."""
        self._insert(request, self._key(request, copy.length), copy.dst, purpose)

    def refresh(self, request: Request, length: int) -> None:
        """Use the tree's state for the request's first ``length`` tokens: it becomes the most recent."""
        self._insert(request, self._key(request, length), None, "refresh")

    def skip(self, request: Request, length: int, reason: str) -> None:
        """Say that nothing is given to the tree, and why."""
        self.events.append(PublishSkipped(request.id, None, length, reason))

    def publish_active(self, request: Request, purpose: str) -> None:
        """Give the tree a checkpoint of a request with records in its ring: fold them, then publish."""
        self.fold(request, request.held_slot)
        self.publish_now(request, purpose)

    def publish_now(self, request: Request, purpose: str) -> None:
        """Give the tree a copy of a running request's checkpoint at its committed length.

        The request's ring must be empty (a chunk end, a track point just folded): a copy takes no ring. The
        request keeps its slot and goes on; its lock moves to the published node. Skipped, and said so, when
        no slot can be had. A key that already has a state is only refreshed.
        """
        length = request.committed
        if self.has_state(request, length):
            self.refresh(request, length)
            return
        slot = self.take_slot(f"checkpoint of {request.id}")
        if slot is None:
            self.skip(request, length, "no slot free, none to evict")
            return
        copy = PlannedCopy(length, slot)
        self.copy_checkpoint(request, request.held_slot, copy)
        self.publish(request, copy, purpose)

    def donate(self, request: Request, key_len: int) -> None:
        """Give the request's own slot to the tree under its first ``key_len`` tokens (cache_finished_req).

        The slot must be folded up to ``key_len`` with both windows there. It is freed if the node already
        has a state. The request does not hold it afterwards.
        """
        slot, request.slot = request.held_slot, None
        self.publish(request, PlannedCopy(key_len, slot), "finish")

    def _key(self, request: Request, length: int) -> tuple[int, ...]:
        """Return the key of a state that covers tokens ``[0, length)`` of the request: exactly those."""
        return tuple(request.tokens[:length])

    def give_up_slot(self, request: Request, reason: str) -> None:
        """Free the request's slot and forget a copy that was still to fill it."""
        slot, request.slot = request.held_slot, None
        request.pending_cow = None
        self.free_slot(slot, reason)

    def release(self, request: Request) -> None:
        """Unlock the request's node and give back the key-value tokens it still owns."""
        if request.locked is not None:
            self.tree.unlock(request.locked)
            request.locked = None
        self.kv.give_back(request.kv_tokens)
        request.kv_tokens = 0

    def _insert(self, request: Request, key: tuple[int, ...], slot: int | None, purpose: str) -> None:
        held_by_tree = 0 if request.locked is None else request.locked.key_len
        inserted = self.tree.insert(key, slot)
        handed_over = max(0, len(key) - max(inserted.known_kv_len, held_by_tree))
        duplicates = max(0, inserted.known_kv_len - held_by_tree)
        request.kv_tokens -= handed_over + duplicates
        self.kv.give_back(duplicates)
        if slot is None or not inserted.took_state:
            reason = "the tree already has a state for this key"
            self.events.append(PublishSkipped(request.id, inserted.node.id, len(key), reason))
            if slot is not None:
                self.free_slot(slot, reason)
        else:
            self.published[inserted.node.id] = self.pool.step
            self.events.append(Published(request.id, inserted.node.id, slot, len(key), purpose))
        self._move_lock(request, inserted.node)

    def _move_lock(self, request: Request, node: Node) -> None:
        self.tree.lock(node)
        if request.locked is not None:
            self.tree.unlock(request.locked)
        request.locked = node
