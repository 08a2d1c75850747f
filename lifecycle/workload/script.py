"""Requests whose every token is known beforehand: the engine runs them, and samples what the script says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar, cast, overload

from replaylife.lifecycle.actions import Admit
from replaylife.lifecycle.batch import Batch
from replaylife.lifecycle.compute import Compute, HashCompute
from replaylife.lifecycle.engine import ReferenceEngine
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.host_tier import HostTier
from replaylife.lifecycle.request import Request
from replaylife.lifecycle.store import StateStore
from replaylife.pool import MambaPool, Record, RecordRun, Runs
from replaylife.radix import RadixTree

if TYPE_CHECKING:
    from replaylife.pool.tensors import PoolTensors

T = TypeVar("T")


class Script(Sequence[int]):
    """The first ``length`` tokens of ``text``, growing towards its end: what a request has so far.

    Slices are :class:`Runs`. ``append`` takes the next token of the text and no other.
    """

    __slots__ = ("_high", "_low", "_shift", "length", "text")

    def __init__(self, text: Runs, length: int) -> None:
        self.text, self.length = text, length
        self._low, self._high, self._shift = 0, 0, 0  # tokens [low, high) are their offsets plus shift

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> int | Runs:
        if isinstance(index, slice):
            start, stop, _ = index.indices(self.length)
            return self.text.cut(start, stop)
        if self._low <= index < self._high and index < self.length:
            return index + self._shift
        if not -self.length <= index < self.length:
            raise IndexError(f"token {index} of {self.length}")
        return self.at(index if index >= 0 else index + self.length)

    def at(self, offset: int) -> int:
        """Return a token of the text, whether reached yet or not; 0 past its end."""
        if self._low <= offset < self._high:
            return offset + self._shift
        if offset >= len(self.text):
            return 0
        self._low, self._high, self._shift = self.text.run_at(offset)
        return offset + self._shift

    def append(self, token: int) -> None:
        """Grow by one token. Raises ``ValueError`` if the text goes on otherwise."""
        if self.length >= len(self.text) or self.at(self.length) != token:
            raise ValueError(f"token {token} sampled at {self.length}; the text goes on otherwise")
        self.length += 1


class ScriptedRequest(Request):
    """A request whose tokens are a :class:`Script`; nothing is done token by token that runs can do."""

    __slots__ = ()

    def records(self, start: int, end: int) -> Sequence[Record]:
        """Return the records for tokens ``[start, end)``."""
        if end - start == 1:
            return (Record(self.id, start, self.tokens[start]),)
        return RecordRun(self.id, start, cast("Runs", self.tokens[start:end]))

    def execute_to(self, end: int) -> None:
        """Tokens ``[0, end)`` are in the tensors."""
        if end - self.executed == 1:
            self.absorbed = self.absorbed.then(self.tokens[self.executed])
        else:
            self.absorbed = self.absorbed.after(self.tokens[self.executed : end])
        self.executed = end


class ScriptedStore(StateStore):
    """A store whose keys are runs."""

    def _key(self, request: Request, length: int) -> tuple[int, ...]:
        return cast("tuple[int, ...]", request.tokens[:length])


class ScriptedEngine(ReferenceEngine):
    """An engine whose admissions bring their script along."""

    def _new_request(self, action: Admit) -> Request:
        script = cast("Script", action.tokens)
        running = Script(script.text, script.length)
        return ScriptedRequest(action.request, cast("list[int]", running), script.length)


class ScriptedCompute(HashCompute):
    """Samples the token that the script has next; there are no tensors."""

    def prefill(self, request: Request, slot: int, start: int, end: int) -> int:  # noqa: ARG002
        """Return the token after ``[0, end)``."""
        return _next(request, end)

    def decode(self, batch: Batch) -> list[int]:
        """Return the next token of each row."""
        return [_next(row.request, row.position + 1) for row in batch.rows]


def _next(request: Request, position: int) -> int:
    return cast("Script", request.tokens).at(position)


class ScriptedFactory(EngineFactory):
    """A recipe for engines without tensors that take ``Admit(id, script)``. Picklable."""

    __slots__ = ()

    def faulted(self, base: type[T]) -> type[T]:
        """Return the scripted form of ``base``, where it has one, with the seeded faults."""
        return super().faulted(cast("type[T]", SCRIPTED.get(base, base)))

    def _compute(
        self,
        tensors: PoolTensors | None,
        pool: MambaPool,
        tree: RadixTree,
        requests: dict[str, Request],
        tier: HostTier,
    ) -> Compute:
        del tensors, pool, tree, requests, tier
        return ScriptedCompute(self.config.model.vocab)


SCRIPTED: dict[type, type] = {StateStore: ScriptedStore, ReferenceEngine: ScriptedEngine}


def admit(request: str, script: Script) -> Admit:
    """Return the admission of a scripted request; its prompt is what the script has so far."""
    return Admit(request, cast("tuple[int, ...]", script))
