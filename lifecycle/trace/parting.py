"""Two traces compared step by step, by what they say of tokens: no slot numbers, no node ids, no clocks.

So a fault can be held against its clean twin, and one engine against another with other slot numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from replaylife.lifecycle.snapshot import Snapshot
from replaylife.lifecycle.trace.errors import TraceDamaged
from replaylife.lifecycle.trace.reader import RecordedStep, TraceReader


class Difference(NamedTuple):
    """One fact, and what either trace says of it; ``None`` where it does not know of such a thing."""

    fact: str
    left: str | None
    right: str | None


@dataclass(frozen=True, slots=True)
class Parting:
    """Where two traces differ: the steps at one place of both, and how. A trace that has ended has none."""

    place: int
    left: RecordedStep | None
    right: RecordedStep | None
    differences: tuple[Difference, ...]


def partings(left: TraceReader, right: TraceReader) -> Iterator[Parting]:
    """Yield every place at which two traces differ, from their first steps on.

    The first comes where they part; later ones have what differs there, be it new or as before. Damage ends
    a trace.
    """
    sides = _steps(left), _steps(right)
    place = 0
    while True:
        place += 1
        a, b = (next(side, None) for side in sides)
        if a is None and b is None:
            return
        differences = tuple(_differences(a, b))
        if differences:
            yield Parting(place, a, b, differences)
        if a is None or b is None:
            return


def _steps(reader: TraceReader) -> Iterator[RecordedStep]:
    try:
        for entry in reader.entries():
            if isinstance(entry, RecordedStep):
                yield entry
    except TraceDamaged:
        return


def _differences(a: RecordedStep | None, b: RecordedStep | None) -> Iterable[Difference]:
    if a is None or b is None:
        sides = [f"{step.transition.action}" if step else "the trace has ended" for step in (a, b)]
        yield Difference("action", *sides)
        return
    left, right = a.transition, b.transition
    if left.action != right.action:
        sides = [str(left.action), str(right.action)]
        if sides[0] == sides[1]:
            sides[1] += ", other tokens"
        yield Difference("action", *sides)
    facts = facts_of(left.after), facts_of(right.after)
    for key in dict.fromkeys((*facts[0], *facts[1])):
        sides_ = [side.get(key) for side in facts]
        if sides_[0] != sides_[1] and not _of_other_lengths(key, sides_):
            yield Difference(_name(key), *sides_)
    broken = [", ".join(dict.fromkeys(v.invariant for v in step.violations)) or "nothing" for step in (a, b)]
    if broken[0] != broken[1]:
        yield Difference("newly violated", *broken)


class _Key(NamedTuple):
    """A fact's identity: what it is about, a name, and the digest that tells equal lengths apart."""

    kind: str
    name: str
    digest: int = 0


def _of_other_lengths(key: _Key, sides: list[str | None]) -> bool:
    """Whether this is a digest that differs only because the lengths do, which is told already."""
    lengths = {side.partition(" ")[0] for side in sides if side is not None}
    return key.kind == "tokens of" and (None in sides or len(lengths) > 1)


def _name(key: _Key) -> str:
    return f"{key.kind} {key.name}".strip()


def facts_of(snapshot: Snapshot) -> Mapping[_Key, str]:
    """Return what a snapshot says: of each key its state, of each request how far it and its state are."""
    found: dict[_Key, str] = {}
    for node in sorted(snapshot.nodes, key=lambda node: node.key):
        key = _Key("key", str(node.key.length), node.key.digest)
        found[key] = "no state" if node.state is None else _standing(snapshot, node.state, ring=False)
    for request in snapshot.requests:
        waits = ", a copy pending" if request.pending_cow is not None else ""
        lengths = f"committed {request.committed}, executed {request.executed}, cached {request.cached}"
        slot = "no slot" if request.slot is None else _standing(snapshot, request.slot, ring=True)
        found[_Key("request", request.id)] = f"{lengths}; {slot}{waits}"
        tokens = _Key("tokens of", request.id)
        found[tokens] = f"{request.tokens.length} ({request.tokens.digest:x})"
    used = len(snapshot.slots) - 1 - len(snapshot.free_slots)
    found[_Key("slots", "in use")] = str(used)
    found[_Key("key-value", "in use")] = str(snapshot.kv_capacity - snapshot.kv_free)
    return found


def _standing(snapshot: Snapshot, index: int, *, ring: bool) -> str:
    if not 0 <= index < len(snapshot.slots):
        return "no slot of the pool"
    slot = snapshot.slots[index]
    same = slot.temporal.length == slot.conv.length and slot.temporal.digest != slot.conv.digest
    other = " (other tokens)" if same else ""
    pending = f", ring {len(slot.ring)}" if ring or slot.ring else ""
    return f"state {slot.temporal.length}, conv {slot.conv.length}{other}{pending}"
