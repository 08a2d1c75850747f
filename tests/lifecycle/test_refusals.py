"""An action that cannot happen is refused, says why, and changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from replaylife.lifecycle.actions import (
    Abort,
    Action,
    Admit,
    Checkpoint,
    Commit,
    Draft,
    EvictKv,
    EvictStates,
    Execute,
    Finish,
    Flush,
    Forward,
    Prefill,
    Probe,
    Retract,
    Schedule,
    Verify,
)
from replaylife.lifecycle.config import CacheConfig
from replaylife.lifecycle.protocol import ActionRefused
from replaylife.lifecycle.snapshot import RequestView, Snapshot
from replaylife.lifecycle.wander.walk import Walk

from .from_scratch import world_of
from .wandering import COMBINATIONS, SMALL, STRATEGIES, factory, name_of

NOBODY = "nobody"


def impossible(snapshot: Snapshot, cache: CacheConfig) -> Iterator[tuple[str, Action]]:
    """Every kind of illegal action that this state offers, each with its name."""
    yield "no tokens to admit", Admit("new", ())
    yield "no tokens to match", Probe(())
    yield "evict no states", EvictStates(0)
    yield "evict fewer than no states", EvictStates(-1)
    yield "evict no tokens", EvictKv(0)
    yield "forward nobody", Forward(())
    yield "schedule nobody", Schedule(())
    yield "prefill a stranger", Prefill(NOBODY, 1)
    yield "forward a stranger", Forward((NOBODY,))
    yield "forward a chunk of a stranger", Forward((), ((NOBODY, 1),))
    for of in (Checkpoint, Finish, Flush, Retract, Abort):
        yield f"{of.__name__} a stranger", of(NOBODY)
    live = [view for view in snapshot.requests if view.phase != "closing"]
    for view in snapshot.requests:
        yield "admit a running request", Admit(view.id, (1, 2, 3))
        if view.phase == "closing":
            yield from _of_closing(view)
    for view in live:
        yield from _of_waiting(view, cache) if view.scheduled < view.prompt_len else _of_ready(view, snapshot)
    yield from _of_batches(snapshot, cache, live)
    yield from _of_flight(snapshot, cache, live)
    yield from _of_windows(snapshot, cache, live)


def _of_windows(
    snapshot: Snapshot, cache: CacheConfig, live: list[RequestView]
) -> Iterator[tuple[str, Action]]:
    yield "verify nobody", Verify(())
    yield "verify a stranger", Verify(((NOBODY, 1, 1),))
    for view in live:
        if view.scheduled < view.prompt_len:
            yield "verify before prefill", Draft(((view.id, 1, 1),))
            continue
        yield "verify more than the ring holds", Verify(((view.id, cache.ring_length + 1, 1),))
        yield "keep more than the window", Draft(((view.id, 2, 3),))
        yield "keep nothing", Verify(((view.id, 2, 0),))
        yield "verify one request twice", Draft(((view.id, 1, 1), (view.id, 1, 1)))
        if snapshot.in_flight:
            yield "verify with steps in flight", Verify(((view.id, 1, 1),))
        if any(other.drafts for other in snapshot.requests):
            yield "schedule while a window is open", Schedule((view.id,))


def _of_closing(view: RequestView) -> Iterator[tuple[str, Action]]:
    for of in (Checkpoint, Finish, Flush, Retract, Abort):
        yield f"{of.__name__} what has ended", of(view.id)
    yield "prefill what has ended", Prefill(view.id, 1)
    yield "schedule what has ended", Schedule((view.id,))
    yield "schedule a chunk of what has ended", Schedule((), ((view.id, 1),))


def _of_waiting(view: RequestView, cache: CacheConfig) -> Iterator[tuple[str, Action]]:
    left = view.prompt_len - view.scheduled
    for kind, count in (("more than is left", left + 1), ("nothing", 0), ("less than nothing", -1)):
        yield f"prefill {kind}", Prefill(view.id, count)
        yield f"schedule a chunk of {kind}", Schedule((), ((view.id, count),))
    yield "forward before prefill", Forward((view.id,))
    yield "schedule before prefill", Schedule((view.id,))
    for of in (Checkpoint, Finish, Flush):
        yield f"{of.__name__} before prefill", of(view.id)
    off = next((n for n in range(1, left) if (view.scheduled + n) % cache.grid), None)
    if cache.strategy == "align" and off is not None:
        yield "prefill off the block boundary", Prefill(view.id, off)
        yield "schedule off the block boundary", Schedule((), ((view.id, off),))


def _of_ready(view: RequestView, snapshot: Snapshot) -> Iterator[tuple[str, Action]]:
    yield "prefill after prefill", Prefill(view.id, 1)
    yield "forward one request twice", Forward((view.id, view.id))
    yield "forward with a stranger", Forward((view.id, NOBODY))
    yield "decode and prefill one request", Forward((view.id,), ((view.id, 1),))
    yield "pad to fewer rows than there are", Forward((view.id,), (), 0)
    busy = any(view.id == name for step in snapshot.in_flight for name, _, _ in step.rows)
    if busy:
        yield "Flush with a step in flight", Flush(view.id)
        yield "Checkpoint with a step in flight", Checkpoint(view.id)
    elif snapshot.grid is not None and view.committed % snapshot.grid:
        yield "Checkpoint off the grid", Checkpoint(view.id)


def _of_batches(
    snapshot: Snapshot, cache: CacheConfig, live: list[RequestView]
) -> Iterator[tuple[str, Action]]:
    ready = tuple(view.id for view in live if view.scheduled >= view.prompt_len)
    waiting = tuple(view.id for view in live if view.scheduled < view.prompt_len)
    if ready and waiting:
        yield "forward one that waits with one that does not", Forward((ready[0], waiting[0]))
    room = snapshot.kv_free + sum(node.kv_tokens for node in snapshot.nodes if node.kv_lock == 0)
    if len(ready) > room:
        yield "forward without tokens", Forward(ready)
        yield "schedule without tokens", Schedule(ready)
    if cache.graph_rows is not None and ready:
        yield "pad to more rows than the graph has", Forward(ready[:1], (), cache.graph_rows + 1)
        if len(ready) > cache.graph_rows:
            yield "more rows than the graph has", Forward(ready)


def _of_flight(
    snapshot: Snapshot, cache: CacheConfig, live: list[RequestView]
) -> Iterator[tuple[str, Action]]:
    flight = snapshot.in_flight
    possible = [Schedule((view.id,)) for view in live if view.scheduled >= view.prompt_len]
    if not cache.overlap:
        yield from (("schedule without overlap", schedule) for schedule in possible)
    if len(flight) == 2:
        yield from (("a third step in flight", schedule) for schedule in possible)
    if all(step.executed_at is not None for step in flight):
        yield "execute with nothing scheduled", Execute()
    if not flight:
        yield "commit with nothing in flight", Commit()
    elif flight[0].executed_at is None:
        yield "commit before execute", Commit()
    for view in live if flight else ():
        if view.scheduled >= view.prompt_len:
            yield "forward with steps in flight", Forward((view.id,))
        elif cache.strategy != "align":
            yield "prefill with steps in flight", Prefill(view.id, 1)


KINDS = {
    *("no tokens to admit", "no tokens to match", "evict no states", "evict fewer than no states"),
    *("evict no tokens", "forward nobody", "schedule nobody", "prefill a stranger", "forward a stranger"),
    *("forward a chunk of a stranger", "admit a running request"),
    *(f"{of} a stranger" for of in ("Checkpoint", "Finish", "Flush", "Retract", "Abort")),
    *(f"prefill {what}" for what in ("more than is left", "nothing", "less than nothing")),
    *(f"schedule a chunk of {what}" for what in ("more than is left", "nothing", "less than nothing")),
    *(f"{of} before prefill" for of in ("forward", "schedule", "Checkpoint", "Finish", "Flush")),
    *("verify nobody", "verify a stranger", "verify before prefill", "verify more than the ring holds"),
    *("keep more than the window", "keep nothing", "verify one request twice", "verify with steps in flight"),
    *("prefill after prefill", "forward one request twice", "forward with a stranger"),
    *("decode and prefill one request", "pad to fewer rows than there are"),
    *(
        "forward one that waits with one that does not",
        "execute with nothing scheduled",
        "commit with nothing in flight",
    ),
}
WITHOUT_TOKENS = {"forward without tokens", "schedule without tokens"}  # few enough requests get that far
WITHOUT_OVERLAP = {"schedule without overlap"}
WITH_OVERLAP = {"a third step in flight", "commit before execute"}
IN_FLIGHT = {  # without overlap only an open window is, and what happens in one is up to chance
    "forward with steps in flight",
    *(f"{of} what has ended" for of in ("Checkpoint", "Finish", "Flush", "Retract", "Abort")),
    *("prefill what has ended", "schedule what has ended", "schedule a chunk of what has ended"),
    *("Flush with a step in flight", "Checkpoint with a step in flight"),
}
PREFILL_IN_FLIGHT = "prefill with steps in flight"
OPEN = "schedule while a window is open"
WITH_BLOCKS = {"prefill off the block boundary", "schedule off the block boundary"}
WITH_A_GRAPH = {"pad to more rows than the graph has", "more rows than the graph has"}


def kinds_for(cache: CacheConfig) -> set[str]:
    """The kinds of illegal actions that a combination must have offered."""
    kinds = KINDS | (WITH_OVERLAP | IN_FLIGHT if cache.overlap else WITHOUT_OVERLAP)
    if cache.strategy == "align":
        kinds |= WITH_BLOCKS
    elif cache.overlap:
        kinds |= {PREFILL_IN_FLIGHT}
    if cache.strategy != "no_buffer":
        kinds |= {"Checkpoint off the grid"}
    elif not cache.overlap and cache.graph_rows is None:
        kinds |= WITHOUT_TOKENS
    return kinds if cache.graph_rows is None else kinds | WITH_A_GRAPH


@pytest.mark.parametrize("policy", COMBINATIONS, ids=name_of)
def test_every_refused_action_leaves_the_world_as_it_was(policy: CacheConfig) -> None:
    counts: Counter[str] = Counter()
    rows = None if policy.graph_rows is None else 1
    tight = replace(policy, kv_tokens=56, graph_rows=rows)
    for seed in range(4):
        walk = Walk(factory(cache=tight))
        for taken in walk.wander(seed, 120):
            before = world_of(walk.engine)  # type: ignore[arg-type]  # the reference engine
            for kind, action in impossible(taken.transition.after, tight):
                with pytest.raises(ActionRefused):
                    walk.engine.apply(action)
                counts[kind] += 1
            assert world_of(walk.engine) == before  # type: ignore[arg-type]
    required = kinds_for(policy)
    assert required <= set(counts) <= required | WITHOUT_TOKENS | IN_FLIGHT | {PREFILL_IN_FLIGHT, OPEN}
    assert {kind: counts[kind] for kind in required if counts[kind] < 3} == {}


def test_the_comparison_sees_what_an_applied_action_changes() -> None:
    walk, applied = Walk(factory()), Counter[str]()
    before = world_of(walk.engine)  # type: ignore[arg-type]
    for taken in walk.wander(1, 200):
        after = world_of(walk.engine)  # type: ignore[arg-type]
        assert after != before, taken.transition.action
        applied[type(taken.transition.action).__name__] += 1
        before = after
    assert len(applied) == 14


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (Admit("a", (1, 2)), "admit a (2 prompt tokens): a request of this name is running; finish it"),
        (Admit("z", ()), "admit z (0 prompt tokens): the prompt is empty, need at least one token"),
        (Probe(()), "match (0 tokens): the prompt is empty, need at least one token"),
        (Prefill("a", 5), "prefill a (5 tokens): 3 prompt tokens of a are left, need a chunk of 1 to 3"),
        (Prefill("z", 1), "prefill z (1 tokens): no such request is running (running: a, b)"),
        (
            Prefill("b", 1),
            "prefill b (1 tokens): the prompt of b is complete",
        ),
        (
            Forward(("a",)),
            "decode a: 3 prompt tokens of a are not prefilled",
        ),
        (Forward(("b", "b")), "decode b, b: need at least one row, and each request once"),
        (EvictStates(0), "evict 0 states: need at least 1"),
        (EvictKv(-2), "evict -2 key-value tokens: need at least 1"),
        (Schedule(("b",)), "schedule decode b: need cache.overlap: on"),
        (Execute(), "execute: no step is scheduled; schedule one first"),
        (Commit(), "commit: the oldest step has not executed yet"),
        (Forward(("b",), (), 0), "decode b: 1 decode rows do not fit in a batch of 0"),
        (Abort("z"), "abort z: no such request is running (running: a, b)"),
    ],
    ids=str,
)
def test_a_refusal_says_what_was_found_and_what_is_needed(action: Action, message: str) -> None:
    engine = factory().build()
    engine.apply(Admit("a", (5, 6, 7)))
    engine.apply(Admit("b", (8, 9)))
    engine.apply(Prefill("b", 2))
    with pytest.raises(ActionRefused) as refused:
        engine.apply(action)
    assert str(refused.value) == message


def test_a_forward_without_room_says_how_much_there_is() -> None:
    engine = factory(cache=replace(SMALL, kv_tokens=3)).build()
    engine.apply(Admit("a", (5, 6, 7)))
    engine.apply(Prefill("a", 3))
    with pytest.raises(ActionRefused) as refused:
        engine.apply(Forward(("a",)))
    assert str(refused.value) == (
        "decode a: needs 1 key-value tokens, 0 of 3 are free and none can be evicted; "
        "finish a request or raise kv_tokens"
    )


@pytest.mark.parametrize(
    ("cache", "action", "message"),
    [
        (
            replace(STRATEGIES["align"], overlap=True),
            Prefill("a", 3),
            "prefill a (3 tokens): a chunk that is not the last ends on a block boundary; "
            "3 is no multiple of 4",
        ),
        (
            STRATEGIES["extra_buffer"],
            Checkpoint("b"),
            "checkpoint b: a checkpoint at 2 is not on the grid of 4 that the strategy needs",
        ),
        (
            replace(SMALL, graph_rows=1),
            Forward(("b", "c")),
            "decode b, c: 2 decode rows, the graph has 1; raise cache.graph_rows",
        ),
    ],
    ids=["off the block boundary", "off the grid", "more rows than the graph"],
)
def test_a_refusal_names_the_grid_or_the_graph(cache: CacheConfig, action: Action, message: str) -> None:
    engine = factory(cache=cache).build()
    for name, tokens in (("a", 6), ("b", 2), ("c", 2)):
        engine.apply(Admit(name, tuple(range(tokens))))
        if name != "a":
            engine.apply(Prefill(name, tokens))
    with pytest.raises(ActionRefused) as refused:
        engine.apply(action)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("done", "action", "message"),
    [
        ((), Commit(), "commit: the oldest step has not executed yet"),
        ((), Forward(("a",)), "decode a: 1 steps are in flight; execute and commit them first"),
        ((), Flush("a"), "fold a: a step of this request is in flight; commit it first"),
        ((Execute(),), Execute(), "execute: no step is scheduled; schedule one first"),
        ((Schedule(("a",)),), Schedule(("a",)), "schedule decode a: 2 steps are in flight; commit one first"),
        ((Finish("a"),), Abort("a"), "abort a: the request has ended (finish)"),
        ((Retract("a"),), Schedule(("a",)), "schedule decode a: the request has ended (retract)"),
    ],
    ids=str,
)
def test_a_refusal_with_a_step_in_flight_says_what_to_wait_for(
    done: tuple[Action, ...], action: Action, message: str
) -> None:
    engine = factory(cache=replace(SMALL, overlap=True)).build()
    for before in (Admit("a", (5, 6)), Prefill("a", 2), Schedule(("a",)), *done):
        engine.apply(before)
    with pytest.raises(ActionRefused) as refused:
        engine.apply(action)
    assert str(refused.value) == message


TIGHT = [replace(SMALL, kv_tokens=40), *(replace(cache, overlap=True) for cache in STRATEGIES.values())]


@pytest.mark.parametrize("cache", [SMALL, *TIGHT], ids=["roomy", "tight", *STRATEGIES])
def test_what_the_engine_calls_enabled_is_never_refused(cache: CacheConfig) -> None:
    tried: Counter[str] = Counter()
    made = factory(cache=cache)
    walk, moves = Walk(made), []
    for taken in walk.wander(9, 30):
        moves.append(taken.move)
        for action in walk.engine.enabled():
            twin = Walk(made)
            for move in moves:
                twin.take(move)
            twin.engine.apply(action)
            tried[type(action).__name__] += 1
    kinds = {"Prefill", "Forward", "Finish", "Flush", "Retract", "Abort", "EvictStates", "EvictKv"}
    kinds |= {"Schedule", "Execute", "Commit"} if cache.overlap else {"Checkpoint"}
    assert kinds <= set(tried)
    assert tried.total() > 100
