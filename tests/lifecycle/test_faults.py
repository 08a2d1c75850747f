"""Every fault is caught by exactly the invariants it names, and its scenario is clean without it."""

from __future__ import annotations

import pickle

import pytest

from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.faults import FAULTS
from replaylife.lifecycle.faults.fault import DAMAGE, LOGITS
from replaylife.lifecycle.invariants import INVARIANTS

from .support import Run, shipped

ALL = sorted(FAULTS)
DAMAGED = [
    name
    for name in ALL
    if any(e.step.expect and e.step.expect.logits for e in shipped(FAULTS[name].scenario).steps)
]


def fired(run: Run, *, from_tensors: bool) -> set[str]:
    """The invariants that fired in the first violating step, from positions or from tensors."""
    ids = {violation.invariant for violation in run.first_violations}
    return {i for i in ids if INVARIANTS[i].from_tensors is from_tensors}


@pytest.mark.parametrize("fault", ALL)
def test_the_ledger_alone_catches_it_with_the_named_invariants(fault: str) -> None:
    run = Run(FAULTS[fault].scenario)
    assert fired(run, from_tensors=False) == set(FAULTS[fault].ledger)


@pytest.mark.parametrize("fault", ALL)
def test_real_tensors_catch_it_in_the_same_step_with_the_named_invariants(
    fault: str, gate: str, device: str
) -> None:
    run = Run(FAULTS[fault].scenario, backend="torch", device=device, gate=gate)
    assert fired(run, from_tensors=False) == set(FAULTS[fault].ledger)
    assert fired(run, from_tensors=True) == set(FAULTS[fault].numeric)
    assert run.verdict.held, run.verdict.failures


@pytest.mark.parametrize("fault", ALL)
def test_its_scenario_is_clean_without_it(fault: str, gate: str, device: str) -> None:
    run = Run(FAULTS[fault].scenario, backend="torch", device=device, gate=gate, without_its_faults=True)
    assert run.verdict.violations == []
    assert all(request.reply == request.cold_reply for request in map(run.finished, run_requests(run)))


@pytest.mark.parametrize("fault", DAMAGED)
def test_the_next_turn_answers_wrongly_and_its_logits_show_it(fault: str, gate: str, device: str) -> None:
    run = Run(FAULTS[fault].scenario, backend="torch", device=device, gate=gate)
    assert run.verdict.held, "the scenario asserts the position and at least 100 times the tolerance"
    last = run.finished(run_requests(run)[-1])
    assert last.cold_reply is not None
    assert len(last.reply) >= 12
    assert last.reply != last.cold_reply


def test_the_sweep_of_damaging_faults_is_not_empty() -> None:
    assert len(DAMAGED) >= 30


@pytest.mark.parametrize("fault", ALL)
def test_the_damage_is_in_the_logits_or_the_fault_says_why_it_is_not(
    fault: str, gate: str, device: str
) -> None:
    run = Run(FAULTS[fault].scenario, backend="torch", device=device, gate=gate)
    times = [measured.error / measured.tolerance for measured in run.measurements("logits")]
    if FAULTS[fault].damage == LOGITS:
        assert max(times) >= DAMAGE
    else:
        assert max(times, default=0) <= 1, "its reason is wrong"
        assert len(FAULTS[fault].damage.split()) >= 5, "a sentence"


def test_both_kinds_of_damage_occur() -> None:
    kinds = [fault.damage == LOGITS for fault in FAULTS.values()]
    assert kinds.count(True) >= 30
    assert kinds.count(False) >= 10


@pytest.mark.parametrize("fault", ALL)
def test_it_replaces_one_method_and_cites_a_public_report(fault: str) -> None:
    mixin = FAULTS[fault].mixin
    replaced = [name for name, value in vars(mixin).items() if callable(value)]
    assert len(replaced) == 1
    assert hasattr(mixin.__mro__[1], replaced[0])
    assert FAULTS[fault].source.startswith("https://")


def test_every_invariant_is_tripped_by_some_fault() -> None:
    tripped = {i for fault in FAULTS.values() for i in (*fault.ledger, *fault.numeric)}
    assert set(INVARIANTS) - tripped == {"tensors-testify"}, "tampered tensors: test_testimony.py"


def test_a_factory_with_faults_survives_pickling() -> None:
    factory = EngineFactory(EngineConfig(), ("donate-live-conv",))
    again = pickle.loads(pickle.dumps(factory))
    assert again == factory
    assert type(again.build().store.pool).__name__ == "FaultedMambaPool"


def test_an_unknown_fault_is_refused() -> None:
    with pytest.raises(KeyError, match="no-such-fault"):
        EngineFactory(EngineConfig(), ("no-such-fault",))


def run_requests(run: Run) -> list[str]:
    return [e.step.finish.request for e in run.scenario.steps if e.step.finish is not None]
