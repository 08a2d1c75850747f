"""Our radix tree beside SGLang's two tree cores on one multi-turn workload: one thread, one table.

Run: OMP_NUM_THREADS=1 python bench/tree.py [--repeats 3]

2,000 conversations of 4 turns, 64 of them live, share a system prompt of 256 tokens; a turn adds 32 tokens of
the user and 32 of the reply. 512 state slots. A turn matches its prompt, donates a checkpoint at the prompt's
end and its own slot at the reply's end; a state is evicted where no slot is free. Every tree must come to the
same hit rate and number of evictions, or the numbers compare nothing. Times are processor seconds of the one
thread, so that what else the machine does counts little.
"""

from __future__ import annotations

import argparse
import statistics
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol, TypeVar

from replaylife.radix import Node, RadixTree

CONVERSATIONS, TURNS, LIVE, SYSTEM, USER, REPLY, SLOTS, KV = 2_000, 4, 64, 256, 32, 32, 512, 262_144
T = TypeVar("T")


def turns(conversations: int = CONVERSATIONS, seed: int = 0) -> Iterator[tuple[array[int], array[int]]]:
    """Yield prompt and reply of one turn after the other; a live conversation is drawn for each."""
    rng = Random(seed)
    waiting = max(0, conversations - LIVE)
    live = [(array("q", range(SYSTEM)), TURNS)] * min(LIVE, conversations)
    while live:
        place = rng.randrange(len(live))
        history, left = live[place]
        prompt = history + array("q", (rng.randrange(1_000, 150_000) for _ in range(USER)))
        reply = array("q", (rng.randrange(1_000, 150_000) for _ in range(REPLY)))
        yield prompt, reply
        if left > 1:
            live[place] = (prompt + reply, left - 1)
        elif waiting:
            waiting -= 1
            live[place] = (array("q", range(SYSTEM)), TURNS)
        else:
            live.pop(place)


@dataclass
class Clock:
    """Seconds and calls of each operation, and what the workload came to."""

    seconds: dict[str, float] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    hits: int = 0
    tokens: int = 0
    evictions: int = 0
    turns: int = 0
    wall: float = 0.0

    def time(self, name: str, call: Callable[..., T], *args: Any) -> T:
        begun = time.thread_time()
        result = call(*args)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.thread_time() - begun
        self.calls[name] = self.calls.get(name, 0) + 1
        return result

    def rates(self) -> dict[str, float]:
        """Return operations per second, by name, the whole turns last."""
        return {name: self.calls[name] / s for name, s in self.seconds.items()} | {
            "turns": self.turns / self.wall
        }


class Contender(Protocol):
    name: str

    def turn(self, prompt: array[int], reply: array[int], clock: Clock) -> int:
        """Play one turn; return how many prompt tokens were taken from the tree."""


class Ours:
    """The reference engine's tree: slots are numbers, key-value tokens are counted."""

    name = "replaylife"

    def __init__(self) -> None:
        self._tree = RadixTree()
        self._free = list(range(1, SLOTS + 1))

    def turn(self, prompt: array[int], reply: array[int], clock: Clock) -> int:
        key = tuple(prompt)
        match = clock.time("match", self._match, key)
        source = self._tree.root if match.state_node is None else match.state_node
        self._tree.lock(source)
        working = self._slot(clock)
        checkpoint = self._donate(key, self._slot(clock), clock)
        self._tree.unlock(source)
        self._tree.lock(checkpoint)
        self._donate(key + tuple(reply), working, clock)
        self._tree.unlock(checkpoint)
        return match.state_len

    def _match(self, key: tuple[int, ...]) -> Any:
        """A match that is a use, as the peers' is."""
        match = self._tree.match(key)
        if match.state_node is not None:
            self._tree.refresh(match.state_node)
        return match

    def _slot(self, clock: Clock) -> int:
        if not self._free:
            slots = clock.time("evict", self._tree.evict_states, 1).slots
            clock.evictions += len(slots)
            self._free.extend(slots)
        return self._free.pop()

    def _donate(self, key: tuple[int, ...], slot: int, clock: Clock) -> Node:
        inserted = clock.time("insert", self._tree.insert, key, slot)
        if not inserted.took_state:
            self._free.append(slot)
        return inserted.node


