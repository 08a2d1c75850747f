"""Argument checks shared by the twins: everything a launch relies on and can be told without reading values.

A wrong shape, dtype, device or layout raises `ValueError` with the tensor's name, what it has and what it
needs. No `check_<op>` reads the values of a CUDA tensor, so a checked step stays free of host
synchronisation. On the CPU, where it costs nothing, they refuse slots, cursors and sequence bounds that point
outside the tensors; `check_values` does that on any device, and finds repeated slots, for debugging.
"""

import torch
from torch import Tensor

from .binding import Call, ConvSizes, DecodeSizes, FoldSizes

FLOATS = (torch.float32, torch.bfloat16, torch.float16)
FP32 = (torch.float32,)
INT32 = (torch.int32,)


def check_values(
    slots: Tensor,
    num_slots: int,
    *,
    name: str = "slots",
    write_pos: Tensor | None = None,
    counts: Tensor | None = None,
    ring: int = 0,
    distinct: bool = True,
) -> None:
    """Check the values of a launch; synchronises with the host on CUDA, so for debugging only there.

    Slots are -1 (padding) or in `[0, num_slots)`, and `distinct` where the launch writes through them. Rows
    that are no padding have room left at `write_pos` in a ring of `ring` records, and `counts` within it.
    Raises `ValueError` with the first row at fault.
    """
    seen: dict[int, int] = {}
    for row, slot in enumerate(slots.tolist()):
        if not -1 <= slot < num_slots:
            raise ValueError(f"{name}: row {row} has slot {slot}, need -1 to {num_slots - 1}")
        if slot >= 0 and distinct and seen.setdefault(slot, row) != row:
            raise ValueError(f"{name}: slot {slot} in rows {seen[slot]} and {row}, need distinct slots")
    for what, cursors, last in (("write_pos", write_pos, ring - 1), ("counts", counts, ring)):
        for row, (cursor, slot) in enumerate(zip(_values(cursors), slots.tolist(), strict=False)):
            if slot >= 0 and not 0 <= cursor <= last:
                raise ValueError(f"{what}: row {row} has {cursor}, need 0 to {last} in a ring of {ring}")


def _values(tensor: Tensor | None) -> list[int]:
    return [] if tensor is None else tensor.tolist()


def _check_sequences(cu_seqlens: Tensor, tokens: int) -> None:
    bounds = cu_seqlens.tolist()
    if bounds[0] != 0 or bounds[-1] != tokens or bounds != sorted(bounds):
        raise ValueError(f"cu_seqlens: {bounds}, need bounds that rise from 0 to the {tokens} tokens")


def is_vector_gate(name: str, gate: Tensor, lead: str) -> bool:
    """Whether the tensor `name` carries one decay per key channel (KDA) instead of one per head (GDN).

    `lead` names the dimensions that both kinds have, for instance "B HV" for `a` or
    "layers slots HV L" for `ring_g`; KDA has K after them. Raises `ValueError` for any other rank.
    """
    dims = lead.split()
    if gate.ndim not in (len(dims), len(dims) + 1):
        raise ValueError(
            f"{name}: shape {tuple(gate.shape)}, need ({', '.join(dims)}) for the GDN gate "
            f"or ({', '.join(dims)}, K) for the KDA gate"
        )
    return gate.ndim == len(dims) + 1


def bind_inputs(
    call: Call,
    rows: str,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
) -> bool:
    """Check the per-token inputs, whose leading dimension is `rows`; returns whether the gate is KDA's."""
    vector = is_vector_gate("a", a, f"{rows} HV")
    kind = "for the KDA gate" if vector else "for the GDN gate"
    call.bind("q", q, f"{rows} H K", FLOATS)
    call.bind("k", k, f"{rows} H K", FLOATS)
    call.bind("v", v, f"{rows} HV V", FLOATS)
    call.head_groups()
    call.bind("a", a, f"{rows} HV K" if vector else f"{rows} HV", FLOATS, kind)
    call.bind("b", b, f"{rows} HV", FLOATS)
    call.bind("A_log", A_log, "HV", FP32)
    call.bind("dt_bias", dt_bias, "HV K" if vector else "HV", FP32, kind)
    return vector


def decode_sizes(call: Call, rows: str, vector: bool) -> DecodeSizes:
    """The sizes that `call` has bound, with `rows` the name of the leading one."""
    size = call.sizes
    return DecodeSizes(size[rows], size["H"], size["HV"], size["K"], size["V"], size.get("L", 0), vector)


def check_packed_decode(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    temporal: Tensor,
    slots: Tensor,
) -> DecodeSizes:
    """Check the arguments of `packed_decode`; returns their sizes, raises `ValueError`."""
    call = Call(q.device)
    vector = bind_inputs(call, "B", q, k, v, a, b, A_log, dt_bias)
    call.bind("temporal", temporal, "slots HV V K", FLOATS)
    call.bind("slots", slots, "B", INT32)
    if call.on_cpu:
        check_values(slots, call.sizes["slots"], distinct=False)
    return decode_sizes(call, "B", vector)


def bind_rings(call: Call, layers: str, ring_d: Tensor, ring_k: Tensor, ring_g: Tensor, vector: bool) -> None:
    """Check the rings; `layers` is "layers " where they have that dimension in front, else empty."""
    kind = "for the KDA gate" if vector else "for the GDN gate"
    call.bind("ring_d", ring_d, f"{layers}slots HV L V", FLOATS)
    call.ring_length()
    call.bind("ring_k", ring_k, f"{layers}slots H L K", FLOATS)
    call.bind("ring_g", ring_g, f"{layers}slots HV L{' K' if vector else ''}", FP32, kind)


