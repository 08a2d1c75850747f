"""Whether replay pays for a pool's shape: said when the pool is made, from the shipped table of times."""

from __future__ import annotations

from replaylife.kernels.tiles import Key, table
from replaylife.pool.shape import PoolShape


class SlowReplayWarning(UserWarning):
    """ReplaySSM is on where the measured table says that packed decode is faster."""


def slow_replay(shape: PoolShape) -> str | None:
    """Say at which batches packed decode is faster; ``None`` where replay pays, or nothing is known.

    The table knows heads of its own K and V only; it is read for batches up to the pool's slots.
    """
    if shape.ring_length is None:
        return None
    known = table()
    if (shape.key_dim, shape.value_dim) != (known.shape["K"], known.shape["V"]):
        return None
    times = known.times(Key(shape.gate, shape.state_dtype, shape.ring_length))
    slower = [found for found in times if found.rows < shape.slots and found.speedup < 1.0]
    if not slower:
        return None
    worst = min(slower, key=lambda found: found.speedup)
    batches = ", ".join(str(found.rows) for found in slower)
    return (
        f"ReplaySSM with a ring of {shape.ring_length} is slower than packed decode for this shape "
        f"({shape.gate}, {shape.state_dtype} state) at batch {batches}: a layer takes "
        f"{worst.packed_us:.0f} us packed and {worst.decode_us + worst.fold_us:.0f} us replayed at batch "
        f"{worst.rows}, measured on {known.measured_on['card']}; the fastest ring there has "
        f"{known.best_ring(shape.gate, shape.state_dtype, worst.rows)} records"
    )
