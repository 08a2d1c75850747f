"""Each invariant on transitions made by hand: the smallest that breaks it, and the same one set right."""

# ruff: noqa: E501 - the table has one row per case

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from replaylife.lifecycle.actions import Action, Commit, Draft, EvictStates, Execute, Finish, Forward
from replaylife.lifecycle.events import (
    Accepted,
    CheckpointCopied,
    CheckpointFolded,
    CopyFinished,
    CopyStarted,
    Decoded,
    Drafted,
    Event,
    Evicted,
    Matched,
    Published,
    StateFolded,
)
from replaylife.lifecycle.invariants import INVARIANTS
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import (
    Changed,
    CopyView,
    Measurement,
    NodeView,
    Owner,
    PlaceView,
    RequestView,
    SlotView,
    Snapshot,
    StepView,
    Transition,
    Violation,
    WaitingView,
)
from replaylife.pool import EMPTY, Fold, Record

RING, TRACK = 4, 8
FINISH = Finish("a")


def fold(length: int, first: int = 0) -> Fold:
    """The fold of tokens ``first, first + 1, ...``."""
    return EMPTY.after(range(first, first + length))


def slot(
    index: int, kind: str = "free", who: str = "", length: int = 0, pending: int = 0, **fields: Any
) -> SlotView:
    """A slot whose components agree, with the last ``pending`` tokens in the ring."""
    at = length + pending
    view = SlotView(
        index=index,
        owners=(Owner(kind, who),),  # type: ignore[arg-type]  # a test's own word
        temporal=fold(length),
        conv=fold(at),
        conv_checkpoint=fold(length),
        ring=tuple(Record(who, position, position) for position in range(length, at)),
        write_pos=pending,
        device_write_pos=pending,
        written=1,
    )
    return replace(view, **fields)


def node(number: int, key: int, state: int | None, parent: int | None = None, **fields: Any) -> NodeView:
    view = NodeView(number, parent, fold(key), key, state, 0, 0, number, 1, (0,))
    return replace(view, **fields)


def request(name: str = "a", at: int = 6, slot: int | None = 1, **fields: Any) -> RequestView:
    view = RequestView(name, "decode", 4, at, at, at, fold(at), 0, slot, (), (), None, at, None, 0)
    return replace(view, **fields)


def world(*views: Any, **fields: Any) -> Snapshot:
    """A pool of four slots, those not given being free; locks, LRU list and token counts added up."""
    slots = {0: slot(0, "reserved"), 1: slot(1), 2: slot(2), 3: slot(3)}
    slots |= {view.index: view for view in views if isinstance(view, SlotView)}
    nodes = tuple(view for view in views if isinstance(view, NodeView))
    requests = tuple(view for view in views if isinstance(view, RequestView))
    taken = sum(view.kv_tokens for view in (*nodes, *requests))
    snapshot = Snapshot(
        slots=tuple(slots.values()),
        nodes=nodes,
        requests=requests,
        free_slots=tuple(s.index for s in slots.values() if Owner("free") in s.owners),
        kv_capacity=64,
        kv_free=64 - taken,
        ring_length=RING,
        track_point=TRACK,
        grid=None,
        in_flight=(),
        lru=tuple(view.id for view in nodes if view.state is not None),
    )
    return replace(snapshot, **fields)


def step(
    after: Snapshot,
    *events: Event,
    before: Snapshot | None = None,
    action: Action = FINISH,
    number: int = 7,
) -> Transition:
    return Transition(number, before or after, action, events, after)


class Case(NamedTuple):
    """A transition that breaks one invariant, its clean twin, and the violation's subject and both sides."""

    broken: Transition
    clean: Transition
    subject: str
    found: str
    expected: str


def tree_of(state: SlotView, key: int = 6, **fields: Any) -> Snapshot:
    return world(state, node(1, key, state.index, **fields))


def running(view: SlotView, **fields: Any) -> Snapshot:
    return world(view, request(**fields))


def place(kind: str = "free", who: str = "", length: int = 6, **fields: Any) -> PlaceView:
    """The only place in host memory; its components agree."""
    return replace(PlaceView(0, (Owner(kind, who),), fold(length), fold(length), 1), **fields)  # type: ignore[arg-type]


