"""``replaylife traffic``: bytes of a decode step against L, and the time they take at least."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, get_args

import click

from replaylife.cli.columns import columns
from replaylife.cli.size import preset_named
from replaylife.kernels.tiles import Times, table
from replaylife.kernels.traffic import Traffic
from replaylife.pool import BYTES, DType, Gate
from replaylife.pool.traffic import Moved, against_ring, floor_us, measured, where_it_pays

HELP = """Count the bytes that a decode step moves per value head and layer, against L.

packed reads and writes the state; fused is replay that writes it every L steps while it has it, the least
that replay can move; separate is replay with a fold of its own, which reads state and ring once more. The
floor is the time that the bytes of a whole batch take for one layer at --bandwidth: no kernel is faster.
Beside it, where this very case was measured, the shipped measurement. The last line says where replay stops
paying.
"""
RINGS = (1, 2, 4, 8, 16, 32, 64)
DTYPES = click.Choice(get_args(DType))
TERA = 1e12


@dataclass(frozen=True, slots=True)
class Line:
    """One ring length: bytes of a head, floors in microseconds of the batch, and what was measured."""

    moved: Moved
    packed_us: float
    fused_us: float
    apart_us: float
    times: Times | None


@click.command("traffic", help=HELP)
@click.option("--gate", type=click.Choice(get_args(Gate)), default="gdn", show_default=True)
@click.option(
    "--model", help="A preset of `replaylife size`: its heads and gate; else those of the benchmark."
)
@click.option("--tp", type=click.IntRange(1), default=1, show_default=True, help="Tensor-parallel ranks.")
@click.option("--state-dtype", type=DTYPES, default="fp32", show_default=True)
@click.option("--ring-dtype", type=DTYPES, default="fp32", show_default=True, help="Of ring_d.")
@click.option(
    "--ring-key-dtype", type=DTYPES, default="bf16", show_default=True, help="Of ring_k, as measured."
)
@click.option("--ring", type=click.IntRange(1, 64), multiple=True, help="L; may be repeated.")
@click.option("--batch", type=click.IntRange(1), default=256, show_default=True, help="Rows of the floor.")
@click.option(
    "--bandwidth",
    type=click.FloatRange(min=0, min_open=True),
    default=4.8,
    show_default=True,
    help="Of the memory, in TB/s; 4.8 is an H200.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    ring: tuple[int, ...], batch: int, bandwidth: float, state_dtype: DType, form: str, **asked: Any
) -> None:
    """Print the table; the parsed arguments come from click."""
    traffic = traffic_of(state_dtype=state_dtype, **asked)
    rings = sorted(set(ring or RINGS))
    lines = [
        line_of(replace(traffic, ring=moved.ring), moved, state_dtype, batch, bandwidth * TERA)
        for moved in against_ring(traffic, rings)
    ]
    if form == "json":
        click.echo(json.dumps(record(traffic, state_dtype, batch, bandwidth, lines), indent=1))
    else:
        click.echo("\n".join(text(traffic, state_dtype, batch, bandwidth, lines)))


def traffic_of(
    gate: Gate, model: str | None, tp: int, state_dtype: DType, ring_dtype: DType, ring_key_dtype: DType
) -> Traffic:
    """Return the sizes of one layer of one rank."""
    sizes = {"state": BYTES[state_dtype], "d": BYTES[ring_dtype], "key": BYTES[ring_key_dtype]}
    if model is None:
        return Traffic(gate, H=16 if gate == "gdn" else 32, HV=32, K=128, V=128, ring=16, **sizes)
    from replaylife.cli.size import budget_of

    preset = preset_named(model)
    shape = budget_of(preset, None, 16, tp, state_dtype, "bf16", ring_dtype, ring_key_dtype).shape
    return Traffic(
        shape.gate, shape.heads, shape.value_heads, shape.key_dim, shape.value_dim, ring=16, **sizes
    )


def line_of(traffic: Traffic, moved: Moved, state_dtype: DType, rows: int, bytes_per_s: float) -> Line:
    """Add floors of one layer of ``rows`` rows, and the measurement where there is one."""
    packed, fused, apart = (
        floor_us(rows * layer, bytes_per_s) for layer in (traffic.packed, traffic.fused, traffic.apart)
    )
    return Line(moved, packed, fused, apart, measured(traffic, state_dtype, rows))


def record(
    traffic: Traffic, state_dtype: DType, rows: int, bandwidth: float, lines: list[Line]
) -> dict[str, Any]:
    """Return plain data for JSON: bytes per head, microseconds per layer and step of the batch."""
    pays = where_it_pays(traffic)
    return {
        "gate": traffic.gate,
        "heads": traffic.H,
        "value_heads": traffic.HV,
        "state_dtype": state_dtype,
        "batch": rows,
        "bandwidth_tb_s": bandwidth,
        "best_ring": pays.best,
        "paying_rings": [pays.first, pays.last],
        "measured_on": table().measured_on,
        "rows": [
            {
                "ring": line.moved.ring,
                "packed_bytes": line.moved.packed,
                "fused_bytes": line.moved.fused,
                "separate_bytes": line.moved.apart,
                "packed_floor_us": line.packed_us,
                "fused_floor_us": line.fused_us,
                "separate_floor_us": line.apart_us,
                "measured_us": None if line.times is None else line.times._asdict(),
            }
            for line in lines
        ],
    }


def text(
    traffic: Traffic, state_dtype: DType, rows: int, bandwidth: float, lines: list[Line]
) -> Iterator[str]:
    """Two tables, bytes and times, then where replay stops paying."""
    shape = f"[{traffic.HV}, {traffic.V}, {traffic.K}]"
    yield f"{traffic.gate}, state {state_dtype} {shape}, {traffic.H} key heads"
    yield ""
    yield "bytes per value head, layer and step"
    counted = [
        (f"{m.ring}", f"{m.packed:,.0f}", f"{m.fused:,.0f}", f"{m.apart:,.0f}", f"{m.apart / m.packed:.1%}")
        for m in (line.moved for line in lines)
    ]
    yield from columns([("L", "packed", "fused", "separate", "of packed"), *counted])
    yield ""
    yield f"microseconds of one layer and step of {rows} rows: floor at {bandwidth:g} TB/s, and as measured"
    timed = [
        (
            f"{line.moved.ring}",
            *(f"{us:.1f}" for us in (line.packed_us, line.fused_us, line.apart_us)),
            *_measured(line.times),
        )
        for line in lines
    ]
    above = ("", "floor", "", "", "measured", "", "")
    yield from columns([above, ("L", "packed", "fused", "separate", "packed", "replay", "faster"), *timed])
    yield ""
    yield from conclusion(traffic, lines)


def _measured(times: Times | None) -> tuple[str, str, str]:
    if times is None:
        return "-", "-", "-"
    return f"{times.packed_us:.1f}", f"{times.decode_us + times.fold_us:.1f}", f"{times.speedup:.2f}x"


def conclusion(traffic: Traffic, lines: list[Line]) -> Iterator[str]:
    """Where replay pays by bytes, and where by the times that were measured."""
    pays = where_it_pays(traffic)
    if pays.first is None:
        yield f"By bytes replay with a separate fold never pays here; it comes nearest at L {pays.best}."
    elif pays.last == 64:
        yield f"By bytes replay pays from L {pays.first} on, most at L {pays.best}; it pays up to 64."
    else:
        yield (
            f"By bytes replay pays from L {pays.first} to L {pays.last}, most at L {pays.best}, and stops "
            "there."
        )
    timed = [(line.times.speedup, line.moved.ring) for line in lines if line.times is not None]
    if timed:
        speedup, ring = max(timed)
        slower = sorted(ring for faster, ring in timed if faster < 1)
        where = f", slower than packed at L {', '.join(map(str, slower))}" if slower else ""
        yield (
            f"As measured ({table().measured_on['card']}) it is fastest at L {ring}, {speedup:.2f} times "
            f"packed{where}."
        )
