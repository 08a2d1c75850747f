"""Witness runs: after every action, what every slot's tensors spell is what the ledger says."""

from __future__ import annotations

import pytest

from .support import Run

PLAYED = ["multiturn", "finish-donates-full-length", "donate-live-conv"]


def disagreements(run: Run) -> list[str]:
    return [f"{m.subject} {m.component}: {m.detail}" for m in run.measurements("witness") if m.exceeded]


@pytest.mark.parametrize("name", PLAYED)
@pytest.mark.parametrize("backend", ["torch"])
def test_tensors_and_ledger_agree_slot_by_slot_and_step_by_step(
    name: str, backend: str, gate: str, state_dtype: str, device: str
) -> None:
    run = Run(name, backend=backend, device=device, gate=gate, state_dtype=state_dtype, witness=True)
    assert disagreements(run) == []
    compared = len(list(run.measurements("witness")))
    assert compared >= 300, f"only {compared} components were compared"


@pytest.mark.parametrize("name", PLAYED)
@pytest.mark.parametrize("backend", ["triton"])
def test_so_they_do_through_the_triton_kernels(name: str, backend: str, gate: str, device: str) -> None:
    run = Run(name, backend=backend, device=device, gate=gate, witness=True)
    assert disagreements(run) == []


def test_the_donated_state_spells_tokens_1_to_26_and_no_other(gate: str, device: str) -> None:
    run = Run("finish-donates-full-length", backend="torch", device=device, gate=gate, witness=True)
    testimony = run.engine.compute.testimony  # type: ignore[attr-defined]
    node = next(node for node in run.engine.snapshot().nodes if node.key.length == 30)
    log = run.engine.store.pool.ledger.slots[node.state].temporal_log  # type: ignore[index]
    assert testimony.spelled(node.state) == {record.position: (record.token, 1) for record in log}
    assert [record.position for record in log] == list(range(26)), "the key claims 30"


@pytest.mark.parametrize("name", PLAYED[1:])
def test_the_fault_is_still_seen_by_position(name: str, device: str) -> None:
    run = Run(name, backend="torch", device=device, witness=True)
    assert run.verdict.held, run.verdict.failures
    assert run.verdict.caught_at == 24
