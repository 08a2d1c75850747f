"""Another engine led through a scope: every transition of the reference is played on it, from the start."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from replaylife.lifecycle.actions import Abort, Action, Checkpoint
from replaylife.lifecycle.events import Event
from replaylife.lifecycle.explore.found import Budget, Ending
from replaylife.lifecycle.explore.led import Leader, Led
from replaylife.lifecycle.explore.schema import Scope
from replaylife.lifecycle.explore.search import Search
from replaylife.lifecycle.explore.world import factory_of
from replaylife.lifecycle.protocol import ActionRefused, CannotExpress

from .explore_support import scope

SMALL = scope(
    cache={"slots": 5, "kv_tokens": 40, "ring_length": 2, "track_interval": 50, "finish": "truncate"},
    conversations=[
        {"name": "a", "turns": [{"prompt": [{"text": "system", "tokens": 2}, 1], "decode": 3}, {"prompt": 1}]}
    ],
    chunks=[],
    actions=["admit", "prefill", "decode", "finish", "abort", "checkpoint"],
)


def led(small: Scope = SMALL, *faults: str, **options: Any) -> Led:
    factory = factory_of(small, faults)
    return Leader(small, factory.build, **options).run()


@cache
def clean() -> Led:
    return led()


class Foreign:
    """An engine that has no checkpoints, and refuses to abort a request of more than three tokens."""

    def __init__(self) -> None:
        self._engine = factory_of(SMALL).build()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def apply(self, action: Action) -> tuple[Event, ...]:
        if isinstance(action, Checkpoint):
            raise CannotExpress("checkpoint: it has no such call")
        if isinstance(action, Abort) and len(self._engine.requests[action.request].tokens) > 3:
            raise ActionRefused(f"{action}: not now")
        return self._engine.apply(action)


class Broken(Foreign):
    """An engine that breaks down when a request is aborted."""

    def apply(self, action: Action) -> tuple[Event, ...]:
        if isinstance(action, Abort):
            raise RuntimeError("no")
        return super().apply(action)


def test_a_clean_engine_goes_every_way_to_its_end() -> None:
    found = clean()
    assert found.ending is Ending.EXHAUSTED
    assert (found.gone, found.held, found.beyond) == (found.ways, found.ways, 0)
    assert not found.broken
    assert not found.parted


def test_the_ways_go_over_every_transition_of_the_reference() -> None:
    alone = Search(SMALL, stop=False).run()
    found = clean()
    assert found.reference.transitions == alone.transitions
    assert found.actions >= alone.transitions
    assert found.ways < alone.transitions


def test_a_fault_of_the_engine_is_found_by_the_way_that_the_search_finds() -> None:
    alone = Search(SMALL, ("finish-donates-full-length",)).run()
    first = led(SMALL, "finish-donates-full-length").first()
    assert first is not None
    assert list(first.moves) == alone.way_to(alone.troubles[0])
    assert first.violations == alone.troubles[0].violations


def test_what_lies_beyond_a_violation_is_counted_and_not_gone() -> None:
    found = led(SMALL, "finish-donates-full-length")
    assert found.beyond > 0
    assert found.gone + found.beyond == found.ways
    assert found.held + sum(broken.count for broken in found.broken.values()) == found.gone


def test_known_violations_can_be_gone_past() -> None:
    names = ("components-agree", "live-state-complete")
    found = led(SMALL, "donate-live-conv", ignore=names)
    assert not found.broken
    assert found.held == found.ways
    assert led(SMALL, "donate-live-conv").broken


def test_actions_that_the_engine_does_not_have_are_left_out_and_named() -> None:
    found = Leader(SMALL, Foreign).run()
    assert found.lacking == {"checkpoint": "checkpoint: it has no such call"}
    assert found.reference.transitions < clean().reference.transitions
    assert found.reference.kinds["checkpoint"] == 0


def test_what_the_engine_refuses_parts_the_ways_and_breaks_nothing() -> None:
    found = Leader(SMALL, Foreign).run()
    assert set(found.parted) == {"abort refused: not now"}
    assert not found.broken
    assert found.gone == found.held + found.parted.total()


def test_a_breakdown_of_the_engine_is_told_with_its_way() -> None:
    first = Leader(SMALL, Broken).run().first()
    assert first is not None
    assert (first.breakdown, len(first.moves)) == ("RuntimeError: no", 2)


def test_a_budget_of_time_ends_it_with_what_was_seen() -> None:
    found = led(budget=Budget(seconds=1e-9))
    assert found.ending is Ending.BUDGET
    assert found.gone == 1


def test_a_scope_in_which_the_reference_breaks_is_refused() -> None:
    with pytest.raises(ValueError, match="explore it alone first"):
        led(SMALL.model_copy(update={"faults": ["free-twice"]}))
