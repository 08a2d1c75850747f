"""The data of a page: each step as what it changes, so that two thousand steps stay a small file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from replaylife.lifecycle.scenario.player import Failed
from replaylife.lifecycle.snapshot import NodeView, PlaceView, RequestView, SlotView, Snapshot, Violation
from replaylife.view.book import Book, Page, run_of
from replaylife.view.chain import chain_rows
from replaylife.view.heading import cache_words, engine_words
from replaylife.view.look import Signs, clean
from replaylife.view.places import free_places, outside_sentences, owners_of, places_in_use
from replaylife.view.requests import slot_of
from replaylife.view.windows import MAX_STEPS, left_out, windows
from replaylife.view.words import sentences

MAX_VIOLATIONS = 50  # told in full for each step; more are counted
MAX_BYTES = 64_000_000  # of data; a trace of larger steps is shown up to there

Json: TypeAlias = dict[str, Any]


def page_data(book: Book, limit: int = MAX_STEPS) -> Json:
    """Return what the page shows: the run, and the steps of :func:`windows`, each as its changes."""
    run, header = run_of(book.header), book.header
    shown = windows(book.first, book.last, book.violating, limit)
    verdict = book.contents.verdict
    steps, note = _steps(book, shown)
    start = next((step["n"] for step in steps if step["fresh"]), steps[-1]["n"] if steps else book.first)
    notes = [left_out(book.first, book.last, shown, book.violating), note, book.note]
    return {
        "title": run.title,
        "name": run.name,
        "engine": engine_words(run) if header.config else clean(header.engine),
        "cache": cache_words(run) if header.config else "",
        "faults": list(run.faults),
        "command": " ".join(run.command),
        "tool": clean(header.tool),
        "invariants": book.num_invariants,
        "notes": [text for text in notes if text],
        "first": book.first,
        "last": book.last,
        "start": start,
        "violating": [step for step in book.violating if any(step in steps for steps in shown)],
        "verdict": None if verdict is None else {"held": verdict.held, "violations": verdict.violations},
        "steps": steps,
    }


def _steps(book: Book, shown: Sequence[range]) -> tuple[list[Json], str]:
    found: list[Json] = []
    size = 0
    for steps in shown:
        known: Snapshot | None = None
        for number in steps:
            try:
                page = book.page(number)
            except LookupError:
                return found, ""
            found.append(_step(book, page, known))
            known = page.played.transition.after
            size += 200 + sum(len(str(found[-1][name])) for name in ("slots", "nodes", "requests", "fresh"))
            if size > MAX_BYTES:
                return (
                    found,
                    f"the page ends with step {number}: its data would grow past {MAX_BYTES:,} bytes",
                )
    return found, ""


def _step(book: Book, page: Page, known: Snapshot | None) -> Json:
    t = page.played.transition
    step: Json = {
        "n": t.step,
        "line": page.played.line,
        "action": clean(str(t.action)),
        "told": [clean(sentence) for sentence in sentences(t.events, Signs())],
        "judged": [
            [isinstance(j, Failed), j.line, clean(j.message) if isinstance(j, Failed) else ""]
            for j in page.judged
        ],
        "broken": list(dict.fromkeys((clean(v.invariant), clean(v.subject)) for v in page.played.violations)),
        "fresh": [_violation(book, t.step, v) for v in page.played.fresh[:MAX_VIOLATIONS]],
        "more": max(0, len(page.played.fresh) - MAX_VIOLATIONS),
        "kv": [t.after.kv_free, t.after.kv_capacity],
        "free": list(free_places(t.after)),
        "outside": list(outside_sentences(t.after, Signs())),
        "ring": t.after.ring_length,
        "mark": {},
    }
    for name, (views, describe) in VIEWS.items():
        before = {key: describe(t.before, view) for key, view in views(t.before)}
        after = {key: describe(t.after, view) for key, view in views(t.after)}
        sent = {} if known is None else {key: describe(known, view) for key, view in views(known)}
        step[name] = [view for key, view in after.items() if sent.get(key) != view]
        if known is None or list(sent) != list(after):
            step[f"{name}Ids"] = list(after)
        marks = {key: "~" if key in before else "+" for key, view in after.items() if before.get(key) != view}
        step["mark"][name] = {**marks, **{key: "-" for key in before if key not in after}}
    return step


def _violation(book: Book, step: int, violation: Violation) -> Json:
    chain = book.chain(step, violation)
    return {
        "invariant": clean(violation.invariant),
        "subject": clean(violation.subject),
        "found": clean(violation.found),
        "expected": clean(violation.expected),
        "proof": [clean(sentence) for sentence in violation.proof],
        "chain": [] if chain is None else [[label, clean(text)] for label, text in chain_rows(chain)],
        "root": None if chain is None else chain.step,
    }


# -- views: what the page shows of each, by its name ---------------------------------------------------


def _slots(snapshot: Snapshot) -> Iterator[tuple[str, SlotView | tuple[str, PlaceView]]]:
    """Slots in use, then places outside the pool."""
    for slot in snapshot.slots:
        if slot.index and [owner.kind for owner in slot.owners] != ["free"]:
            yield f"slot {slot.index}", slot
    for name, place in places_in_use(snapshot):
        yield name, (name, place)


def _slot(_: Snapshot, slot: SlotView | tuple[str, PlaceView]) -> Json:
    if isinstance(slot, tuple):
        return _place(*slot)
    return {
        "id": f"slot {slot.index}",
        "name": str(slot.index),
        "where": "",
        "owner": owners_of(slot.owners),
        "odd": len(slot.owners) != 1,
        "temporal": slot.temporal.length,
        "conv": slot.conv.length,
        "cursor": slot.write_pos,
    }


def _place(name: str, place: PlaceView) -> Json:
    where = name.partition(" ")[0]
    return {
        "id": name,
        "name": f"{where} {place.index}",
        "where": where,
        "owner": owners_of(place.owners),
        "odd": len(place.owners) != 1,
        "temporal": place.temporal.length,
        "conv": place.conv.length,
        "cursor": None,
    }


def _nodes(snapshot: Snapshot) -> Iterator[tuple[str, NodeView]]:
    for node in snapshot.nodes:
        yield f"node {node.id}", node


def _node(snapshot: Snapshot, node: NodeView) -> Json:
    slot = slot_of(snapshot, node.state)
    return {
        "id": f"node {node.id}",
        "parent": None if node.parent is None else f"node {node.parent}",
        "key": node.key.length,
        "slot": node.state,
        "state": None if slot is None else slot.temporal.length,
        "conv": None if slot is None else slot.conv.length,
        "apart": slot is not None and not slot.temporal == slot.conv == node.key,
        "locks": f"{node.state_lock}/{node.kv_lock}" if node.state_lock or node.kv_lock else "",
    }


def _requests(snapshot: Snapshot) -> Iterator[tuple[str, RequestView]]:
    for request in snapshot.requests:
        yield f"request {clean(request.id)}", request


def _request(_: Snapshot, request: RequestView) -> Json:
    return {
        "id": f"request {clean(request.id)}",
        "phase": request.phase,
        "lengths": [request.committed, request.executed, request.scheduled],
        "prompt": request.prompt_len,
        "cached": request.cached,
        "slots": list(request.slots),
        "stamps": [f"{stamp.length} in slot {slot}" for slot, stamp in request.stamps],
        "pins": None if request.locked is None else f"node {request.locked}",
        "copy": None if request.pending_cow is None else list(request.pending_cow),
    }


VIEWS: dict[str, tuple[Callable[[Snapshot], Any], Callable[[Snapshot, Any], Json]]] = {
    "slots": (_slots, _slot),
    "nodes": (_nodes, _node),
    "requests": (_requests, _request),
}