class Sglang:
    """SGLang's ``UnifiedRadixCache`` over its own pools: slots and key-value places are tensors."""

    def __init__(self, core: str) -> None:
        from replaylife.engines.sglang.world import World
        from replaylife.lifecycle.config import CacheConfig, EngineConfig

        config = EngineConfig(cache=CacheConfig(slots=SLOTS + 1, kv_tokens=KV, replayssm=False))
        world = World(config, core)
        self.name = f"SGLang {world.core}"
        self._theirs, self._cache, self._kv = world.theirs, world.cache, world.kv
        self._slots = world.pool.mamba_allocator

    def turn(self, prompt: array[int], reply: array[int], clock: Clock) -> int:
        import torch

        theirs, cache = self._theirs, self._cache
        match = clock.time("match", cache.match_prefix, theirs.MatchPrefixParams(key=theirs.RadixKey(prompt)))
        cached = match.device_prefix_len
        lock = cache.lock(match.last_device_node)
        working = self._slot(clock)
        head = (
            cache.path_device_indices(match.last_device_node) if cached else torch.empty(0, dtype=torch.int64)
        )
        places = torch.cat([head, self._places(len(prompt) - cached, clock)])
        node = self._donate(prompt, places, cached, self._slot(clock), clock)
        cache.unlock(lock)
        lock = cache.lock(node)
        places = torch.cat([cache.path_device_indices(node), self._places(len(reply), clock)])
        self._donate(prompt + reply, places, len(prompt), working, clock)
        cache.unlock(lock)
        return int(cached)

    def _slot(self, clock: Clock) -> Any:
        slot = self._slots.alloc(1)
        if slot is None:
            params = self._theirs.EvictParams(num_tokens=0, mamba_num=1)
            clock.evictions += clock.time("evict", self._cache.evict, params).mamba_num_evicted
            slot = self._slots.alloc(1)
        return slot

    def _places(self, count: int, clock: Clock) -> Any:
        places = self._kv.alloc(count)
        if places is None:
            clock.time("evict tokens", self._cache.evict, self._theirs.EvictParams(num_tokens=count))
            places = self._kv.alloc(count)
        return places

    def _donate(self, key: array[int], places: Any, known: int, slot: Any, clock: Clock) -> Any:
        params = self._theirs.InsertParams(
            key=self._theirs.RadixKey(key), value=places, prev_prefix_len=known, mamba_value=slot
        )
        inserted = clock.time("insert", self._cache.insert, params)
        if inserted.mamba_exist:
            self._slots.free(slot)
        return inserted.last_device_node


def play(contender: Contender, conversations: int) -> Clock:
    """Play the workload once; only the calls themselves count as operations, all of it as turns."""
    clock = Clock()
    workload = list(turns(conversations))
    begun = time.thread_time()
    for prompt, reply in workload:
        clock.hits += contender.turn(prompt, reply, clock)
        clock.tokens += len(prompt)
        clock.turns += 1
    clock.wall = time.thread_time() - begun
    return clock


def contenders() -> dict[str, Callable[[], Contender]]:
    """Return how to make each: ours, and SGLang's two cores where it is installed."""
    from replaylife.engines import EngineUnavailable
    from replaylife.engines.sglang.classes import load

    made: dict[str, Callable[[], Contender]] = {"replaylife": Ours}
    try:
        load()
    except EngineUnavailable as reason:
        print(f"without peers: {reason}")
        return made
    return made | {"SGLang python": lambda: Sglang("python"), "SGLang rust": lambda: Sglang("rust")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="the median of so many runs")
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS)
    args = parser.parse_args()
    sizes = f"{args.conversations:,} conversations x {TURNS} turns, {SLOTS} slots"
    print(f"{sizes}; median of {args.repeats}, ops/s")
    columns = ("match", "insert", "evict", "turns")
    print(f"{'tree':16}" + "".join(f"{name:>12}" for name in columns) + f"{'hit rate':>10}{'evictions':>11}")
    outcomes = set()
    for name, make in contenders().items():
        clocks = [play(make(), args.conversations) for _ in range(args.repeats)]
        rates = {c: statistics.median(clock.rates().get(c, 0.0) for clock in clocks) for c in columns}
        last = clocks[-1]
        outcomes.add((last.hits, last.evictions))
        shown = "".join(f"{rates[column]:12,.0f}" for column in columns)
        print(f"{name:16}{shown}{last.hits / last.tokens:10.3f}{last.evictions:11,}")
    assert len(outcomes) == 1, f"the trees did not do the same: {outcomes}"


if __name__ == "__main__":
    main()
