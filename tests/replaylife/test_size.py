"""`replaylife size`: bytes per slot, slots that fit, what forgetting the ring costs."""

from __future__ import annotations

import json

import pytest

from replaylife.pool.presets import PRESETS

from .command import invoke


def test_every_preset_is_listed_with_its_source() -> None:
    done = invoke("size")
    assert done.exit_code == 0
    assert all(
        done.stdout.count(preset.name) >= 2 and preset.source in done.stdout for preset in PRESETS.values()
    )


def test_a_model_is_found_by_the_beginning_of_its_name_and_sized_by_component() -> None:
    done = invoke("size", "kimi", "--memory", "24GiB", "--tp", "4", "--format", "json")
    (told,) = json.loads(done.stdout)
    assert told["model"] == "Kimi-Linear-48B-A3B-Instruct"
    assert told["slot_bytes"] == sum(told["components"].values()) == 15_155_204
    assert told["slots"] == 24 * 2**30 // 15_155_204 == told["usable_slots"] + 1
    assert told["overshoot_bytes"] == told["ringless_slots"] * told["slot_bytes"] - 24 * 2**30


def test_text_says_by_how_much_a_formula_without_the_ring_overruns() -> None:
    done = invoke("size", "kimi", "--memory", "24GiB", "--tp", "4")
    assert "24.00 GiB hold 1,700 slots" in done.stdout
    assert "promises 2,374; they take 33.51 GiB, 9.51 GiB (39.6%) more than there is" in done.stdout


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_a_two_byte_state_halves_temporal_and_leaves_the_gates_alone(dtype: str) -> None:
    done = invoke("size", "Qwen3.5-27B", "--state-dtype", dtype, "--format", "json")
    (told,) = json.loads(done.stdout)
    width = 4 if dtype == "fp32" else 2
    assert told["components"]["temporal"] == 48 * 48 * 128 * 128 * width
    assert told["components"]["ring_g"] == 48 * 48 * 16 * 4


def test_with_replayssm_off_there_is_no_ring_to_forget() -> None:
    (told,) = json.loads(invoke("size", "kimi", "--ring", "0", "--memory", "1GiB", "--format", "json").stdout)
    assert list(told["components"]) == ["temporal", "conv"]
    assert told["overshoot_bytes"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("size", "kimi", "--tp", "5"), "--tp: 5, need a divisor of the 32 key heads"),
        (("size", "qwen3.5"), "could be Qwen3.5-397B-A17B, "),
        (("size", "Quen3.5-27B"), "no preset is named 'Quen3.5-27B'"),
        (("size", "kimi", "--memory", "24GQ"), "'24GQ' is no number of bytes; write 24GiB"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(arguments: tuple[str, ...], said: str) -> None:
    done = invoke(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
