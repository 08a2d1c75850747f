"""Regression tests for the fix of cache_finished_req under ReplaySSM (sgl-project/sglang#28451)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from replaylife.lifecycle.actions import Admit, Finish, Forward, Prefill
from replaylife.lifecycle.config import CacheConfig, EngineConfig, ModelConfig
from replaylife.lifecycle.engine import ReferenceEngine
from replaylife.lifecycle.events import (
    Decoded,
    Event,
    Finished,
    Freed,
    Prefilled,
    PublishSkipped,
    StateFolded,
)
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.invariants import Checker
from replaylife.lifecycle.snapshot import SlotView, Transition, Violation


class Conversation:
    """Turns of one conversation on torch tensors, every invariant checked after each action."""

    def __init__(self, gate: str, *faults: str, **cache: Any) -> None:
        config = EngineConfig(
            ModelConfig(gate=gate),  # type: ignore[arg-type]
            replace(CacheConfig(slots=16, ring_length=16), **cache),
            backend="torch",
        )
        self.engine: ReferenceEngine = EngineFactory(config, faults).build()
        self._checker = Checker(self.engine.capabilities)
        self.violations: list[Violation] = []
        self.tokens = [3, 141, 59, 26, 53, 58, 97, 93, 238, 46]
        self.finished: Finished | None = None

    def turn(self, name: str, decodes: int, *, new: int = 0, chunks: tuple[int, ...] = ()) -> list[Event]:
        """Admit, prefill (in ``chunks``, else at once), decode, finish; returns the finish's events."""
        self.tokens += [(7 * len(self.tokens) + i) % 256 for i in range(new)]
        self.apply(Admit(name, tuple(self.tokens)))
        request = self.engine.snapshot().request(name)
        assert request is not None
        for count in chunks or (request.prompt_len - request.executed,):
            self.apply(Prefill(name, count))
        for _ in range(decodes):
            self.apply(Forward((name,)))
        return self.apply(Finish(name))

    def apply(self, action: Any) -> list[Event]:
        before = self.engine.snapshot()
        events = self.engine.apply(action)
        transition = Transition(1, before, action, events, self.engine.snapshot())
        self.violations += self._checker.check(transition)
        for event in events:
            if isinstance(event, Decoded | Prefilled) and event.sampled is not None:
                self.tokens.append(event.sampled)
            elif isinstance(event, Finished):
                self.finished = event
        return list(events)

    @property
    def donated(self) -> SlotView:
        """The slot of the longest key in the tree."""
        snapshot = self.engine.snapshot()
        node = max(snapshot.nodes, key=lambda node: node.key.length)
        assert node.state is not None
        return snapshot.slots[node.state]

    @property
    def keys(self) -> list[int]:
        return sorted(node.key.length for node in self.engine.snapshot().nodes)

    @property
    def broken(self) -> set[str]:
        return {violation.invariant for violation in self.violations}

    @property
    def right_answer(self) -> bool:
        assert self.finished is not None
        return self.finished.reply == self.finished.cold_reply


@pytest.fixture(params=["gdn", "kda"])
def gate(request: pytest.FixtureRequest) -> str:
    """Both gates."""
    return str(request.param)


def test_full_length_donation_loses_the_ring_and_the_next_turn_answers_wrongly(gate: str) -> None:
    talk = Conversation(gate, "finish-donates-full-length")
    talk.turn("a", 20)
    assert talk.keys == [10, 30]
    assert (talk.donated.temporal.length, talk.donated.conv.length) == (26, 26)
    assert talk.broken == {"key-matches-state", "state-matches-oracle"}
    talk.turn("b", 20, new=8)
    assert "warm-equals-cold" in talk.broken
    assert not talk.right_answer


def test_truncation_cuts_the_key_to_the_last_fold(gate: str) -> None:
    talk = Conversation(gate)
    events = talk.turn("a", 20)
    assert talk.keys == [10, 26]
    assert talk.donated.temporal.length == 26
    assert talk.donated.write_pos == 0
    assert not [event for event in events if isinstance(event, StateFolded)]
    talk.turn("b", 20, new=8)
    assert talk.violations == []
    assert talk.right_answer


