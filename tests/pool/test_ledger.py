"""What the ledger says a slot has absorbed."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from replaylife.pool import EMPTY, Fold
from replaylife.pool.ledger import Ledger

from .support import records


def _ledger(*, logging: bool = True) -> Ledger:
    """Slot 1 has absorbed 10, 11, 12 (saved window there) and holds 20, 21 in its ring of 4."""
    ledger = Ledger(4, 4, logging=logging)
    ledger.absorb(1, records(10, 11, 12), step=1)
    ledger.save_conv(1)
    for index, record in enumerate(records(20, 21, start=3)):
        ledger.append(1, index, record)
    return ledger


def test_a_fold_tells_the_order_of_its_tokens() -> None:
    orders = list(permutations((0, 1, 2, 3)))
    assert len({EMPTY.after(order) for order in orders}) == len(orders) == 24
    assert EMPTY.after((0, 1, 2, 3)) == EMPTY.after((0, 1, 2, 3))


def test_a_fold_tells_all_short_sequences_apart() -> None:
    words = [word for length in range(6) for word in product((0, 1, 255), repeat=length)]
    assert len({EMPTY.after(word) for word in words}) == len(words) == 364


def test_leading_tokens_of_id_zero_count() -> None:
    assert len({EMPTY.after((0,) * count).digest for count in range(9)}) == 9


def test_one_token_after_the_other_is_the_same_as_all_at_once() -> None:
    tokens = [7, 0, 255, 3, 3, 12_345_678]
    steps = [EMPTY]
    for token in tokens:
        steps.append(steps[-1].then(token))
    assert [fold.length for fold in steps] == list(range(7))
    assert all(
        start.after(tokens[i:j]) == steps[j]
        for i, start in enumerate(steps)
        for j in range(i, len(tokens) + 1)
    )
    assert steps[3].then(4) != steps[4]


def test_a_digest_stays_below_its_modulus() -> None:
    assert 0 < EMPTY.after(range(1000)).digest < (1 << 61) - 1


def test_a_slot_begins_empty_with_a_ring_of_nothing() -> None:
    entry = Ledger(2, 3).slots[1]
    assert (entry.temporal, entry.conv, entry.conv_checkpoint, entry.ring) == (
        EMPTY,
        EMPTY,
        EMPTY,
        [None] * 3,
    )


def test_without_a_ring_there_is_no_ring_and_no_saved_window() -> None:
    entry = Ledger(2, None).slots[1]
    assert (entry.ring, entry.conv_checkpoint) == ([], None)


def test_a_prefill_moves_temporal_and_conv_and_leaves_the_saved_window() -> None:
    ledger = Ledger(2, 4)
    ledger.absorb(1, records(10, 11), step=5)
    entry = ledger.slots[1]
    assert entry.temporal == entry.conv == EMPTY.after((10, 11))
    assert (entry.conv_checkpoint, entry.written) == (EMPTY, 5)


def test_an_append_moves_conv_and_the_ring_and_leaves_temporal() -> None:
    entry = _ledger().slots[1]
    assert entry.ring == [*records(20, 21, start=3), None, None]
    assert entry.conv == EMPTY.after((10, 11, 12, 20, 21))
    assert entry.temporal == entry.conv_checkpoint == EMPTY.after((10, 11, 12))


@pytest.mark.parametrize(("count", "tokens"), [(0, ()), (1, (20,)), (2, (20, 21))])
def test_a_fold_absorbs_the_first_records_and_no_others(count: int, tokens: tuple[int, ...]) -> None:
    ledger = _ledger()
    ledger.fold(1, count, 1, step=9)
    entry = ledger.slots[1]
    assert entry.temporal == EMPTY.after((10, 11, 12, *tokens))
    assert [record.token for record in entry.temporal_log] == [10, 11, 12, *tokens]
    assert entry.written == 9


def test_a_fold_into_another_slot_leaves_the_source_and_the_windows_alone() -> None:
    ledger = _ledger()
    ledger.fold(1, 2, 3, step=9)
    assert ledger.slots[1] == _ledger().slots[1]
    target = ledger.slots[3]
    assert target.temporal == EMPTY.after((10, 11, 12, 20, 21))
    assert (target.conv, target.conv_checkpoint, target.ring) == (EMPTY, EMPTY, [None] * 4)


def test_a_fold_keeps_the_records_in_the_ring_where_they_are_seen_as_stale() -> None:
    ledger = _ledger()
    ledger.fold(1, 2, 1, step=9)
    assert ledger.slots[1].ring[:2] == list(records(20, 21, start=3))


def test_a_copy_takes_the_saved_window_and_not_the_live_one() -> None:
    ledger = _ledger()
    ledger.copy_temporal(1, 2, step=7)
    ledger.copy_conv(1, 2)
    entry = ledger.slots[2]
    assert entry.temporal == entry.conv == entry.conv_checkpoint == EMPTY.after((10, 11, 12))
    assert (entry.ring, entry.written) == ([None] * 4, 7)
    assert entry.conv != ledger.slots[1].conv


def test_without_replayssm_a_copy_takes_the_live_window() -> None:
    ledger = Ledger(3, None, logging=True)
    ledger.absorb(1, records(10, 11), step=1)
    ledger.copy_conv(1, 2)
    entry = ledger.slots[2]
    assert (entry.conv, entry.conv_log, entry.conv_checkpoint) == (
        EMPTY.after((10, 11)),
        records(10, 11),
        None,
    )


def test_a_rewind_sets_the_live_window_back_and_a_save_moves_the_saved_one() -> None:
    rewound, saved = _ledger(), _ledger()
    rewound.rewind_conv(1)
    saved.save_conv(1)
    at_fold, live = EMPTY.after((10, 11, 12)), EMPTY.after((10, 11, 12, 20, 21))
    assert (rewound.slots[1].conv, rewound.slots[1].conv_checkpoint) == (at_fold, at_fold)
    assert (saved.slots[1].conv, saved.slots[1].conv_checkpoint) == (live, live)


def test_a_clear_empties_all_but_the_ring() -> None:
    ledger = _ledger()
    ledger.clear(1, step=4)
    entry = ledger.slots[1]
    assert entry.temporal == entry.conv == entry.conv_checkpoint == EMPTY
    assert entry.temporal_log == entry.conv_log == entry.conv_checkpoint_log == ()
    assert entry.ring == [*records(20, 21, start=3), None, None]
    assert entry.written == 4


def test_every_log_spells_its_fold() -> None:
    ledger = _ledger()
    ledger.fold(1, 1, 2, step=5)
    ledger.copy_conv(1, 2)
    ledger.fold(1, 2, 1, step=6)
    pairs = [
        pair
        for entry in ledger.slots
        for pair in (
            (entry.temporal, entry.temporal_log),
            (entry.conv, entry.conv_log),
            (entry.conv_checkpoint, entry.conv_checkpoint_log),
        )
        if pair[1]
    ]
    assert all(fold == EMPTY.after(record.token for record in log) for fold, log in pairs)
    assert len(pairs) == 6


def test_without_logging_folds_are_the_same_and_logs_stay_empty() -> None:
    logged, bare = _ledger(), _ledger(logging=False)
    for ledger in (logged, bare):
        ledger.fold(1, 2, 1, step=6)
        ledger.save_conv(1)
    assert bare.slots[1].temporal == logged.slots[1].temporal != EMPTY
    assert bare.slots[1].conv_checkpoint == logged.slots[1].conv_checkpoint != EMPTY
    assert (bare.slots[1].temporal_log, bare.slots[1].conv_log) == ((), ())
    assert len(logged.slots[1].temporal_log) == 5


def test_a_ledger_and_its_clone_do_not_see_each_other() -> None:
    ledger = _ledger()
    twin = ledger.clone()
    assert twin.slots == ledger.slots
    twin.append(1, 2, records(22)[0])
    twin.clear(2, step=3)
    assert ledger.slots == _ledger().slots
    assert twin.slots[1] != ledger.slots[1]
    assert twin.logging


def test_a_fold_is_a_pair_that_can_be_taken_apart() -> None:
    length, digest = Fold(3, 99)
    assert (length, digest) == (3, 99)
