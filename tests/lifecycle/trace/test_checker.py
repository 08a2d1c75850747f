"""The public library call: transitions in, violations out."""

from __future__ import annotations

import doctest
from dataclasses import replace
from itertools import islice

import replaylife
from replaylife.lifecycle.snapshot import Measurement
from replaylife.lifecycle.trace import checker
from replaylife.lifecycle.trace.succession import FOLLOWS

from ..support import Run
from .support import transitions


def test_the_example_in_its_docstring_is_true() -> None:
    results = doctest.testmod(checker)
    assert results.attempted >= 10
    assert results.failed == 0


def test_clean_transitions_of_an_engine_hold() -> None:
    report = replaylife.check(transitions(300))
    assert (report.held, report.steps) == (True, 300)


def test_a_faulty_engine_is_told_with_steps() -> None:
    run = Run("finish-donates-full-length")
    report = replaylife.check([p.transition for p in run.played])
    assert [(step, v.invariant, v.subject) for step, v in report.violations] == [
        (step, v.invariant, v.subject) for step, v in run.verdict.violations
    ]
    assert not report.held


def test_the_whole_snapshot_is_looked_at_whatever_the_engine_says_has_changed() -> None:
    steps = list(transitions(12))
    slots = list(steps[-1].after.slots)
    slots[5] = replace(slots[5], owners=())
    steps[-1] = replace(steps[-1], after=replace(steps[-1].after, slots=tuple(slots)))
    found = {v.invariant for _, v in replaylife.check(steps).violations}
    assert found >= {"slot-has-one-owner", FOLLOWS}


def test_a_step_that_does_not_begin_where_the_last_one_ended_is_told() -> None:
    steps = list(transitions(8))
    report = replaylife.check([*steps[:4], *steps[5:]])
    assert [(step, v.subject, v.found) for step, v in report.violations][:2] == [
        (6, "trace", "step 6"),
        (6, "trace", "before another snapshot"),
    ]


def test_a_snapshot_that_does_not_hang_together_is_a_violation_and_no_exception() -> None:
    first, second, *_ = transitions(9)
    broken = {
        "a node twice": replace(second.after, nodes=second.after.nodes * 2),
        "a track point of 0": replace(second.after, track_point=0),
        "fewer slots": replace(second.after, slots=second.after.slots[:-1]),
        "a tolerance of 0": replace(
            second.after, measurements=(Measurement("state", "node 1", "temporal", 3, 1.0, 0.0),)
        ),
    }
    for case, after in broken.items():
        report = replaylife.check([first, replace(second, after=after)])
        assert [v.found.split()[0] for _, v in report.violations] == ["structure"], case
    assert replaylife.check([first, second]).held


def test_transitions_are_taken_one_at_a_time() -> None:
    taken = iter(transitions(50))
    checking = checker.TransitionChecker()
    for t in islice(taken, 20):
        assert checking.check(t) == ()
    assert next(taken).step == 21
    assert checking.num_invariants >= 15
