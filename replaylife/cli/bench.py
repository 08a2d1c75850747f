"""``replaylife bench``: decode steps side by side with the kernels of other projects that are installed."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from replaylife.cli.errors import CannotWork
from replaylife.kernels.tiles import Gate, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from replaylife.kernels.bench.compare import Report

BATCHES = (1, 16, 64, 128, 256, 512)
CPU_BATCHES = (2,)

HELP = """Compare decode steps: packed, replay (tuned and reference), and the kernels of SGLang and
flash-linear-attention where they are installed or unpacked at a path.

One table: microseconds of one layer and step with its share of the fold, with rows at all ring positions
(staggered) and at one (lock-step), ratios, the fraction of the measured copy bandwidth on minimal bytes, and
relative errors against float64. On a CPU small shapes run through Triton's interpreter: the errors mean
something there, the times do not.

--tune FILE measures tile choices on this card and writes a table; REPLAYLIFE_TILES=FILE uses it.
"""


@click.command("bench", help=HELP)
@click.option(
    "--gate", type=click.Choice(get_args(Gate)), multiple=True, help="Only this gate; may be repeated."
)
@click.option(
    "--state", type=click.Choice(get_args(State)), multiple=True, help="State dtype (fp32 and bf16)."
)
@click.option("--batch", type=click.IntRange(1, 4096), multiple=True, help="Rows; may be repeated.")
@click.option(
    "--ring", type=click.IntRange(1, 64), default=16, show_default=True, help="L, records of a ring."
)
@click.option("--sglang", type=click.Path(path_type=Path), help="Folder of an unpacked sglang wheel.")
@click.option("--fla", type=click.Path(path_type=Path), help="Folder of an unpacked fla-core wheel.")
@click.option(
    "--tune", type=click.Path(path_type=Path), metavar="FILE", help="Measure tiles and write them here."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(tune: Path | None, **asked: Any) -> None:
    """Compare or tune; the parsed arguments come from click."""
    missing = [name for name in ("torch", "triton") if find_spec(name) is None]
    if missing:
        raise CannotWork(f"bench needs {' and '.join(missing)}: pip install {' '.join(missing)}")
    if tune is not None:
        _tune(tune)
        return
    for name in ("sglang", "fla"):
        if asked[name] is not None and not asked[name].is_dir():
            raise CannotWork(f"--{name} {asked[name]}: no such folder, need that of an unpacked wheel")
    report = _compare(**asked)
    if asked["form"] == "json":
        click.echo(json.dumps(report.record(), indent=1))
        return
    from replaylife.kernels.bench.report import lines

    for line in lines(report):
        click.echo(line)


def _compare(
    gate: Sequence[Gate],
    state: Sequence[State],
    batch: Sequence[int],
    ring: int,
    sglang: Path | None,
    fla: Path | None,
    form: str,  # noqa: ARG001
) -> Report:
    import torch

    from replaylife.kernels.bench.report import run

    batches = batch or (BATCHES if torch.cuda.is_available() else CPU_BATCHES)
    cases = list(product(gate or get_args(Gate), state or ("fp32", "bf16"), batches))
    return run(cases, ring, sglang, fla, _say)


def _tune(path: Path) -> None:
    import torch

    if not torch.cuda.is_available():
        raise CannotWork("bench --tune: no GPU, need the card whose tiles are to be measured")
    if path.exists():
        raise CannotWork(f"{path}: exists, need a new file (nothing is overwritten)")
    device = torch.device("cuda", torch.cuda.current_device())
    from replaylife.kernels import Kernels

    Kernels.load("triton", device)
    from replaylife.kernels.bench.tune import tune

    table = tune(device, _say)
    path.write_text(render(table))
    click.echo(f"{path}: {len(table['decode'])} decode tiles, {len(table['fold'])} fold tiles", err=True)


def render(table: dict[str, Any]) -> str:
    """Return the table as JSON with one line a row, so that changes can be read."""
    parts = []
    for name, value in table.items():
        if isinstance(value, list):
            rows = ",\n  ".join(json.dumps(row) for row in value)
            parts.append(f'"{name}": [\n  {rows}\n ]')
        else:
            parts.append(f'"{name}": {json.dumps(value)}')
    return "{\n " + ",\n ".join(parts) + "\n}\n"


def _say(words: str) -> None:
    if sys.stderr.isatty():
        click.echo(words, err=True)
