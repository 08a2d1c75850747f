"""The radix tree of cached prefixes: keys are token tuples, states are slot numbers; it knows nothing else.

`RadixTree` is the tree, `Node` one node of it; `Match`, `Inserted` and `Evicted` are what
its operations answer. No tensor, no request and no clock of the wall is involved.
"""

from replaylife.radix.node import Evicted, Inserted, Match, Node, Tokens
from replaylife.radix.tree import RadixTree

__all__ = ["Evicted", "Inserted", "Match", "Node", "RadixTree", "Tokens"]
