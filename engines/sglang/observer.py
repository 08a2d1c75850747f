"""Makes plain snapshots, and finds the events between two looks at SGLang's tree and free list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from replaylife.engines.sglang.kernels import Kernels
from replaylife.engines.sglang.life import Life
from replaylife.engines.sglang.look import Recency, Tree, TreeReader
from replaylife.engines.sglang.world import World
from replaylife.lifecycle.events import Allocated, Event, Evicted, Freed
from replaylife.lifecycle.snapshot import NodeView, Owner, SlotView, Snapshot


class Observer:
    """Looks at one world and its requests. ``tree`` is what the last look at the tree has shown."""

    def __init__(self, world: World, kernels: Kernels, reader: TreeReader, lives: Mapping[str, Life]) -> None:
        self._world, self._kernels, self._reader, self._lives = world, kernels, reader, lives
        self._recency = Recency()
        self._published: dict[int, int] = {}
        self._slots: tuple[SlotView, ...] = ()
        self.step = 0
        self.tree = reader.read()

    # -- events --------------------------------------------------------------------------------------

    def evicting(self, purpose: str, call: Callable[[], object], events: list[Event]) -> None:
        """Run ``call`` and append what it has evicted from the tree, if anything."""
        before = self._reader.read()
        call()
        self.tree = self._reader.read()
        evicted = _evicted(purpose, before, self.tree)
        if evicted is not None:
            events.append(evicted)

    def used(self, node: int) -> None:
        """Take note that the state of a node was used."""
        self._reader.used(node)

    def free_slots(self) -> tuple[int, ...]:
        """Return SGLang's free list."""
        return tuple(int(slot) for slot in self._world.pool.mamba_allocator.free_slots.tolist())

    def moved(self, before: Snapshot, events: Iterable[Event]) -> list[Event]:
        """Return an event for each slot that has left the free list, and for each that has returned."""
        free, known = set(self.free_slots()), set(before.free_slots)
        evicted = {slot for event in events if isinstance(event, Evicted) for slot in event.slots}
        taken: list[Event] = [Allocated(slot, self._holder(slot)) for slot in sorted(known - free)]
        returned = sorted(free - known - evicted)
        return taken + [Freed(slot, "given up") for slot in returned]

    def _holder(self, slot: int) -> str:
        holders = [life.id for life in self._lives.values() if slot in (life.slot, *life.track_slots)]
        return holders[0] if holders else "the tree"

    # -- snapshots -----------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return everything as it stands."""
        self.tree = self._reader.read()
        requests = tuple(life.view(self._reader.id_of) for life in self._lives.values())
        nodes = self._nodes()
        free = self.free_slots()
        holders: dict[int, list[Owner]] = {slot: [] for slot in range(self._world.cache_config.slots)}
        holders[0].append(Owner("reserved"))
        for slot in free:
            holders.setdefault(slot, []).append(Owner("free"))
        for node in nodes:
            if node.state is not None:
                holders.setdefault(node.state, []).append(Owner("tree", str(node.id)))
        for request in requests:
            for slot in request.slots:
                holders.setdefault(slot, []).append(Owner("request", request.id))
        self._slots = tuple(
            self._slot(index, tuple(holders[index])) for index in range(self._world.cache_config.slots)
        )
        cache = self._world.cache_config
        return Snapshot(
            slots=self._slots,
            nodes=nodes,
            requests=requests,
            free_slots=free,
            kv_capacity=cache.kv_tokens,
            kv_free=int(self._world.kv.available_size()),
            ring_length=cache.ring_length if cache.replayssm else None,
            track_point=self._world.track_interval,
            grid=cache.grid if self._world.extra_buffer else None,
            lru=self.tree.lru,
            in_flight=(),
        )

    def _nodes(self) -> tuple[NodeView, ...]:
        recency = self._recency.update(self.tree)
        held = {node.id: node.state for node in self.tree.nodes if node.state is not None}
        self._published = {node: self._published.get(node, self.step) for node in held}
        page = self._world.cache_config.page
        return tuple(
            NodeView(
                id=node.id,
                parent=node.parent,
                key=node.key,
                kv_tokens=len(node.edge),
                state=node.state,
                state_lock=node.state_lock,
                kv_lock=node.kv_lock,
                recency=recency[node.id],
                published=self._published.get(node.id, 0),
                first_page=node.edge[:page],
            )
            for node in self.tree.nodes
        )

    def _slot(self, index: int, owners: tuple[Owner, ...]) -> SlotView:
        cursors = self._world.mamba.replayssm_write_pos
        cursor = None if cursors is None else int(cursors[index])
        temporal = self._kernels.temporal(index)
        was = self._slots[index] if self._slots else None
        return SlotView(
            index=index,
            owners=owners,
            temporal=temporal,
            conv=self._kernels.conv(index),
            conv_checkpoint=None,
            ring=() if cursor is None else self._kernels.ring(index, cursor),
            write_pos=cursor,
            device_write_pos=cursor,
            written=was.written if was is not None and was.temporal == temporal else self.step,
        )


def _evicted(purpose: str, before: Tree, after: Tree) -> Evicted | None:
    """Return what is in ``before`` and no longer in ``after``, ``None`` if nothing has gone."""
    still = after.by_id()
    lost = [
        n for n in before.nodes if n.state is not None and (n.id not in still or still[n.id].state is None)
    ]
    removed = [node for node in before.nodes if node.id not in still]
    if not lost and not removed:
        return None
    return Evicted(
        purpose=purpose,
        slots=tuple(node.state for node in lost if node.state is not None),
        kv_tokens=sum(len(node.edge) for node in removed),
        tombstoned=tuple(node.id for node in lost if node.id in still),
        removed=tuple(node.id for node in removed),
    )