def hosted(held: PlaceView, *views: Any, **fields: Any) -> Transition:
    """Node 1 without a state, and what host memory has come to hold."""
    after = world(node(1, 6, None), *views, host_places=(held,), **fields)
    return step(after, before=replace(after, host_places=(place(written=0),)))


def moving(kind: str, src: int, dst: int, locked: int | None, **fields: Any) -> Transition:
    """A copy of node 1's state in flight; the node is locked if the copy says so."""
    copy = CopyView(kind, "node 1", src, dst, locked)  # type: ignore[arg-type]  # a test's own word
    held = 0 if locked is None else 1
    state = 1 if kind == "offload" else None
    owner = place("copy", "node 1") if kind == "offload" else place("tree", "1")
    views = (slot(1, "tree", "1", 6),) if kind == "offload" else (slot(dst, "copy", "node 1"),)
    tree = node(1, 6, fields.pop("state", state), state_lock=held, kv_lock=held)
    return step(world(*views, tree, host_places=(fields.pop("held", owner),), copies=(copy,), **fields))


def listed(kind: str, of: str, *more: str) -> Transition:
    return step(world(), CopyStarted(kind, of, 1, 0, ("temporal", "conv_checkpoint", *more)))  # type: ignore[arg-type]


def left(pending: int) -> Transition:
    return step(world(), CopyFinished("backup", "request a", 1, 0, pending, 6, ("temporal",)))


def copied(pending: int) -> Transition:
    return step(tree_of(slot(2, "tree", "1", 6)), CheckpointCopied(1, 2, pending, 6, "publish", "a"))


def decoded(position: int, before: int, after: int) -> Decoded:
    return Decoded("a", 1, position, 9, before, after, tracked=False)


def measured(kind: str, error: float, **fields: Any) -> Transition:
    found = Measurement(kind, "node 1", "temporal", 6, error, 1e-5, "layer 2")  # type: ignore[arg-type]
    return step(replace(tree_of(slot(1, "tree", "1", 6)), measurements=(replace(found, **fields),)))


def decode_step(before: int, after: int, *folds: StateFolded, position: int = 5) -> Transition:
    at = position + 1
    folded = at - after
    return step(
        running(slot(1, "request", "a", folded, after), at=at),
        *folds,
        decoded(position, before, after),
        before=running(slot(1, "request", "a", at - 1 - before, before), at=at - 1),
        action=Forward(("a",)),
    )


def window(before: int, after: int, *events: Event) -> Transition:
    """Request a's cursor goes from one to the other in a step of these events; temporal stays at 4."""
    return step(
        running(slot(1, "request", "a", 4, after), at=4 + after),
        *events,
        before=running(slot(1, "request", "a", 4, before), at=4 + before),
        action=Commit(),
    )


def drafted(tokens: int) -> Drafted:
    return Drafted("a", 1, 4, tuple(range(tokens)), 0, tokens)


def accepted(kept: int, sampled: tuple[int, ...] = (5, 6, 7)) -> Accepted:
    return Accepted("a", 1, 4, 3, (4, 5, 6)[:kept], sampled[:kept], kept)


def tracked_inside(at: int, **fields: Any) -> Transition:
    """A checkpoint for 8 tokens is folded into slot 2, which then stands at ``at``."""
    after = world(slot(1, "request", "a", 6, 3), slot(2, "request", "a", at, **fields), request(at=9))
    return step(after, CheckpointFolded(1, 2, 2, 8, "a"), action=Commit())


def reused(cursor: int) -> Transition:
    return step(running(slot(1, "request", "a", 6 - cursor, cursor)), before=world())


def locked(state_lock: int, kv_lock: int) -> Transition:
    holder = request(at=8, slot=2, locked=1)
    held = node(1, 6, 1, state_lock=state_lock, kv_lock=kv_lock)
    return step(world(slot(1, "tree", "1", 6), slot(2, "request", "a", 8), held, holder))


def evicted_under(state: int | None) -> Transition:
    holder = request(at=8, slot=2, locked=1)
    before = world(slot(1, "tree", "1", 6), slot(2, "request", "a", 8), node(1, 6, 1, state_lock=1), holder)
    after = world(slot(2, "request", "a", 8), node(1, 6, state, state_lock=1), holder)
    return step(after, before=before, action=EvictStates(1))


