"""The chain of a violation: the step that planted it, those that carried it, and where it bites.

Followed through the transitions of a trace, from any engine: what was written to a slot and what stayed in
its ring, who copied it, who took it over, where it went outside the pool and came back. It explains what an
invariant found; it finds nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from replaylife.lifecycle.events import CheckpointCopied, Event, Matched, Published
from replaylife.lifecycle.events_outside import CopyFinished, Place, PlaceFreed, copy_ends, inward
from replaylife.lifecycle.invariants import INVARIANTS
from replaylife.lifecycle.snapshot import Snapshot, Transition, Violation
from replaylife.lifecycle.trace.bites import bite, bite_on_alloc
from replaylife.lifecycle.trace.chain import Chain, here
from replaylife.lifecycle.trace.lives import Lives, given_back
from replaylife.lifecycle.trace.telling import tell, tell_all

MAX_OPEN = 64  # chains followed at a time, the latest ones


@dataclass(slots=True)
class _Concerned:
    """What the subject of a violation stands for."""

    slots: set[int] = field(default_factory=set)
    nodes: set[int] = field(default_factory=set)
    requests: set[str] = field(default_factory=set)
    places: set[Place] = field(default_factory=set)

    def meets(self, chain: Chain) -> bool:
        """Whether a chain has reached any of it."""
        return bool(
            chain.slots & self.slots
            or chain.nodes & self.nodes
            or chain.requests & self.requests
            or chain.places & self.places
        )


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
        self._lives = Lives()
        self._open: list[Chain] = []
        self._began: int | None = None

    def follow(self, t: Transition, violations: Iterable[Violation] = ()) -> None:
        """Take note of one step and of what it broke for the first time."""
        if self._began is None:
            self._began = t.step
        for chain in self._open:
            bite_on_alloc(chain, t)
            for event in t.events:
                _hand_on(chain, t, event)
        self._lives.follow(t)
        for violation in violations:
            self._explain(t, violation)
        for chain in self._open:
            bite(chain, t)

    def _explain(self, t: Transition, violation: Violation) -> None:
        found = _concerned(t, violation.subject)
        known = next((chain for chain in reversed(self._open) if found.meets(chain)), None)
        if known is None:
            root = self._root(t, violation, found)
            known = next((chain for chain in reversed(self._open) if _same_root(chain, root)), None)
        if known is not None:
            if (known.step, known.violation) != (t.step, violation):
                known.also.append((t.step, violation))
            self.of[t.step, violation.invariant, violation.subject] = known
            return
        if len(self.chains) >= self._limit:
            self.num_left_out += 1
            return
        self.chains.append(root)
        self.of[t.step, violation.invariant, violation.subject] = root
        self._open = [*self._open, root][-MAX_OPEN:]

    def _root(self, t: Transition, violation: Violation, found: _Concerned) -> Chain:
        """Begin a chain at the step that planted it, this one where nothing before it is known to."""
        slots, lives = found.slots, self._lives.of(found.slots, found.places)
        now = here(t, "; ".join(tell_all(t, slots, found.places)) or _numbers(violation))
        planted = None
        if found.places or _apart(t, slots):
            planted = next((life.apart for life in lives if life.apart), None)
        kind = INVARIANTS.get(violation.invariant)
        touched = any(t.before.slots[i] is not t.after.slots[i] for i in slots if i < len(t.before.slots))
        if planted is None and kind is not None and kind.from_tensors and not touched:
            planted = next((life.written for life in lives if life.written is not None), None)
        chain = Chain(t.step, violation, now, slots=slots, nodes=found.nodes, requests=found.requests)
        chain.places = found.places
        if planted is None or planted.first >= t.step:
            chain.cut = bool(slots) and not lives and self._began != 1  # its slot's past was not looked at
            return chain
        chain.planted, chain.cut = planted, planted.first == self._began != 1
        chain.carry(now)
        return chain


def _hand_on(chain: Chain, t: Transition, event: Event) -> None:
    """Let a chain take in what an event hands its state on to, and let go of what is given back."""
    chain.slots -= given_back(event)
    match event:
        case Matched() if event.node in chain.nodes and event.request is not None:
            chain.requests.add(event.request)
            text = f"{event.request} reuses {event.state_len} tokens by the state of node {event.node}"
            chain.carry(here(t, text))
        case CheckpointCopied() if event.src in chain.slots or _takes(chain, event):
            chain.slots.add(event.dst)
            chain.requests |= {event.request} if event.purpose == "cow" else set()
            chain.carry(here(t, tell(event, t)))
        case Published() if event.slot in chain.slots and event.node not in chain.nodes:
            chain.nodes.add(event.node)
            chain.carry(here(t, tell(event, t)))
        case CopyFinished():
            _hand_over(chain, t, event)
        case PlaceFreed():
            chain.places.discard((event.place, event.index))


def _takes(chain: Chain, event: CheckpointCopied) -> bool:
    """Whether a request of the chain gets the state that it has matched."""
    return event.purpose == "cow" and event.request in chain.requests


def _hand_over(chain: Chain, t: Transition, copy: CopyFinished) -> None:
    """Follow a state to a place outside the pool, or from there to a slot."""
    slot, place = copy_ends(copy)
    if inward(copy.kind) and place in chain.places:
        chain.slots.add(slot)
        kind, _, name = copy.of.partition(" ")
        chain.requests |= {name} if kind == "request" else set()
    elif not inward(copy.kind) and slot in chain.slots:
        chain.places.add(place)
    else:
        return
    chain.carry(here(t, tell(copy, t)))


def _same_root(chain: Chain, root: Chain) -> bool:
    """Whether the same records, lost in the same step, are behind both."""
    return chain.step == root.step and chain.planted is root.planted


def _numbers(violation: Violation) -> str:
    return f"{violation.subject}: {violation.found}, expected {violation.expected}"


def _concerned(t: Transition, subject: str) -> _Concerned:
    """Return the slots, nodes, requests and places that a violation's subject stands for."""
    kind, _, name = subject.partition(" ")
    if kind == "slot" and name.isdecimal():
        slot = int(name)
        nodes = {node.id for node in t.after.nodes if node.state == slot}
        return _Concerned({slot}, nodes, _holders(t.after, slot))
    if kind == "node" and name.isdecimal():
        node = t.after.node(int(name)) or t.before.node(int(name))
        return _Concerned(
            set() if node is None or node.state is None else {node.state},
            {int(name)},
        )
    if kind == "request":
        request = t.after.request(name) or t.before.request(name)
        return _Concerned(
            set() if request is None or request.slot is None else {request.slot}, requests={name}
        )
    where, _, index = name.rpartition(" ")
    if where == "place" and index.isdecimal() and kind in ("host", "peer"):
        return _Concerned(places={("host" if kind == "host" else "peer", int(index))})
    return _Concerned()


def _apart(t: Transition, slots: set[int]) -> bool:
    """Whether one of these slots is not what its owner says, or was copied with records pending."""
    if any(isinstance(e, CheckpointCopied) and e.pending and slots & {e.src, e.dst} for e in t.events):
        return True
    left = (e for e in t.events if isinstance(e, CopyFinished) and e.pending and not inward(e.kind))
    if any(copy.src in slots for copy in left):
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
