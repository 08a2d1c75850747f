"""Faults in which length a state is taken for, when it is matched, filed or continued from."""

from __future__ import annotations

from replaylife.lifecycle.engine import ReferenceEngine
from replaylife.lifecycle.faults.fault import Fault
from replaylife.lifecycle.planned import PlannedCopy, PlannedRow
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.store import StateStore
from replaylife.lifecycle.strategies import ExtraBuffer, NoBuffer
from replaylife.radix import Match


class _SmallestProposal(ExtraBuffer):
    def _donate_stamped(self, request: Request, copy: PlannedCopy) -> None:
        shared = self.store.tree.match(tuple(request.tokens[: copy.length])).kv_len
        super()._donate_stamped(request, copy._replace(length=shared or copy.length))


class _DeeperNodeTaken(NoBuffer):
    def commit(self, row: PlannedRow) -> None:
        super().commit(row)
        request = row.request
        prompt = tuple(request.tokens[: request.prompt_len])
        met = self.store.tree.match(prompt, limit=request.prompt_len - 1)
        if not row.decode and met.state_len > request.scheduled:
            request.schedule_to(met.state_len)
            request.execute_to(met.state_len)
            request.commit_to(met.state_len)


class _KvHitIsEnough(ReferenceEngine):
    def _start_at(self, request: Request, met: Match, start: int) -> None:
        super()._start_at(request, met, max(start, met.kv_len))


class _ColumnOfAnotherUnit(StateStore):
    def fill(self, request: Request, slot: int, source: int | None) -> None:
        others = [node.state for node in self.tree.lru_states() if node is not request.locked]
        super().fill(request, slot, others[-1] if source is not None and others else source)


LATER_STATE_ON_SHARED_KEY = Fault(
    id="later-state-on-shared-key",
    title="A later state is filed under the length that another component proposed",
    source="https://github.com/sgl-project/sglang/issues/38815",
    mechanism=(
        "Each component proposes the length up to which it can be cached, and the insert takes the smallest. "
        "Key-value can be cut to that; a recurrent state cannot, and goes under the shorter key as it is."
    ),
    right_value="no state under the key of 12, or the state at 24 under the key of 24",
    scenario="later-state-on-shared-key",
    mixin=_SmallestProposal,
    ledger=("key-matches-state", "checkpoint-on-grid"),
    numeric=("state-matches-oracle",),
)

REMATCH_TAKES_DEEPER_NODE = Fault(
    id="rematch-takes-deeper-node",
    title="A request takes over the length of a deeper node that another has just inserted",
    source="https://github.com/sgl-project/sglang/pull/11214",
    mechanism=(
        "After a chunk the request inserts its prefix and matches again. In the same batch another request "
        "has inserted more of the same prompt: the match is longer, its length is taken, its state is not."
    ),
    right_value="go on from 4 tokens with the state at 4, or copy the deeper node's state too",
    scenario="rematch-takes-deeper-node",
    mixin=_DeeperNodeTaken,
    ledger=("live-state-complete",),
    numeric=("state-matches-oracle",),
)

KV_HIT_TAKEN_FOR_STATE = Fault(
    id="kv-hit-taken-for-state",
    title="A hit of the attention layers is taken for one of the recurrent layers",
    source="https://github.com/vllm-project/vllm/pull/47491",
    mechanism=(
        "One token count says for all layers where a request starts. Set to the key-value hit although the "
        "state is gone, it makes the recurrent layers continue an empty state as if it covered the prefix."
    ),
    right_value="the hit common to all layers: 0 tokens",
    scenario="kv-hit-taken-for-state",
    mixin=_KvHitIsEnough,
    ledger=("live-state-complete",),
    numeric=("state-matches-oracle",),
)

STATE_COLUMN_IN_WRONG_UNIT = Fault(
    id="state-column-in-wrong-unit",
    title="The state to start from is looked up in units of another block size",
    source="https://github.com/vllm-project/vllm/issues/55600",
    mechanism=(
        "The column of a request's last state is its cached length divided by the block size. Divided by a "
        "smaller block, another group's, it points past the request's own states into somebody else's."
    ),
    right_value="the state of the node that was matched: slot 2",
    scenario="state-column-in-wrong-unit",
    mixin=_ColumnOfAnotherUnit,
    ledger=("cow-source-pinned",),
    numeric=(),
)
