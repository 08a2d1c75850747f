"""Where no rule of the lifecycle is broken the checks report nothing, beside twins that are caught.

A matrix product that is off, a gate that is rounded, reuse that is lost: none of them makes a cached state
another one than its key says.
"""

from __future__ import annotations

from typing import Any, TypeVar

from torch import Tensor, bfloat16

from replaylife.kernels.dispatch import Kernels
from replaylife.lifecycle.actions import Action, Admit, Finish, Forward, Prefill
from replaylife.lifecycle.config import CacheConfig, EngineConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.faults.mechanisms import mechanisms
from replaylife.lifecycle.invariants import INVARIANTS, Checker
from replaylife.lifecycle.planned import PlannedRow
from replaylife.lifecycle.protocol import transit
from replaylife.lifecycle.strategies import NoBuffer

from .support import Run

T = TypeVar("T")
ROUNDING, WRONG = 2.0**-22, 1e-3


class OutputOff(Kernels):
    """Every chunk's product is off by a relative ``size``, up and down in turn; the states are exact."""

    size = WRONG

    def prefill(self, *arguments: Any) -> Tensor:
        out = super().prefill(*arguments)  # [T, HV, V]; a common factor would be normalised away
        out[..., ::2] *= 1 + self.size
        out[..., 1::2] *= 1 - self.size
        return out


class OutputRounded(OutputOff):
    size = ROUNDING


class StateOff(Kernels):
    """Every chunk leaves a state that is off by as much as the wrong product; the outputs are exact."""

    def prefill(self, *arguments: Any) -> Tensor:
        out = super().prefill(*arguments)
        arguments[7][arguments[8].long()] *= 1 + WRONG
        return out


class GateRounded(Kernels):
    """Each decode step rounds the gate that it stores to bf16."""

    def replay_decode(self, *arguments: Any, **options: Any) -> Tensor:
        out = super().replay_decode(*arguments, **options)
        ring_g, write_pos, slots = arguments[10], arguments[11], arguments[12]
        for slot, index in zip(slots.tolist(), write_pos.tolist(), strict=True):
            if slot >= 0:
                ring_g[slot, :, index] = ring_g[slot, :, index].to(bfloat16).to(ring_g.dtype)
        return out


class NoCheckpointAfterChunks(NoBuffer):
    """The only checkpoint of a request is the one that it donates, past its prompt."""

    def plan(self, row: PlannedRow) -> None:
        if row.decode:
            super().plan(row)


def instead(of: type, use: type) -> type[EngineFactory]:
    """A factory that builds with ``use`` in place of ``of``."""

    class Replacing(EngineFactory):
        def faulted(self, base: type[T]) -> type[T]:
            return use if base is of else EngineFactory.faulted(self, base)

    return Replacing


def worst(run: Run, kind: str) -> float:
    return max(measured.error for measured in run.measurements(kind))


def broken(run: Run) -> set[str]:
    return {violation.invariant for _, violation in run.verdict.violations}


def play(name: str, kernels: type[Kernels] = Kernels, **options: Any) -> Run:
    return Run(name, backend="torch", recipe=instead(Kernels, kernels), **options)


def test_a_product_that_is_off_within_rounding_breaks_nothing(gate: str, device: str) -> None:
    exact, other = (play("multiturn", k, gate=gate, device=device) for k in (Kernels, OutputRounded))
    assert worst(other, "logits") != worst(exact, "logits"), "the product is another one"
    assert other.verdict.violations == []


def test_a_wrong_product_over_exact_states_shows_in_the_logits_alone(gate: str, device: str) -> None:
    run = play("multiturn", OutputOff, gate=gate, device=device, layers=1)
    assert broken(run) == {"warm-equals-cold"}
    assert worst(run, "state") <= 1e-5, "the states are right"


def test_its_twin_a_state_that_is_off_by_as_much_is_caught(gate: str, device: str) -> None:
    run = play("multiturn", StateOff, gate=gate, device=device, layers=1)
    assert "state-matches-oracle" in broken(run)
    assert {i for i in broken(run) if not INVARIANTS[i].from_tensors} == set(), "it is in no length"


def test_a_rounded_gate_within_the_tolerance_of_its_precision_breaks_nothing(gate: str, device: str) -> None:
    exact, drifted = (
        play("three-turns", k, gate=gate, device=device, state_dtype="bf16") for k in (Kernels, GateRounded)
    )
    assert worst(drifted, "state") != worst(exact, "state"), "the gate is another one"
    assert drifted.verdict.violations == []


def test_beyond_the_tolerance_it_is_a_matter_of_precision_and_of_no_length(gate: str, device: str) -> None:
    run = play("three-turns", GateRounded, gate=gate, device=device)
    assert "state-matches-oracle" in broken(run)
    assert {i for i in broken(run) if not INVARIANTS[i].from_tensors} == set()


def test_its_twin_a_fault_that_moves_no_number_as_far_is_caught(gate: str, device: str) -> None:
    drifted = play("three-turns", GateRounded, gate=gate, device=device)
    fault = play("cursor-advances-per-layer", gate=gate, device=device)
    assert worst(fault, "state") < worst(drifted, "state")
    assert "cursor-advances-once" in broken(fault)


def reused(strategy: type[NoBuffer], prompt: int, replied: int, again: int) -> tuple[int, int]:
    """How many tokens a request reuses that shares ``again`` of another's, and the number of violations."""
    engine = instead(NoBuffer, strategy)(EngineConfig(cache=CacheConfig(track_interval=8))).build()
    checker = Checker(engine.capabilities)

    def violated(*actions: Action) -> int:
        return sum(
            len(checker.check(transit(engine, action, 1 + engine.store.pool.step))) for action in actions
        )

    num_violations = violated(
        Admit("a", tuple(range(prompt))), Prefill("a", prompt), *[Forward(("a",))] * replied
    )
    shared = engine.requests["a"].tokens[:again]
    num_violations += violated(Finish("a"), Admit("b", (*shared, 250)))
    return engine.requests["b"].cached, num_violations


def test_a_checkpoint_past_the_shared_prompt_loses_reuse_and_breaks_nothing() -> None:
    assert reused(NoCheckpointAfterChunks, 6, 8, again=6) == (0, 0)
    assert reused(NoBuffer, 6, 8, again=6) == (6, 0)


def test_a_key_past_what_the_client_repeats_loses_reuse_and_breaks_nothing() -> None:
    assert reused(NoCheckpointAfterChunks, 6, 10, again=15) == (8, 0), "the state at 16 is out of reach"
    assert reused(NoCheckpointAfterChunks, 6, 10, again=16) == (16, 0)


def test_every_mechanism_that_breaks_no_rule_is_shown_here() -> None:
    shown = {
        "sgl-project/sglang#29633": test_a_product_that_is_off_within_rounding_breaks_nothing,
        "sgl-project/sglang#38975": test_a_rounded_gate_within_the_tolerance_of_its_precision_breaks_nothing,
        "sgl-project/sglang#37834": test_a_checkpoint_past_the_shared_prompt_loses_reuse_and_breaks_nothing,
        "sgl-project/sglang#35694": test_a_key_past_what_the_client_repeats_loses_reuse_and_breaks_nothing,
    }
    assert shown.keys() == {m.id for m in mechanisms().values() if m.outcome == "silent"}
