"""How two portraits of one scenario are compared, and what explains a difference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replaylife.conformance import Comparison, Difference, Portrait, Position, differences
from replaylife.known_differences import KNOWN, explanation
from replaylife.lifecycle.config import CacheConfig
from replaylife.pool import EMPTY, Fold

from .support import against_faulty, portrait


def _fold(length: int, token: int = 7) -> Fold:
    return EMPTY.after([token] * length)


def _explained(comparison: Comparison) -> list[str]:
    named = [explanation(comparison, difference) for difference in comparison.differences]
    return ["" if known is None else known.id for known in named]


def _compared(cache: CacheConfig, ours: Portrait, theirs: Portrait) -> Comparison:
    return Comparison("made up", "another", cache, None, ours, theirs, tuple(differences(ours, theirs)))


def _states(*positions: tuple[int, int, int, int]) -> Portrait:
    """States as (key, temporal, conv, step)."""
    return Portrait(
        states={
            _fold(key): Position(_fold(temporal), _fold(conv), step)
            for key, temporal, conv, step in positions
        }
    )


def test_an_engine_does_not_differ_from_itself() -> None:
    assert against_faulty("multiturn").differences == ()
    assert len(portrait("multiturn").states) == 5


def test_a_portrait_has_the_numbers_of_the_worked_example() -> None:
    seen = portrait("multiturn")
    assert [(request, taken) for request, taken, _ in seen.cached] == [("turn1", 0), ("turn2", 26)]
    assert sorted(key.length for key in seen.states) == [6, 10, 26, 39, 55]
    assert portrait("eviction-pressure").evicted[0] == 9


def test_a_window_ahead_of_its_key_is_explained() -> None:
    comparison = against_faulty("multiturn", "donate-live-conv")
    assert {difference.column for difference in comparison.differences} == {"positions"}
    assert set(_explained(comparison)) == {"conv-window-ahead"}


def test_a_state_behind_its_key_is_not_explained() -> None:
    comparison = against_faulty("multiturn", "finish-donates-full-length")
    assert {"cached", "keys"} <= {difference.column for difference in comparison.differences}
    assert set(_explained(comparison)) == {""}


def test_an_admission_that_only_one_engine_rejects_is_a_difference() -> None:
    ours, theirs = Portrait(cached=[("a", 4, 1)]), Portrait(cached=[("a", None, 1)])
    (found,) = differences(ours, theirs)
    assert (found.column, found.ours, found.theirs) == ("cached", "4 tokens", "rejected")


def test_an_admission_that_one_engine_never_had_is_a_difference() -> None:
    (found,) = differences(Portrait(cached=[("a", 4, 1)]), Portrait())
    assert (found.column, found.theirs) == ("cached", "not admitted on both")


def test_equal_lengths_of_other_tokens_are_a_difference() -> None:
    key = _fold(5)
    ours = Portrait(states={key: Position(key, key, 1)})
    theirs = Portrait(states={key: Position(_fold(5, token=8), key, 1)})
    (found,) = differences(ours, theirs)
    assert found.theirs == "temporal 5 (other tokens), conv 5"


NO_BUFFER = CacheConfig(track_interval=8)
GRID = CacheConfig(strategy="extra_buffer", chunk_grid=4, track_interval=8)
CASES = {
    "conv-window-ahead": (NO_BUFFER, _states((26, 26, 26, 9)), _states((26, 26, 30, 9))),
    "fold-only": (NO_BUFFER, _states((16, 16, 16, 3)), _states()),
    "grid-from-prefix": (GRID, _states((8, 8, 8, 3)), _states((10, 10, 10, 3))),
    "one-checkpoint-per-chunk": (GRID, _states((4, 4, 4, 3), (8, 8, 8, 3)), _states((4, 4, 4, 3))),
    "kv-outlives-state": (NO_BUFFER, Portrait(evicted=(3, 20)), Portrait(evicted=(3, 8))),
    "mixed-chunk-skips-ring": (
        NO_BUFFER,
        _states((18, 18, 18, 9)),
        replace(_states((11, 11, 18, 9)), mixed_since=6),
    ),
}
TWINS = {
    "conv-window-ahead": (NO_BUFFER, _states((26, 26, 26, 9)), _states((26, 26, 22, 9))),
    "fold-only": (NO_BUFFER, _states((17, 17, 17, 3)), _states()),
    "grid-from-prefix": (GRID, _states((8, 8, 8, 3)), _states((12, 12, 12, 3))),
    "one-checkpoint-per-chunk": (GRID, _states((4, 4, 4, 3), (8, 8, 8, 3)), _states((8, 8, 8, 3))),
    "kv-outlives-state": (NO_BUFFER, Portrait(evicted=(3, 8)), Portrait(evicted=(3, 20))),
    "mixed-chunk-skips-ring": (
        NO_BUFFER,
        _states((18, 18, 18, 5)),
        replace(_states((11, 11, 18, 5)), mixed_since=6),
    ),
}


@pytest.mark.parametrize("known", CASES)
def test_a_rule_explains_what_it_is_for(known: str) -> None:
    comparison = _compared(*CASES[known])
    assert comparison.differences
    assert set(_explained(comparison)) == {known}


@pytest.mark.parametrize("known", TWINS)
def test_a_rule_does_not_explain_what_is_only_like_it(known: str) -> None:
    comparison = _compared(*TWINS[known])
    assert comparison.differences
    assert "" in _explained(comparison)
    assert known not in _explained(comparison)


def test_every_rule_has_its_case_and_its_twin() -> None:
    ids = {known.id for known in KNOWN}
    assert ids == CASES.keys() == TWINS.keys()


def test_a_difference_that_no_rule_knows_is_unexplained() -> None:
    comparison = _compared(NO_BUFFER, Portrait(), Portrait())
    assert explanation(comparison, Difference("cached", "request a", "4 tokens", "2 tokens", 4, 1)) is None
