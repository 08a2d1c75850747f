"""Every check of the window operations: what it refuses, and beside it what it lets pass."""

import pytest
import torch

from replaylife.kernels import window_checks as checks

H, HV, K, V, L, SLOTS, LAYERS, ROWS, T, C, W = 2, 4, 8, 6, 9, 5, 2, 3, 4, 10, 4


def _ints(*values):
    return torch.tensor(values, dtype=torch.int32)


def _arguments(op, vector):
    width = (K,) if vector else ()
    lead = {"verify": (ROWS, T), "kv_replay": (LAYERS, SLOTS, T)}.get(op, ())
    layers = (LAYERS,) if op == "kv_replay" else ()
    everything = {
        "q": torch.zeros(*lead, H, K),
        "k": torch.zeros(*lead, H, K),
        "v": torch.zeros(*lead, HV, V),
        "a": torch.zeros(*lead, HV, *width),
        "b": torch.zeros(*lead, HV),
        "A_log": torch.zeros(*layers, HV),
        "dt_bias": torch.zeros(*layers, HV, *width),
        "temporal": torch.zeros(*layers, SLOTS, HV, V, K),
        "ring_d": torch.zeros(SLOTS, HV, L, V),
        "ring_k": torch.zeros(SLOTS, H, L, K),
        "ring_g": torch.zeros(SLOTS, HV, L, *width),
        "write_pos": _ints(5, 99, 7),
        "slots": _ints(1, -1, 4),
        "lengths": _ints(4, 99, 2),
        "counts": _ints(0, 1, 4),
        "dst": _ints(1, -1, 2),
        "x": torch.zeros(ROWS, T, C),
        "weight": torch.zeros(C, W),
        "conv": torch.zeros(SLOTS, C, W - 1),
        "extended": torch.zeros(LAYERS, ROWS, C, W - 1 + T),
        "width": W,
        "kept": _ints(0, 4, 2),
    }
    token = ["k", "v", "a", "b", "A_log", "dt_bias"]
    rings = ["ring_d", "ring_k", "ring_g"]
    names = {
        "verify": ["q", *token, "temporal", *rings, "write_pos", "slots", "lengths"],
        "kv_replay": ["temporal", *token, "slots", "counts", "dst"],
        "conv_verify": ["x", "weight", "conv", "slots", "lengths"],
        "conv_at": ["extended", "width", "kept"],
    }
    return {name: everything[name] for name in names[op]}


REFUSED = [
    # operation, gate is a vector, argument, bad value, what the message says
    ("verify", False, "q", torch.zeros(ROWS, H, K), r"q: shape \(3, 2, 8\), need \(B, T, H, K\)"),
    ("verify", False, "k", torch.zeros(ROWS, 3, H, K), r"k: shape \(3, 3, 2, 8\), need \(3, 4, 2, 8\)"),
    ("verify", False, "a", torch.zeros(ROWS, HV), r"a: shape \(3, 4\), need \(B, T, HV\) for the GDN gate"),
    ("verify", True, "a", torch.zeros(ROWS, T, HV, 7), r"a: .* need \(3, 4, 4, 8\) for the KDA gate"),
    ("verify", True, "ring_g", torch.zeros(SLOTS, HV, L), r"ring_g: .* need \(5, 4, 9, 8\) for the KDA"),
    ("verify", False, "ring_g", torch.zeros(SLOTS, HV, L).bfloat16(), r"ring_g: dtype torch.bfloat16"),
    ("verify", False, "temporal", torch.zeros(1, SLOTS, HV, V, K), r"temporal: shape .* need \(slots,"),
    ("verify", False, "write_pos", torch.zeros(ROWS).long(), r"write_pos: dtype torch.int64, need"),
    ("verify", False, "write_pos", _ints(6, 0, 7), r"write_pos: row 0 has 6 .* need 0 to 5"),
    ("verify", False, "write_pos", _ints(-1, 0, 7), r"write_pos: row 0 has -1 .* fold the slot"),
    ("verify", False, "lengths", _ints(5, 0, 2), r"lengths: row 0 has 5, need 0 to 4 for"),
    ("verify", False, "lengths", _ints(-1, 0, 2), r"lengths: row 0 has -1, need 0 to 4"),
    ("verify", False, "lengths", _ints(4, 2), r"lengths: shape \(2,\), need \(3\)"),
    ("verify", False, "slots", _ints(1, -1, 5), r"slots: row 2 has slot 5, need -1 to 4"),
    ("conv_verify", False, "x", torch.zeros(ROWS, C), r"x: shape \(3, 10\), need \(B, T, C\)"),
    ("conv_verify", False, "x", torch.zeros(ROWS, 65, C), r"x: a window of 65 tokens, need 1 to 64"),
    ("conv_verify", False, "weight", torch.zeros(C, 1), r"weight: width 1, need a width of 2 or more"),
    ("conv_verify", False, "conv", torch.zeros(SLOTS, C, W), r"conv: shape \(5, 10, 4\), need .*10, 3\)"),
    ("conv_verify", False, "lengths", _ints(0, 0, 5), r"lengths: row 2 has 5, need 0 to 4"),
    ("conv_verify", False, "slots", _ints(0, 0, -2), r"slots: row 2 has slot -2, need -1 to 4"),
    ("conv_at", False, "extended", torch.zeros(C, 7), r"extended: shape \(10, 7\), need \(B, C, W-1\+T\)"),
    ("conv_at", False, "extended", torch.zeros(ROWS, C, 3), r"extended: 3 inputs, need 4 or more"),
    ("conv_at", False, "width", 1, r"width: 1, need 2 or more"),
    ("conv_at", False, "kept", _ints(0, 5, 0), r"kept: row 1 has 5, need 0 to 4 of a window of 4"),
    ("conv_at", False, "kept", _ints(0, 1), r"kept: shape \(2,\), need \(3\)"),
    ("kv_replay", False, "temporal", torch.zeros(SLOTS, HV, V, K), r"temporal: .* need \(layers, slots, HV"),
    ("kv_replay", False, "k", torch.zeros(LAYERS, SLOTS, H, T, K), r"v: shape .* need \(2, 5, 2,"),
    ("kv_replay", True, "a", torch.zeros(LAYERS, SLOTS, T, HV, 7), r"a: .* need \(2, 5, 4, 4, 8\) for"),
    ("kv_replay", False, "A_log", torch.zeros(HV), r"A_log: shape \(4,\), need \(2, 4\)"),
    ("kv_replay", False, "dt_bias", torch.zeros(LAYERS, HV, K), r"dt_bias: .* need \(2, 4\) for"),
    ("kv_replay", False, "counts", _ints(0, 1, 5), r"counts: row 2 has 5, need 0 to 4"),
    ("kv_replay", False, "dst", _ints(0, 1, 5), r"dst: row 2 has slot 5, need -1 to 4"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "vector", "name", "bad", "message"), REFUSED, ids=lambda p: str(p)[:40])
