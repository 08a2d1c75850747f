"""Every check: what it refuses, and beside it what it lets pass."""

import pytest
import torch

from replaylife.kernels import checks

H, HV, K, V, L, SLOTS, LAYERS, ROWS, C, W = 2, 4, 8, 6, 3, 5, 2, 3, 10, 4


def _ints(*values):
    return torch.tensor(values, dtype=torch.int32)


def _arguments(op, vector):
    gate = (HV, K) if vector else (HV,)
    lead = (LAYERS,) if op == "fold" else ()
    everything = {
        "q": torch.zeros(ROWS, H, K),
        "k": torch.zeros(ROWS, H, K),
        "v": torch.zeros(ROWS, HV, V),
        "a": torch.zeros(ROWS, *gate),
        "b": torch.zeros(ROWS, HV),
        "A_log": torch.zeros(HV),
        "dt_bias": torch.zeros(gate),
        "temporal": torch.zeros(*lead, SLOTS, HV, V, K),
        "ring_d": torch.zeros(*lead, SLOTS, HV, L, V),
        "ring_k": torch.zeros(*lead, SLOTS, H, L, K),
        "ring_g": torch.zeros(*lead, SLOTS, HV, L, *gate[1:]),
        "write_pos": _ints(0, 1, 2),
        "slots": _ints(1, -1, 4),
        "counts": _ints(0, 1, 3),
        "dst": _ints(1, -1, 2),
        "cu_seqlens": _ints(0, 1, 1, 3),
        "x": torch.zeros(ROWS, C),
        "weight": torch.zeros(C, W),
        "conv": torch.zeros(SLOTS, C, W - 1),
    }
    token = ["q", "k", "v", "a", "b", "A_log", "dt_bias", "temporal"]
    rings = ["ring_d", "ring_k", "ring_g"]
    names = {
        "packed_decode": [*token, "slots"],
        "replay_decode": [*token, *rings, "write_pos", "slots"],
        "fold": ["temporal", *rings, "slots", "counts", "dst"],
        "conv_step": ["x", "weight", "conv", "slots"],
        "conv_prefill": ["x", "weight", "conv", "slots", "cu_seqlens"],
        "prefill": [*token, "slots", "cu_seqlens"],
    }
    return {name: everything[name] for name in names[op]}


def _strided(*shape):
    return torch.zeros(*shape, 2)[..., 0]


