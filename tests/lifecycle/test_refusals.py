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
    EvictKv,
    EvictStates,
    Finish,
    Flush,
    Forward,
    Prefill,
    Probe,
    Retract,
)
from replaylife.lifecycle.config import CacheConfig
from replaylife.lifecycle.protocol import ActionRefused
from replaylife.lifecycle.snapshot import Snapshot
from replaylife.lifecycle.wander.walk import Walk

from .from_scratch import world_of
from .wandering import POLICIES, SMALL, factory, name_of

NOBODY = "nobody"


def impossible(snapshot: Snapshot) -> Iterator[tuple[str, Action]]:
    """Every kind of illegal action that this state offers, each with its name."""
    yield "no tokens to admit", Admit("new", ())
    yield "no tokens to match", Probe(())
    yield "evict no states", EvictStates(0)
    yield "evict fewer than no states", EvictStates(-1)
    yield "evict no tokens", EvictKv(0)
    yield "forward nobody", Forward(())
    yield "prefill a stranger", Prefill(NOBODY, 1)
    yield "forward a stranger", Forward((NOBODY,))
    for of in (Checkpoint, Finish, Flush, Retract, Abort):
        yield f"{of.__name__} a stranger", of(NOBODY)
    for view in snapshot.requests:
        yield "admit a running request", Admit(view.id, (1, 2, 3))
        if view.phase == "prefill":
            left = view.prompt_len - view.executed
            for kind, count in (("more than is left", left + 1), ("nothing", 0), ("less than nothing", -1)):
                yield f"prefill {kind}", Prefill(view.id, count)
            yield "forward before prefill", Forward((view.id,))
            for of in (Checkpoint, Finish, Flush):
                yield f"{of.__name__} before prefill", of(view.id)
        else:
            yield "prefill after prefill", Prefill(view.id, 1)
            yield "forward one request twice", Forward((view.id, view.id))
            yield "forward with a stranger", Forward((view.id, NOBODY))
    decoding = tuple(view.id for view in snapshot.requests if view.phase == "decode")
    waiting = tuple(view.id for view in snapshot.requests if view.phase == "prefill")
    if decoding and waiting:
        yield "forward one that waits with one that does not", Forward((decoding[0], waiting[0]))
    room = snapshot.kv_free + sum(node.kv_tokens for node in snapshot.nodes if node.kv_lock == 0)
    if decoding and len(decoding) > room:
        yield "forward without tokens", Forward(decoding)


KINDS = 26


@pytest.mark.parametrize("policy", POLICIES, ids=name_of)
def test_every_refused_action_leaves_the_world_as_it_was(policy: CacheConfig) -> None:
    counts: Counter[str] = Counter()
    for seed in range(4):
        walk = Walk(factory(cache=replace(policy, kv_tokens=56)))
        for taken in walk.wander(seed, 120):
            before = world_of(walk.engine)  # type: ignore[arg-type]  # the reference engine
            for kind, action in impossible(taken.transition.after):
                with pytest.raises(ActionRefused):
                    walk.engine.apply(action)
                counts[kind] += 1
            assert world_of(walk.engine) == before  # type: ignore[arg-type]
    assert len(counts) == KINDS, sorted(counts)
    assert min(counts.values()) >= 3, counts


def test_the_comparison_sees_what_an_applied_action_changes() -> None:
    walk, applied = Walk(factory()), Counter[str]()
    before = world_of(walk.engine)  # type: ignore[arg-type]
    for taken in walk.wander(1, 200):
        after = world_of(walk.engine)  # type: ignore[arg-type]
        assert after != before, taken.transition.action
        applied[type(taken.transition.action).__name__] += 1
        before = after
    assert len(applied) == 11


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (Admit("a", (1, 2)), "admit a (2 prompt tokens): a request of this name is running; finish it first"),
        (Admit("z", ()), "admit z (0 prompt tokens): the prompt is empty, need at least one token"),
        (Probe(()), "match (0 tokens): the prompt is empty, need at least one token"),
        (Prefill("a", 5), "prefill a (5 tokens): 3 prompt tokens are left, need a chunk of 1 to 3"),
        (Prefill("z", 1), "prefill z (1 tokens): no such request is running (running: a, b)"),
        (
            Prefill("b", 1),
            "prefill b (1 tokens): the request is in phase decode, need prefill (its prompt is complete)",
        ),
        (
            Forward(("a",)),
            "decode a: the request is in phase prefill, need decode (3 prompt tokens are not prefilled)",
        ),
        (Forward(("b", "b")), "decode b, b: need at least one row, and each request once"),
        (EvictStates(0), "evict 0 states: need at least 1"),
        (EvictKv(-2), "evict -2 key-value tokens: need at least 1"),
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
        "finish one or raise kv_tokens"
    )


@pytest.mark.parametrize("cache", [SMALL, replace(SMALL, kv_tokens=40)], ids=["roomy", "tight"])
def test_what_the_engine_calls_enabled_is_never_refused(cache: CacheConfig) -> None:
    tried: Counter[str] = Counter()
    made = factory(cache=cache)
    walk, moves = Walk(made), []
    for taken in walk.wander(9, 45):
        moves.append(taken.move)
        for action in walk.engine.enabled():
            twin = Walk(made)
            for move in moves:
                twin.take(move)
            twin.engine.apply(action)
            tried[type(action).__name__] += 1
    assert set(tried) == {
        *("Prefill", "Forward", "Checkpoint", "Finish", "Flush", "Retract", "Abort", "EvictStates", "EvictKv")
    }
    assert tried.total() > 300