def refreshed(*events: Event) -> Transition:
    state = slot(1, "tree", "1", 6)
    return step(tree_of(state, recency=9), *events, before=tree_of(state, recency=1))


def evicts(victim: int) -> Transition:
    slots = slot(1, "tree", "1", 6), slot(2, "tree", "2", 6)
    nodes = node(1, 6, 1), node(2, 6, 2, first_page=(5,))
    kept = 2 - victim
    return step(
        world(slots[kept], nodes[kept]),
        Evicted("state", (victim,), 6, (), (victim,)),
        before=world(*slots, *nodes),
        action=EvictStates(1),
    )


def pinned(locks: int | None) -> Transition:
    waiting = request(slot=2, at=4, pending_cow=(1, 2), locked=locks, cached=4)
    return step(world(slot(1, "tree", "1", 4), slot(2, "request", "a"), node(1, 4, 1, state_lock=1), waiting))


def in_flight(executed_at: int | None, *copies: int) -> Snapshot:
    """A step of request b in flight, and a checkpoint of node 1 in slot 1 that step 5 wrote."""
    step_view = StepView(3, (("b", 5, 6),), copies, executed_at)
    return world(slot(1, "tree", "1", 6, written=5), node(1, 6, 1), in_flight=(step_view,))


def kept(*events: Event, **fields: Any) -> Transition:
    """Node 1 keeps slot 1, which is ``fields`` after a step and was 6 tokens before."""
    before = tree_of(slot(1, "tree", "1", 6))
    return step(tree_of(slot(1, "tree", "1", 6, **fields)), *events, before=before, action=Commit())


def stamped(at: int, **fields: Any) -> Transition:
    """Request a owns slot 1 and track slot 2, stamped 4, whose checkpoint stands at ``at``."""
    holder = request(slot=1, track_slots=(2,), stamps=((2, fold(4)),))
    return step(world(slot(1, "request", "a", 6), slot(2, "request", "a", at, **fields), holder))


def step_beside(action: Action, bystander: int) -> Transition:
    """Request a decodes in slot 1; free slot 2 stands at ``bystander`` tokens afterwards, at 3 before."""
    return step(
        world(slot(1, "request", "a", 6), slot(2, length=bystander), request(at=6)),
        decoded(5, 0, 1),
        before=world(slot(1, "request", "a", 5), slot(2, length=3), request(at=5)),
        action=action,
    )


