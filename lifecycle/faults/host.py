"""Faults in what leaves the pool: offloads, loads, backups of retracted requests, transfers."""

from __future__ import annotations

from replaylife.lifecycle.events import Published
from replaylife.lifecycle.faults.fault import Fault
from replaylife.lifecycle.host_tier import CopyInFlight, HostTier
from replaylife.lifecycle.request import Request
from replaylife.pool import CheckpointPool


class _RingDropped(HostTier):
    def _settle(self, request: Request) -> None:
        """Back up temporal and conv as they stand; the cursor is cleared when the slot is taken again."""


class _SentWithoutFold(HostTier):
    def _settle_to_send(self, request: Request) -> None:
        """Send the checkpoint as of the last fold, under all committed tokens."""


class _RingListed(CheckpointPool):
    def components(self) -> tuple[str, ...]:
        return (*super().components(), "ring_d", "ring_k", "ring_g", "write_pos")


class _CopyUnpinned(HostTier):
    def _pin(self, copy: CopyInFlight) -> None:
        """Leave the node unlocked while the copy is in flight."""


class _LoadPublishedEarly(HostTier):
    def _begin(self, copy: CopyInFlight) -> None:
        super()._begin(copy)
        if copy.kind == "load" and copy.node is not None:
            self.store.tree.attach_state(copy.node, copy.dst)
            self.store.published[copy.node.id] = self.store.pool.step
            self.store.events.append(Published("", copy.node.id, copy.dst, copy.node.key_len, "load"))


class _AbortedLoadLands(HostTier):
    def _give_back_target(self, copy: CopyInFlight) -> None:
        super()._give_back_target(copy)
        self.copies[copy.of] = copy


class _AbortFreesTwice(HostTier):
    def _give_back_target(self, copy: CopyInFlight) -> None:
        super()._give_back_target(copy)
        super()._give_back_target(copy)


class _CancelLeaks(HostTier):
    def forget(self, name: str, reason: str) -> None:  # noqa: ARG002
        self.waiting.pop(name, None)


RETRACT_DROPS_RING = Fault(
    id="retract-drops-ring",
    title="The backup of a retracted request leaves out what its ring held",
    source="https://github.com/sgl-project/sglang/issues/38485",
    mechanism=(
        "The backup to host memory copies temporal and conv as of the last fold, and the ring's cursor is "
        "cleared before they are restored, so that accepted tokens vanish while the token count stays."
    ),
    right_value="fold before the backup: the copy covers all 14 tokens",
    scenario="retract-drops-ring",
    mixin=_RingDropped,
    ledger=("key-matches-state", "cow-source-folded"),
    numeric=("state-matches-oracle",),
)

TRANSFER_WITHOUT_FOLD = Fault(
    id="transfer-without-fold",
    title="A request is transferred with the checkpoint of its last fold",
    source="https://github.com/ROCm/ATOM/pull/1883",
    mechanism=(
        "Between folds the checkpoint is behind the request, so whatever reads it (publish, preempt, "
        "transfer) folds first. Sent as it stands, it lacks the records in the ring, which stays behind."
    ),
    right_value="fold first: the checkpoint covers all 14 tokens",
    scenario="transfer-without-fold",
    mixin=_SentWithoutFold,
    ledger=("key-matches-state", "cow-source-folded"),
    numeric=("state-matches-oracle",),
)

TRANSFER_LISTS_RING = Fault(
    id="transfer-lists-ring",
    title="The transfer list names the ring tensors",
    source="https://github.com/sgl-project/sglang/pull/28451",
    mechanism=(
        "Ring tensors are scratch of their slot. Registered for transfer like the state, they are sent with "
        "every request: records that were folded already, for a receiver whose cursor is its own."
    ),
    right_value="temporal and conv_checkpoint; the receiver starts with an empty ring",
    scenario="transfer-lists-ring",
    mixin=_RingListed,
    ledger=("ring-stays-home",),
    numeric=(),
    damage="what is sent too much is never read: the receiver's cursor is its own",
)

HOST_COPY_OF_REUSED_SLOT = Fault(
    id="host-copy-of-reused-slot",
    title="A slot is evicted and written again while it is being copied to host memory",
    source="https://github.com/sgl-project/sglang/pull/24954",
    mechanism=(
        "The copy to host memory runs beside the forward stream and nothing pins its source: the slot is "
        "evicted, filled by another request, and what arrives under the node's key is that one's state."
    ),
    right_value="the node stays locked until the copy has arrived",
    scenario="host-copy-of-reused-slot",
    mixin=_CopyUnpinned,
    ledger=("cow-source-pinned",),
    numeric=(),
)

LOAD_PUBLISHED_EARLY = Fault(
    id="load-published-early",
    title="A slot is published before the load that fills it has arrived",
    source="https://github.com/sgl-project/sglang/pull/30986",
    mechanism=(
        "The slot that a checkpoint is to be loaded into is set before the load is known to proceed. When "
        "it is aborted nothing undoes that: whoever matches continues from what the last owner left there."
    ),
    right_value="the node has no state until the load has arrived",
    scenario="load-published-early",
    mixin=_LoadPublishedEarly,
    ledger=("key-matches-state", "slot-has-one-owner", "written-before-published"),
    numeric=("state-matches-oracle",),
)

LOAD_INTO_FREED_SLOT = Fault(
    id="load-into-freed-slot",
    title="An aborted load lands in the slot that was given back",
    source="https://github.com/sgl-project/sglang/pull/30986",
    mechanism=(
        "Aborting a load returns its slot to the free list, but the copy itself is not called off: it "
        "arrives in a slot that may belong to another request by then."
    ),
    right_value="an aborted copy is in flight no more, its slot on the free list once",
    scenario="load-into-freed-slot",
    mixin=_AbortedLoadLands,
    ledger=("slot-has-one-owner", "cow-source-pinned"),
    numeric=(),
)

TRANSFER_ABORT_FREES_TWICE = Fault(
    id="transfer-abort-frees-twice",
    title="A failed transfer returns the receiver's slot twice",
    source="https://github.com/sgl-project/sglang/pull/39209",
    mechanism=(
        "Both the transfer's own clean-up and the request's return the slot that was taken for it in the "
        "other pool: the next two transfers share it."
    ),
    right_value="the receiver's slot is on its free list exactly once",
    scenario="transfer-abort-frees-twice",
    mixin=_AbortFreesTwice,
    ledger=("slot-has-one-owner", "slots-conserved"),
    numeric=(),
)

CANCEL_LEAKS_HOST_COPY = Fault(
    id="cancel-leaks-host-copy",
    title="A request aborted in the waiting queue leaves its copy in host memory",
    source="https://github.com/sgl-project/sglang/pull/16067",
    mechanism=(
        "A retracted request waits for its return with a copy of its state in host memory. Aborted there, "
        "its record is dropped and the copy belongs to nobody: each abort makes host memory smaller."
    ),
    right_value="the place is back on the free list",
    scenario="cancel-leaks-host-copy",
    mixin=_CancelLeaks,
    ledger=("slot-has-one-owner",),
    numeric=(),
    damage="a leak: no state is wrong, host memory has room for one fewer",
)
