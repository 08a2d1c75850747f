"""Faults in what a finishing request donates (cache_finished_req)."""

from __future__ import annotations

from replaylife.lifecycle.faults.fault import Fault
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.strategies import NoBuffer
from replaylife.pool import MambaPool


class _FullLengthDonation(NoBuffer):
    def _donation_length(self, request: Request) -> int:
        return request.committed


class _CursorKeptAtDonation(NoBuffer):
    def _settle(self, slot: int) -> None:
        self.store.pool.rewind_conv(slot)


class _LiveConvDonation(MambaPool):
    def rewind_conv(self, slot: int) -> None:
        self.save_conv(slot)


FINISH_DONATES_FULL_LENGTH = Fault(
    id="finish-donates-full-length",
    title="Finish donates the slot under the full committed length",
    source="https://github.com/sgl-project/sglang/pull/28451",
    mechanism=(
        "At finish the request's slot goes to the tree under a key of all committed tokens, while temporal "
        "lags by the records still in the ring; the cursor is reset, so those records are lost."
    ),
    right_value="key 26 with temporal 26 (truncate), or key 30 with temporal 30 (fold)",
    scenario="finish-donates-full-length",
    mixin=_FullLengthDonation,
    ledger=("key-matches-state",),
    numeric=("state-matches-oracle",),
)

DONATE_LIVE_CONV = Fault(
    id="donate-live-conv",
    title="Finish donates the live convolution window with the folded state",
    source="https://github.com/sgl-project/sglang/pull/28451",
    mechanism=(
        "The key is cut to the last fold, but the short convolution's window has moved with every decode "
        "step and is donated as it stands: it is ahead of temporal by the pending records."
    ),
    right_value="conv 26 beside temporal 26: the window saved at the last fold",
    scenario="donate-live-conv",
    mixin=_LiveConvDonation,
    ledger=("components-agree",),
    numeric=("state-matches-oracle",),
)

DONATION_KEEPS_CURSOR = Fault(
    id="donation-keeps-cursor",
    title="Finish cuts the key but leaves the cursor on the records it cut",
    source="https://github.com/sgl-project/sglang/pull/28451",
    mechanism=(
        "The key is shortened by the pending records, but write_pos of the donated slot is not cleared with "
        "it: the tree owns a slot whose cursor says that more tokens are to come."
    ),
    right_value="write_pos 0 in a tree-owned slot",
    scenario="donation-keeps-cursor",
    mixin=_CursorKeptAtDonation,
    ledger=("cursor-in-range",),
    numeric=("state-matches-oracle",),
    damage="a copy takes no ring, so a hit is right; a fold of the slot would absorb tokens past its key",
)
