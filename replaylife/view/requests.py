"""One line per running request: how far the host is, how far the state is, and what is in between."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from rich.text import Text

from replaylife.lifecycle.snapshot import RequestView, SlotView, Snapshot, Transition
from replaylife.view.look import BAD, BOLD, DIM, GUTTER, STATE, Look, gauge, shorten

MAX_GAUGE = 32
MAX_NAME = 16


def changed_requests(t: Transition) -> list[RequestView]:
    """Return the running requests whose view, or whose slot's view, is not what it was."""
    return [request for request in t.after.requests if _changed(t, request)]


def _changed(t: Transition, request: RequestView) -> bool:
    if t.before.request(request.id) != request:
        return True
    slot = request.slot
    return slot is not None and slot_of(t.before, slot) != slot_of(t.after, slot)


def slot_of(snapshot: Snapshot, index: int | None) -> SlotView | None:
    """Return a slot's view, or ``None`` where it is no slot of the pool."""
    if index is None or not 0 <= index < len(snapshot.slots):
        return None
    return snapshot.slots[index]


def request_lines(t: Transition, look: Look, broken: Collection[str]) -> Iterator[Text]:
    """Yield a line for each request that changed; those in ``broken`` (as ``request a``) in red."""
    requests = changed_requests(t)
    width = max((min(len(request.id), MAX_NAME) for request in requests), default=0)
    for request in requests:
        name = shorten(look.signs, request.id, MAX_NAME).ljust(width)
        style = BAD if f"request {request.id}" in broken else BOLD
        yield Text.assemble(" " * GUTTER, (name, style), "  ").append_text(
            _standing(t.after, request, look, len(name) + 2)
        )


def _standing(snapshot: Snapshot, request: RequestView, look: Look, used: int) -> Text:
    slot = slot_of(snapshot, request.slot)
    if request.pending_cow is not None:
        src, dst = request.pending_cow
        return Text(
            f"{request.cached} of {request.prompt_len} cached; slot {src} is to be copied to slot {dst}", DIM
        )
    if slot is None:
        return Text(f"committed {request.committed}, holds no slot", DIM)
    ahead = ""
    if request.scheduled > request.committed:
        ending = "ends after its steps in flight; " if request.phase == "closing" else ""
        ahead = f" ({ending}executed {request.executed}, scheduled {request.scheduled})"
    lead = Text.assemble(
        ("committed ", DIM),
        str(request.committed),
        (ahead, DIM),
        ("  temporal ", DIM),
        (str(slot.temporal.length), STATE),
    )
    tail = Text.assemble(("  conv ", DIM), str(slot.conv.length))
    ring = ring_text(
        slot.write_pos, snapshot.ring_length, look, look.room - used - lead.cell_len - tail.cell_len
    )
    for index, stamp in request.stamps:
        tail.append(f"  stamp {stamp.length} in slot {index}", DIM)
    return lead.append_text(ring).append_text(tail)


def ring_text(filled: int | None, length: int | None, look: Look, room: int, label: str = "") -> Text:
    """``ring``, its gauge as far as there is ``room``, and ``filled/length``; nothing with ReplaySSM off."""
    if filled is None or length is None:
        return Text()
    numbers = f" {label or filled}/{length}"
    text = Text("  ring ", DIM)
    cells = min(MAX_GAUGE, room - text.cell_len - len(numbers))
    if cells >= min(length, 4):
        text.append_text(gauge(look.signs, filled, length, cells))
    return text.append(numbers if cells >= min(length, 4) else numbers.strip(), style="none")
