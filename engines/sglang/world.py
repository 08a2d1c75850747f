"""SGLang's own pools, tree and scheduler parts, built at a scenario's sizes; nothing of them is replaced."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from replaylife.engines.sglang.classes import load
from replaylife.lifecycle.config import CacheConfig, EngineConfig

MAX_REQUESTS, MAX_CONTEXT = 64, 16_384
HEAD_DIM, STATE_SIZE, CONV_KERNEL = 8, 4, 4  # the smallest whose slots have room for what the kernels spell


class World:
    """One server's cache, as SGLang's scheduler builds it: pools, allocators, tree, and the code around them.

    ``backend`` and ``processor`` are SGLang's classes without their ``__init__``, which wants a model: only
    the methods that keep books are called on them. SGLang's settings are global to the process, so ``enter``
    must come before anything of this world is used.
    """

    def __init__(self, config: EngineConfig, core: str) -> None:
        self.theirs = load()
        self.cache_config, self.device = config.cache, config.device
        self.kv_contents: dict[int, int] = {}  # the token whose key-value each place holds
        self.extra_buffer = config.cache.strategy != "no_buffer"
        self._settings = self._make_settings(config.cache)
        self._publish()
        self.pool = self._make_pool(config)
        self.kv = self._make_kv(config.cache, config.device)
        self.cache = self._make_cache(config.cache, core)
        self.backend = object.__new__(self.theirs.MambaAttnBackendBase)
        self.backend.req_to_token_pool, self.backend.device = self.pool, config.device
        self.processor = object.__new__(self.theirs.SchedulerBatchResultProcessor)
        object.__setattr__(self.processor, "tree_cache", self.cache)
        self.planner = SimpleNamespace(
            model_config=SimpleNamespace(hf_text_config=SimpleNamespace(mamba_chunk_size=config.cache.grid)),
            tree_cache=self.cache,
            req_to_token_pool=self.pool,
        )

    def enter(self) -> None:
        """Make this world's settings those of the process; publishing them takes SGLang milliseconds."""
        if self.theirs.get_server_args() is not self._settings:
            self._publish()

    def _publish(self) -> None:
        self.theirs.set_global_server_args_for_scheduler(self._settings)

    @property
    def core(self) -> str:
        """The tree core that SGLang has taken: it falls back to Python where its Rust one does not load."""
        return "python" if type(self.cache.tree_core).__name__ == "UnifiedTreeCore" else "rust"

    @property
    def mamba(self) -> Any:
        """The pool of recurrent states."""
        return self.pool.mamba_pool

    @property
    def track_interval(self) -> int:
        """Tokens between two track points."""
        return self.cache_config.track_point

    def _make_settings(self, cache: CacheConfig) -> Any:
        settings = self.theirs.ServerArgs(
            model_path="none", page_size=cache.page, mamba_track_interval=cache.track_point
        )
        settings._mamba_cache_chunk_size = cache.grid  # else it is read from a model's configuration
        return settings

    def _params(self, gate: str) -> Any:
        theirs = self.theirs
        with theirs.envs.SGLANG_MAMBA_SSM_DTYPE.override("float32"):
            if gate == "kda":
                shape = theirs.KimiLinearStateShape.create(
                    tp_world_size=1, num_heads=1, head_dim=HEAD_DIM, conv_kernel_size=CONV_KERNEL
                )
                return theirs.KimiLinearCacheParams(shape=shape, layers=[0])
            shape = theirs.Mamba2StateShape.create(
                tp_world_size=1,
                intermediate_size=HEAD_DIM,
                n_groups=1,
                num_heads=1,
                head_dim=HEAD_DIM,
                state_size=STATE_SIZE,
                conv_kernel=CONV_KERNEL,
            )
            return theirs.Mamba2CacheParams(shape=shape, layers=[0])

    def _make_pool(self, config: EngineConfig) -> Any:
        """Slot 0 is reserved by them, too, and not counted: our ``slots`` has one more."""
        cache = config.cache
        return self.theirs.HybridReqToTokenPool(
            size=MAX_REQUESTS,
            mamba_size=cache.slots - 1,
            mamba_spec_state_size=MAX_REQUESTS,
            max_context_len=MAX_CONTEXT,
            device=config.device,
            enable_memory_saver=False,
            cache_params=self._params(config.model.gate),
            mamba_layer_ids=[0],
            enable_mamba_extra_buffer=self.extra_buffer,
            enable_overlap_schedule=self.extra_buffer,  # two track slots in turn
            enable_linear_replayssm=cache.replayssm,
            linear_replayssm_cache_len=cache.ring_length,
        )

    def _make_kv(self, cache: CacheConfig, device: str) -> Any:
        import torch

        kv = self.theirs.HybridLinearKVPool(
            size=cache.kv_tokens,
            dtype=torch.bfloat16,
            page_size=cache.page,
            head_num=1,
            head_dim=HEAD_DIM,
            full_attention_layer_ids=[1],
            device=device,
            enable_memory_saver=False,
            mamba_pool=self.pool.mamba_pool,
        )
        return self.theirs.TokenToKVPoolAllocator(
            size=cache.kv_tokens, dtype=torch.bfloat16, device=device, kvcache=kv, need_sort=False
        )

    def _make_cache(self, cache: CacheConfig, core: str) -> Any:
        kinds = self.theirs.ComponentType
        return self.theirs.UnifiedRadixCache(
            self.theirs.CacheInitParams(
                req_to_token_pool=self.pool,
                token_to_kv_pool_allocator=self.kv,
                page_size=cache.page,
                disable=False,
                tree_components=(kinds.FULL, kinds.MAMBA),
                enable_mamba_extra_buffer=self.extra_buffer,
                tree_core_backend=core,
            )
        )
