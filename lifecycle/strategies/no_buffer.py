"""``no_buffer``: the request's only slot is donated at finish."""

from __future__ import annotations

from replaylife.lifecycle.planned import PlannedCopy, PlannedRow
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.strategies.base import Strategy


class NoBuffer(Strategy):
    """The request's only slot is donated at finish; live requests leave copies at chunk ends.

    Source: SGLang's ``no_buffer`` mamba scheduler strategy; the finish rule is sgl-project/sglang#28451.
    """

    on_grid = False

    def plan(self, row: PlannedRow) -> None:
        """A copy at each chunk end and, with ``track: snapshot``, at each track point."""
        length = self.planner.checkpoint_in(row.start, row.end, decode=True) if row.decode else row.end
        if length is None or self.store.has_state(row.request, length):
            return
        slot = self.store.take_slot(f"checkpoint of {row.request.id}")
        if slot is None:
            self.store.skip(row.request, length, "no slot free, none to evict")
        else:
            row.copies.append(PlannedCopy(length, slot))

    def commit(self, row: PlannedRow) -> None:
        """Publish the copies; a key that already had a state is only refreshed."""
        for copy in row.copies:
            self.store.publish(row.request, copy, "track" if row.decode else "chunk")
        if not row.copies and not row.decode and self.store.has_state(row.request, row.end):
            self.store.refresh(row.request, row.end)

    def finish(self, request: Request) -> int:
        """Donate the slot: its state folded to the end first, or the key cut to the last fold."""
        if self.store.cache.finish == "fold" and request.executed == request.committed:
            self.store.fold(request, request.held_slot)
        key_len = self._donation_length(request)
        self._settle(request.held_slot)
        if key_len > request.committed:
            self.store.skip(request, request.committed, "its state has absorbed tokens past the end")
            self.store.give_up_slot(request, "finished without a state to donate")
            return 0
        self.store.donate(request, key_len)
        return key_len

    def _settle(self, slot: int) -> None:
        """Leave only the checkpoint in ``slot``: later records are forgotten, the live window is rewound."""
        self.store.pool.reset_cursor(slot)
        self.store.pool.rewind_conv(slot)

    def _donation_length(self, request: Request) -> int:
        """Return how many tokens the slot's checkpoint covers: up to the last executed fold.

        Without overlap that is the committed length less the pending records.
        """
        return request.folded