def test_a_bad_argument_is_refused_by_name_and_the_good_one_passes(op, vector, name, bad, message):
    check = getattr(checks, f"check_{op}")
    arguments = _arguments(op, vector)
    check(**arguments)
    with pytest.raises(ValueError, match=message):
        check(**{**arguments, name: bad})


def test_every_operation_has_a_check():
    assert {op for op, *_ in REFUSED} == {"verify", "conv_verify", "conv_at", "kv_replay"}
    assert len(REFUSED) >= 30


def test_a_window_longer_than_the_ring_is_refused():
    arguments = _arguments("verify", False)
    short = {name: arguments[name][:, :, :3].contiguous() for name in ("ring_d", "ring_k", "ring_g")}
    with pytest.raises(ValueError, match=r"q: a window of 4 tokens, need 1 to 3 in a ring of 3"):
        checks.check_verify(**{**arguments, **short})


@pytest.mark.parametrize("op", ["verify", "conv_verify", "conv_at", "kv_replay"])
def test_no_values_are_read_off_the_host(op):
    """Tensors without values stand for CUDA ones: reading any would fail."""
    arguments = _arguments(op, True)
    getattr(checks, f"check_{op}")(
        **{name: x if isinstance(x, int) else x.to("meta") for name, x in arguments.items()}
    )


def test_the_operations_run_the_checks(s, kernels, tiny):
    pool = s.Pool(tiny, slots=2, ring=3)
    x = {name: value[None] for name, value in s.tokens(tiny, 2, seed=0).items()}
    cursors = {"write_pos": s.ints(2), "slots": s.ints(0), "lengths": s.ints(2)}
    if not s.ON_CUDA:
        with pytest.raises(ValueError, match="write_pos: row 0 has 2 and a window of 2 tokens"):
            kernels.verify(**x, **s.gates(tiny), **pool.layer(), **cursors)
    with pytest.raises(ValueError, match="lengths: shape"):
        kernels.verify(**x, **s.gates(tiny), **pool.layer(), **{**cursors, "lengths": s.ints(1, 1)})
    weight, conv = torch.zeros(4, 3, device=s.DEVICE), torch.zeros(1, 4, 2, device=s.DEVICE)
    with pytest.raises(ValueError, match="x: shape"):
        kernels.conv_verify(torch.zeros(1, 4, device=s.DEVICE), weight, conv, s.ints(0), s.ints(1))
    with pytest.raises(ValueError, match="kept: shape"):
        kernels.conv_at(torch.zeros(1, 4, 5, device=s.DEVICE), 3, s.ints(1, 1))
    buffers = {name: x[name][None] for name in ("k", "v", "a", "b")}
    with pytest.raises(ValueError, match="k: shape"):
        kernels.kv_replay(pool.temporal, **buffers, **s.gates(tiny), slots=s.ints(0), counts=s.ints(1))
    assert not kernels.launches
