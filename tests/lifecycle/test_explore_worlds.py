"""Going back: an engine put into an earlier state is that state, down to the last attribute."""

from __future__ import annotations

import pytest

from replaylife.lifecycle.actions import Forward
from replaylife.lifecycle.explore.fingerprint import Exact, Reduced
from replaylife.lifecycle.explore.loader import shipped_scope, shipped_scopes
from replaylife.lifecycle.explore.memento import Memento
from replaylife.lifecycle.explore.parts import CONSTANT
from replaylife.lifecycle.explore.world import World
from replaylife.lifecycle.invariants import Checker
from replaylife.lifecycle.protocol import ActionRefused

from .explore_support import picture, scope, stroll

SCOPES = sorted(shipped_scopes())
each_scope = pytest.mark.parametrize("name", SCOPES)


@each_scope
def test_an_engine_put_back_is_what_it_was(name: str) -> None:
    world = World(shipped_scope(name))
    saved = [(world.save(), picture(world.engine))]
    saved += [(world.save(), picture(world.engine)) for _ in stroll(world, seed=1, num_actions=40)]
    assert len(saved) >= 15
    for place, was in [*saved[::-1], *saved[::3], *saved[::-2]]:
        world.load(place)
        assert picture(world.engine) == was


@each_scope
def test_an_action_is_undone_by_going_back(name: str) -> None:
    world = World(shipped_scope(name))
    tried = 0
    for _ in stroll(world, seed=2, num_actions=25):
        place, was = world.save(), picture(world.engine)
        for seed in range(3):
            for _ in stroll(world, seed, 2):
                tried += 1
            world.load(place)
            assert picture(world.engine) == was
    assert tried >= 40


def test_a_picture_sees_an_attribute_that_nobody_put_back() -> None:
    world = World(scope())
    was = picture(world.engine)
    world.engine.store.tree.root.kv_lock += 1
    assert picture(world.engine) != was


@each_scope
def test_the_same_actions_after_going_back_give_the_same_states(name: str) -> None:
    assert sum(_compared(name, seed) for seed in (3, 4)) >= 4


def _compared(name: str, seed: int) -> int:
    """Take a walk straight and with detours; return how many of its steps were compared."""
    straight, detours = World(shipped_scope(name)), World(shipped_scope(name))
    kept = list(stroll(straight, seed=seed, num_actions=8))
    place, compared = detours.save(), 0
    for step, expected in enumerate(kept, start=1):
        for _ in stroll(detours, seed=step, num_actions=3):
            pass
        detours.load(place)
        kinds = [kind for kind, option in detours.options() if option.action == expected.action]
        if not kinds:
            break  # the straight walk has begun again
        kind, compared = kinds[0], compared + 1
        assert detours.apply(kind, expected.action, step).after == expected.after
        place = detours.save()
    return compared


@each_scope
def test_what_is_taken_for_constant_does_not_change(name: str) -> None:
    world = World(shipped_scope(name))
    parts = [world.engine.store, world.engine.store.pool, world.engine.planner, world.engine.store.tree]
    before = [{n: repr(v) for n, v in vars(part).items() if n in CONSTANT} for part in parts]
    for _ in stroll(world, seed=4, num_actions=30):
        pass
    assert [{n: repr(v) for n, v in vars(part).items() if n in CONSTANT} for part in parts] == before
    assert sum(map(len, before)) >= 3


@each_scope
def test_walks_through_a_scope_break_nothing(name: str) -> None:
    world = World(shipped_scope(name))
    checker = Checker(world.engine.capabilities)
    assert [checker.check(t) for t in stroll(world, seed=5, num_actions=30) if checker.check(t)] == []


def test_an_engine_with_tensors_is_not_taken() -> None:
    from dataclasses import replace

    from replaylife.lifecycle.factory import EngineFactory

    config = replace(World(scope()).factory.config, backend="torch")
    with pytest.raises(TypeError, match="needs a ledger-only one"):
        Memento(EngineFactory(config).build())


def test_an_attribute_that_appears_on_the_way_is_not_lost_silently() -> None:
    world = World(scope())
    world.engine.store.surprise = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"StateStore.surprise appeared"):
        world.save()


