"""Runs of consecutive token ids are, in every respect, the tokens one by one."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaylife.pool import EMPTY, Record, RecordRun, Runs

SEQUENCES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=6)


def spelt(runs: list[tuple[int, int]]) -> list[int]:
    return [first + i for first, count in runs for i in range(count)]


@given(SEQUENCES)
def test_they_hold_the_tokens_they_were_made_of(runs: list[tuple[int, int]]) -> None:
    made, tokens = Runs.of(runs), spelt(runs)
    assert list(made) == tokens
    assert len(made) == len(tokens)
    assert [made[i] for i in range(len(tokens))] == tokens
    assert [made[i - len(tokens)] for i in range(len(tokens))] == tokens


@given(SEQUENCES, st.integers(0, 40), st.integers(0, 40))
def test_a_slice_is_the_slice_of_the_tokens(runs: list[tuple[int, int]], start: int, stop: int) -> None:
    assert list(Runs.of(runs)[start:stop]) == spelt(runs)[start:stop]


@given(SEQUENCES, SEQUENCES)
def test_they_are_equal_exactly_when_their_tokens_are(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    equal = spelt(one) == spelt(other)
    assert (Runs.of(one) == Runs.of(other)) is equal
    assert not equal or hash(Runs.of(one)) == hash(Runs.of(other))


@given(SEQUENCES, st.integers(0, 40))
def test_pieces_cut_apart_and_joined_again_are_the_whole(runs: list[tuple[int, int]], at: int) -> None:
    made = Runs.of(runs)
    at = min(at, len(made))
    joined = Runs.of([*made[:at].runs(), *made[at:].runs()])
    assert joined == made
    assert list(joined.runs()) == list(made.runs()), "the runs are maximal again"


@given(SEQUENCES, SEQUENCES)
def test_their_digest_is_that_of_the_tokens_one_by_one(
    before: list[tuple[int, int]], runs: list[tuple[int, int]]
) -> None:
    start = EMPTY.after(spelt(before))
    assert start.after(Runs.of(runs)) == start.after(spelt(runs))


def test_two_sequences_of_one_length_have_different_digests() -> None:
    assert EMPTY.after(Runs.of([(0, 512)])) != EMPTY.after(Runs.of([(1, 512)]))
    assert EMPTY.after(Runs.of([(0, 2), (9, 2)])) != EMPTY.after(Runs.of([(9, 2), (0, 2)]))


def test_a_token_past_the_end_and_a_stride_are_refused() -> None:
    with pytest.raises(IndexError, match="token 3 of 3"):
        Runs.of([(5, 3)])[3]
    with pytest.raises(ValueError, match="step 2"):
        Runs.of([(5, 3)])[::2]


def test_they_compare_with_runs_only_and_survive_pickling() -> None:
    made = Runs.of([(5, 3), (1, 2)])
    assert made != (5, 6, 7, 1, 2)
    assert pickle.loads(pickle.dumps(made)) == made


def test_a_run_of_records_is_the_records_one_by_one() -> None:
    records = RecordRun("a", 7, Runs.of([(5, 3), (1, 2)]))
    plain = [Record("a", 7 + i, token) for i, token in enumerate((5, 6, 7, 1, 2))]
    assert list(records) == plain
    assert [records[i] for i in range(5)] == plain
    assert list(records[1:4]) == plain[1:4]
