"""Faults in copying a slot's state."""

from __future__ import annotations

from replaylife.lifecycle.faults.fault import Fault
from replaylife.lifecycle.planned import PlannedRow
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.store import StateStore
from replaylife.lifecycle.strategies import NoBuffer
from replaylife.radix import Node


class _CopyActiveSlot(StateStore):
    def publish_active(self, request: Request, purpose: str) -> None:
        self.publish_now(request, purpose)


class _UnpinnedSource(StateStore):
    def pin(self, request: Request, node: Node) -> None:
        """Take the node's state without a lock on it."""


class _CowEveryTime(StateStore):
    def run_cow(self, request: Request) -> None:
        if request.pending_cow is not None:
            self._copy_for(request, request.pending_cow)


class _ReplacementUnfilled(NoBuffer):
    def commit(self, row: PlannedRow) -> None:
        for number, copy in enumerate(row.copies if not row.decode else ()):
            replacement, row.request.slot = copy.dst, copy.dst
            row.copies[number] = copy._replace(dst=row.slot)
            self.store.pool.clear(replacement)
        super().commit(row)


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

COW_SOURCE_UNPINNED = Fault(
    id="cow-source-unpinned",
    title="The source of a deferred copy is not locked",
    source="https://github.com/sgl-project/sglang/pull/29354",
    mechanism=(
        "The copy is recorded at match time and runs before the next forward. Unlocked, the source can be "
        "evicted and its slot filled by another request in between: the copy takes that one's state."
    ),
    right_value="the matched node stays locked until the copy is done",
    scenario="cow-source-unpinned",
    mixin=_UnpinnedSource,
    ledger=("cow-source-pinned",),
    numeric=(),
)

COW_RUNS_TWICE = Fault(
    id="cow-runs-twice",
    title="A deferred copy-on-write runs before every forward",
    source="https://github.com/sgl-project/sglang/pull/27095",
    mechanism=(
        "The record of a deferred copy is not forgotten when the copy has run, so the next forward copies "
        "again: the state falls back to the cached prefix while the tokens are further on."
    ),
    right_value="one copy, before the request's first forward",
    scenario="cow-runs-twice",
    mixin=_CowEveryTime,
    ledger=("cow-once", "cow-source-pinned"),
    numeric=(),
)

STASH_LEAVES_SLOT_UNFILLED = Fault(
    id="stash-leaves-slot-unfilled",
    title="A chunk's slot is donated and its replacement is not filled",
    source="https://github.com/sgl-project/sglang/pull/24954",
    mechanism=(
        "After a chunk the tree takes the request's own slot, and the request goes on in a fresh one, into "
        "which the state is to be copied before the next chunk. That copy is lost on the way."
    ),
    right_value="the replacement covers 6 tokens before the next chunk reads it",
    scenario="stash-leaves-slot-unfilled",
    mixin=_ReplacementUnfilled,
    ledger=("live-state-complete",),
    numeric=("state-matches-oracle",),
)
