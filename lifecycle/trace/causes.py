"""The chain of a violation: the step that planted it, those that carried it, and where it bites.

Followed through the transitions of a trace, from any engine: what was written to a slot and what stayed in
its ring, who copied it, who took it over. It explains what an invariant found; it finds nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from replaylife.lifecycle.events import (
    Allocated,
    CheckpointCopied,
    Decoded,
    Event,
    Evicted,
    Finished,
    Freed,
    Matched,
    Prefilled,
    Published,
)
from replaylife.lifecycle.invariants import INVARIANTS
from replaylife.lifecycle.snapshot import SlotView, Snapshot, Transition, Violation
from replaylife.lifecycle.trace.telling import covers, span, tell, touches

MAX_CARRIED = 6  # links kept between the planting and the bite; more are counted
MAX_OPEN = 64  # chains followed at a time, the latest ones


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a chain: the steps ``first`` to ``last``, what was done, and what that did."""

    first: int
    last: int
    action: str
    text: str

    @property
    def steps(self) -> str:
        """``step 24``, or ``steps 20..23``."""
        return f"step {self.first}" if self.first == self.last else f"steps {self.first}..{self.last}"


@dataclass(slots=True)
class Chain:
    """Why a violation is there, and what comes of it.

    ``planted`` is where the state and what is said of it first went apart; ``carried`` the steps that handed
    it on, ``num_carried`` of them; ``bites`` where an answer is computed from it, the reply last. ``also``
    are the later violations of the same root: (step, violation). ``cut`` says that the planting may lie
    before the first step that was looked at.
    """

    step: int
    violation: Violation
    planted: Link
    carried: list[Link] = field(default_factory=list)
    num_carried: int = 0
    bites: list[Link] = field(default_factory=list)
    also: list[tuple[int, Violation]] = field(default_factory=list)
    cut: bool = False
    slots: set[int] = field(default_factory=set)
    nodes: set[int] = field(default_factory=set)
    requests: set[str] = field(default_factory=set)

    def carry(self, link: Link) -> None:
        """Add a step that handed it on; the same step once."""
        if self.carried and self.carried[-1] == link:
            return
        self.num_carried += 1
        if len(self.carried) < MAX_CARRIED:
            self.carried.append(link)


@dataclass(slots=True)
class _Life:
    """What is known of a slot's contents: its last write, what is pending, what was left behind."""

    written: Link | None = None
    pending: Link | None = None
    left: Link | None = None


