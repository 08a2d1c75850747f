# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators
# Triton ships no types, and a kernel has no Python types to annotate.
"""Arithmetic shared by the Triton kernels, and the launch that counts them.

All of it is written so that interpreter and compiler do the same operations: no library call beyond `exp`,
correctly rounded division and square root, and (at launch) no floating-point fusion.
"""

from collections import Counter
from typing import Any

import torch
import triton
import triton.language as tl

INTERPRETED = not isinstance(tl.cdiv, triton.runtime.JITFunction)
MODE = "triton-interpreted" if INTERPRETED else "triton-compiled"
MAX_TILE = 4096  # elements of a state tile in a compiled kernel: 32 registers a thread with four warps


def device_function(fn: Any) -> Any:
    """Decorate a function that kernels call.

    The interpreter patches the whole language again at each call of a jit function, for about a millisecond;
    plain Python does the same arithmetic without it.
    """
    return fn if INTERPRETED else triton.jit(fn)


total = tl.sum.fn if INTERPRETED else tl.sum


@device_function
def round_to(x, dtype: tl.constexpr, INTERPRETED: tl.constexpr):
    """`x` in fp32 rounded to nearest even as `dtype`; Triton's interpreter alone would truncate to bf16."""
    if INTERPRETED and dtype == tl.bfloat16:
        bits = x.to(tl.uint32, bitcast=True)
        even = bits + 0x7FFF + ((bits >> 16) & 1)
        x = tl.where(x == x, even & 0xFFFF0000, bits).to(tl.float32, bitcast=True)
    return x.to(dtype)


@device_function
def exp_of_log_decay(x, INTERPRETED: tl.constexpr):
    """`exp(x)` for x <= 0 without care for subnormal results, which costs three instructions more."""
    if INTERPRETED:
        return tl.exp(x)
    return tl.inline_asm_elementwise(
        "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x * 1.4426950408889634], tl.float32, True, 1
    )


@device_function
def sigmoid(x, ROUNDED: tl.constexpr = True):
    """`1 / (1 + exp(-x))` without overflow; exactly 1/2 at 0. `ROUNDED` divides as the interpreter does."""
    z = tl.exp(-tl.abs(x))
    numerator = tl.where(x >= 0, 1.0, z)
    return tl.div_rn(numerator, 1.0 + z) if ROUNDED else numerator / (1.0 + z)


@device_function
def softplus(x, ROUNDED: tl.constexpr = True):
    """`max(x, 0) + log1p(exp(-|x|))`, relative error near fp32 rounding everywhere; above 20 it is x.

    With u in (0, 1], `log1p(u) = 2 atanh(s)` for `s = u / (2 + u) <= 1/3`, whose series needs eight terms.
    `ROUNDED` divides exactly as the interpreter does.
    """
    u = tl.exp(-tl.abs(x))
    s = tl.div_rn(u, 2.0 + u) if ROUNDED else u / (2.0 + u)
    z = s * s
    p = z * (1.0 / 15.0) + (1.0 / 13.0)
    p = p * z + (1.0 / 11.0)
    p = p * z + (1.0 / 9.0)
    p = p * z + (1.0 / 7.0)
    p = p * z + (1.0 / 5.0)
    p = p * z + (1.0 / 3.0)
    log1p = 2.0 * s + 2.0 * s * (z * p)
    return tl.where(x > 0, x, 0.0) + log1p


@device_function
def load_token(
    q_ptr, k_ptr, a_ptr, b_ptr, A_log_ptr, dt_bias_ptr, row, i_h, i_hv,
    H: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, BK: tl.constexpr, VECTOR_GATE: tl.constexpr,
):  # fmt: skip
    """Normalised `q`, `k` `[BK]`, `k.q`, the gate `g` (scalar for GDN, `[BK]` for KDA) and `beta`."""
    o_k = tl.arange(0, BK)
    m_k = o_k < K
    p_head = (row * H + i_h) * K + o_k
    q = tl.load(q_ptr + p_head, mask=m_k, other=0.0).to(tl.float32)
    k = tl.load(k_ptr + p_head, mask=m_k, other=0.0).to(tl.float32)
    q = tl.div_rn(q, tl.sqrt_rn(total(q * q, axis=0) + 1e-6)) * (K**-0.5)
    k = tl.div_rn(k, tl.sqrt_rn(total(k * k, axis=0) + 1e-6))
    rate = tl.exp(tl.load(A_log_ptr + i_hv))
    if VECTOR_GATE:
        x = tl.load(a_ptr + (row * HV + i_hv) * K + o_k, mask=m_k, other=0.0).to(tl.float32)
        x = x + tl.load(dt_bias_ptr + i_hv * K + o_k, mask=m_k, other=0.0)
    else:
        x = tl.load(a_ptr + row * HV + i_hv).to(tl.float32) + tl.load(dt_bias_ptr + i_hv)
    g = -rate * softplus(x)
    beta = sigmoid(tl.load(b_ptr + row * HV + i_hv).to(tl.float32))
    return q, k, total(k * q, axis=0), g, beta


def state_tile(V: int, K: int) -> tuple[int, int]:
    """Tile `(BV, BK)` of a state: all of K, so that no choice of BV changes a sum.

    Packed decode, replay decode and fold share it. The interpreter pays per program and operation, so there
    a tile is the whole state.
    """
    BV, BK = triton.next_power_of_2(V), triton.next_power_of_2(K)
    return (BV if INTERPRETED else min(BV, max(1, MAX_TILE // BK))), BK


def launch(
    op: str,
    kernel: Any,
    grid: tuple[int, ...],
    tensors: tuple[Any, ...],
    launches: Counter[str] | None,
    *,
    num_warps: int = 4,
    registers: int = 0,
    enable_fp_fusion: bool = False,
    **meta: Any,
) -> None:
    """Launch `kernel` over `grid` and count it as `op[mode]`; by default without floating-point fusion.

    An empty grid launches nothing. Raises `ValueError` for tensors that the mode cannot reach: the
    interpreter works on CPU tensors, compiled kernels on those of the current CUDA device.
    """
    if 0 in grid:
        return
    device: torch.device = tensors[0].device
    if device.type != ("cpu" if INTERPRETED else "cuda"):
        raise ValueError(
            f"{op}: tensors on {device}, need {'cpu' if INTERPRETED else 'cuda'} for {MODE} kernels"
        )
    if not INTERPRETED and device.index != torch.cuda.current_device():
        raise ValueError(f"{op}: tensors on {device}, need the current device, {torch.cuda.current_device()}")
    if launches is not None:
        launches[f"{op}[{MODE}]"] += 1
    capped = {"maxnreg": registers} if registers and not INTERPRETED else {}
    kernel[grid](
        *tensors,
        **meta,
        **capped,
        INTERPRETED=INTERPRETED,
        num_warps=num_warps,
        enable_fp_fusion=enable_fp_fusion,
    )
