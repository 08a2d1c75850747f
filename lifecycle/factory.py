"""Builds engines: composes the faults asked for into the classes, then wires the parts together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from replaylife.lifecycle.batch import BatchLayout
from replaylife.lifecycle.compute import Compute, HashCompute
from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.engine import ReferenceEngine
from replaylife.lifecycle.faults import FAULTS
from replaylife.lifecycle.host_tier import HostTier
from replaylife.lifecycle.planner import Planner
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.stepper import Stepper
from replaylife.lifecycle.store import StateStore
from replaylife.lifecycle.strategies import STRATEGIES, Strategy
from replaylife.pool import CheckpointPool, MambaPool
from replaylife.radix import RadixTree

if TYPE_CHECKING:
    from replaylife.kernels.dispatch import Kernels
    from replaylife.pool.tensors import PoolTensors

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EngineFactory:
    """A recipe for reference engines: a configuration and the faults to seed. Picklable.

    Raises ``KeyError`` naming the fault when one of ``faults`` is not in the catalogue.
    """

    config: EngineConfig
    faults: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for fault in self.faults:
            if fault not in FAULTS:
                raise KeyError(fault)

    def build(self) -> ReferenceEngine:
        """Return a fresh engine with nothing running."""
        config = self.config
        self._require_strategy(STRATEGIES[config.cache.strategy])
        tensors = self._tensors()
        pool = self.faulted(MambaPool)(config.pool_shape(), tensors, log_records=config.model.witness)
        tree = self.faulted(RadixTree)(config.cache.page)
        host = self._places(config.cache.host_slots, pool)
        store = self.faulted(StateStore)(config.cache, pool, tree, host)
        tier = self.faulted(HostTier)(store, host, self._places(config.cache.peer_slots, pool))
        planner = self.faulted(Planner)(config.cache)
        strategy = self.faulted(STRATEGIES[config.cache.strategy])(store, planner)
        requests: dict[str, Request] = {}
        compute = self._compute(tensors, pool, tree, requests, tier)
        stepper, layout = self.faulted(Stepper), self.faulted(BatchLayout)()
        return self.faulted(ReferenceEngine)(
            config, store, planner, strategy, compute, requests, stepper, layout, tier
        )

    def faulted(self, base: type[T]) -> type[T]:
        """Return ``base`` with the methods that the seeded faults replace, or ``base`` itself."""
        seeded = [FAULTS[fault].mixin for fault in self.faults]
        mixins = [mixin for mixin in seeded if issubclass(base, mixin.__bases__[0])]
        if not mixins:
            return base
        return type(f"Faulted{base.__name__}", (*mixins, base), {})

    def _require_strategy(self, strategy: type[Strategy]) -> None:
        """Raise ``ValueError`` for a fault of another strategy: it would silently do nothing."""
        for fault in self.faults:
            replaced = FAULTS[fault].mixin.__bases__[0]
            if issubclass(replaced, Strategy) and not issubclass(strategy, replaced):
                raise ValueError(
                    f"fault {fault!r} replaces a method of {replaced.__name__}, which strategy "
                    f"{self.config.cache.strategy!r} does not use; choose a strategy that does"
                )

    def _kernels(self) -> Kernels:
        import torch

        from replaylife.kernels.dispatch import Kernels

        backend = self.config.backend
        if backend == "none":
            raise ValueError("backend: 'none' has no kernels, need 'torch' or 'triton'")
        return self.faulted(Kernels).load(
            backend, torch.device(self.config.device), self.config.pool_shape().ring_format
        )

    def _tensors(self) -> PoolTensors | None:
        if self.config.backend == "none":
            return None
        import torch

        from replaylife.pool.tensors import PoolTensors

        return PoolTensors(self.config.pool_shape(), self._kernels(), torch.device(self.config.device))

    def _places(self, count: int, pool: MambaPool) -> CheckpointPool | None:
        """Places for checkpoints outside the pool, with tensors where the pool has them."""
        if not count:
            return None
        if pool.tensors is None:
            return self.faulted(CheckpointPool)(count, pool)
        from replaylife.pool.tensors import CheckpointTensors

        return self.faulted(CheckpointPool)(count, pool, CheckpointTensors(pool.tensors, count))

    def _compute(
        self,
        tensors: PoolTensors | None,
        pool: MambaPool,
        tree: RadixTree,
        requests: dict[str, Request],
        tier: HostTier,
    ) -> Compute:
        if tensors is None:
            return HashCompute(self.config.model.vocab)
        from replaylife.lifecycle.model.compute import NetworkCompute, WitnessCompute

        if self.config.model.witness:
            return WitnessCompute(self.config, pool, tensors, tier)
        return NetworkCompute(self.config, tensors, tree, requests, tier, pool.budget_bytes())