OTHER = Record("b", 4, 4)
CASES: dict[str, dict[str, Case]] = {
    "key-matches-state": {
        "a copy in host memory": Case(hosted(place("tree", "1", 4)), hosted(place("tree", "1")), "host place 0", "temporal covers 4 tokens", "the node's 6 tokens"),
        "a request's copy": Case(hosted(place("request", "a", 4), waiting=(WaitingView("a", "host", 0, fold(6)),)), hosted(place("request", "a"), waiting=(WaitingView("a", "host", 0, fold(6)),)), "host place 0", "temporal covers 4 tokens", "the request's 6 tokens"),
        "too short": Case(step(tree_of(slot(1, "tree", "1", 6), key=8)), step(tree_of(slot(1, "tree", "1", 8), key=8)), "node 1", "temporal covers 6 tokens", "the key's 8 tokens"),
        "too long": Case(step(tree_of(slot(1, "tree", "1", 6), key=5)), step(tree_of(slot(1, "tree", "1", 5), key=5)), "node 1", "temporal covers 6 tokens", "the key's 5 tokens"),
        "another's": Case(step(tree_of(slot(1, "tree", "1", 6, temporal=fold(6, 50)))), step(tree_of(slot(1, "tree", "1", 6))), "node 1", "temporal covers 6 (other tokens) tokens", "the key's 6 tokens"),
    },
    "components-agree": {
        "a copy in host memory": Case(hosted(place("tree", "1", conv=fold(8))), hosted(place("tree", "1")), "host place 0", "conv at 8", "temporal's position 6"),
        "window ahead": Case(step(tree_of(slot(1, "tree", "1", 6, conv=fold(8)))), step(tree_of(slot(1, "tree", "1", 6))), "node 1", "conv at 8", "temporal's position 6"),
        "both windows ahead": Case(step(tree_of(slot(1, "tree", "1", 6, conv=fold(8), conv_checkpoint=fold(8)))), step(tree_of(slot(1, "tree", "1", 6, conv_checkpoint=None))), "node 1", "conv and conv_checkpoint at 8", "temporal's position 6"),
    },
    "live-state-complete": {
        "a record missing": Case(step(running(slot(1, "request", "a", 4, 1, conv=fold(6)))), step(running(slot(1, "request", "a", 4, 2))), "request a", "checkpoint + ring covers 5 tokens", "the 6 executed tokens"),
        "window behind": Case(step(running(slot(1, "request", "a", 4, 2, conv=fold(5)))), step(running(slot(1, "request", "a", 6))), "request a", "conv covers 5 tokens", "the 6 executed tokens"),
    },
    "ring-owned": {
        "another's record": Case(step(running(slot(1, "request", "a", 4, 2, ring=(OTHER, Record("a", 5, 5))))), step(running(slot(1, "request", "a", 4, 2))), "slot 1", "ring[0] holds b's token 5", "a's token 5"),
        "another position": Case(step(running(slot(1, "request", "a", 4, 2, ring=(Record("a", 4, 4), Record("a", 4, 5))))), step(running(slot(1, "request", "a", 3, 3))), "slot 1", "ring[1] holds a's token 5", "a's token 6"),
        "no record": Case(step(running(slot(1, "request", "a", 5, 1, ring=(None,)))), step(running(slot(1, "request", "a", 5, 1))), "slot 1", "ring[0] holds nothing ever written", "a's token 6"),
    },
    "slot-has-one-owner": {
        "a place": Case(hosted(place(owners=())), hosted(place("tree", "1")), "host place 0", "owned by nobody", "one owner"),
        "two": Case(step(world(slot(1, owners=(Owner("free"), Owner("tree", "1"))))), step(world(slot(1))), "slot 1", "owned by free, tree 1", "one owner"),
        "none": Case(step(world(slot(1, owners=()))), step(world(slot(1, "request", "a"))), "slot 1", "owned by nobody", "one owner"),
    },
    "slots-conserved": {
        "a place twice": Case(hosted(place(), host_free=(0, 0)), hosted(place(), host_free=(0,)), "host place 0", "2 times on the free list", "each of places 0..0 at most once"),
        "lost": Case(step(world(free_slots=(1, 2))), step(world(free_slots=(1, 2, 3))), "pool", "2 slots accounted for", "3"),
        "twice": Case(step(world(free_slots=(1, 2, 3, 3))), step(world()), "slot 3", "2 times on the free list", "each of slots 1..3 at most once"),
        "the reserved one": Case(step(world(free_slots=(0, 1, 2, 3))), step(world()), "slot 0", "1 times on the free list", "each of slots 1..3 at most once"),
        "tokens": Case(step(world(kv_free=63)), step(world()), "key-value tokens", "0 in the tree + 0 in requests + 63 free", "64"),
    },
    "cow-source-folded": {
        "left the pool": Case(left(2), left(0), "slot 1", "left with 2 records pending", "write_pos 0"),
        "copied": Case(copied(2), copied(0), "slot 1", "copied with 2 records pending", "write_pos 0"),
        "to be copied": Case(step(world(slot(1, "tree", "1", 4, 2), request(slot=2, pending_cow=(1, 2)))), step(world(slot(1, "tree", "1", 6), request(slot=2, pending_cow=(1, 2)))), "slot 1", "copied with 2 records pending", "write_pos 0"),
    },
    "cow-source-pinned": {
        "an offload without a lock": Case(moving("offload", 1, 0, None), moving("offload", 1, 0, 1), "node 1", "offload from slot 1 to host place 0, locked: no node", "a lock on node 1"),
        "a load without a lock": Case(moving("load", 0, 2, None), moving("load", 0, 2, 1), "node 1", "load from host place 0 to slot 2, locked: no node", "a lock on node 1"),
        "an offload of another slot": Case(moving("offload", 2, 0, 1), moving("offload", 1, 0, 1), "node 1", "offload from slot 2 to host place 0, locked: node 1", "a lock on node 1"),
        "no lock": Case(pinned(None), pinned(1), "request a", "copy source slot 1, locked: no node", "a lock on the node whose state is slot 1"),
        "a node that is gone": Case(pinned(4), pinned(1), "request a", "copy source slot 1, locked: no node", "a lock on the node whose state is slot 1"),
    },
    "ring-stays-home": {
        "on the transfer list": Case(listed("transfer", "request a", "ring_d"), listed("transfer", "request a"), "request a", "ring_d listed", "temporal and conv_checkpoint only"),
        "in an offload": Case(listed("offload", "node 1", "ring_k", "write_pos"), listed("offload", "node 1"), "node 1", "ring_k, write_pos listed", "temporal and conv_checkpoint only"),
    },
    "cow-once": {
        "twice": Case(step(running(slot(1, "request", "a", 6), copies=2)), step(running(slot(1, "request", "a", 6), copies=1)), "request a", "2 copies run, and none is recorded", "one copy, then none recorded"),
        "left over": Case(step(running(slot(1, "request", "a", 6), copies=1, cached=4, pending_cow=(2, 1))), step(running(slot(1, "request", "a", 6), cached=6, pending_cow=(2, 1))), "request a", "1 copies run, and one more is recorded", "one copy, then none recorded"),
    },
    "cursor-in-range": {
        "full between steps": Case(step(running(slot(1, "request", "a", 2, 4))), step(running(slot(1, "request", "a", 3, 3))), "slot 1", "write_pos 4", "0..3"),
        "in the tree": Case(step(tree_of(slot(1, "tree", "1", 4, 2))), step(tree_of(slot(1, "tree", "1", 6))), "slot 1", "write_pos 2 in a tree-owned slot", "0"),
        "full without an open window": Case(step(running(slot(1, "request", "a", 2, 4))), step(running(slot(1, "request", "a", 2, 4), drafts=(4, 5))), "slot 1", "write_pos 4", "0..3"),
        "another on the device": Case(step(running(slot(1, "request", "a", 4, 2, device_write_pos=1))), step(running(slot(1, "request", "a", 4, 2))), "slot 1", "write_pos 1 on the device", "2"),
    },
    "cursor-reset-on-reuse": {"kept": Case(reused(2), reused(0), "slot 1", "write_pos 2", "0")},
    "cursor-advances-once": {
        "twice": Case(decode_step(1, 3), decode_step(1, 2), "slot 1", "cursor moved by 2", "1"),
        "rejected records stay": Case(window(3, 3, accepted(1)), window(3, 1, accepted(1)), "slot 1", "cursor moved by 0", "-2"),
        "a record too many in a window": Case(window(0, 3, drafted(2)), window(0, 2, drafted(2)), "slot 1", "cursor moved by 3", "2"),
        "one too many in a window opened and closed": Case(window(0, 2, drafted(3), accepted(1)), window(0, 1, drafted(3), accepted(1)), "slot 1", "cursor moved by 2", "1"),
        "a fold of too few": Case(decode_step(3, 0, StateFolded(1, 3, 6, False)), decode_step(3, 0, StateFolded(1, 4, 6, False)), "slot 1", "cursor moved by 0", "1"),
    },
    "tracked-means-folded": {
        "pending": Case(decode_step(1, 2, position=TRACK - 1), decode_step(1, 0, StateFolded(1, 2, 8, True), position=TRACK - 1), "request a", "temporal at 6, 2 pending", "temporal at 8, 0 pending"),
        "past it inside a window": Case(tracked_inside(9), tracked_inside(8), "request a", "temporal at 9, conv at 9", "both at 8"),
        "conv past it inside a window": Case(tracked_inside(8, conv=fold(9)), tracked_inside(8), "request a", "temporal at 8, conv at 9", "both at 8"),
        "one token later it may be": Case(decode_step(2, 3, position=TRACK - 1), decode_step(2, 3, position=TRACK), "request a", "temporal at 5, 3 pending", "temporal at 8, 0 pending"),
    },
    "kept-as-sampled": {
        "a wrong draft kept": Case(window(3, 3, accepted(3, (5, 9, 7))), window(3, 2, accepted(2, (5, 9, 7))), "request a", "token 7 is 6", "9"),
    },
    "locks-balanced": {
        "missing": Case(locked(0, 0), locked(1, 1), "node 1", "state lock 0, key-value lock 0", "1 and 1"),
        "left over": Case(step(tree_of(slot(1, "tree", "1", 6), state_lock=1, kv_lock=1)), step(tree_of(slot(1, "tree", "1", 6))), "node 1", "state lock 1, key-value lock 1", "0 and 0"),
    },
    "locked-survives": {
        "state": Case(evicted_under(None), evicted_under(1), "node 1", "has lost its state (slot 1)", "held by request a"),
    },
    "recency-follows-use": {
        "not used": Case(refreshed(), refreshed(Published("a", 1, 1, 6, "chunk")), "node 1", "recency 1 -> 9", "unchanged"),
        "asked only": Case(refreshed(Matched(None, 6, 6, 1)), refreshed(Matched("a", 6, 6, 1)), "node 1", "recency 1 -> 9", "unchanged"),
        "order of eviction": Case(evicts(2), evicts(1), "node 2", "evicted at recency 2", "node 1 at 1 goes first"),
    },
    "tree-well-formed": {
        "empty edge": Case(step(world(node(1, 6, None, kv_tokens=0))), step(world(node(1, 6, None))), "node 1", "edge of 0 tokens, 1 siblings starting alike", "a non-empty edge, its first page unlike its siblings'"),
        "LRU list": Case(step(replace(tree_of(slot(1, "tree", "1", 6)), lru=())), step(tree_of(slot(1, "tree", "1", 6))), "LRU list", "nodes none", "nodes 1"),
        "moved state": Case(step(world(slot(1, "tree", "2", 6), node(2, 3, 1)), before=tree_of(slot(1, "tree", "1", 6))), step(tree_of(slot(1, "tree", "1", 6))), "node 2", "slot 1 under a key of 3", "its key of 6"),
    },
    "written-before-published": {
        "a load in flight": Case(moving("load", 0, 2, 1, state=2), moving("load", 0, 2, 1), "node 1", "slot 2 is filled by a load that has not arrived", "a copy that has arrived"),
        "an offload in flight": Case(moving("offload", 1, 0, 1, held=place("tree", "1")), moving("offload", 1, 0, 1), "host place 0", "host place 0 is filled by an offload that has not arrived", "a copy that has arrived"),
        "executed only": Case(step(in_flight(5)), step(in_flight(6)), "node 1", "slot 1 is written by step 3, which has executed", "a committed step"),
        "scheduled only": Case(step(in_flight(None, 1)), step(in_flight(None, 2)), "node 1", "slot 1 is written by step 3, which is only scheduled", "a committed step"),
    },
    "checkpoint-immutable": {
        "temporal": Case(kept(temporal=fold(7)), kept(), "slot 1", "temporal 6 -> 7", "as published"),
        "window": Case(kept(conv=fold(7)), kept(), "slot 1", "conv 6 -> 7", "as published"),
        "written again": Case(kept(written=7), kept(Evicted("state", (1,), 0, (1,), ()), written=7), "slot 1", "written again, in step 7", "as published"),
    },
    "checkpoint-on-grid": {
        "off": Case(step(replace(tree_of(slot(1, "tree", "1", 6)), grid=4)), step(replace(tree_of(slot(1, "tree", "1", 8), key=8), grid=4)), "node 1", "a state at 6", "a multiple of 4"),
        "without a grid it may be": Case(step(replace(tree_of(slot(1, "tree", "1", 6)), grid=4)), step(tree_of(slot(1, "tree", "1", 6))), "node 1", "a state at 6", "a multiple of 4"),
    },
    "stamp-is-true": {
        "another length": Case(stamped(5), stamped(4), "slot 2", "temporal at 5, conv at 5", "the stamped 4"),
        "window ahead": Case(stamped(4, conv=fold(5)), stamped(4), "slot 2", "temporal at 4, conv at 5", "the stamped 4"),
    },
    "step-writes-its-rows": {
        "in a whole step": Case(step_beside(Forward(("a",)), 4), step_beside(Forward(("a",)), 3), "slot 2", "temporal 3 -> 4, conv 3 -> 4, conv_checkpoint 3 -> 4", "unchanged"),
        "in a draft": Case(step_beside(Draft((("a", 2, 1),)), 4), step_beside(Draft((("a", 2, 1),)), 3), "slot 2", "temporal 3 -> 4, conv 3 -> 4, conv_checkpoint 3 -> 4", "unchanged"),
        "in an execute": Case(step_beside(Execute(), 4), step_beside(Execute(), 3), "slot 2", "temporal 3 -> 4, conv 3 -> 4, conv_checkpoint 3 -> 4", "unchanged"),
    },
    "padding-inert": {
        "slot 0 written": Case(measured("untouched", 1, subject="slot 0", tolerance=0.0, detail="ring_d differs"), measured("untouched", 0, subject="slot 0", tolerance=0.0, detail=""), "slot 0", "ring_d differs", "none"),
    },
    "state-matches-oracle": {
        "off": Case(measured("state", 2e-3), measured("state", 9e-6), "node 1", "temporal off by 2.0e-03", "at most 1e-05"),
        "not a number": Case(measured("state", float("nan")), measured("state", 1e-5), "node 1", "temporal off by nan", "at most 1e-05"),
    },
    "warm-equals-cold": {
        "off": Case(measured("logits", 0.5, subject="request a"), measured("logits", 0.0, subject="request a"), "request a", "logits at position 6 off by 5.0e-01", "at most 1e-05"),
    },
    "budget-covers-pool": {
        "ring forgotten": Case(measured("budget", 0.25, subject="pool", detail="6 bytes predicted, 8 allocated"), measured("budget", 0.0, subject="pool"), "pool", "6 bytes predicted, 8 allocated", "the same number"),
    },
    "tensors-testify": {
        "another record": Case(measured("witness", 3, subject="slot 1", tolerance=0.0), measured("witness", 0, subject="slot 1", tolerance=0.0), "slot 1", "temporal: 3 columns differ", "none"),
    },
}  # fmt: skip
ROWS = [(invariant, name) for invariant, cases in CASES.items() for name in cases]
each_case = pytest.mark.parametrize(("invariant", "case"), ROWS, ids=str)


