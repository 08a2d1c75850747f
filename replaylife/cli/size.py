"""``replaylife size``: bytes per slot, slots that fit, and what forgetting the ring costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import click

from replaylife.cli.columns import columns
from replaylife.cli.errors import CannotWork
from replaylife.cli.units import human, num_bytes
from replaylife.lifecycle.names import nearest
from replaylife.pool import DType
from replaylife.pool.budget import Budget
from replaylife.pool.presets import PRESETS, Preset

HELP = """Say what a slot of recurrent state costs, by component, and how many fit in a memory budget.

MODEL is a preset; without one all presets are listed, each with the source of its sizes. The last lines say
what a formula that forgets the ring would have promised, and by how many bytes the pool then overruns the
budget. Sizes are of one rank: --tp divides the heads.
"""
DTYPES = click.Choice(get_args(DType))


@click.command("size", help=HELP)
@click.argument("model", required=False)
@click.option(
    "--memory", type=num_bytes, metavar="BYTES", help="Budget of one rank for recurrent state, as 24GiB."
)
@click.option(
    "--ring", type=click.IntRange(0, 64), default=16, show_default=True, help="L; 0: ReplaySSM off."
)
@click.option("--tp", type=click.IntRange(1), default=1, show_default=True, help="Tensor-parallel ranks.")
@click.option("--state-dtype", type=DTYPES, default="fp32", show_default=True)
@click.option("--conv-dtype", type=DTYPES, default="bf16", show_default=True)
@click.option("--ring-dtype", type=DTYPES, default="fp32", show_default=True, help="Of ring_d.")
@click.option("--ring-key-dtype", type=DTYPES, help="Of ring_k; that of ring_d if left out.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(model: str | None, memory: int | None, form: str, **asked: Any) -> None:
    """Print one model, or all presets; the parsed arguments come from click."""
    chosen = list(PRESETS.values()) if model is None else [preset_named(model)]
    sized = [(preset, budget_of(preset, memory, **asked)) for preset in chosen]
    if form == "json":
        click.echo(json.dumps([record(preset, budget) for preset, budget in sized], indent=1))
    elif model is None:
        click.echo("\n".join(overview(sized, memory)))
    else:
        click.echo("\n".join(details(*sized[0], memory)))


def preset_named(name: str) -> Preset:
    """Return the preset of that name, or the only one that begins so, capitals aside."""
    close = [preset for key, preset in PRESETS.items() if key.lower().startswith(name.lower())]
    exact = [preset for preset in close if preset.name.lower() == name.lower()]
    if len(exact or close) == 1:
        return (exact or close)[0]
    if close:
        raise CannotWork(f"model {name!r} could be {', '.join(p.name for p in close)}; say which")
    raise CannotWork(f"no preset is named {name!r}{nearest(name, PRESETS)}; known: {', '.join(PRESETS)}")


def budget_of(
    preset: Preset,
    memory: int | None,
    ring: int,
    tp: int,
    state_dtype: DType,
    conv_dtype: DType,
    ring_dtype: DType,
    ring_key_dtype: DType | None,
) -> Budget:
    """Return the budget of one rank. Raises :class:`CannotWork` for sizes that do not go together."""
    try:
        shape = preset.shape(
            ring_length=ring or None,
            tensor_parallel=tp,
            state_dtype=state_dtype,
            conv_dtype=conv_dtype,
            ring_dtype=ring_dtype,
            ring_key_dtype=ring_key_dtype,
        )
    except ValueError as error:
        raise CannotWork(str(error).replace("tensor_parallel", "--tp")) from None
    return Budget(shape, memory or 0)


def record(preset: Preset, budget: Budget) -> dict[str, Any]:
    """Return plain data for JSON; lengths in bytes."""
    shape = budget.shape
    told = {
        "model": preset.name,
        "source": preset.source,
        "gate": shape.gate,
        "layers": shape.layers,
        "heads": shape.heads,
        "value_heads": shape.value_heads,
        "ring_length": shape.ring_length,
        "components": shape.component_bytes(),
        "slot_bytes": shape.slot_bytes(),
        "ringless_slot_bytes": budget.ringless_slot_bytes,
    }
    if budget.num_bytes:
        told |= {
            "memory": budget.num_bytes,
            "slots": budget.slots,
            "usable_slots": budget.usable,
            "ringless_slots": budget.ringless_slots,
            "ringless_bytes": budget.ringless_bytes,
            "overshoot_bytes": budget.overshoot,
        }
    return told


def overview(sized: list[tuple[Preset, Budget]], memory: int | None) -> Iterator[str]:
    """One line a preset: its sizes, or what fits in ``memory``; then the sources."""
    sizes = ("gate", "layers", "H", "HV", "slot", "no ring", "more")
    fits = ("slot", "more", "slots", "promised", "overrun")
    rows: list[tuple[str, ...]] = [("model", *(fits if memory else sizes))]
    for preset, budget in sized:
        shape, slot, without = budget.shape, budget.shape.slot_bytes(), budget.ringless_slot_bytes
        more = f"{slot / without - 1:.1%}"
        if memory:
            promised = f"{budget.ringless_slots:,}"
            told = (human(slot), more, f"{budget.slots:,}", promised, human(budget.overshoot))
            rows.append((preset.name, *told))
        else:
            heads = (f"{shape.layers}", f"{shape.heads}", f"{shape.value_heads}")
            rows.append((preset.name, shape.gate, *heads, human(slot), human(without), more))
    yield from columns(rows, num_left=1, gap=2 if memory else 1)
    yield ""
    yield "slot: all recurrent layers of one rank. more: than a formula without the ring says."
    if memory:
        yield f"slots: that fit in {human(memory)}. promised: by that formula, overrunning the budget."
    yield "sources of the sizes:"
    yield from (f"  {preset.source}" for preset, _ in sized)


def details(preset: Preset, budget: Budget, memory: int | None) -> Iterator[str]:
    """A line a component, then the budget."""
    shape, slot = budget.shape, budget.shape.slot_bytes()
    ring = "ReplaySSM off" if shape.ring_length is None else f"L {shape.ring_length}"
    yield (
        f"{preset.name}: {shape.layers} {shape.gate} layers, {shape.heads} key heads of {shape.key_dim}, "
        f"{shape.value_heads} value heads of {shape.value_dim}, {ring}"
    )
    yield f"source: {preset.source}"
    yield ""
    for name, size in shape.component_bytes().items():
        yield f"  {name:16} {size:14,} bytes  {human(size):>11}  {size / slot:6.1%}"
    yield f"  {'one slot':16} {slot:14,} bytes  {human(slot):>11}"
    without = budget.ringless_slot_bytes
    more = f"a slot takes {slot / without - 1:.1%} more"
    yield f"  {'without the ring':16} {without:14,} bytes  {human(without):>11}  {more}"
    if not memory:
        return
    yield ""
    yield f"{human(memory)} hold {budget.slots:,} slots, slot 0 (reserved) among them."
    if shape.ring_length is None:
        return
    yield (
        f"A formula without the ring promises {budget.ringless_slots:,}; they take "
        f"{human(budget.ringless_bytes)}, {human(budget.overshoot)} ({budget.overshoot / memory:.1%}) more "
        "than there is."
    )
