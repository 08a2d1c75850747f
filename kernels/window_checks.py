"""Argument checks of the operations on a window of several tokens; see `checks` for what a check is."""

from typing import NamedTuple

from torch import Tensor

from .binding import MAX_RING, Call, DecodeSizes
from .checks import (
    FLOATS,
    FP32,
    INT32,
    bind_conv,
    bind_inputs,
    bind_rings,
    check_values,
    decode_sizes,
    is_vector_gate,
)


class WindowSizes(NamedTuple):
    """Sizes of a convolution over windows of `tokens` inputs."""

    rows: int
    tokens: int
    channels: int
    width: int


class ReplaySizes(NamedTuple):
    """Sizes of a KV-buffer replay; `tokens` is how many a slot's buffers hold."""

    layers: int
    rows: int
    tokens: int
    key_heads: int
    heads: int
    K: int
    V: int
    vector_gate: bool


def _bind_lengths(call: Call, lengths: Tensor, slots: Tensor) -> None:
    """Check `lengths` and `slots`: one of each per row, and no window longer than the T inputs given."""
    call.bind("lengths", lengths, "B", INT32)
    call.bind("slots", slots, "B", INT32)
    if not call.on_cpu:
        return
    check_values(slots, call.sizes["slots"], distinct=False)
    most = call.sizes["T"]
    for row, (length, slot) in enumerate(zip(lengths.tolist(), slots.tolist(), strict=True)):
        if slot >= 0 and not 0 <= length <= most:
            raise ValueError(
                f"lengths: row {row} has {length}, need 0 to {most} for a window of {most} tokens"
            )


def _check_room(write_pos: Tensor, lengths: Tensor, slots: Tensor, ring: int) -> None:
    """Every window fits into its ring behind the records that are pending."""
    rows = zip(write_pos.tolist(), lengths.tolist(), slots.tolist(), strict=True)
    for row, (cursor, length, slot) in enumerate(rows):
        if slot >= 0 and not 0 <= cursor <= ring - length:
            raise ValueError(
                f"write_pos: row {row} has {cursor} and a window of {length} tokens, need 0 to "
                f"{ring - length} in a ring of {ring}; fold the slot before the window opens"
            )


def check_verify(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    temporal: Tensor,
    ring_d: Tensor,
    ring_k: Tensor,
    ring_g: Tensor,
    write_pos: Tensor,
    slots: Tensor,
    lengths: Tensor,
) -> tuple[DecodeSizes, int]:
    """Check the arguments of `verify`; returns their sizes and T, raises `ValueError`."""
    call = Call(q.device)
    vector = bind_inputs(call, "B T", q, k, v, a, b, A_log, dt_bias)
    call.bind("temporal", temporal, "slots HV V K", FLOATS)
    bind_rings(call, "", ring_d, ring_k, ring_g, vector)
    tokens, ring = call.sizes["T"], call.sizes["L"]
    call.require(1 <= tokens <= ring, "q", f"a window of {tokens} tokens", f"1 to {ring} in a ring of {ring}")
    call.bind("write_pos", write_pos, "B", INT32)
    _bind_lengths(call, lengths, slots)
    if call.on_cpu:
        _check_room(write_pos, lengths, slots, ring)
    return decode_sizes(call, "B", vector), tokens


def check_conv_verify(x: Tensor, weight: Tensor, conv: Tensor, slots: Tensor, lengths: Tensor) -> WindowSizes:
    """Check the arguments of `conv_verify`; returns their sizes, raises `ValueError`."""
    call = Call(x.device)
    bind_conv(call, "B T", x, weight, conv)
    tokens = call.sizes["T"]
    call.require(1 <= tokens <= MAX_RING, "x", f"a window of {tokens} tokens", f"1 to {MAX_RING}")
    _bind_lengths(call, lengths, slots)
    return WindowSizes(call.sizes["B"], tokens, call.sizes["C"], call.sizes["W"])


def check_conv_at(extended: Tensor, width: int, kept: Tensor) -> None:
    """Check the arguments of `conv_at`; raises `ValueError`."""
    call = Call(extended.device)
    call.require(width >= 2, "width", width, "2 or more, as the convolution's weight has")
    lead = "layers B" if extended.ndim == 4 else "B"
    call.bind("extended", extended, f"{lead} C W-1+T", FLOATS)
    tokens = extended.shape[-1] - (width - 1)
    call.require(
        tokens >= 1, "extended", f"{extended.shape[-1]} inputs", f"{width} or more at a width of {width}"
    )
    call.bind("kept", kept, "B", INT32)
    if call.on_cpu:
        for row, count in enumerate(kept.tolist()):
            if not 0 <= count <= tokens:
                raise ValueError(f"kept: row {row} has {count}, need 0 to {tokens} of a window of {tokens}")


def check_kv_replay(
    temporal: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    slots: Tensor,
    counts: Tensor,
    dst: Tensor | None,
) -> ReplaySizes:
    """Check the arguments of `kv_replay`; returns their sizes, raises `ValueError`."""
    call = Call(temporal.device)
    vector = is_vector_gate("a", a, "layers slots T HV")
    kind = "for the KDA gate" if vector else "for the GDN gate"
    width = " K" if vector else ""
    call.bind("temporal", temporal, "layers slots HV V K", FLOATS)
    call.bind("k", k, "layers slots T H K", FLOATS)
    call.bind("v", v, "layers slots T HV V", FLOATS)
    call.head_groups()
    call.bind("a", a, f"layers slots T HV{width}", FLOATS, kind)
    call.bind("b", b, "layers slots T HV", FLOATS)
    call.bind("A_log", A_log, "layers HV", FP32)
    call.bind("dt_bias", dt_bias, f"layers HV{width}", FP32, kind)
    call.bind("slots", slots, "N", INT32)
    call.bind("counts", counts, "N", INT32)
    if dst is not None:
        call.bind("dst", dst, "N", INT32)
    size = call.sizes
    if call.on_cpu:
        check_values(slots, size["slots"], counts=counts, ring=size["T"], distinct=False)
        check_values(slots if dst is None else dst, size["slots"], name="dst", distinct=False)
    return ReplaySizes(
        size["layers"], size["N"], size["T"], size["H"], size["HV"], size["K"], size["V"], vector
    )
