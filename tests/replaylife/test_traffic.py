"""`replaylife traffic`: the table, its floor, and where replay stops paying."""

from __future__ import annotations

import json

import pytest

from replaylife.kernels.traffic import Traffic

from .command import invoke


def test_the_table_has_a_line_for_every_ring_length_asked_for() -> None:
    told = json.loads(invoke("traffic", "--ring", "3", "--ring", "16", "--format", "json").stdout)
    assert [row["ring"] for row in told["rows"]] == [3, 16]
    traffic = Traffic("gdn", 16, 32, 128, 128, 16)
    assert told["rows"][1]["separate_bytes"] * 32 == traffic.apart
    assert told["rows"][0]["measured_us"] is None
    assert told["rows"][1]["measured_us"]["rows"] == 256


def test_the_floor_is_the_bytes_of_the_batch_over_the_bandwidth() -> None:
    asked = ("traffic", "--ring", "16", "--format", "json", "--batch", "10", "--bandwidth")
    slow, fast = (json.loads(invoke(*asked, bandwidth).stdout)["rows"][0] for bandwidth in ("1", "2"))
    assert slow["packed_floor_us"] == pytest.approx(2 * fast["packed_floor_us"])
    assert slow["packed_floor_us"] == pytest.approx(slow["packed_bytes"] * 32 * 10 / 1e12 * 1e6)


def test_text_says_where_replay_stops_paying_by_bytes_and_as_measured() -> None:
    done = invoke("traffic", "--gate", "kda", "--state-dtype", "bf16")
    assert "By bytes replay pays from L 3 to L 45, most at L 10, and stops there." in done.stdout
    assert (
        "As measured (NVIDIA H200) it is fastest at L 8, 1.56 times packed, slower than packed at"
        in done.stdout
    )


def test_a_model_brings_its_gate_and_heads_divided_over_ranks() -> None:
    told = json.loads(invoke("traffic", "--model", "kimi", "--tp", "4", "--format", "json").stdout)
    assert (told["gate"], told["heads"], told["value_heads"]) == ("kda", 8, 8)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--ring", "65"), "65 is not in the range 1<=x<=64"),
        (("--bandwidth", "0"), "0.0 is not in the range x>0"),
        (("--model", "nobody"), "no preset is named 'nobody'"),
        (("--model", "kimi", "--tp", "3"), "--tp: 3, need a divisor"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(arguments: tuple[str, ...], said: str) -> None:
    done = invoke("traffic", *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