REFUSED = [
    # operation, gate is a vector, argument, bad value, what the message says
    ("packed_decode", False, "q", torch.zeros(ROWS, K), r"q: shape \(3, 8\), need \(B, H, K\) \(B, H, K\)"),
    ("packed_decode", False, "k", torch.zeros(ROWS, H, 9), r"k: shape \(3, 2, 9\), need \(3, 2, 8\)"),
    (
        "packed_decode",
        False,
        "v",
        torch.zeros(ROWS, 3, V),
        r"v: 3 value heads over 2 key heads, need a multiple",
    ),
    ("packed_decode", False, "v", torch.zeros(2, HV, V), r"v: shape \(2, 4, 6\), need \(3, HV, V\)"),
    (
        "packed_decode",
        False,
        "q",
        _strided(ROWS, H, K),
        r"q: strides \(32, 16, 2\), need a contiguous tensor",
    ),
    (
        "packed_decode",
        False,
        "q",
        torch.zeros(ROWS, H, K).double(),
        r"q: dtype torch.float64, need torch.float32",
    ),
    ("packed_decode", False, "a", torch.zeros(ROWS), r"a: shape \(3,\), need \(B, HV\) for the GDN gate"),
    ("packed_decode", False, "a", torch.zeros(ROWS, 5), r"a: shape \(3, 5\), need \(3, 4\) for the GDN gate"),
    ("packed_decode", True, "a", torch.zeros(ROWS, HV, 7), r"a: shape .*, need \(3, 4, 8\) for the KDA gate"),
    ("packed_decode", False, "b", torch.zeros(ROWS, 3), r"b: shape \(3, 3\), need \(3, 4\)"),
    (
        "packed_decode",
        False,
        "A_log",
        torch.zeros(HV).half(),
        r"A_log: dtype torch.float16, need torch.float32",
    ),
    (
        "packed_decode",
        True,
        "dt_bias",
        torch.zeros(HV),
        r"dt_bias: shape \(4,\), need \(4, 8\) for the KDA gate",
    ),
    (
        "packed_decode",
        False,
        "temporal",
        torch.zeros(SLOTS, HV, K, V),
        r"temporal: .* need \(slots, 4, 6, 8\)",
    ),
    (
        "packed_decode",
        False,
        "temporal",
        torch.zeros(SLOTS, HV, V, K, device="meta"),
        "temporal: on meta, need cpu",
    ),
    ("packed_decode", False, "slots", _ints(1, 2), r"slots: shape \(2,\), need \(3\) \(B\)"),
    ("packed_decode", False, "slots", torch.tensor([1, 2, 3]), r"slots: dtype torch.int64, need torch.int32"),
    ("packed_decode", False, "slots", _ints(1, 2, 5), r"slots: row 2 has slot 5, need -1 to 4"),
    (
        "replay_decode",
        False,
        "ring_d",
        torch.zeros(SLOTS, HV, 65, V),
        r"ring_d: ring of 65 records, need 1 to 64",
    ),
    ("replay_decode", False, "ring_k", torch.zeros(SLOTS, HV, L, K), r"ring_k: .* need \(5, 2, 3, 8\)"),
    (
        "replay_decode",
        False,
        "ring_k",
        torch.zeros(SLOTS, H, L, K, dtype=torch.int8),
        "ring_k: dtype torch.int8, need",
    ),
    (
        "replay_decode",
        False,
        "ring_g",
        torch.zeros(SLOTS, HV, L, K),
        r"ring_g: shape \(5, 4, 3, 8\), need \(5, 4, 3\) for the GDN gate \(slots, HV, L\)",
    ),
    ("replay_decode", False, "ring_g", torch.zeros(SLOTS, HV, L).half(), "ring_g: dtype torch.float16, need"),
    ("replay_decode", False, "write_pos", _ints(0), r"write_pos: shape \(1,\), need \(3\)"),
    (
        "replay_decode",
        False,
        "write_pos",
        _ints(0, 9, 3),
        r"write_pos: row 2 has 3, need 0 to 2 in a ring of 3",
    ),
    ("replay_decode", False, "slots", _ints(1, -2, 2), r"slots: row 1 has slot -2, need -1 to 4"),
    (
        "fold",
        False,
        "temporal",
        torch.zeros(SLOTS, HV, V, K),
        r"temporal: .* need \(layers, slots, HV, V, K\)",
    ),
    ("fold", False, "ring_d", torch.zeros(1, SLOTS, HV, L, V), r"ring_d: .* need \(2, 5, 4, L, 6\)"),
    ("fold", True, "ring_g", torch.zeros(LAYERS, SLOTS, HV, L, 7), r"ring_g: .* need .* for the KDA gate"),
    ("fold", False, "ring_k", torch.zeros(LAYERS, SLOTS, 3, L, K), r"v: 4 value heads over 3 key heads"),
    ("fold", False, "counts", _ints(0, 1), r"counts: shape \(2,\), need \(3\)"),
    ("fold", False, "counts", _ints(0, 1, 4), r"counts: row 2 has 4, need 0 to 3 in a ring of 3"),
    ("fold", False, "dst", _ints(0, 1, 8), r"dst: row 2 has slot 8, need -1 to 4"),
    ("fold", False, "slots", _ints(0, 1, 8), r"slots: row 2 has slot 8, need -1 to 4"),
    ("conv_step", False, "x", torch.zeros(ROWS), r"x: shape \(3,\), need \(B, C\)"),
    ("conv_step", False, "weight", torch.zeros(C, 1), r"weight: width 1, need a width of 2 or more"),
    (
        "conv_step",
        False,
        "weight",
        torch.zeros(C, W).half(),
        r"weight: dtype torch.float16, need torch.float32",
    ),
    (
        "conv_step",
        False,
        "conv",
        torch.zeros(SLOTS, C, W),
        r"conv: shape \(5, 10, 4\), need \(slots, 10, 3\)",
    ),
    ("conv_step", False, "slots", _ints(0, 1, 8), r"slots: row 2 has slot 8, need -1 to 4"),
    ("conv_prefill", False, "slots", _ints(0, 1), r"slots: .* need \(3\) for one slot per sequence"),
    (
        "conv_prefill",
        False,
        "cu_seqlens",
        _ints(),
        r"cu_seqlens: no bound, need one more bound than sequences",
    ),
    ("conv_prefill", False, "cu_seqlens", _ints(0, 1, 1, 2), r"cu_seqlens: .* rise from 0 to the 3 tokens"),
    ("prefill", False, "cu_seqlens", _ints(0, 2, 1, 3), r"cu_seqlens: .* rise from 0 to the 3 tokens"),
    ("prefill", False, "slots", _ints(0, 1, 7), r"slots: row 2 has slot 7, need -1 to 4"),
    ("prefill", True, "a", torch.zeros(ROWS, HV, 7), r"a: .* need \(3, 4, 8\) for the KDA gate \(T, HV, K\)"),
]


