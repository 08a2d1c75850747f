"""Trees with one method wrong each: what a comparison with the naive twin has to catch."""

from __future__ import annotations

from replaylife.radix import Node, RadixTree


class StateGoesUp(RadixTree):
    def _split_state(self, upper: Node, lower: Node) -> None:
        if lower.state is not None:
            self._attach_state(upper, self._detach_state(lower))


class UpperHalfUnpinned(RadixTree):
    def _split_locks(self, upper: Node, lower: Node) -> None:
        pass


class RefreshForgotten(RadixTree):
    def refresh(self, node: Node) -> None:
        pass


class PathRefreshed(RadixTree):
    def refresh(self, node: Node) -> None:
        super().refresh(node)
        if node.parent is not None:
            self.refresh(node.parent)


class StateLockIgnored(RadixTree):
    def _may_evict_state(self, node: Node) -> bool:
        return node.state is not None


class KvLockIgnored(RadixTree):
    def _may_evict_kv(self, leaf: Node) -> bool:
        return not leaf.children


class PathStaysPinned(RadixTree):
    def _unpin_kv(self, node: Node) -> None:
        node.kv_lock -= 1
        self._touch(node)


class DeepestNodeTaken(RadixTree):
    def _deepest_state(self, node: Node) -> Node | None:
        return node


class BareParentsStay(RadixTree):
    def _remove_branch(self, leaf: Node) -> list[Node]:
        self._remove_leaf(leaf)
        return [leaf]


class ChangeNotAnnounced(RadixTree):
    def _pin_state(self, node: Node) -> None:
        node.state_lock += 1

    def _touch(self, node: Node) -> None:
        if node.state is None:
            super()._touch(node)


FAULTY: list[type[RadixTree]] = [
    StateGoesUp,
    UpperHalfUnpinned,
    RefreshForgotten,
    PathRefreshed,
    StateLockIgnored,
    KvLockIgnored,
    PathStaysPinned,
    DeepestNodeTaken,
    BareParentsStay,
    ChangeNotAnnounced,
]
