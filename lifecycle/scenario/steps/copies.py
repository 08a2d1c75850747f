"""``offload``, ``load``, ``transfer``, ``arrive`` and ``abort_copy``: checkpoints that leave the pool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from replaylife.lifecycle import actions
from replaylife.lifecycle.events import CopyStarted
from replaylife.lifecycle.scenario.fields import Name
from replaylife.lifecycle.scenario.steps.base import StepBody

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage

NodeId = Annotated[int, Field(ge=1, le=2**31 - 1)]
Arrives = Literal["now", "later"]


def _begun(first: actions.Action, of: str, arrives: Arrives, scene: Scene) -> Iterator[actions.Action]:
    """Begin a copy, and let it arrive unless it is to be later or could not begin."""
    yield first
    if arrives == "now" and any(isinstance(event, CopyStarted) for event in scene.events):
        yield actions.FinishCopy(of)


class Offload(StepBody):
    """Copy the checkpoint of a tree node to host memory; the node is pinned until the copy has arrived."""

    key: ClassVar[str] = "offload"

    node: NodeId
    """The node, by its number."""
    arrives: Arrives = "now"
    """`later`: the copy stays in flight, until an `arrive` or an `abort_copy`."""

    def actions(self, scene: Scene) -> Iterator[actions.Action]:
        """Begin, and arrive."""
        yield from _begun(actions.Offload(self.node), f"node {self.node}", self.arrives, scene)


class Load(StepBody):
    """Copy the checkpoint of a tree node from host memory back to a slot."""

    key: ClassVar[str] = "load"

    node: NodeId
    """The node, by its number."""
    arrives: Arrives = "now"
    """`later`: the copy stays in flight, until an `arrive` or an `abort_copy`."""

    def actions(self, scene: Scene) -> Iterator[actions.Action]:
        """Begin, and arrive."""
        yield from _begun(actions.Load(self.node), f"node {self.node}", self.arrives, scene)


class Transfer(StepBody):
    """Send a running request to another pool: its checkpoint, after a fold; `resume` brings it back."""

    key: ClassVar[str] = "transfer"

    request: Name
    """The request."""
    arrives: Arrives = "now"
    """`later`: the copy stays in flight, and the request holds its slot, until `arrive` or `abort_copy`."""

    def rehearse(self, stage: Stage) -> None:
        """Only while it runs, after its prompt."""
        life = stage.decoding(self.request, "transfer")
        if life is not None:
            life.retracted = self.arrives == "now"

    def actions(self, scene: Scene) -> Iterator[actions.Action]:
        """Begin, and arrive."""
        of = f"request {self.request}"
        yield from _begun(actions.Transfer(self.request), of, self.arrives, scene)


class _OfCopy(StepBody):
    """A step about a copy in flight, of a node or of a request."""

    node: NodeId | None = None
    """The node whose offload or load it is."""
    request: Name | None = None
    """The request whose transfer it is."""

    @model_validator(mode="after")
    def _one_kind(self) -> _OfCopy:
        if (self.node is None) == (self.request is None):
            raise ValueError("need exactly one of node, request")
        return self

    @property
    def of(self) -> str:
        """What the copy is of, as events name it."""
        return f"node {self.node}" if self.request is None else f"request {self.request}"


class Arrive(_OfCopy):
    """A copy in flight arrives, or is acknowledged by the other side: what it brought can be claimed."""

    key: ClassVar[str] = "arrive"

    def rehearse(self, stage: Stage) -> None:
        """A request that was transferred is away."""
        life = None if self.request is None else stage.running(self.request)
        if life is not None:
            life.retracted = True

    def actions(self, scene: Scene) -> Iterator[actions.Action]:  # noqa: ARG002
        """Finish the copy."""
        yield actions.FinishCopy(self.of)


class AbortCopy(_OfCopy):
    """A copy in flight fails: what was taken for it goes back, once, and nothing is claimed of it."""

    key: ClassVar[str] = "abort_copy"

    def actions(self, scene: Scene) -> Iterator[actions.Action]:  # noqa: ARG002
        """Abort the copy."""
        yield actions.AbortCopy(self.of)