@pytest.mark.parametrize(("op", "vector", "name", "bad", "message"), REFUSED, ids=lambda p: str(p)[:40])
def test_a_bad_argument_is_refused_by_name_and_the_good_one_passes(op, vector, name, bad, message):
    check = getattr(checks, f"check_{op}")
    arguments = _arguments(op, vector)
    assert check(**arguments)
    with pytest.raises(ValueError, match=message):
        check(**{**arguments, name: bad})


def test_every_operation_and_argument_has_a_check():
    seen = {(op, name) for op, _, name, _, _ in REFUSED}
    assert {op for op, _ in seen} == {
        "packed_decode",
        "replay_decode",
        "fold",
        "conv_step",
        "conv_prefill",
        "prefill",
    }
    assert {name for _, name in seen} >= {"q", "k", "v", "a", "b", "A_log", "dt_bias", "temporal", "slots"}
    assert len(REFUSED) >= 40


def test_no_values_are_read_off_the_host():
    """Tensors without values stand for CUDA ones: reading any would fail."""
    for op in ("packed_decode", "replay_decode", "fold", "conv_step", "conv_prefill", "prefill"):
        arguments = {name: tensor.to("meta") for name, tensor in _arguments(op, True).items()}
        assert getattr(checks, f"check_{op}")(**arguments)


def test_repeated_slots_are_found_for_debugging_and_padding_may_repeat():
    checks.check_values(_ints(1, -1, -1, 2), 4)
    checks.check_values(_ints(1, 1), 4, distinct=False)
    with pytest.raises(ValueError, match=r"slots: slot 1 in rows 0 and 3, need distinct slots"):
        checks.check_values(_ints(1, -1, 2, 1), 4)


def test_cursors_of_padded_rows_are_free():
    checks.check_values(_ints(1, -1), 4, write_pos=_ints(2, 77), ring=3)
    with pytest.raises(ValueError, match=r"write_pos: row 0 has 3, need 0 to 2 in a ring of 3"):
        checks.check_values(_ints(1, -1), 4, write_pos=_ints(3, 77), ring=3)


def test_the_operations_run_the_checks(s, kernels, tiny):
    pool = s.Pool(tiny, slots=2, ring=2)
    x = {**s.tokens(tiny, 1, seed=0), **s.gates(tiny)}
    kernels.packed_decode(**x, temporal=pool.temporal[0], slots=s.ints(0))
    with pytest.raises(ValueError, match="temporal: shape"):
        kernels.packed_decode(**x, temporal=pool.temporal, slots=s.ints(0))
    with pytest.raises(ValueError, match="slots: shape"):
        kernels.replay_decode(**x, **pool.layer(), write_pos=s.ints(0), slots=s.ints(0, 1))
    with pytest.raises(ValueError, match="counts: shape"):
        kernels.fold(**pool.tensors(), slots=s.ints(0), counts=s.ints(0, 1))
    with pytest.raises(ValueError, match="cu_seqlens: shape"):
        kernels.prefill(**x, temporal=pool.temporal[0], slots=s.ints(0), cu_seqlens=s.ints(0)[None])
    with pytest.raises(ValueError, match="conv: shape"):
        kernels.conv_step(
            torch.zeros(1, 4, device=s.DEVICE), torch.zeros(4, 3, device=s.DEVICE), x["q"], s.ints(0)
        )
    assert sum(kernels.launches.values()) == 1
