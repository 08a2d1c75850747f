"""Verify windows: what is kept is what decoding would have said, and the rest never happened."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch

from replaylife.lifecycle.actions import (
    Abort,
    Action,
    Admit,
    Checkpoint,
    Commit,
    Draft,
    Finish,
    Flush,
    Forward,
    Prefill,
    Retract,
    Schedule,
    Verify,
)
from replaylife.lifecycle.config import CacheConfig, EngineConfig, ModelConfig
from replaylife.lifecycle.engine import ReferenceEngine
from replaylife.lifecycle.events import Accepted, CheckpointFolded, Drafted, Finished, Released, StateFolded
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.invariants import Checker
from replaylife.lifecycle.protocol import ActionRefused, transit
from replaylife.lifecycle.snapshot import RequestView, SlotView

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CACHE = CacheConfig(slots=16, kv_tokens=256, ring_length=8, track_interval=8)
STRATEGIES = {
    "no_buffer": CACHE,
    "extra_buffer": replace(CACHE, strategy="extra_buffer"),
    "extra_buffer_lazy": replace(CACHE, strategy="extra_buffer_lazy"),
    "align": replace(CACHE, strategy="align", page=4),
}
PROMPT = (Admit("a", tuple(range(3, 13))), Prefill("a", 10))
# (window, keep): several in a row, whole and in part, one as long as the ring, and one token alone
WINDOWS = ((4, 2), (4, 4), (5, 1), (8, 8), (1, 1), (3, 1), (6, 5))
NUM_KEPT = sum(keep for _, keep in WINDOWS)


class Life:
    """An engine whose every step is checked."""

    def __init__(self, cache: CacheConfig = CACHE, backend: str = "none", **model: Any) -> None:
        device = "cpu" if backend == "none" else DEVICE
        config = EngineConfig(ModelConfig(**model), cache, backend, device)  # type: ignore[arg-type]  # a test's name
        self.engine: ReferenceEngine = EngineFactory(config).build()
        self.checker = Checker(self.engine.capabilities)
        self.events: list[Any] = []
        self.steps = 0

    def live(self, *actions: Action) -> Life:
        for action in actions:
            self.steps += 1
            transition = transit(self.engine, action, self.steps)
            assert self.checker.check(transition) == (), (action, self.checker.check(transition))
            self.events += transition.events
        return self

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def request(self, name: str = "a") -> RequestView:
        view = self.engine.snapshot().request(name)
        assert view is not None
        return view

    def slot(self, name: str = "a") -> SlotView:
        index = self.request(name).slot
        assert index is not None
        return self.engine.snapshot().slots[index]


def verify(window: int, keep: int, name: str = "a") -> Verify:
    return Verify(((name, window, keep),))


def draft(window: int, keep: int, name: str = "a") -> Draft:
    return Draft(((name, window, keep),))


def ended(cache: CacheConfig, *steps: Action, **how: Any) -> Finished:
    (finished,) = Life(cache, **how).live(*PROMPT, *steps, Finish("a")).of(Finished)
    assert isinstance(finished, Finished)
    return finished


BACKENDS = [
    ("none", {}),
    ("torch", {"gate": "gdn"}),
    ("torch", {"gate": "kda"}),
    ("torch", {"gate": "kda", "witness": True}),
    ("torch", {"state_dtype": "bf16", "conv_dtype": "bf16", "witness": True}),
]


@pytest.mark.parametrize(("strategy", "how"), list(product(STRATEGIES, BACKENDS)), ids=str)
def test_the_reply_with_speculation_is_the_reply_without(strategy: str, how: tuple[str, Any]) -> None:
    backend, model = how
    cache = STRATEGIES[strategy]
    windows = (verify(*window) for window in WINDOWS)
    fast = ended(cache, *windows, backend=backend, **model)
    slow = ended(cache, *[Forward(("a",))] * NUM_KEPT, backend=backend, **model)
    assert len(fast.reply) == NUM_KEPT + 1 == 23
    assert fast.reply == slow.reply
    assert fast.cold_reply == slow.cold_reply


def test_replies_agree_through_the_triton_kernels() -> None:
    windows = [verify(3, 2), verify(2, 2)]
    fast, slow = (ended(CACHE, *steps, backend="triton") for steps in (windows, [Forward(("a",))] * 4))
    assert fast.reply == slow.reply == fast.cold_reply


def test_a_step_of_windows_is_one_launch_of_each_kernel_per_layer() -> None:
    life = Life(backend="torch").live(*PROMPT)
    launches = life.engine.store.pool.tensors.kernels.launches
    before = launches.copy()
    life.live(verify(6, 2))
    layers = life.engine.config.model.layers
    assert launches - before == {"conv_verify[torch]": layers, "verify[torch]": layers}


def test_rejected_drafts_are_other_tokens_than_the_model_samples() -> None:
    life = Life().live(*PROMPT, verify(6, 3))
    (drafted,), (accepted,) = life.of(Drafted), life.of(Accepted)
    assert accepted.tokens == drafted.tokens[:3]
    assert accepted.tokens[1:] == accepted.sampled[:-1]
    assert drafted.tokens[3] != accepted.sampled[2]


def test_rejection_sets_the_cursor_back_and_leaves_the_checkpoint_alone() -> None:
    life = Life().live(*PROMPT, draft(6, 2))
    opened, slot = life.request(), life.slot()
    assert (opened.scheduled, opened.executed, opened.committed) == (16, 16, 10)
    assert (len(opened.drafts), slot.write_pos, slot.conv.length) == (6, 6, 16)
    life.live(Commit())
    closed, slot = life.request(), life.slot()
    assert (closed.scheduled, closed.executed, closed.committed) == (12, 12, 12)
    assert (closed.drafts, slot.write_pos, slot.conv.length, slot.temporal.length) == ((), 2, 12, 10)
    assert closed.kv_tokens == Life().live(*PROMPT, *[Forward(("a",))] * 2).request().kv_tokens


def test_a_window_that_does_not_fit_folds_first() -> None:
    life = Life(replace(CACHE, track_interval=256)).live(*PROMPT, verify(6, 5), verify(3, 1))
    assert life.of(StateFolded) == [], "5 + 3 fill the ring of 8 and no more"
    life.live(verify(3, 1))
    (folded,) = life.of(StateFolded)
    assert (folded.records, folded.length) == (6, 16)
    assert life.slot().write_pos == 1


def test_a_window_that_fills_the_ring_is_folded_when_it_commits_and_not_before() -> None:
    life = Life(replace(CACHE, track_interval=256)).live(*PROMPT, draft(8, 8))
    assert (life.slot().write_pos, life.of(StateFolded)) == (8, [])
    life.live(Commit())
    assert (life.slot().write_pos, life.slot().temporal.length) == (0, 18)


def test_a_track_point_inside_the_kept_part_is_folded_into_another_slot() -> None:
    life = Life().live(*PROMPT, verify(4, 2), verify(6, 5))
    (inside,) = life.of(CheckpointFolded)
    assert (inside.length, inside.records) == (16, 6)
    assert life.engine.snapshot().slots[inside.dst].conv.length == 16
    assert (life.slot().temporal.length, life.slot().write_pos) == (10, 7)


@pytest.mark.parametrize(("keep", "snapshots"), [(3, 0), (4, 1), (6, 1)])
def test_a_track_point_among_the_rejected_tokens_leaves_nothing(keep: int, snapshots: int) -> None:
    life = Life().live(*PROMPT, verify(2, 2), verify(6, keep))
    assert len(life.of(CheckpointFolded)) == snapshots


def test_rows_of_different_windows_share_a_step_and_are_kept_apart() -> None:
    other = (Admit("b", tuple(range(20, 26))), Prefill("b", 6))
    both = Verify((("b", 3, 1), ("a", 6, 5))), Verify((("a", 2, 2), ("b", 5, 4)))
    life = Life(backend="torch").live(*PROMPT, *other, *both, Finish("a"), Finish("b"))
    replies = {event.request: event.reply for event in life.of(Finished)}
    assert {name: len(reply) for name, reply in replies.items()} == {"a": 8, "b": 6}
    assert all(event.reply == event.cold_reply for event in life.of(Finished))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("finish", ["truncate", "fold"])
def test_finish_in_an_open_window_keeps_nothing_of_it(strategy: str, finish: Any) -> None:
    cache = replace(STRATEGIES[strategy], finish=finish)
    steps = (*PROMPT, verify(6, 6), draft(2, 2), Finish("a"))
    life = Life(cache, backend="torch").live(*steps)
    assert life.of(Finished) == [], "its slot is written by the window until that is closed"
    assert life.request().phase == "closing"
    (finished,) = life.live(Commit()).of(Finished)
    assert finished.committed == 16
    assert finished.key_len == (10 if (strategy, finish) == ("no_buffer", "truncate") else 16)
    assert finished.reply == finished.cold_reply


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("end", [Retract, Abort])
def test_retract_and_abort_in_an_open_window_free_everything_once(strategy: str, end: Any) -> None:
    life = Life(STRATEGIES[strategy]).live(*PROMPT, verify(3, 2), draft(4, 3), end("a"), Commit())
    (released,) = life.of(Released)
    assert (released.committed, released.pending) == (12, 2)
    after = life.engine.snapshot()
    assert (after.requests, after.in_flight) == ((), ())
    assert len(after.free_slots) == CACHE.slots - 1 - sum(n.state is not None for n in after.nodes)


def test_nothing_of_a_window_is_left_when_it_has_been_closed() -> None:
    life = Life(backend="torch").live(*PROMPT, verify(3, 2), draft(4, 3), Commit())
    tensors = life.engine.store.pool.tensors
    assert tensors is not None
    assert tensors.kept_inputs == {}
    assert all(slot.window == [] for slot in life.engine.store.pool.ledger.slots)


def refusal(life: Life, action: Action) -> str:
    before = life.engine.snapshot()
    with pytest.raises(ActionRefused) as refused:
        life.engine.apply(action)
    assert life.engine.snapshot() is before
    return str(refused.value)


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (verify(9, 1), "a window of 9 tokens for a, need 1 to 8 (cache.ring_length)"),
        (verify(0, 0), "a window of 0 tokens for a, need 1 to 8"),
        (verify(3, 4), "keeps 4 of 3 tokens of a, need 1 to 3"),
        (verify(3, 0), "keeps 0 of 3 tokens of a, need 1 to 3"),
        (Verify(()), "need at least one row, and each request once"),
        (Draft((("a", 2, 1), ("a", 2, 1))), "need at least one row, and each request once"),
        (verify(2, 1, "z"), "no such request is running"),
    ],
    ids=str,
)
def test_a_window_that_cannot_be_is_refused(action: Action, why: str) -> None:
    assert why in refusal(Life().live(*PROMPT), action)


def test_a_window_needs_its_prompt_prefilled_and_tokens_to_be_had() -> None:
    assert "prompt tokens of a are not prefilled" in refusal(Life().live(PROMPT[0]), verify(2, 1))
    life = Life(replace(CACHE, kv_tokens=12)).live(*PROMPT)
    assert "needs 4 key-value tokens, 2 of 12 are free" in refusal(life, verify(4, 1))
    life.live(verify(2, 1))


def test_without_a_ring_nothing_can_be_taken_back() -> None:
    life = Life(replace(CACHE, replayssm=False)).live(*PROMPT)
    assert "without a ring; turn cache.replayssm on" in refusal(life, verify(2, 1))
    assert not life.engine.capabilities.speculation
    assert Life().engine.capabilities.speculation


@pytest.mark.parametrize("action", [Forward(("a",)), verify(2, 1), Flush("a"), Checkpoint("a")], ids=str)
def test_while_a_window_is_open_its_request_stands_still(action: Action) -> None:
    assert "in flight" in refusal(Life().live(*PROMPT, draft(2, 1)), action)


def test_under_overlap_a_window_waits_for_the_steps_before_it_and_holds_up_those_after() -> None:
    life = Life(replace(CACHE, overlap=True)).live(*PROMPT, Schedule(("a",)))
    assert "1 steps are in flight; execute and commit them first" in refusal(life, draft(2, 1))
    life = Life(replace(CACHE, overlap=True)).live(*PROMPT, draft(2, 1))
    assert "a verify window is open; where the next step begins is known" in refusal(life, Schedule(("a",)))
    life.live(Commit(), Schedule(("a",)))
