"""The multi-turn workload on which the tree is timed: what it finds and evicts is pinned, how fast is not.

SGLang 0.5.23 gives the same hit rate (0.732) and the same number of state evictions on this workload, with
its Python tree and with its Rust tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from replaylife.radix import Node, RadixTree

_CONVERSATIONS, _TURNS, _LIVE, _SLOTS = 2_000, 4, 64, 512
_SYSTEM_PROMPT = tuple(range(256))


@dataclass(slots=True)
class _Conversation:
    history: tuple[int, ...] = _SYSTEM_PROMPT
    turns_left: int = _TURNS


def _turns() -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Prompt, and prompt with reply, of one turn after the other; 64 conversations take turns at random."""
    rng = Random(0)
    waiting = _CONVERSATIONS - _LIVE
    live = [_Conversation() for _ in range(_LIVE)]
    while live:
        place = rng.randrange(len(live))
        one = live[place]
        prompt = one.history + _random_tokens(rng, 32)
        one.history = prompt + _random_tokens(rng, 32)
        one.turns_left -= 1
        if one.turns_left == 0 and waiting:
            waiting -= 1
            live[place] = _Conversation()
        elif one.turns_left == 0:
            live.pop(place)
        yield prompt, one.history


def _random_tokens(rng: Random, count: int) -> tuple[int, ...]:
    return tuple(rng.randrange(1_000, 150_000) for _ in range(count))


class _Server:
    """512 slots and a tree; a turn takes a slot to work in and one for the prompt, and donates both."""

    def __init__(self) -> None:
        self.tree = RadixTree()
        self.free = list(range(1, _SLOTS + 1))
        self.turns = self.prompt_tokens = self.hit_tokens = self.evictions = 0

    def play(self, prompt: tuple[int, ...], whole: tuple[int, ...]) -> None:
        match = self.tree.match(prompt)
        self.turns += 1
        self.prompt_tokens += len(prompt)
        self.hit_tokens += match.state_len
        source = self.tree.root
        if match.state_node is not None:
            source = match.state_node
            self.tree.refresh(source)
        self.tree.lock(source)
        working = self._alloc()
        checkpoint = self._donate(prompt, self._alloc())
        self.tree.unlock(source)
        self.tree.lock(checkpoint)
        self._donate(whole, working)
        self.tree.unlock(checkpoint)

    def _alloc(self) -> int:
        if not self.free:
            slots = self.tree.evict_states(1).slots
            self.evictions += len(slots)
            self.free.extend(slots)
        return self.free.pop()

    def _donate(self, key: tuple[int, ...], slot: int) -> Node:
        inserted = self.tree.insert(key, slot)
        if not inserted.took_state:
            self.free.append(slot)
        return inserted.node


def _played() -> _Server:
    server = _Server()
    for prompt, whole in _turns():
        server.play(prompt, whole)
    return server


def test_the_hit_rate_and_the_evictions_are_those_of_the_peers() -> None:
    server = _played()
    assert server.turns == 8_000
    assert server.prompt_tokens == 3_072_000
    assert server.hit_tokens == 2_249_984
    assert round(server.hit_tokens / server.prompt_tokens, 3) == 0.732
    assert server.evictions == 15_488


def test_every_slot_is_free_or_in_the_tree_at_the_end_and_nothing_is_locked() -> None:
    server = _played()
    owned = [node.state for node in server.tree.lru_states()]
    assert sorted(server.free + [slot for slot in owned if slot is not None]) == list(range(1, _SLOTS + 1))
    assert server.tree.num_kv_tokens == sum(len(node.edge) for node in server.tree.nodes())
    assert all(node.kv_lock == 0 and node.state_lock == 0 for node in server.tree.nodes())


def test_the_pinned_hits_tell_the_order_of_use_from_that_of_insertion() -> None:
    class FirstInFirstOut(RadixTree):
        def refresh(self, node: Node) -> None:
            pass

    server = _Server()
    server.tree = FirstInFirstOut()
    for prompt, whole in _turns():
        server.play(prompt, whole)
    assert server.hit_tokens != 2_249_984
    assert server.evictions == 15_488
