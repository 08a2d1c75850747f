"""Continuous batching over the engine, and what is counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replaylife.lifecycle.protocol import CannotExpress
from replaylife.lifecycle.strategies import STRATEGIES
from replaylife.lifecycle.workload.point import Point
from replaylife.lifecycle.workload.tally import Totals

from .support import Plain, excerpt, hits_counted_alone, line, talks, turns

SMALL = Point(slots=16, kv_tokens=20_000, rows=4, chunk=512, track_interval=64)
TALK = (line(0, (1, 2, 3), 100, output=30), line(5_000, (1, 2, 4, 5), 50, output=20))


def totals(point: Point, *lines: str) -> Totals:
    server = point.server()
    for _ in server.run(turns(*lines)):
        pass
    return server.totals


def test_a_second_turn_reuses_what_the_first_left_and_prefills_again_what_truncation_cut() -> None:
    cut, folded = (totals(replace(SMALL, finish=finish), *TALK) for finish in ("truncate", "fold"))
    committed = 1_124 + 29
    assert cut.hit == 1_152, "the track point at 1152, folded there: one record of 1153 was pending"
    assert folded.hit == committed
    assert (cut.again_truncated, folded.again_truncated) == (committed - 1_152, 0)
    assert cut.prefilled - folded.prefilled == committed - 1_152
    assert cut.prompt == folded.prompt == 1_124 + 1_586


def test_where_finish_has_nothing_to_donate_only_what_no_checkpoint_holds_counts_as_cut() -> None:
    buffered = replace(SMALL, strategy="extra_buffer", track_interval=1_024)
    counted = totals(buffered, *TALK)
    kept = 1_124 // 64 * 64
    assert counted.hit == kept, "the last grid point of the prompt; no track point was passed"
    assert counted.again_truncated == 1_124 + 29 - kept
    first, second = TALK
    crowd = [line(1_000 + i, (100 + i, 200 + i, 300 + i), 50, 2) for i in range(12)]
    evicted = totals(replace(buffered, slots=9), first, *crowd, second)
    assert evicted.hit == 0, "the checkpoint was evicted meanwhile"
    assert evicted.again_truncated == counted.again_truncated


def test_every_prompt_token_is_either_reused_or_prefilled_and_every_reply_token_decoded() -> None:
    lines = excerpt(5)
    rows = Plain(lines).rows
    for strategy in STRATEGIES:
        counted = totals(replace(SMALL, strategy=strategy, slots=64, kv_tokens=200_000, chunk=4_096), *lines)
        assert counted.requests == 5
        assert counted.prompt == sum(row["input_length"] for row in rows)
        assert counted.hit + counted.prefilled == counted.prompt
        assert counted.decoded == sum(row["output_length"] - 1 for row in rows)
        assert counted.violations == 0


def test_requests_arriving_together_share_a_step_and_apart_they_do_not() -> None:
    together = totals(SMALL, line(0, (1, 2), 50, 9), line(0, (3, 4), 50, 9))
    apart = totals(SMALL, line(0, (1, 2), 50, 9), line(60_000, (3, 4), 50, 9))
    assert together.decoded == apart.decoded == 16
    assert together.steps < apart.steps


def test_a_request_waits_while_the_batch_is_full_and_is_then_served() -> None:
    lines = [line(0, (10 * i, 10 * i + 1), 50, 9) for i in range(9)]
    one, four = totals(replace(SMALL, rows=1), *lines), totals(SMALL, *lines)
    assert one.requests == four.requests == 9
    assert one.peak_slots <= four.peak_slots
    assert one.steps > four.steps


def test_a_crowded_pool_rejects_evicts_and_still_serves_everyone() -> None:
    lines = [line(0, (10 * i, 10 * i + 1, 10 * i + 2), 50, 40) for i in range(8)]
    for strategy in STRATEGIES:
        counted = totals(replace(SMALL, strategy=strategy, slots=7, kv_tokens=9_000), *lines)
        assert (counted.requests, counted.decoded, counted.violations) == (8, 8 * 39, 0)
        assert counted.rejected > 0 or counted.evicted_states > 0
        assert counted.peak_slots <= 6


def test_when_key_value_runs_out_the_newest_is_retracted_and_comes_back() -> None:
    lines = [line(0, (10 * i, 10 * i + 1), 88, 200) for i in range(3)]
    counted = totals(replace(SMALL, kv_tokens=3 * 600 + 100), *lines)
    assert counted.retracted > 0
    assert counted.requests == 3
    assert counted.decoded + counted.retracted >= 3 * 199
    assert counted.violations == 0


def test_a_request_that_cannot_fit_even_alone_is_named() -> None:
    with pytest.raises(CannotExpress, match=r"line 1: 570 tokens of prompt and reply do not fit even alone"):
        totals(replace(SMALL, kv_tokens=569), line(0, (1, 2), 50, 9))
    assert totals(replace(SMALL, kv_tokens=600), line(0, (1, 2), 50, 9)).requests == 1
    with pytest.raises(CannotExpress, match=r"line 1: 562 prompt tokens do not fit even alone: .*raise"):
        totals(replace(SMALL, slots=3, strategy="extra_buffer"), line(0, (1, 2), 50, 9))


def test_a_seeded_fault_is_caught_on_a_log_and_its_clean_twin_is_clean() -> None:
    faulty = replace(SMALL, track_interval=256, faults=("finish-donates-full-length",))
    assert totals(faulty, *TALK).violations > 0
    assert totals(replace(faulty, faults=()), *TALK).violations == 0


@pytest.mark.parametrize("finish", ["truncate", "fold"])
def test_with_unlimited_slots_and_one_at_a_time_hits_are_those_counted_from_the_file_alone(
    finish: str,
) -> None:
    lines = talks()
    point = Point(finish=finish, slots=400, kv_tokens=10**9, rows=1, chunk=4_096, check=False)  # type: ignore[arg-type]
    alone = list(hits_counted_alone(Plain(lines), chunk=4_096, track=256, ring=16, finish=finish))
    counted = totals(point, *lines)
    assert counted.evicted_states == 0
    assert counted.hit == sum(alone)
    assert counted.hits == sum(hit > 0 for hit in alone) >= 10
