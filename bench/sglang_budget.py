"""What SGLang's state pool allocates beside what its sizing reserves, with the decode ring off and on.

Run: python bench/sglang_budget.py

Both numbers are SGLang's own: the bytes of a pool that was built, and ``mamba_cache_per_req`` times slots.
One linear-attention layer with 32 value heads and 16 key heads of 128 channels, bf16 state.
"""

from __future__ import annotations

import argparse

from replaylife.engines.sglang.classes import load
from replaylife.engines.sglang.world import World
from replaylife.lifecycle.config import CacheConfig, EngineConfig


def allocated(slots: int, *, ring: bool) -> tuple[int, int]:
    """Return the bytes of a one-layer pool, and those that its sizing would reserve."""
    theirs = load()
    World(EngineConfig(cache=CacheConfig()), "python")  # publishes settings, which pools read
    shape = theirs.Mamba2StateShape.create(
        tp_world_size=1,
        intermediate_size=32 * 128,
        n_groups=16,
        num_heads=32,
        head_dim=128,
        state_size=128,
        conv_kernel=4,
    )
    with theirs.envs.SGLANG_MAMBA_SSM_DTYPE.override("bfloat16"):
        params = theirs.Mamba2CacheParams(shape=shape, layers=[0])
    pool = theirs.HybridReqToTokenPool(
        size=4,
        mamba_size=slots,
        mamba_spec_state_size=4,
        max_context_len=16,
        device="cpu",
        enable_memory_saver=False,
        cache_params=params,
        mamba_layer_ids=[0],
        enable_mamba_extra_buffer=False,
        enable_overlap_schedule=False,
        enable_linear_replayssm=ring,
        linear_replayssm_cache_len=16,
    )
    return pool.mamba_pool.mamba_cache.mem_usage_bytes(), params.mamba_cache_per_req * (slots + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--slots", type=int, default=15)
    slots = parser.parse_args().slots
    print(f"{slots + 1} slots, one layer{'allocated':>16}{'reserved':>14}{'ratio':>8}")
    for ring in (False, True):
        found, reserved = allocated(slots, ring=ring)
        name = "decode ring of 16" if ring else "no ring"
        print(f"{name:19}{found:16,}{reserved:14,}{found / reserved:8.3f}")


if __name__ == "__main__":
    main()