class Causes:
    """Follows a run, or a part of one, and keeps a chain for each root of a violation.

    Feed every transition with its new violations to :meth:`follow`, in order; ``chains`` has the chains by
    then, ``of`` the chain of each violation by step, invariant and subject. Keeps at most ``limit`` chains.
    """

    def __init__(self, limit: int = 1_000) -> None:
        self.chains: list[Chain] = []
        self.of: dict[tuple[int, str, str], Chain] = {}
        self.num_left_out = 0
        self._limit = limit
        self._lives: dict[int, _Life] = {}
        self._open: list[Chain] = []
        self._began: int | None = None

    def follow(self, t: Transition, violations: Iterable[Violation] = ()) -> None:
        """Take note of one step and of what it broke for the first time."""
        if self._began is None:
            self._began = t.step
        for chain in self._open:
            _bite_on_alloc(chain, t)
        for event in t.events:
            self._hand_on(t, event)
        self._write_down(t)
        for violation in violations:
            self._explain(t, violation)
        for chain in self._open:
            _bite(chain, t)

    # -- what became of each slot ----------------------------------------------------------------------

    def _write_down(self, t: Transition) -> None:
        copied = {e.dst: e for e in t.events if isinstance(e, CheckpointCopied)}
        for was, slot in zip(t.before.slots, t.after.slots, strict=False):
            if was is slot:
                continue
            life = self._lives.setdefault(slot.index, _Life())
            if slot.temporal != was.temporal or slot.index in copied:
                life.written, life.left = Link(t.step, t.step, str(t.action), _writing(t, slot)), None
            _ring(life, t, was, slot)
            event = copied.get(slot.index)
            if event is not None and event.pending:
                source = self._lives.get(event.src)
                life.left = None if source is None else source.pending or source.left

    def _hand_on(self, t: Transition, event: Event) -> None:
        gone = _given_back(event)
        for slot in gone:
            self._lives.pop(slot, None)
        for chain in self._open:
            chain.slots.difference_update(gone)
            if isinstance(event, Matched) and event.node in chain.nodes and event.request is not None:
                chain.requests.add(event.request)
                text = f"{event.request} reuses {event.state_len} tokens by the state of node {event.node}"
                chain.carry(_here(t, text))
            elif isinstance(event, CheckpointCopied) and event.src in chain.slots:
                chain.slots.add(event.dst)
                chain.requests |= {event.request} if event.purpose == "cow" else set()
                chain.carry(_here(t, tell(event, t)))
            elif isinstance(event, Published) and event.slot in chain.slots and event.node not in chain.nodes:
                chain.nodes.add(event.node)
                chain.carry(_here(t, tell(event, t)))

    # -- violations --------------------------------------------------------------------------------------

    def _explain(self, t: Transition, violation: Violation) -> None:
        slots, nodes, requests = _concerned(t, violation.subject)
        known = next((c for c in reversed(self._open) if _meets(c, slots, nodes, requests)), None)
        if known is not None:
            if (known.step, known.violation) != (t.step, violation):
                known.also.append((t.step, violation))
            self.of[t.step, violation.invariant, violation.subject] = known
            return
        if len(self.chains) >= self._limit:
            self.num_left_out += 1
            return
        chain = self._root(t, violation, slots)
        chain.slots, chain.nodes, chain.requests = slots, nodes, requests
        self.chains.append(chain)
        self.of[t.step, violation.invariant, violation.subject] = chain
        self._open = [*self._open, chain][-MAX_OPEN:]

    def _root(self, t: Transition, violation: Violation, slots: set[int]) -> Chain:
        lives = [self._lives[slot] for slot in sorted(slots) if slot in self._lives]
        here = _here(t, "; ".join(dict.fromkeys(_touching(t, slots))) or _numbers(violation))
        planted = None
        if _apart(t, slots):
            planted = next((life.left or life.pending for life in lives if life.left or life.pending), None)
        kind = INVARIANTS.get(violation.invariant)
        touched = any(t.before.slots[i] is not t.after.slots[i] for i in slots if i < len(t.before.slots))
        if planted is None and kind is not None and kind.from_tensors and not touched:
            planted = next((life.written for life in lives if life.written is not None), None)
        if planted is None or planted.first >= t.step:
            unseen = bool(slots) and not lives and self._began != 1  # its slot's past was not looked at
            return Chain(t.step, violation, here, cut=unseen)
        chain = Chain(t.step, violation, planted, cut=planted.first == self._began != 1)
        chain.carry(here)
        return chain


def _ring(life: _Life, t: Transition, was: SlotView, slot: SlotView) -> None:
    """Book the records that a step added to a ring, folded away, or left behind."""
    if len(slot.ring) > len(was.ring):
        newest = slot.ring[-1]
        first = t.step if life.pending is None else life.pending.first
        end = slot.temporal.length + len(slot.ring) if newest is None else newest.position + 1
        whose = "" if newest is None else f" of {newest.request}"
        tokens = span(end - len(slot.ring), end)
        text = f"{tokens}{whose} in the ring of slot {slot.index}; temporal stays at {slot.temporal.length}"
        life.pending = Link(first, t.step, str(t.action), text)
    elif len(slot.ring) < len(was.ring):
        folded = slot.temporal.length > was.temporal.length
        life.left = None if folded else life.pending
        life.pending = None


def _writing(t: Transition, slot: SlotView) -> str:
    told = "; ".join(_touching(t, {slot.index}))
    return told or f"slot {slot.index} is written: {covers(slot)}"


def _touching(t: Transition, slots: set[int]) -> Iterator[str]:
    for event in t.events:
        if touches(event, slots) and not isinstance(event, Matched | Allocated):
            yield tell(event, t)


def _numbers(violation: Violation) -> str:
    return f"{violation.subject}: {violation.found}, expected {violation.expected}"


def _here(t: Transition, text: str) -> Link:
    return Link(t.step, t.step, str(t.action), text)


