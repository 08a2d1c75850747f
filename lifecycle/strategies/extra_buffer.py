"""``extra_buffer`` and its lazy variant: checkpoints go to slots of their own and are donated from there."""

from __future__ import annotations

from replaylife.lifecycle.planned import PlannedCopy, PlannedRow
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.strategies.base import Strategy
from replaylife.pool import EMPTY


class ExtraBuffer(Strategy):
    """Each request owns two track slots, used in turn (ping-pong).

    At a track point, and at the last grid point of a prefill chunk, the folded checkpoint is copied into the
    next track slot, and its length is stamped when that step has committed. The live slot is never donated.
    Source: SGLang's ``extra_buffer`` mamba scheduler strategy.
    """

    branches = True

    def open(self, request: Request) -> bool:
        """Take two track slots."""
        return self._take(request, 2)

    def _take(self, request: Request, count: int) -> bool:
        while len(request.track_slots) < count:
            slot = self.store.take_slot(f"track slot of {request.id}")
            if slot is None:
                self.close(request)
                return False
            request.track_slots.append(slot)
        return True

    def plan(self, row: PlannedRow) -> None:
        """At most one checkpoint for the row, in the track slot that is next, plus one at a branch point."""
        request, branch = row.request, row.request.branch
        if branch is not None and row.start < branch <= row.end:
            request.branch = None
            known = self.store.has_state(request, branch)  # a sibling may have left one since the match
            slot = None if known else self.store.take_slot(f"branch of {request.id}")
            if slot is not None:
                row.copies.append(PlannedCopy(branch, slot))
        length = self.planner.checkpoint_in(row.start, row.end, decode=row.decode)
        if length is not None and length not in [copy.length for copy in row.copies]:
            row.copies.append(PlannedCopy(length, self._mark(request)))
            row.copies.sort()

    def _next_slot(self, request: Request) -> int:
        """Return the track slot to overwrite, with its stamp withdrawn; it goes to the end of the turn."""
        slot = request.track_slots.pop(0)
        request.track_slots.append(slot)
        request.stamps.pop(slot, None)
        return slot

    def _mark(self, request: Request) -> int:
        """Return the track slot that a step in flight will write from now on."""
        slot = self._next_slot(request)
        request.marks.append(slot)
        return slot

    def commit(self, row: PlannedRow) -> None:
        """Stamp what the step has written; after a chunk publish it (cache_unfinished_req)."""
        for copy in row.copies:
            if copy.dst not in row.request.track_slots:
                self.store.publish(row.request, copy, "branch")
                continue
            row.request.marks.remove(copy.dst)
            if copy.dst in row.request.marks:
                continue  # a later step in flight overwrites it: nothing can be claimed of it now
            self._stamp(row.request, copy)
            if not row.decode:
                self._donate_stamped(row.request, copy)

    def _stamp(self, request: Request, copy: PlannedCopy) -> None:
        request.stamps[copy.dst] = EMPTY.after(request.tokens[: copy.length])

    def _donate_stamped(self, request: Request, copy: PlannedCopy) -> None:
        """Give the tree the stamped slot and take a fresh one for it; skipped when there is none."""
        if self.store.has_state(request, copy.length):
            self.store.refresh(request, copy.length)
            return
        fresh = self.store.take_slot(f"track slot of {request.id}")
        if fresh is None:
            self.store.skip(request, copy.length, "no slot free in exchange")
            return
        request.track_slots[request.track_slots.index(copy.dst)] = fresh
        del request.stamps[copy.dst]
        self.store.publish(request, copy, "chunk")

    def discard(self, row: PlannedRow) -> None:
        """Withdraw what the row wrote; only slots taken for a branch go back by themselves."""
        for copy in row.copies:
            if copy.dst in row.request.track_slots:
                row.request.marks.remove(copy.dst)
            else:
                self.store.free_slot(copy.dst, "its request has ended")
        row.copies.clear()

    def finish(self, request: Request) -> int:
        """Donate the track slot with the largest stamp that the committed key can name, or nothing."""
        stamps = request.stamps.items()
        nameable = {fold.length: slot for slot, fold in stamps if fold.length <= request.committed}
        key_len = max(nameable, default=0)
        if key_len:
            slot = nameable[key_len]
            request.track_slots.remove(slot)
            del request.stamps[slot]
            self.store.publish(request, PlannedCopy(key_len, slot), "finish")
        else:
            self.store.skip(request, request.committed, "no checkpoint is stamped")
        self.store.give_up_slot(request, "finished; a track slot is donated")
        return key_len


class ExtraBufferLazy(ExtraBuffer):
    """One track slot; a second is taken at a track point if one is free.

    With a second slot the old checkpoint stays until the step has committed; without one it is overwritten in
    place and carries no stamp until then. Source: SGLang's lazy variant of ``extra_buffer``.
    """

    def open(self, request: Request) -> bool:
        """Take one track slot."""
        return self._take(request, 1)

    def _next_slot(self, request: Request) -> int:
        """Return a second slot if one is free, else the only one, its stamp withdrawn."""
        if len(request.track_slots) == 1:
            second = self.store.take_free_slot(f"second track slot of {request.id}")
            if second is not None:
                request.track_slots.append(second)
                return second
        return super()._next_slot(request)

    def _stamp(self, request: Request, copy: PlannedCopy) -> None:
        """Stamp the new checkpoint and free the slot of the one before it."""
        super()._stamp(request, copy)
        for slot in [slot for slot in request.track_slots if slot not in (copy.dst, *request.marks)]:
            request.track_slots.remove(slot)
            request.stamps.pop(slot, None)
            self.store.free_slot(slot, "a later checkpoint is stamped")
