"""Faults in copying a slot's state."""

from __future__ import annotations

from replaylife.lifecycle.faults.fault import Fault
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.store import StateStore


class _CopyActiveSlot(StateStore):
    def publish_active(self, request: Request, purpose: str) -> None:
        self.publish_copy(request, purpose)


COPY_ACTIVE_SLOT = Fault(
    id="copy-active-slot",
    title="A running request's slot is copied without a fold",
    source="https://github.com/sgl-project/sglang/pull/28451",
    mechanism=(
        "A slot copy takes temporal and conv but not the ring, and zeroes the copy's cursor. If the source "
        "is a live slot with w pending records, the copy silently lacks the last w tokens."
    ),
    right_value="fold first: the copy covers 38 tokens, as its key says",
    scenario="copy-active-slot",
    mixin=_CopyActiveSlot,
    ledger=("key-matches-state", "cow-source-folded"),
    numeric=("state-matches-oracle",),
)
