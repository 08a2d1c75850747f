"""Where a violation bites: the answers that are computed from a state that is not what is said of it."""

from __future__ import annotations

from replaylife.lifecycle.events import Allocated, Decoded, Drafted, Finished, Prefilled
from replaylife.lifecycle.snapshot import Transition
from replaylife.lifecycle.trace.chain import Chain, here
from replaylife.lifecycle.trace.telling import covers, span


def bite(chain: Chain, t: Transition) -> None:
    """Book the first answer computed from it, and the first reply that differs from the cold run's."""
    for event in t.events:
        if isinstance(event, Finished) and event.request in chain.requests and len(chain.bites) < 2:
            wrong = _wrong_tokens(event)
            if wrong:
                text = f"{wrong} of the {len(event.reply)} reply tokens differ from the cold run's"
                chain.bites.append(here(t, text))
    if chain.bites:
        return
    for measured in t.after.measurements:
        request = measured.subject.removeprefix("request ")
        if measured.kind == "logits" and measured.exceeded and request in chain.requests:
            times = f"{measured.error / measured.tolerance:,.0f} times the tolerance"
            text = (
                f"the logits of {request} part from the cold run's at position {measured.position}, {times}"
            )
            chain.bites.append(here(t, text))
            return
    if t.step > chain.step or chain.planted.last < t.step:
        for event in t.events:
            if isinstance(event, Prefilled | Decoded | Drafted) and event.request in chain.requests:
                chain.bites.append(here(t, _answered(event, t)))
                return


def _answered(event: Prefilled | Decoded | Drafted, t: Transition) -> str:
    if isinstance(event, Prefilled):
        start, end = event.start, event.end
    else:
        tokens = len(event.tokens) if isinstance(event, Drafted) else 1
        start, end = event.position, event.position + tokens
    slot = t.after.slots[event.slot] if 0 <= event.slot < len(t.after.slots) else None
    stand = "" if slot is None else f" (after it: {covers(slot)})"
    return f"{event.request} computes {span(start, end)} from slot {event.slot}{stand}"


def bite_on_alloc(chain: Chain, t: Transition) -> None:
    """Book that a slot of the chain goes to somebody else, where nothing was computed from it before."""
    for event in t.events:
        if isinstance(event, Allocated) and event.slot in chain.slots and not chain.bites:
            text = f"slot {event.slot} is handed out again, to {event.holder}"
            chain.bites.append(here(t, text))


def _wrong_tokens(event: Finished) -> int:
    cold = event.cold_reply
    if cold is None:
        return 0
    return sum(a != b for a, b in zip(event.reply, cold, strict=False)) + abs(len(event.reply) - len(cold))