def _given_back(event: Event) -> set[int]:
    if isinstance(event, Freed | Allocated):
        return {event.slot}
    return set(event.slots) if isinstance(event, Evicted) else set()


def _concerned(t: Transition, subject: str) -> tuple[set[int], set[int], set[str]]:
    """Return the slots, nodes and requests that a violation's subject stands for."""
    kind, _, name = subject.partition(" ")
    if kind == "slot" and name.isdecimal():
        slot = int(name)
        return {slot}, {n.id for n in t.after.nodes if n.state == slot}, _holders(t.after, slot)
    if kind == "node" and name.isdecimal():
        node = t.after.node(int(name)) or t.before.node(int(name))
        return set() if node is None or node.state is None else {node.state}, {int(name)}, set()
    if kind == "request":
        request = t.after.request(name) or t.before.request(name)
        return set() if request is None or request.slot is None else {request.slot}, set(), {name}
    return set(), set(), set()


def _apart(t: Transition, slots: set[int]) -> bool:
    """Whether one of these slots is not what its owner says, or was copied with records pending."""
    if any(isinstance(e, CheckpointCopied) and e.pending and slots & {e.src, e.dst} for e in t.events):
        return True
    for node in t.after.nodes:
        slot = t.after.slots[node.state] if node.state in slots and node.state is not None else None
        if slot is not None and (slot.ring or not slot.temporal == slot.conv == node.key):
            return True
    for request in t.after.requests:
        if request.slot in slots and request.slot is not None and request.pending_cow is None:
            slot = t.after.slots[request.slot]
            if slot.temporal.length + len(slot.ring) != request.executed or slot.conv != request.tokens:
                return True
    return False


def _holders(snapshot: Snapshot, slot: int) -> set[str]:
    return {request.id for request in snapshot.requests if request.slot == slot}


def _meets(chain: Chain, slots: set[int], nodes: set[int], requests: set[str]) -> bool:
    return bool(chain.slots & slots or chain.nodes & nodes or chain.requests & requests)


# -- where it bites --------------------------------------------------------------------------------------


def _bite(chain: Chain, t: Transition) -> None:
    """Book the first answer computed from it, and the first reply that differs from the cold run's."""
    for event in t.events:
        if isinstance(event, Finished) and event.request in chain.requests and len(chain.bites) < 2:
            wrong = _wrong_tokens(event)
            if wrong:
                text = f"{wrong} of the {len(event.reply)} reply tokens differ from the cold run's"
                chain.bites.append(_here(t, text))
    if chain.bites:
        return
    for measured in t.after.measurements:
        request = measured.subject.removeprefix("request ")
        if measured.kind == "logits" and measured.exceeded and request in chain.requests:
            times = f"{measured.error / measured.tolerance:,.0f} times the tolerance"
            text = (
                f"the logits of {request} part from the cold run's at position {measured.position}, {times}"
            )
            chain.bites.append(_here(t, text))
            return
    if t.step > chain.step or chain.planted.last < t.step:
        for event in t.events:
            if isinstance(event, Prefilled | Decoded) and event.request in chain.requests:
                chain.bites.append(_here(t, _answered(event, t)))
                return


def _answered(event: Prefilled | Decoded, t: Transition) -> str:
    if isinstance(event, Prefilled):
        start, end = event.start, event.end
    else:
        start, end = event.position, event.position + 1
    slot = t.after.slots[event.slot] if 0 <= event.slot < len(t.after.slots) else None
    stand = "" if slot is None else f" (after it: {covers(slot)})"
    return f"{event.request} computes {span(start, end)} from slot {event.slot}{stand}"


def _bite_on_alloc(chain: Chain, t: Transition) -> None:
    for event in t.events:
        if isinstance(event, Allocated) and event.slot in chain.slots and not chain.bites:
            text = f"slot {event.slot} is handed out again, to {event.holder}"
            chain.bites.append(_here(t, text))


def _wrong_tokens(event: Finished) -> int:
    cold = event.cold_reply
    if cold is None:
        return 0
    return sum(a != b for a, b in zip(event.reply, cold, strict=False)) + abs(len(event.reply) - len(cold))
