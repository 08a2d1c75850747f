"""``expect``: what must be true at this point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from replaylife.lifecycle.scenario import expectations
from replaylife.lifecycle.scenario.fields import Count, InvariantId, Name, Strict
from replaylife.lifecycle.scenario.steps.base import StepBody

if TYPE_CHECKING:
    from replaylife.lifecycle.scenario.scene import Scene
    from replaylife.lifecycle.scenario.stage import Stage


class NodeExpectation(Strict):
    """A node of the tree by the length of its key and of its state."""

    key: Count
    """Tokens of the node's key, from the root."""
    state: Count | None
    """Tokens that its state covers; null: it has none."""


class ViolationExpectation(Strict):
    """A violation by invariant and, if given, subject."""

    invariant: InvariantId
    """The invariant's id."""
    subject: str | None = None
    """What broke it, as the trace names it: `node 4`, `slot 1`, `request a`."""


class DamageExpectation(Strict):
    """Where a request's logits part from the cold run's, and by how many tolerances at least."""

    position: Count
    """The first position, from 0, whose logits are out of tolerance."""
    times_tolerance: Annotated[int, Field(ge=1)] = 100
    """By how many times the tolerance at least."""


class Expect(StepBody):
    """What must be true at this point.

    The violations that ``violations`` and ``numeric`` name, and what follows from them, do not fail the run.
    ``numeric``, ``logits`` and ``reply`` are judged only where there are tensors.
    """

    key: ClassVar[str] = "expect"

    tree: list[NodeExpectation] | None = None
    """Exactly these nodes, in any order."""
    cached: dict[Name, Count] | None = None
    """Tokens that a running request took from the tree."""
    cursor: dict[Name, Count] | None = None
    """write_pos of a running request's slot: records pending in its ring."""
    owner: dict[int, str] | None = None
    """Who holds a slot: `free`, `tree 3` (node 3), `request a`."""
    host: dict[Count, str] | None = None
    """Who holds a place in host memory: `free`, `tree 3` (a copy of node 3's state), `request a`."""
    peer: dict[Count, str] | None = None
    """Who holds a place in the other pool: `free`, `request a`, `copy request a` (in flight)."""
    free_slots: Count | None = None
    """Length of the free list."""
    rejected: list[Name] | None = None
    """These admissions, and no others, were rejected and not made good since."""
    violations: list[ViolationExpectation] | None = None
    """The last action broke exactly these for the first time, judged from positions."""
    numeric: list[ViolationExpectation] | None = None
    """The last action broke exactly these for the first time, judged from tensors."""
    logits: dict[Name, DamageExpectation] | None = None
    """Where a request's logits part from those of a cold run with the same tokens."""
    reply: dict[Name, Literal["cold", "differs"]] | None = None
    """A finished request's reply is the cold run's, or differs from it."""

    @property
    def num_actions(self) -> int:
        """None."""
        return 0

    def rehearse(self, stage: Stage) -> None:
        """What is asked about can be known here."""
        for name in {**(self.cached or {}), **(self.cursor or {})}:
            stage.running(name)
        for name in self.logits or {}:
            stage.find(name)
        for name in self.reply or {}:
            life = stage.find(name)
            if life is not None and not life.finished:
                stage.complain(f"{name!r} is not finished; its reply is known after 'finish'")

    def judge(self, scene: Scene) -> list[str]:
        """Compare with the snapshot and with what the run has shown so far."""
        return expectations.judge(self, scene.snapshot, scene.chronicle)

    def announces_violations(self, scene: Scene) -> bool:
        """Whether it names any."""
        return bool(self.violations or (self.numeric and scene.chronicle.numeric))