def test_an_attribute_that_a_class_declares_is_no_surprise() -> None:
    windows = World(shipped_scope("no-buffer-windows-small"), ("kept-counts-follow-rows",))
    windows.engine.stepper._above = 2  # type: ignore[attr-defined]
    place = windows.save()
    windows.engine.stepper._above = 1  # type: ignore[attr-defined]
    windows.memento.broken()
    windows.load(place)
    assert windows.engine.stepper._above == 2  # type: ignore[attr-defined]


def test_a_refused_action_leaves_a_world_where_it_was() -> None:
    world = World(scope())
    place, was = world.save(), picture(world.engine)
    with pytest.raises(ActionRefused):
        world.apply("decode", Forward(("nobody",)), 1)
    assert picture(world.engine) == was
    assert world.save() == place


# -- fingerprints --------------------------------------------------------------------------------------


def _after(world: World, *words: str) -> World:
    """Take the first possible action that begins with each of ``words``."""
    for step, word in enumerate(words, start=1):
        options = [(k, o.action) for k, o in world.options() if f"{k} {o.action}".startswith(word)]
        assert options, f"{word}: not possible; {[(k, str(o.action)) for k, o in world.options()]}"
        world.apply(*options[0], step)
    return world


PREFILLED = ("admit admit a1", "prefill prefill a1 (3")
BOTH = (*PREFILLED, "admit admit a2", "prefill prefill a2")
DIFFERENT = {
    "a cursor": (PREFILLED, (*PREFILLED, "decode decode a1")),
    "a cursor that a free slot keeps": (
        ("admit admit a1", "prefill prefill a1 (3", "decode decode a1", "abort abort a1"),
        ("admit admit a1", "prefill prefill a1 (3", "abort abort a1"),
    ),
    "a state in the tree": (
        (*PREFILLED, "abort abort a1", "evict_states"),
        (*PREFILLED, "abort abort a1"),
    ),
    "a lock": (PREFILLED, (*PREFILLED, "abort abort a1")),
    "the order of use": (
        (*BOTH, "abort abort a1", "abort abort a2", "evict_states"),
        (*BOTH, "abort abort a1", "abort abort a2"),
    ),
    "who has decoded": ((*BOTH, "decode decode a1"), BOTH),
    "what is retracted": (
        (*PREFILLED, "decode decode a1", "retract retract a1"),
        (*PREFILLED, "retract retract a1"),
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_states_that_differ_are_told_apart(what: str) -> None:
    one, other = (_after(World(scope(), symmetry=True), *words) for words in DIFFERENT[what])
    assert Reduced(one)() != Reduced(other)()
    assert Exact(one)() != Exact(other)()


class _Everyone(World):
    """A world in which any conversation may come first."""

    def options(self):  # type: ignore[no-untyped-def]
        self.symmetry = False
        return super().options()


ALIKE = {
    "who came first": (
        BOTH,
        ("admit admit a2", "prefill prefill a2 (3", "admit admit a1", "prefill prefill a1"),
    ),
    "who decodes": (
        ("admit admit a1", "prefill prefill a1 (3", "decode decode a1"),
        ("admit admit a2", "prefill prefill a2 (3", "decode decode a2"),
    ),
    "which slot": (
        ("admit admit a1", "abort abort a1", "admit admit a2"),
        ("admit admit a2", "abort abort a2", "admit admit a1"),
    ),
}


@pytest.mark.parametrize("what", ALIKE)
def test_states_that_differ_in_names_only_are_one(what: str) -> None:
    one, other = (_after(_Everyone(scope()), *words) for words in ALIKE[what])
    assert Reduced(one)() == Reduced(other)()
    assert Exact(one)() != Exact(other)()


def test_conversations_of_different_templates_are_never_exchanged() -> None:
    turns = [{"prompt": [{"text": "system", "tokens": 2}, 1], "decode": 2}]
    apart = scope(conversations=[{"name": "a1", "turns": turns}, {"name": "a2", "turns": turns}])
    words = ALIKE["who decodes"]
    one, other = (_after(_Everyone(apart), *way) for way in words)
    assert Reduced(one)() != Reduced(other)()