def violations(invariant: str, t: Transition) -> list[Violation]:
    return list(INVARIANTS[invariant]().violations(t))


def test_every_invariant_has_a_case() -> None:
    assert set(CASES) == set(INVARIANTS)
    assert len(ROWS) >= 47


@each_case
def test_the_smallest_violation_is_found_with_both_sides(invariant: str, case: str) -> None:
    made = CASES[invariant][case]
    (violation,) = violations(invariant, made.broken)
    assert (violation.invariant, violation.subject) == (invariant, made.subject)
    assert (violation.found, violation.expected) == (made.found, made.expected)
    assert violation.proof[-1] == f"Contradiction with {invariant}: {INVARIANTS[invariant].claim}."
    assert len(violation.proof) >= 2


@each_case
def test_its_clean_twin_is_clean(invariant: str, case: str) -> None:
    assert violations(invariant, CASES[invariant][case].clean) == []


@each_case
def test_it_is_found_too_when_everything_is_named_as_changed(invariant: str, case: str) -> None:
    broken = CASES[invariant][case].broken
    everything = Changed(
        frozenset(range(4)), frozenset(n.id for n in broken.after.nodes), frozenset({"a", "b"})
    )
    places = {name: (*getattr(broken.before, name),) for name in ("host_places", "peer_places")}
    named = replace(broken, changed=everything, before=replace(broken.before, **places))  # other objects
    assert violations(invariant, named) == violations(invariant, broken)


@pytest.mark.parametrize(
    ("capabilities", "absent"),
    [
        (Capabilities(replayssm=True, numeric=True, witness=True, speculation=True), set()),
        (
            Capabilities(replayssm=False, numeric=True, witness=True),
            {
                *("ring-owned", "cow-source-folded", "cursor-in-range", "cursor-reset-on-reuse"),
                *("cursor-advances-once", "tracked-means-folded", "kept-as-sampled", "ring-stays-home"),
            },
        ),
        (
            Capabilities(replayssm=True, numeric=False, witness=False, speculation=True),
            {
                "state-matches-oracle",
                "warm-equals-cold",
                "tensors-testify",
                "padding-inert",
                "budget-covers-pool",
            },
        ),
    ],
    ids=["all", "no ring", "no tensors"],
)
def test_an_invariant_applies_where_the_engine_can_express_it(
    capabilities: Capabilities, absent: set[str]
) -> None:
    assert {name for name, kind in INVARIANTS.items() if not kind().applies_to(capabilities)} == absent
