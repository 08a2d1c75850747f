"""Everything of SGLang that the adapter touches, looked up by name: what is theirs is in this table."""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

from replaylife.engines.registry import EngineUnavailable
from replaylife.engines.sglang.absent import stand_ins

EXTRA = "replaylife[sglang]"
SUPPORTED = ("0.5.23",)
"""Releases that the tests play; others with the same attributes are played too, and said to be untested."""

_SRT = "sglang.srt"
THEIRS = {
    "ServerArgs": f"{_SRT}.server_args",
    "set_global_server_args_for_scheduler": f"{_SRT}.server_args",
    "envs": f"{_SRT}.environ",
    "Mamba2CacheParams": f"{_SRT}.configs.mamba_utils",
    "Mamba2StateShape": f"{_SRT}.configs.mamba_utils",
    "KimiLinearCacheParams": f"{_SRT}.configs.mamba_utils",
    "KimiLinearStateShape": f"{_SRT}.configs.mamba_utils",
    "FINISH_LENGTH": f"{_SRT}.managers.schedule_batch",
    "Req": f"{_SRT}.managers.schedule_batch",
    "ScheduleBatch": f"{_SRT}.managers.schedule_batch",
    "release_req": f"{_SRT}.managers.schedule_batch",
    "set_mamba_track_indices_from_reqs": f"{_SRT}.managers.schedule_batch",
    "SchedulerBatchResultProcessor": f"{_SRT}.managers.scheduler_components.batch_result_processor",
    "MambaAttnBackendBase": f"{_SRT}.layers.attention.hybrid_linear_attn_backend",
    "ForwardMode": f"{_SRT}.model_executor.forward_batch_info",
    "alloc_req_slots": f"{_SRT}.mem_cache.allocation",
    "alloc_token_slots": f"{_SRT}.mem_cache.allocation",
    "TokenToKVPoolAllocator": f"{_SRT}.mem_cache.allocator",
    "EvictParams": f"{_SRT}.mem_cache.base_prefix_cache",
    "InsertParams": f"{_SRT}.mem_cache.base_prefix_cache",
    "MatchPrefixParams": f"{_SRT}.mem_cache.base_prefix_cache",
    "CacheInitParams": f"{_SRT}.mem_cache.cache_init_params",
    "checkpoint_kv_cache": f"{_SRT}.mem_cache.common",
    "release_kv_cache": f"{_SRT}.mem_cache.common",
    "HybridLinearKVPool": f"{_SRT}.mem_cache.memory_pool",
    "HybridReqToTokenPool": f"{_SRT}.mem_cache.memory_pool",
    "RadixKey": f"{_SRT}.mem_cache.radix_cache",
    "ComponentType": f"{_SRT}.mem_cache.unified_cache.components.base",
    "UnifiedRadixCache": f"{_SRT}.mem_cache.unified_radix_cache",
    "get_server_args": f"{_SRT}.runtime_context",
    "mamba_track_grid": f"{_SRT}.runtime_context",
    "mamba_checkpoint_grid": f"{_SRT}.runtime_context",
    "SamplingParams": f"{_SRT}.sampling.sampling_params",
}
"""Name to module."""

ATTRIBUTES = (
    ("UnifiedRadixCache", ("checkpoint", "lock", "unlock", "evict", "match_prefix", "path_device_indices")),
    ("Req", ("init_next_round_input", "owned_kv_len", "refresh_fill_ids")),
    ("MambaAttnBackendBase", ("_forward_metadata", "_replayssm_track_flush_mask")),
    ("HybridReqToTokenPool", ("copy_mamba_state", "get_mamba_ping_pong_keep_idx")),
    (
        "ScheduleBatch",
        ("_collect_deferred_mamba_cow_and_clear", "_mamba_radix_cache_v2_req_prepare_for_extend"),
    ),
    ("SchedulerBatchResultProcessor", ("_mamba_prefix_cache_update",)),
)
"""By what a release is known: attributes of the generation that the adapter drives."""


def installed_version() -> str:
    """Return the version of the installed SGLang. Raises :class:`EngineUnavailable` if there is none."""
    try:
        return version("sglang")
    except PackageNotFoundError:
        if find_spec("sglang") is not None:
            return "of unknown version"
        raise EngineUnavailable(
            f"SGLang is not installed here; pip install '{EXTRA}' (docs/sglang.md)"
        ) from None


@cache
def load() -> Any:
    """Import SGLang's classes once and return them by name.

    Raises :class:`EngineUnavailable` where SGLang is not installed, cannot be imported, or lacks what the
    adapter drives, which names everything that is missing and the releases that have it.
    """
    found = installed_version()
    theirs, lacking = SimpleNamespace(), list[str]()
    with stand_ins(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what others deprecate while they import is not for our reader
        for name, module in THEIRS.items():
            try:
                setattr(theirs, name, getattr(import_module(module), name))
            except (ImportError, AttributeError) as error:
                lacking.append(f"{module}.{name} ({type(error).__name__}: {error})")
    _require(found, lacking)
    for owner, attributes in ATTRIBUTES:
        kind = getattr(theirs, owner)
        lacking += [f"{owner}.{attribute}" for attribute in attributes if not hasattr(kind, attribute)]
    _require(found, lacking)
    return theirs


def _require(found: str, lacking: list[str]) -> None:
    if lacking:
        shown = "; ".join(lacking[:4]) + (f"; and {len(lacking) - 4} more" if len(lacking) > 4 else "")
        raise EngineUnavailable(
            f"SGLang {found} is not one that this adapter drives (supported: {', '.join(SUPPORTED)}); "
            f"it lacks {shown}; pip install '{EXTRA}'"
        )


def torch_here() -> str:
    """Name the installed torch, and the one that SGLang's package asks for."""
    found = f"torch {version('torch')}"
    asked = [line.partition(";")[0] for line in requires("sglang") or () if line.startswith("torch=")]
    return f"{found} (SGLang asks for {asked[0].strip()})" if asked else found


def title() -> str:
    """Name the installed release, and whether the tests know it."""
    found = installed_version()
    return f"SGLang {found}" if found in SUPPORTED else f"SGLang {found} (untested; tested: {SUPPORTED[0]})"
