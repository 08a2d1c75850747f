"""The tree beside its naive twin, and trees with one method wrong beside it too."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from replaylife.radix import Node, RadixTree, Tokens

from .faulty_trees import FAULTY
from .naive_twin import Twin


def _view(node: Node) -> tuple[Any, ...]:
    """All that a caller may have cached of a node."""
    assert node.parent is not None
    children = tuple(child.id for child in node.children.values())
    locks = (node.state_lock, node.kv_lock)
    states = (node.state, node.host)
    return node.id, node.key(), node.parent.id, node.edge, states, locks, node.recency, children


def _dump(tree: RadixTree) -> tuple[Any, ...]:
    order = [node.id for node in tree.lru_states()]
    return (
        [_view(node) for node in tree.nodes()],
        order,
        tree.num_kv_tokens,
        tree.num_states,
        tree.root.kv_lock,
    )


def _ranks(recencies: list[int]) -> list[int]:
    order = sorted(set(recencies))
    return [order.index(recency) for recency in recencies]


_words = st.lists(st.integers(0, 2), max_size=5)


class _Machine(RuleBasedStateMachine):
    """Does the same to tree and twin, and compares everything after every step."""

    tree_class: ClassVar[type[RadixTree]] = RadixTree
    ran: ClassVar[Counter[str]]

    @initialize(page=st.sampled_from([1, 2, 4]))
    def begin(self, page: int) -> None:
        self.page, self.tree, self.twin = page, self.tree_class(page), Twin(page)
        self.alphabet = (
            (0,) * page,
            (*(0,) * (page - 1), 1),
            (1,) * page,
        )  # the first two share part of a page
        self.next_slot = 1
        self.holds: list[tuple[Tokens, Node]] = []
        self.originals: list[tuple[RadixTree, tuple[Any, ...]]] = []
        self.views: dict[int, tuple[Any, ...]] = {}
        self.ran[f"page {page}"] += 1

    def key_of(self, word: list[int]) -> Tokens:
        return tuple(token for letter in word for token in self.alphabet[letter])

    @rule(batch=st.lists(st.tuples(_words.filter(bool), st.integers(0, 3)), min_size=1, max_size=4))
    def insert_some(self, batch: list[tuple[list[int], int]]) -> None:
        for word, offered in batch:
            self.insert(word, offered)

    def insert(self, word: list[int], offered: int) -> None:
        key, slot = self.key_of(word), self.next_slot if offered else None
        self.next_slot += 1
        size = len(self.twin.records)
        met = key in self.twin.records and self.twin.records[key].state is not None
        node, known, took = self.tree.insert(key, slot)
        assert (known, took) == self.twin.insert(key, slot)
        assert node.key() == key
        split = len(self.twin.records) - size > (known < len(key))
        self.ran["insert"] += 1
        self.ran["split"] += split
        self.ran["state met"] += met

    @rule(word=_words, tail=st.integers(0, 3), cut=st.integers(0, 8))
    def match(self, word: list[int], tail: int, cut: int) -> None:
        key = self.key_of(word) + (1,) * tail
        limit = max(0, len(key) - cut)
        kv_len, kv_node, state_len, state_node, host_node = self.tree.match(key, limit if cut else None)
        on_host = self.twin.host_key(key, limit, state_len)
        assert (None if host_node is None else host_node.key()) == on_host
        assert kv_len == self.twin.kv_len(key, limit)
        assert kv_node.key() == self.twin.kv_owner(key[:kv_len])
        expected = self.twin.state_key(key, limit)
        assert (None if state_node is None else state_node.key()) == expected
        assert state_len == len(expected or ())
        if state_node is not None and cut % 2:
            self.tree.refresh(state_node)
            self.twin.newest(state_node.key())
        self.ran["hit"] += state_node is not None

    @precondition(lambda self: self.twin.records)
    @rule(which=st.integers(0, 999))
    def lock(self, which: int) -> None:
        nodes = list(self.tree.nodes())
        node = nodes[which % len(nodes)]
        self.tree.lock(node)
        self.twin.records[node.key()].holds += 1
        self.holds.append((node.key(), node))
        self.ran["lock"] += 1

    @precondition(lambda self: self.holds)
    @rule(which=st.integers(0, 999))
    def unlock(self, which: int) -> None:
        key, node = self.holds.pop(which % len(self.holds))
        self.tree.unlock(node)
        self.twin.records[key].holds -= 1

    @rule(count=st.integers(0, 3))
    def evict_states(self, count: int) -> None:
        keys = {node.id: node.key() for node in self.tree.nodes()}
        before = self.twin.kv_tokens()
        slots, kv_tokens, tombstoned, removed, _ = self.tree.evict_states(count)
        found = (list(slots), [keys[i] for i in tombstoned], [keys[i] for i in removed])
        assert found == self.twin.evict_states(count)
        assert kv_tokens == before - self.twin.kv_tokens()
        self.ran["tombstone"] += len(tombstoned)
        self.ran["removal"] += len(removed)

    @rule(tokens=st.integers(0, 6))
    def evict_kv(self, tokens: int) -> None:
        keys = {node.id: node.key() for node in self.tree.nodes()}
        before = self.twin.kv_tokens()
        slots, kv_tokens, tombstoned, removed, hosts = self.tree.evict_kv(tokens)
        found = (list(slots), [keys[i] for i in tombstoned], [keys[i] for i in removed], list(hosts))
        assert found == self.twin.evict_kv(tokens)
        assert kv_tokens == before - self.twin.kv_tokens()
        self.ran["kv eviction"] += len(removed)

    @precondition(
        lambda self: any(r.state is not None and r.host is None for r in self.twin.records.values())
    )
    @rule(which=st.integers(0, 999))
    def attach_host(self, which: int) -> None:
        nodes = [node for node in self.tree.nodes() if node.state is not None and node.host is None]
        node, place = nodes[which % len(nodes)], self.next_slot
        self.next_slot += 1
        self.tree.attach_host(node, place)
        self.twin.records[node.key()].host = place
        self.ran["host copy"] += 1

    @rule(count=st.integers(0, 2))
    def evict_hosts(self, count: int) -> None:
        keys = {node.id: node.key() for node in self.tree.nodes()}
        slots, _, tombstoned, removed, hosts = self.tree.evict_hosts(count)
        assert (slots, tombstoned) == ((), ())
        assert (list(hosts), [keys[i] for i in removed]) == self.twin.evict_hosts(count)
        self.ran["host eviction"] += len(hosts)

    @rule(word=_words.filter(bool), often=st.integers(0, 2))
    def release_branch(self, word: list[int], often: int) -> None:
        if often == 1:
            return
        keys = {node.id: node.key() for node in self.tree.nodes()}
        slots, _, _, removed, hosts = self.tree.release_branch(self.key_of(word))
        found = (list(slots), list(hosts), [keys[i] for i in removed])
        assert found == self.twin.release_branch(self.key_of(word))
        self.ran["release"] += len(removed)

    @rule(go=st.integers(0, 4))
    def clone(self, go: int) -> None:
        if go:  # a rule without arguments would be drawn far too often
            return
        self.originals = [*self.originals[-2:], (self.tree, _dump(self.tree))]
        self.tree = self.tree.clone()
        assert _dump(self.tree) == self.originals[-1][1]
        self.holds = [(key, self._carried_over(node)) for key, node in self.holds]
        self.ran["clone"] += 1

    def _carried_over(self, node: Node) -> Node:
        found = self.tree.find(node.id)
        assert found is not None
        assert found is not node
        return found

    @invariant()
    def tree_and_twin_hold_the_same(self) -> None:
        nodes, twin = list(self.tree.nodes()), self.twin
        assert {node.key() for node in nodes} == set(twin.records)
        for node in nodes:
            record = twin.records[node.key()]
            assert node.parent is not None
            assert node.parent.key() == twin.parent(node.key())
            assert (node.state, node.state_lock) == (record.state, record.holds)
            assert node.host == record.host
            assert node.kv_lock == twin.kv_lock(node.key())
            assert node.key_len == len(node.key())
        records = [twin.records[node.key()] for node in nodes]
        assert _ranks([node.recency for node in nodes]) == _ranks([record.recency for record in records])
        carriers = {node.key(): node.host for node in self.tree.host_nodes()}
        assert carriers == {k: r.host for k, r in twin.records.items() if r.host is not None}
        for key in carriers:
            met = self.tree.match(key)
            beyond = twin.host_key(key, len(key), met.state_len)
            assert (None if met.host_node is None else met.host_node.key()) == beyond
            self.ran["host hit"] += beyond is not None
        by_use = sorted((r for r in records if r.state is not None), key=lambda r: r.recency)
        assert [node.state for node in self.tree.lru_states()] == [r.state for r in by_use]
        assert (self.tree.num_kv_tokens, self.tree.num_states) == (twin.kv_tokens(), len(by_use))

    @invariant()
    def tree_is_well_formed(self) -> None:
        for node in (self.tree.root, *self.tree.nodes()):
            for page, child in node.children.items():
                assert child.parent is node
                assert child.edge
                assert child.edge[: self.page] == page
                assert len(child.edge) % self.page == 0

    @invariant()
    def every_change_was_announced(self) -> None:
        views = {node.id: _view(node) for node in self.tree.nodes()}
        changed = {i for i in views.keys() | self.views.keys() if views.get(i) != self.views.get(i)}
        assert changed <= self.tree.take_touched()
        self.views = views

    @invariant()
    def originals_of_clones_stay_as_they_were(self) -> None:
        assert all(_dump(tree) == before for tree, before in self.originals)


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=40,
        derandomize=True,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        phases=[Phase.generate],
    )


def _machine_for(tree: type[RadixTree]) -> type[_Machine]:
    return type("_MachineFor" + tree.__name__, (_Machine,), {"tree_class": tree, "ran": Counter()})


def test_the_tree_does_what_its_naive_twin_does() -> None:
    machine = _machine_for(RadixTree)
    run_machine(machine, settings=_settings(400))
    for page in (1, 2, 4):
        assert machine.ran[f"page {page}"] >= 50, machine.ran
    for event in (
        "insert",
        "split",
        "state met",
        "hit",
        "lock",
        "tombstone",
        "removal",
        "kv eviction",
        "clone",
        "host copy",
        "host hit",
    ):
        assert machine.ran[event] >= 60, machine.ran
    for rarer in ("host eviction", "release"):
        assert machine.ran[rarer] >= 20, machine.ran


@pytest.mark.parametrize("tree", FAULTY, ids=lambda tree: tree.__name__)
def test_a_tree_with_one_method_wrong_is_told_from_its_twin(tree: type[RadixTree]) -> None:
    with pytest.raises(AssertionError):
        run_machine(_machine_for(tree), settings=_settings(600))
