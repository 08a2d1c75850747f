"""Which combinations a release of an engine refuses, and the reason it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class CacheLike(Protocol):
    """The settings that a refusal can depend on."""

    strategy: str
    page: int
    replayssm: bool
    overlap: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """One combination that a release does not start with."""

    applies: Callable[[CacheLike], bool]
    reason: str


@dataclass(frozen=True, slots=True)
class Profile:
    """What one release of an engine refuses. ``source`` is where that can be read."""

    id: str
    source: str
    refusals: tuple[Refusal, ...]

    def refuses(self, cache: CacheLike) -> str | None:
        """Return the first reason for which the release would not start, or ``None``."""
        return next((refusal.reason for refusal in self.refusals if refusal.applies(cache)), None)


_SGLANG = Profile(
    "sglang-0.5.23",
    "https://github.com/sgl-project/sglang/pull/28451",
    (
        Refusal(
            lambda cache: cache.strategy == "align",
            "its mamba scheduler strategies are no_buffer, extra_buffer and extra_buffer_lazy",
        ),
        Refusal(
            lambda cache: cache.replayssm and cache.strategy != "no_buffer",
            "ReplaySSM's decode ring runs with no_buffer only (the server arguments reject extra_buffer)",
        ),
        Refusal(
            lambda cache: cache.strategy == "no_buffer" and cache.page != 1,
            "no_buffer needs a page size of 1",
        ),
        Refusal(
            lambda cache: cache.strategy == "no_buffer" and cache.overlap,
            "no_buffer runs without the overlap scheduler",
        ),
    ),
)

_VLLM = Profile(
    "vllm-0.33.0",
    "https://github.com/vllm-project/vllm/pull/48018",
    (
        Refusal(
            lambda cache: cache.strategy != "align",
            "mamba_cache_mode is align or none: a state per block, no donated request slots",
        ),
    ),
)

PROFILES: dict[str, Profile] = {profile.id: profile for profile in (_SGLANG, _VLLM)}
