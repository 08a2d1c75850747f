"""``replaylife sweep``: a request log played at many points, in parallel, and compared."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from replaylife.cli.columns import columns, heads
from replaylife.cli.errors import CannotWork
from replaylife.cli.progress import Bar
from replaylife.cli.replay import base_point, workload_options
from replaylife.lifecycle.config import FinishPolicy
from replaylife.lifecycle.protocol import ActionRefused, CannotExpress
from replaylife.lifecycle.strategies import STRATEGIES
from replaylife.lifecycle.workload.executors import cluster as dask_cluster
from replaylife.lifecycle.workload.executors import local
from replaylife.lifecycle.workload.log import LogError
from replaylife.lifecycle.workload.point import EXCERPT, Point
from replaylife.lifecycle.workload.sweep import AXES, Played, Results, grid, sweep
from replaylife.lifecycle.workload.tally import Totals

if TYPE_CHECKING:
    from concurrent.futures import Executor

HELP = """Play a request log at every combination of the values given, and compare.

--ring, --track-interval, --finish, --strategy and --slots may each be repeated. Replays run in parallel, in
processes of this machine (--jobs) or on a Dask cluster (--cluster ADDRESS). With --out what has been played
is kept in a file, and a sweep that was stopped goes on from there. FILE is a log as for replay, or the
excerpt.
"""
METRICS = tuple(Totals().record())
SHOWN = (
    "hit_rate",
    "prefilled",
    "again_truncated",
    "folds",
    "forced_folds",
    "copies",
    "peak_slots",
)


@click.command("sweep", help=HELP)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--strategy",
    type=click.Choice(list(STRATEGIES)),
    multiple=True,
    default=("no_buffer",),
    show_default=True,
)
@click.option(
    "--ring",
    type=click.IntRange(0, 64),
    multiple=True,
    default=(16,),
    show_default=True,
    help="L; 0: ReplaySSM off.",
)
@click.option(
    "--track-interval",
    type=click.IntRange(1),
    multiple=True,
    default=(256,),
    show_default=True,
    help="Between checkpoints.",
)
@click.option(
    "--finish",
    type=click.Choice(get_args(FinishPolicy)),
    multiple=True,
    default=("truncate",),
    show_default=True,
)
@click.option(
    "--slots",
    type=click.IntRange(2),
    multiple=True,
    default=(256,),
    show_default=True,
    help="Slot 0 is reserved.",
)
@workload_options
@click.option("--jobs", type=click.IntRange(1), help="Processes; as many as there are cores if left out.")
@click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler, tcp://host:port (extra: cluster).")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Keep results here, and resume.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw a figure (extra: plot).")
@click.option(
    "--metric",
    type=click.Choice(METRICS),
    metavar="NAME",
    default="hit_rate",
    show_default=True,
    help="What --plot draws: a column of --format csv, such as prefilled.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "csv", "json"]), default="text", show_default=True
)
def command(
    file: Path | None,
    jobs: int | None,
    cluster: str | None,
    out: Path | None,
    plot: Path | None,
    metric: str,
    form: str,
    **asked: Any,
) -> None:
    """Play and print; the parsed arguments come from click."""
    axes = {name: asked.pop(name) for name in AXES}
    points = grid(base_point(**asked), axes)
    _require("matplotlib", "plot", plot is not None)
    _require("distributed", "cluster", cluster is not None)
    pool = local(min(jobs or os.cpu_count() or 1, len(points))) if cluster is None else dask_cluster(cluster)
    played = run(points, file, pool, out)
    if form == "json":
        click.echo(json.dumps([one._asdict() for one in played], indent=1))
    elif form == "csv":
        click.echo(as_csv(played), nl=False)
    else:
        click.echo("\n".join(table(played, axes)))
    if plot is not None:
        _draw(played, axes, metric, plot)
    if any(one.totals["violations"] for one in played):
        raise click.exceptions.Exit(1)


def _draw(played: list[Played], axes: dict[str, Sequence[Any]], metric: str, path: Path) -> None:
    from replaylife.view.sweep_plot import draw

    try:
        draw(played, axes, metric, path)
    except (OSError, ValueError) as error:
        raise CannotWork(f"--plot {path}: {error}") from None


def _require(package: str, extra: str, wanted: bool) -> None:
    if wanted and find_spec(package) is None:
        raise CannotWork(f"--{extra} needs {package}: pip install 'replaylife[{extra}]'")


def run(
    points: Sequence[Point],
    file: Path | None,
    pool: Callable[[], AbstractContextManager[Executor]],
    out: Path | None,
) -> list[Played]:
    """Play what is not on file, with a bar. Raises :class:`CannotWork` for what cannot be played."""
    log, bar = None if file is None else str(file.absolute()), Bar(shortest=2)
    try:
        results = Results(out, log)
        bar.start("sweep", len(results.missing(points)))
        for _ in sweep(points, log, pool, results):
            bar.advance()
        return results.of(points)
    except LogError as error:
        raise CannotWork(str(error), str(file or EXCERPT), error.problems) from None
    except BrokenExecutor as error:
        raise CannotWork(
            f"the workers died again and again ({error}); fewer --jobs need less memory"
        ) from None
    except OSError as error:
        if error.filename is None:
            raise CannotWork(f"--cluster: {error}; expected the address of a scheduler") from None
        need = "a file that can be written" if out and error.filename == str(out) else "a request log"
        raise CannotWork(f"{error.filename}: {error.strerror}; expected {need}") from None
    except (CannotExpress, ActionRefused, ValueError) as error:
        raise CannotWork(str(error)) from None
    finally:
        bar.stop()


def varied(axes: dict[str, Sequence[Any]]) -> list[str]:
    """Return the axes with more than one value, all of them if none has."""
    return [name for name, values in axes.items() if len(set(values)) > 1] or list(axes)


def table(played: Sequence[Played], axes: dict[str, Sequence[Any]]) -> Iterator[str]:
    """A line a point: what it varies in, then what came out; last the violations of all."""
    names = varied(axes)
    rows = heads([*names, *SHOWN])
    for one in played:
        counts = (one.totals[name] for name in SHOWN)
        told = (f"{n:.3%}" if isinstance(n, float) else f"{n:,}" for n in counts)
        rows.append([*(str(one.point[name]) for name in names), *told])
    yield from columns(rows)
    broken = sum(one.totals["violations"] for one in played)
    checked = all(one.point["check"] for one in played)
    yield ""
    yield f"violations: {broken:,}" if checked else "violations: not checked (--no-check)"


def as_csv(played: Sequence[Played]) -> str:
    """Every field of every point and its sums."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*Point.names(), *METRICS])
    for one in played:
        point = {**one.point, "faults": " ".join(one.point["faults"])}
        writer.writerow([*(point[name] for name in Point.names()), *(one.totals[name] for name in METRICS)])
    return text.getvalue()