def test_truncation_rewinds_the_conv_window_to_the_fold(gate: str) -> None:
    talk = Conversation(gate)
    talk.turn("a", 20)
    assert talk.donated.conv == talk.donated.conv_checkpoint == talk.donated.temporal


def test_the_live_conv_window_is_four_tokens_ahead_and_damages_the_next_turn(gate: str) -> None:
    talk = Conversation(gate, "donate-live-conv")
    talk.turn("a", 20)
    assert (talk.donated.temporal.length, talk.donated.conv.length) == (26, 30)
    assert talk.broken == {"components-agree", "state-matches-oracle"}
    assert talk.tokens[23:26] != talk.tokens[27:30], "equal windows would hide the damage"
    talk.turn("b", 20, new=8)
    assert "warm-equals-cold" in talk.broken
    assert not talk.right_answer


def test_folding_donates_every_committed_token(gate: str) -> None:
    talk = Conversation(gate, finish="fold")
    events = talk.turn("a", 20)
    assert talk.keys == [10, 30]
    assert [(e.records, e.length) for e in events if isinstance(e, StateFolded)] == [(4, 30)]
    assert talk.donated.conv.length == 30
    talk.turn("b", 20, new=8)
    assert talk.violations == []
    assert talk.right_answer


@pytest.mark.parametrize("finish", ["truncate", "fold"])
def test_finish_right_at_a_fold_boundary_has_nothing_pending(gate: str, finish: str) -> None:
    talk = Conversation(gate, finish=finish)
    events = talk.turn("a", 16)
    assert talk.keys == [10, 26]
    assert talk.finished is not None
    assert talk.finished.dropped == 0
    assert not [event for event in events if isinstance(event, StateFolded)]
    talk.turn("b", 12, new=8)
    assert talk.violations == []
    assert talk.right_answer


@pytest.mark.parametrize("track", ["snapshot", "fold-only"])
def test_finish_after_a_forced_fold_counts_from_that_fold(gate: str, track: str) -> None:
    talk = Conversation(gate, track_interval=8, track=track)
    talk.turn("a", 9)
    # Tokens 16 is a track point: six records are folded in mid-ring, three are pending at 19.
    assert talk.finished is not None
    assert (talk.finished.committed, talk.finished.key_len) == (19, 16)
    assert talk.donated.temporal.length == 16
    talk.turn("b", 12, new=8)
    assert talk.violations == []
    assert talk.right_answer


def test_without_a_fold_since_the_prompt_the_donated_slot_is_freed(gate: str) -> None:
    talk = Conversation(gate)
    events = talk.turn("a", 5)
    assert talk.keys == [10], "the node at the prompt's end is the only one"
    assert [type(event) for event in events if isinstance(event, PublishSkipped | Freed)] == [
        PublishSkipped,
        Freed,
    ]
    assert len(talk.engine.snapshot().free_slots) == 14
    talk.turn("b", 12, new=8)
    assert talk.violations == []
    assert talk.right_answer


@pytest.mark.parametrize("finish", ["truncate", "fold"])
def test_three_turns_in_a_row_stay_right(gate: str, finish: str) -> None:
    talk = Conversation(gate, finish=finish)
    keys = []
    for name in "abc":
        talk.turn(name, 20, new=8 if name != "a" else 0)
        keys.append(max(talk.keys))
        assert talk.right_answer
    assert keys == ([26, 55, 84] if finish == "truncate" else [30, 59, 88])
    assert talk.violations == []


def test_with_replayssm_off_the_full_length_is_right(gate: str) -> None:
    talk = Conversation(gate, replayssm=False)
    talk.turn("a", 20)
    assert talk.keys == [10, 30]
    assert talk.donated.write_pos is None
    talk.turn("b", 20, new=8)
    assert talk.violations == []
    assert talk.right_answer