def check_replay_decode(
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
) -> DecodeSizes:
    """Check the arguments of `replay_decode`; returns their sizes, raises `ValueError`."""
    call = Call(q.device)
    vector = bind_inputs(call, "B", q, k, v, a, b, A_log, dt_bias)
    call.bind("temporal", temporal, "slots HV V K", FLOATS)
    bind_rings(call, "", ring_d, ring_k, ring_g, vector)
    call.bind("write_pos", write_pos, "B", INT32)
    call.bind("slots", slots, "B", INT32)
    if call.on_cpu:
        check_values(slots, call.sizes["slots"], write_pos=write_pos, ring=call.sizes["L"], distinct=False)
    return decode_sizes(call, "B", vector)


def check_fold(
    temporal: Tensor,
    ring_d: Tensor,
    ring_k: Tensor,
    ring_g: Tensor,
    slots: Tensor,
    counts: Tensor,
    dst: Tensor | None,
    rows: Tensor | None = None,
) -> FoldSizes:
    """Check the arguments of `fold`; returns their sizes, raises `ValueError`."""
    call = Call(temporal.device)
    vector = is_vector_gate("ring_g", ring_g, "layers slots HV L")
    call.bind("temporal", temporal, "layers slots HV V K", FLOATS)
    bind_rings(call, "layers ", ring_d, ring_k, ring_g, vector)
    call.head_groups()
    call.bind("slots", slots, "N", INT32)
    call.bind("counts", counts, "N", INT32)
    if dst is not None:
        call.bind("dst", dst, "N", INT32)
    if rows is not None:
        call.bind("rows", rows, "one", INT32)
        call.require(rows.numel() == 1, "rows", f"{rows.numel()} values", "one, the length of the list")
    size = call.sizes
    if call.on_cpu:
        check_values(slots, size["slots"], counts=counts, ring=size["L"], distinct=False)
        check_values(slots if dst is None else dst, size["slots"], name="dst", distinct=False)
    return FoldSizes(
        size["layers"], size["N"], size["H"], size["HV"], size["K"], size["V"], size["L"], vector
    )


def check_flush_list(slots: Tensor, cursors: Tensor, force: Tensor) -> None:
    """Check the arguments of `flush_list`; raises `ValueError`."""
    call = Call(slots.device)
    for name, tensor in (("slots", slots), ("cursors", cursors), ("force", force)):
        call.bind(name, tensor, "B", INT32)


def bind_conv(call: Call, rows: str, x: Tensor, weight: Tensor, conv: Tensor) -> None:
    """Check the inputs `x` with leading dimensions `rows`, the weights and the windows of a convolution."""
    call.bind("x", x, f"{rows} C", FLOATS)
    call.bind("weight", weight, "C W", FP32)
    call.require(call.sizes["W"] >= 2, "weight", f"width {call.sizes['W']}", "a width of 2 or more")
    call.bind("conv", conv, "slots C W-1", FLOATS)


def _bind_sequences(call: Call, slots: Tensor, cu_seqlens: Tensor) -> None:
    call.bind("cu_seqlens", cu_seqlens, "N+1", INT32)
    call.require(call.sizes["N+1"] > 0, "cu_seqlens", "no bound", "one more bound than sequences")
    call.sizes["N"] = call.sizes["N+1"] - 1
    call.bind("slots", slots, "N", INT32, "for one slot per sequence")
    if call.on_cpu:
        check_values(slots, call.sizes["slots"], distinct=False)
        _check_sequences(cu_seqlens, call.sizes["T"])


def check_conv_step(x: Tensor, weight: Tensor, conv: Tensor, slots: Tensor) -> ConvSizes:
    """Check the arguments of `conv_step`; returns their sizes, raises `ValueError`."""
    call = Call(x.device)
    bind_conv(call, "B", x, weight, conv)
    call.bind("slots", slots, "B", INT32)
    size = call.sizes
    if call.on_cpu:
        check_values(slots, size["slots"], distinct=False)
    return ConvSizes(size["B"], size["B"], size["C"], size["W"])


def check_conv_prefill(
    x: Tensor, weight: Tensor, conv: Tensor, slots: Tensor, cu_seqlens: Tensor
) -> ConvSizes:
    """Check the arguments of `conv_prefill`; returns their sizes, raises `ValueError`."""
    call = Call(x.device)
    bind_conv(call, "T", x, weight, conv)
    _bind_sequences(call, slots, cu_seqlens)
    size = call.sizes
    return ConvSizes(size["N"], size["T"], size["C"], size["W"])


def check_prefill(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    temporal: Tensor,
    slots: Tensor,
    cu_seqlens: Tensor,
) -> DecodeSizes:
    """Check the arguments of `prefill`; returns their sizes with `rows` the tokens, raises `ValueError`."""
    call = Call(q.device)
    vector = bind_inputs(call, "T", q, k, v, a, b, A_log, dt_bias)
    call.bind("temporal", temporal, "slots HV V K", FLOATS)
    _bind_sequences(call, slots, cu_seqlens)
    return decode_sizes(call, "T", vector)
