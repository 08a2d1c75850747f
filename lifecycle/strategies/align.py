"""``align``: a state per block, as vLLM keeps them."""

from __future__ import annotations

from replaylife.lifecycle.planned import PlannedCopy, PlannedRow
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.strategies.base import Strategy


class Align(Strategy):
    """Block i, once hashed, holds the state at ``(i + 1) * block``; the block is the page.

    Prefill chunks but the last end on block boundaries; a block that decoding fills is folded and published.
    Nothing is donated at finish: every full block is in the tree already. Source: vLLM's
    ``mamba_cache_mode: align``.
    """

    def refuse_chunk(self, request: Request, start: int, end: int) -> str | None:
        """A chunk that is not the prompt's last ends on a block boundary."""
        del start
        block = self.planner.grid
        if end == request.prompt_len or end % block == 0:
            return None
        return f"a chunk that is not the last ends on a block boundary; {end} is no multiple of {block}"

    def plan(self, row: PlannedRow) -> None:
        """A checkpoint at the last block boundary that the row reaches."""
        length = self.planner.checkpoint_in(row.start, row.end, decode=row.decode)
        if length is None or self.store.has_state(row.request, length):
            return
        slot = self.store.take_slot(f"block of {row.request.id}")
        if slot is None:
            self.store.skip(row.request, length, "no slot free, none to evict")
        else:
            row.copies.append(PlannedCopy(length, slot))

    def commit(self, row: PlannedRow) -> None:
        """Publish the block."""
        for copy in row.copies:
            self.store.publish(row.request, copy, "block")

    def finish(self, request: Request) -> int:
        """Give the live slot up; the key ends at the last full block that was published."""
        self.store.give_up_slot(request, "finished; its full blocks are in the tree")
        return 0 if request.locked is None else request.locked.key_len
