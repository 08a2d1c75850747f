"""A cache of prefixes without a tree: a dictionary of keys, the rest worked out by looking at all of them."""

from __future__ import annotations

from dataclasses import dataclass

from replaylife.radix import Tokens


@dataclass(slots=True)
class Record:
    state: int | None
    recency: int
    holds: int = 0
    host: int | None = None


class Twin:
    """Keys and what stands at each; prefixes, locks above and KV are computed from all keys, every time."""

    def __init__(self, page: int) -> None:
        self.page = page
        self.records: dict[Tokens, Record] = {}
        self.clock = 0

    def below(self, key: Tokens) -> list[Tokens]:
        return [k for k in self.records if len(k) > len(key) and k[: len(key)] == key]

    def parent(self, key: Tokens) -> Tokens:
        return max((k for k in self.records if len(k) < len(key) and key[: len(k)] == k), key=len, default=())

    def kv_lock(self, key: Tokens) -> int:
        return sum(self.records[k].holds for k in [key, *self.below(key)])

    def pages(self) -> set[Tokens]:
        return {k[:n] for k in self.records for n in range(self.page, len(k) + 1, self.page)}

    def kv_tokens(self) -> int:
        return len(self.pages()) * self.page

    def kv_len(self, key: Tokens, limit: int) -> int:
        pages = self.pages()
        hits = [n for n in range(0, min(len(key), limit) + 1, self.page) if n == 0 or key[:n] in pages]
        return max(hits)

    def kv_owner(self, prefix: Tokens) -> Tokens:
        return min((k for k in self.records if k[: len(prefix)] == prefix), key=len) if prefix else ()

    def state_key(self, key: Tokens, limit: int) -> Tokens | None:
        carriers = [k for k, r in self.records.items() if r.state is not None and len(k) <= limit]
        return max((k for k in carriers if key[: len(k)] == k), key=len, default=None)

    def newest(self, key: Tokens) -> None:
        self.clock += 1
        self.records[key].recency = self.clock

    def insert(self, key: Tokens, state: int | None) -> tuple[int, bool]:
        known = self.kv_len(key, len(key))
        if known and key[:known] not in self.records:
            self.records[key[:known]] = Record(None, self.records[self.kv_owner(key[:known])].recency)
        if key not in self.records:
            self.records[key] = Record(None, 0)
            self.newest(key)
        record = self.records[key]
        took = record.state is None and state is not None
        if took:
            record.state = state
        if record.state is not None:
            self.newest(key)
        return known, took

    def remove(self, key: Tokens) -> list[Tokens]:
        removed = [key]
        del self.records[key]
        for n in range(len(key) - self.page, 0, -self.page):
            record = self.records.get(key[:n])
            if record is None:
                continue
            kept = record.state is not None or record.host is not None
            if kept or self.kv_lock(key[:n]) or self.below(key[:n]):
                break
            del self.records[key[:n]]
            removed.append(key[:n])
        return removed

    def evict_states(self, count: int) -> tuple[list[int], list[Tokens], list[Tokens]]:
        slots, tombstoned, removed = [], [], []
        for _ in range(count):
            may_go = [k for k, r in self.records.items() if r.state is not None and r.holds == 0]
            if not may_go:
                break
            key = min(may_go, key=lambda k: self.records[k].recency)
            slots.append(self.give_up(key))
            if self.below(key) or self.kv_lock(key) or self.records[key].host is not None:
                tombstoned.append(key)
            else:
                removed += self.remove(key)
        return slots, tombstoned, removed

    def evict_kv(self, tokens: int) -> tuple[list[int], list[Tokens], list[Tokens], list[int]]:
        slots, removed, hosts = [], [], []
        before = self.kv_tokens()
        while before - self.kv_tokens() < tokens:
            may_go = [k for k in self.records if not self.below(k) and self.kv_lock(k) == 0]
            if not may_go:
                break
            key = min(may_go, key=lambda k: self.records[k].recency)
            if self.records[key].state is not None:
                slots.append(self.give_up(key))
            hosts += self.take_host(key)
            removed += self.remove(key)
        return slots, [], removed, hosts

    def take_host(self, key: Tokens) -> list[int]:
        host, self.records[key].host = self.records[key].host, None
        return [] if host is None else [host]

    def host_key(self, key: Tokens, limit: int, beyond: int) -> Tokens | None:
        carriers = [k for k, r in self.records.items() if r.host is not None and beyond < len(k) <= limit]
        return max((k for k in carriers if key[: len(k)] == k), key=len, default=None)

    def evict_hosts(self, count: int) -> tuple[list[int], list[Tokens]]:
        hosts, removed = [], []
        may_go = [k for k, r in self.records.items() if r.host is not None and r.holds == 0]
        for key in sorted(may_go, key=lambda k: self.records[k].recency)[:count]:
            hosts += self.take_host(key)
            if self.records[key].state is None and not self.below(key) and not self.kv_lock(key):
                removed += self.remove(key)
        return hosts, removed

    def release_branch(self, key: Tokens) -> tuple[list[int], list[int], list[Tokens]]:
        slots, hosts, removed = [], [], []
        for n in range(len(key), 0, -self.page):
            at = key[:n]
            inside = any(k[: len(at)] == at for k in self.below(at))
            if at not in self.records:
                if inside:
                    break  # the key ends, or parts, inside an edge: what is above has children
                continue
            if inside or self.kv_lock(at):
                break
            slots += [] if self.records[at].state is None else [self.give_up(at)]
            hosts += self.take_host(at)
            removed.append(at)
            del self.records[at]
        return slots, hosts, removed

    def give_up(self, key: Tokens) -> int:
        slot = self.records[key].state
        assert slot is not None
        self.records[key].state = None
        return slot
