"""What a decode step must move, against L: packed, replay with a fused flush, replay with its own fold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from replaylife.kernels.tiles import Key, Times, table
from replaylife.kernels.traffic import Traffic
from replaylife.pool.shape import BYTES, DType

LONGEST_RING = 64


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes of one value head, layer and step, mean over the positions of a ring of ``ring`` records.

    ``packed`` reads and writes the state; ``fused`` is replay that writes it every ``ring`` steps while it
    has it; ``apart`` replay with a separate fold, which reads state and ring once more, as the kernels do.
    """

    ring: int
    packed: float
    fused: float
    apart: float

    @classmethod
    def count(cls, traffic: Traffic) -> Moved:
        """Count one layer's bytes and share them among its value heads."""
        heads = traffic.HV
        return cls(traffic.ring, traffic.packed / heads, traffic.fused / heads, traffic.apart / heads)


def against_ring(traffic: Traffic, rings: Iterable[int]) -> Iterator[Moved]:
    """Count for each ring length; sizes and dtypes are those of ``traffic``."""
    return (Moved.count(replace(traffic, ring=ring)) for ring in rings)


@dataclass(frozen=True, slots=True)
class Paying:
    """Where replay with a separate fold moves fewer bytes than packed decode.

    ``best`` is the ring length that moves fewest; ``first`` and ``last`` the shortest and the longest that
    move fewer than packed, ``None`` where none of 1..64 does.
    """

    best: int
    first: int | None
    last: int | None


def where_it_pays(traffic: Traffic) -> Paying:
    """Find the ring lengths of 1..64 that pay, by bytes."""
    counted = list(against_ring(traffic, range(1, LONGEST_RING + 1)))
    paying = [moved.ring for moved in counted if moved.apart < moved.packed]
    best = min(counted, key=lambda moved: moved.apart).ring
    return Paying(best, min(paying, default=None), max(paying, default=None))


def floor_us(num_bytes: float, bytes_per_s: float) -> float:
    """Return the microseconds that ``num_bytes`` take at a bandwidth: no kernel can be faster."""
    return num_bytes / bytes_per_s * 1e6


def measured(traffic: Traffic, state_dtype: DType, rows: int) -> Times | None:
    """Return the shipped measurement of this very case: same sizes, gate, dtypes, ring length and batch.

    ``None`` where it was not measured; nothing is interpolated.
    """
    known = table()
    yardstick = Traffic(  # the layer and the ring dtypes that the table was measured with
        traffic.gate,
        H=16 if traffic.gate == "gdn" else 32,
        ring=traffic.ring,
        state=BYTES[state_dtype],
        **known.shape,
    )
    if traffic != yardstick:
        return None
    exact = known.exact_times(Key(traffic.gate, state_dtype, traffic.ring))
    return next((times for times in exact if times.rows == rows), None)
