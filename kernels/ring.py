"""What the records of a ring hold: two choices, each with its own cost in bytes and accuracy.

`docs/kernels.md` has the measurements behind the default.
"""

from typing import Literal, NamedTuple, get_args

Keys = Literal["normalised", "raw"]
Gates = Literal["step", "cumulative"]


class RingFormat(NamedTuple):
    """How a record `(d, k, g)` is stored.

    `keys`: "normalised" keys of unit length, rounded to the dtype of `ring_k`; or "raw" keys as they came
    in, exact in their own dtype, with `1 / |k|` multiplied into `d` so that `d kᵀ` is the same product.
    `gates`: the log-decay of one "step"; or its "cumulative" sum since the last fold, which needs no sum
    over the ring when it is read. A slot's ring is empty whenever its format changes.
    """

    keys: Keys = "raw"
    gates: Gates = "step"

    def checked(self) -> "RingFormat":
        """Return self; raises `ValueError` for an unknown choice."""
        for name, value, choices in (("keys", self.keys, Keys), ("gates", self.gates, Gates)):
            if value not in get_args(choices):
                raise ValueError(f"ring {name}: {value!r}, need one of {', '.join(get_args(choices))}")
        return self


DEFAULT = RingFormat()
REFERENCE = RingFormat("normalised", "step")
