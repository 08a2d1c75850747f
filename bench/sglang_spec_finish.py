"""Finding b: what SGLang's finish path donates while the ring of speculative verify holds records.

Run: python bench/sglang_spec_finish.py

SGLang's pool with ``enable_linear_replayssm_spec`` under ``no_buffer``. A request decodes to 30 tokens; the
last four are taken to be records of accepted drafts: temporal is put back to 26 and the speculative cursor to
4, as the verify kernels leave them. Then its own finish path runs.
"""

from __future__ import annotations

from typing import Any

from replaylife.engines.sglang.engine import SglangEngine
from replaylife.engines.sglang.kernels import Kernels
from replaylife.engines.sglang.look import PythonTree
from replaylife.engines.sglang.world import CONV_KERNEL, World
from replaylife.lifecycle import actions
from replaylife.lifecycle.config import CacheConfig, EngineConfig

PROMPT, DECODED, PENDING = 10, 20, 4


class SpeculativeWorld(World):
    """A world whose pool has the ring of speculative verify, and no decode ring."""

    def _make_pool(self, config: EngineConfig) -> Any:
        return self.theirs.HybridReqToTokenPool(
            size=8,
            mamba_size=config.cache.slots - 1,
            mamba_spec_state_size=8,
            max_context_len=256,
            device="cpu",
            enable_memory_saver=False,
            cache_params=self._params(config.model.gate),
            mamba_layer_ids=[0],
            enable_mamba_extra_buffer=False,
            enable_overlap_schedule=False,
            speculative_num_draft_tokens=CONV_KERNEL,
            enable_linear_replayssm_spec=True,
        )


def main() -> None:
    config = EngineConfig(cache=CacheConfig(slots=8, kv_tokens=128, replayssm=False))
    world = SpeculativeWorld(config, "python")
    engine = SglangEngine(config, world, PythonTree)
    engine.apply(actions.Admit("a", tuple(range(1, PROMPT + 1))))
    engine.apply(actions.Prefill("a", PROMPT))
    kernels, slot = Kernels(world.mamba, ["a"]), 0
    at_fold = kernels.temporal(slot)
    for token in range(DECODED):
        engine.apply(actions.Forward(("a",)))
        request = engine.snapshot().requests[0]
        slot = request.slot or 0
        if token == DECODED - PENDING - 1:
            at_fold = kernels.temporal(slot)
    kernels._put(world.mamba.mamba_cache.temporal, slot, at_fold)
    world.mamba.replayssm_spec_write_pos[:] = PENDING
    engine.apply(actions.Finish("a"))
    for node in engine.snapshot().nodes:
        if node.state is not None:
            temporal = engine.snapshot().slots[node.state].temporal
            print(f"key {node.key.length}: temporal at {temporal.length}")


if __name__ == "__main__":
    main()
