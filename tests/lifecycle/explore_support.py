"""What the explorer's tests share: random walks through worlds, and everything that can change in one."""

from __future__ import annotations

import random
from collections import OrderedDict, deque
from collections.abc import Iterator
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from replaylife.lifecycle.explore.schema import Scope
from replaylife.lifecycle.explore.world import World
from replaylife.lifecycle.protocol import ActionRefused
from replaylife.lifecycle.snapshot import Snapshot, Transition

ATOMS = (int, str, float, bool, bytes, type(None), type, Enum, FunctionType, BuiltinFunctionType, Snapshot)
PASSING = {"events", "_changed", "touched", "touched_requests", "_changed_slots"}  # emptied by every action


def picture(thing: Any, seen: dict[int, int] | None = None) -> Any:
    """Everything reachable from an object, by value and by who is the same object as whom.

    Knows nothing of engines: attributes that nobody thought of are in it, too.
    """
    seen = {} if seen is None else seen
    if isinstance(thing, ATOMS):
        return thing
    if id(thing) in seen and not isinstance(thing, tuple | frozenset):
        return ("again", seen[id(thing)])
    if isinstance(thing, tuple | frozenset):
        return (type(thing).__name__, *[picture(each, seen) for each in thing])
    seen[id(thing)] = len(seen)
    if isinstance(thing, MethodType):
        return ("method", thing.__name__)
    if isinstance(thing, dict):
        pairs = [(picture(k, seen), picture(v, seen)) for k, v in thing.items() if not _empty(v)]
        ordered = pairs if isinstance(thing, OrderedDict) else sorted(pairs, key=lambda pair: repr(pair[0]))
        return (type(thing).__name__, *ordered)
    if isinstance(thing, list | deque):
        return (type(thing).__name__, *[picture(each, seen) for each in thing])
    if isinstance(thing, set):
        return ("set", *sorted(map(repr, thing)))
    names = [*getattr(thing, "__dict__", ())]
    names += [
        name
        for kind in type(thing).__mro__
        for name in getattr(kind, "__slots__", ())
        if hasattr(thing, name)
    ]
    kept = sorted(set(names) - PASSING)
    return (type(thing).__name__, *[(name, picture(getattr(thing, name), seen)) for name in kept])


def _empty(value: Any) -> bool:
    """Sets that a table keeps for slots that nobody holds."""
    return isinstance(value, set) and not value


def stroll(world: World, seed: int, num_actions: int) -> Iterator[Transition]:
    """Take random possible actions; where none is possible, begin again."""
    chosen, start = random.Random(seed), world.save()
    for step in range(1, num_actions + 1):
        options = list(world.options())
        chosen.shuffle(options)
        for kind, option in options:
            try:
                transition = world.apply(kind, option.action, step)
            except ActionRefused:
                continue
            yield transition
            break
        else:
            world.load(start)


def scope(**changes: Any) -> Scope:
    """A world of two alike conversations with every action, changed as a test needs."""
    said: dict[str, Any] = {
        "title": "test",
        "cache": {"slots": 5, "kv_tokens": 40, "ring_length": 2, "track_interval": 5},
        "conversations": [
            {
                "name": "a",
                "count": 2,
                "turns": [{"prompt": [{"text": "system", "tokens": 2}, 1], "decode": 2}, {"prompt": 1}],
            }
        ],
        "chunks": [2],
        "actions": [
            *("admit", "retry", "resume", "prefill", "decode", "batch", "checkpoint", "fold", "finish"),
            *("retract", "abort", "evict_states", "evict_kv"),
        ],
    }
    return Scope.model_validate(said | changes)
