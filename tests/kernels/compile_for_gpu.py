"""Compile every Triton kernel for an H200 (sm_90), which takes no GPU; run in a process of its own.

Prints one line a kernel: its name, whether fusion of multiplication and addition is off, and how many fused
multiply-adds the PTX holds.
"""

import re

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

from replaylife.kernels import (
    conv_triton,
    flush_triton,
    fold_triton,
    fold_tuned_triton,
    kv_replay_triton,
    packed_decode_triton,
    replay_decode_triton,
    replay_decode_tuned_triton,
    verify_triton,
)
from replaylife.kernels.math_triton import state_tile
from replaylife.kernels.tiles import Key, table

TOKEN = dict.fromkeys(("o_ptr", "q_ptr", "k_ptr", "v_ptr", "a_ptr", "b_ptr"), "*bf16")
TOKEN |= {"A_log_ptr": "*fp32", "dt_bias_ptr": "*fp32", "slots_ptr": "*i32"}
CONV = {"y_ptr": "*bf16", "x_ptr": "*bf16", "weight_ptr": "*fp32", "conv_ptr": "*bf16", "slots_ptr": "*i32"}


def build(kernel, types, constants, **options):
    """Compile with the options of a launch; every argument without a type is a constant."""
    names = kernel.arg_names
    signature = {name: types.get(name, "constexpr") for name in names}
    values = {(names.index(name),): value for name, value in {**constants, "INTERPRETED": False}.items()}
    aligned = {(names.index(name),): [["tt.divisibility", 16]] for name, ty in types.items() if ty[0] == "*"}
    done = compile(
        ASTSource(kernel, signature, values, aligned),
        target=GPUTarget("cuda", 90, 32),
        options={"num_warps": 4, "enable_fp_fusion": False} | options,
    )
    print(kernel.__name__, len(re.findall(r"\bfma\.", done.asm["ptx"])))


def build_recurrence(vector, state, ring):
    """Packed decode, replay decode and fold at the yardstick shapes."""
    BV, BK = state_tile(128, 128)
    sizes = {
        "H": 32 if vector else 16,
        "HV": 32,
        "K": 128,
        "V": 128,
        "BK": BK,
        "BV": BV,
        "VECTOR_GATE": vector,
    }
    rings = dict.fromkeys(("ring_d_ptr", "ring_k_ptr", "ring_g_ptr"), "*fp32")
    temporal = {"temporal_ptr": state}
    build(packed_decode_triton._packed_decode_kernel, TOKEN | temporal, {**sizes, "ALL_V": 128})
    build(
        replay_decode_triton._replay_decode_kernel,
        TOKEN | temporal | rings | {"write_pos_ptr": "*i32"},
        {**sizes, "ALL_V": 128, "L": ring, "BL": ring},
    )
    rows = {"slots_ptr": "*i32", "counts_ptr": "*i32", "dst_ptr": "*i32", "num_slots": "i32"}
    build(fold_triton._fold_kernel, temporal | rings | rows, {**sizes, "L": ring})


def build_tuned(gate, state, ring):
    """Decode and fold with the tiles of the shipped table, in every ring format."""
    vector = gate == "kda"
    key = Key(gate, state.removeprefix("*"), ring)
    decode, fold = table().decode(key, 256).within(128, 128), table().fold(key).within(128, 128)
    sizes = {"H": 32 if vector else 16, "HV": 32, "K": 128, "V": 128, "L": ring, "VECTOR_GATE": vector}
    sizes["BL"] = max(16, ring)
    rings = {"ring_d_ptr": "*fp32", "ring_k_ptr": "*bf16", "ring_g_ptr": "*fp32", "temporal_ptr": state}
    rows = dict.fromkeys(("slots_ptr", "counts_ptr", "dst_ptr", "rows_ptr"), "*i32")
    rows |= dict.fromkeys(("num_slots", "rows", "layers", "stride"), "i32")
    for raw, cumulative in ((True, False), (False, True)):
        forms = {"RAW": raw, "CUMULATIVE": cumulative, "LISTED": raw}
        for kernel, tile, types in (
            (replay_decode_tuned_triton._tuned_decode_kernel, decode, TOKEN | {"write_pos_ptr": "*i32"}),
            (fold_tuned_triton._tuned_fold_kernel, fold, rows),
        ):
            side = {"BK": tile.BK, "BV": tile.BV, "VS": tile.VS, "STAGES": tile.num_stages}
            known = {n: v for n, v in (sizes | side | forms).items() if n in kernel.arg_names}
            build(kernel, types | rings, known, num_warps=tile.num_warps, enable_fp_fusion=True)


def build_window(vector, state, ring, tokens):
    """Verify and KV-buffer replay at the yardstick shapes; both may fuse."""
    sizes = {"H": 32 if vector else 16, "HV": 32, "K": 128, "V": 128, "BK": 128, "VECTOR_GATE": vector}
    rings = {"ring_d_ptr": "*fp32", "ring_k_ptr": "*bf16", "ring_g_ptr": "*fp32"}
    build(
        verify_triton._verify_kernel,
        TOKEN | {"temporal_ptr": state} | rings | {"write_pos_ptr": "*i32", "lengths_ptr": "*i32"},
        {
            **sizes,
            "T": tokens,
            "L": ring,
            "BV": verify_triton.BLOCK_V,
            "VS": verify_triton.SLICE_V,
            "BL": max(16, ring),
            "BT": max(16, tokens),
            "RAW": ring > 16,
            "CUMULATIVE": ring <= 16,
        },
        enable_fp_fusion=True,
    )
    rows = {"slots_ptr": "*i32", "counts_ptr": "*i32", "dst_ptr": "*i32", "num_slots": "i32", "rows": "i32"}
    inputs = {name: TOKEN[name] for name in ("k_ptr", "v_ptr", "a_ptr", "b_ptr", "A_log_ptr", "dt_bias_ptr")}
    build(
        kv_replay_triton._kv_replay_kernel,
        {"temporal_ptr": state} | inputs | rows,
        {**sizes, "T": tokens, "BV": kv_replay_triton.MAX_ROWS},
        enable_fp_fusion=True,
    )


def main():
    for vector in (False, True):
        for state, ring in (("*fp32", 16), ("*bf16", 1)):
            build_recurrence(vector, state, ring)
        for state, ring, tokens in (("*fp32", 16, 4), ("*bf16", 32, 8)):
            build_window(vector, state, ring, tokens)
    for gate, state, ring in (("gdn", "*fp32", 16), ("kda", "*bf16", 64)):
        build_tuned(gate, state, ring)
    lists = dict.fromkeys(("listed", "counts", "length", "slots", "cursors", "force"), "*i32")
    types = {f"{name}_ptr": kind for name, kind in lists.items()} | {"rows": "i32", "ring": "i32"}
    build(flush_triton._flush_list_kernel, types, {"BLOCK": 512})
    window = {"C": 8192, "W": 4, "BW": 4}
    build(conv_triton._conv_step_kernel, CONV, {**window, "BC": conv_triton.STEP_CHANNELS})
    BT, BC = conv_triton.PREFILL_TILE
    build(
        conv_triton._conv_verify_kernel,
        CONV | {"extended_ptr": "*bf16", "lengths_ptr": "*i32"},
        {"C": 8192, "W": 4, "T": 4, "BT": 4, "BC": conv_triton.PREFILL_TILE[1]},
    )
    build(conv_triton._conv_prefill_kernel, CONV | {"cu_seqlens_ptr": "*i32"}, {**window, "BT": BT, "BC": BC})


if __name__ == "__main__":
    main()
