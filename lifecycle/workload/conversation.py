"""From the blocks of a log to the tokens of each request: who continues whom, and with which tokens."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from replaylife.lifecycle.workload.log import Entry
from replaylife.pool import Runs

LOOKAHEAD = 4_096
FRESH = 1 << 40  # ids of reply tokens that no later request tells; above those of all blocks


@dataclass(frozen=True, slots=True)
class Turn:
    """One request with its tokens: ``text`` is its prompt, ``entry.input_length`` tokens, and its reply.

    ``continued`` is whether a later request has told the reply; ``continues`` the line of the latest earlier
    request that this one extends, ``None`` if it extends none.
    """

    entry: Entry
    text: Runs
    continued: bool
    continues: int | None


class Conversations:
    """Gives each request its tokens, looking ahead in the log by ``lookahead`` requests.

    The tokens of a whole block are named by its id. The reply of a request, and the end of its last block,
    are those of the earliest later request that extends it; where there is none they are new. Held at a
    time: the window ahead, an entry per block in it, and the same number of requests behind.
    """

    def __init__(self, entries: Iterable[Entry], lookahead: int = LOOKAHEAD) -> None:
        self._entries, self._lookahead = iter(entries), lookahead
        self._window: deque[Entry] = deque()
        self._by_block: defaultdict[int, deque[Entry]] = defaultdict(deque)
        self._ends: dict[int, Entry] = {}  # last whole block -> the latest request behind that ends with it
        self._behind: deque[Entry] = deque()
        self._fresh = FRESH

    def __iter__(self) -> Iterator[Turn]:
        self._fill()
        while self._window:
            entry = self._window.popleft()
            for block in entry.hash_ids[1 : entry.whole_blocks]:
                present = self._by_block[block]
                present.popleft()
                if not present:
                    del self._by_block[block]
            yield self._turn(entry)
            self._fill()

    def _fill(self) -> None:
        while len(self._window) <= self._lookahead:
            entry = next(self._entries, None)
            if entry is None:
                return
            self._window.append(entry)
            for block in entry.hash_ids[1 : entry.whole_blocks]:
                self._by_block[block].append(entry)

    def _turn(self, entry: Entry) -> Turn:
        later = self._successor(entry)
        runs = [(block * entry.block, entry.block) for block in entry.hash_ids[: entry.whole_blocks]]
        total = entry.input_length + entry.output_length
        if later is None:
            cut = entry.input_length % entry.block
            if cut:
                runs.append((entry.hash_ids[-1] * entry.block, cut))
            runs.append((self._fresh, entry.output_length))
            self._fresh += entry.output_length + 1  # apart, so that two replies are never one run
            text = Runs.of(runs)
        else:
            told = self._prompt(later)
            start = entry.whole_blocks * entry.block
            text = Runs.of([*runs, *told.cut(start, total).runs()])
        continues = self._predecessor(entry)
        self._remember(entry)
        return Turn(entry, text, later is not None, continues)

    def _successor(self, entry: Entry) -> Entry | None:
        """The earliest request ahead that extends this one."""
        if entry.whole_blocks < 2:
            return None
        present = self._by_block.get(entry.hash_ids[entry.whole_blocks - 1], ())
        return next((later for later in present if later.extends(entry)), None)

    def _prompt(self, entry: Entry) -> Runs:
        """The prompt tokens of a request ahead: its last block may itself be told by one further ahead."""
        runs = [(block * entry.block, entry.block) for block in entry.hash_ids[: entry.whole_blocks]]
        cut = entry.input_length % entry.block
        later = self._after(entry) if cut else None
        if later is not None:
            start = entry.whole_blocks * entry.block
            runs += self._prompt(later).cut(start, start + cut).runs()
        elif cut:
            runs.append((entry.hash_ids[-1] * entry.block, cut))
        return Runs.of(runs)

    def _after(self, entry: Entry) -> Entry | None:
        if entry.whole_blocks < 2:
            return None
        present = self._by_block.get(entry.hash_ids[entry.whole_blocks - 1], ())
        return next((e for e in present if e.line > entry.line and e.extends(entry)), None)

    def _predecessor(self, entry: Entry) -> int | None:
        for block in range(entry.whole_blocks - 1, 0, -1):
            earlier = self._ends.get(entry.hash_ids[block])
            if earlier is not None and earlier.whole_blocks == block + 1 and entry.extends(earlier):
                return earlier.line
        return None

    def _remember(self, entry: Entry) -> None:
        if entry.whole_blocks < 2:
            return
        self._behind.append(entry)
        self._ends[entry.hash_ids[entry.whole_blocks - 1]] = entry
        if len(self._behind) > self._lookahead:
            gone = self._behind.popleft()
            key = gone.hash_ids[gone.whole_blocks - 1]
            if self._ends.get(key) is gone:
                del self._ends[key]
