"""``replaylife explore``: go through every state of a small world, and check every step."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from replaylife.cli.complete import complete_faults, complete_invariants
from replaylife.cli.errors import EXIT_BUDGET, EXIT_INTERRUPTED, CannotWork

if TYPE_CHECKING:
    from replaylife.lifecycle.explore.counterexample import Counterexample
    from replaylife.lifecycle.explore.found import Found
    from replaylife.lifecycle.explore.schema import Scope

HELP = """Go through every state of a small world, and check every invariant after every step.

SCOPE is a file, or the name of a shipped scope (replaylife explore no-buffer-small); without one the shipped
scopes are listed. It says which conversations may come, what may happen to them, and what the pool is
(docs/explore.md). States that differ only in the names of slots and alike requests count once.

The search is breadth-first: what it finds first is a shortest way to a violation. --out writes it as a
scenario that 'replaylife run' plays on real tensors, with one more turn, in which the damage shows.

\b
Exit codes:
  0    every state was seen, and nothing is broken
  1    an invariant is violated, or a situation that the scope must reach never came about
  2    the command could not do its work
  3    stopped at --max-states or --max-seconds, with nothing found
  130  interrupted, with nothing found; what was seen so far is reported

\b
--format json writes one object:
  type exploration: scope, faults, symmetry, ending, exit_code, states, transitions,
  depth, levels, cut, seconds, actions, situations, never, violations (moves,
  invariant, subject, found, expected, proof, breakdown, scenario)

--engine sglang leads that engine through the scope (docs/sglang.md): the reference finds the states, and each
transition is played on a fresh engine at the end of a shortest way there. What breaks ends a way; --ignore
names invariants whose violations are known, so that the ways go on past them.

--graph FILE writes the whole state graph of a small scope (.graphml, or .dot); a violation does not end it.
"""


def _complete_scopes(
    ctx: click.Context, param: click.Parameter, incomplete: str  # noqa: ARG001
) -> list[CompletionItem]:  # fmt: skip
    from replaylife.lifecycle.explore.loader import shipped_scopes

    found = [CompletionItem(name) for name in shipped_scopes() if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


@click.command("explore", help=HELP, context_settings={"max_content_width": 100})
@click.argument("scope", metavar="[SCOPE]", required=False, shell_complete=_complete_scopes)
@click.option(
    "--fault", "faults", multiple=True, metavar="ID", shell_complete=complete_faults,
    help="Seed a fault, beside the scope's own.",
)  # fmt: skip
@click.option("--engine", metavar="NAME", help="Lead this engine through it: sglang or sglang-rust.")
@click.option(
    "--ignore", "ignored", multiple=True, metavar="INVARIANT", shell_complete=complete_invariants,
    help="With --engine: go on past violations of this invariant, and do not report them.",
)  # fmt: skip
@click.option("--max-states", type=click.IntRange(min=1), metavar="N", help="Stop at so many states.")
@click.option(
    "--max-seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="S",
    help="Stop after so many seconds.",
)
@click.option("--no-symmetry", is_flag=True, help="Tell slots and alike requests apart by their names.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="For people, for programs.",
)  # fmt: skip
@click.option("--out", metavar="FILE", help="Write what was found as a scenario.")
@click.option("--trace", metavar="FILE", help="Record that scenario's run in FILE (see 'replaylife check').")
@click.option("--graph", metavar="FILE", help="Write the state graph (.graphml or .dot).")
@click.option(
    "--force", is_flag=True, help="Let --out, --trace and --graph replace files that are not empty."
)
def command(scope: str | None, faults: tuple[str, ...], form: str, **options: Any) -> None:
    """Explore a scope; the parsed arguments come from click."""
    from replaylife.cli.explore_report import json_report, listing, text_report

    if scope is None:
        click.echo(listing())
        sys.exit(0)
    _check(faults, options)
    read = _read(scope)
    if options["engine"] is not None:
        from replaylife.cli.explore_engine import explore_engine

        sys.exit(explore_engine(scope, read, faults, {**options, "form": form}))
    if options["ignored"]:
        raise CannotWork("--ignore goes with --engine; the reference engine has no known violations")
    found = _search(read, faults, options)
    example = _example(read, faults, found)
    if example is not None:
        _write(example, options)
    code = exit_code(read, found)
    report = json_report if form == "json" else text_report
    click.echo(report(scope, read, faults, found, example, code, options))
    sys.exit(code)


def exit_code(scope: Scope, found: Found) -> int:
    """What a search came to, as an exit code."""
    from replaylife.lifecycle.explore.found import Ending, never

    if found.troubles:
        return 1
    if found.ending is Ending.INTERRUPTED:
        return EXIT_INTERRUPTED
    if found.ending is Ending.BUDGET:
        return EXIT_BUDGET
    return 1 if never(scope, found) else 0


def _check(faults: tuple[str, ...], options: dict[str, Any]) -> None:
    from replaylife.lifecycle.faults import FAULTS
    from replaylife.lifecycle.names import nearest

    for fault in faults:
        if fault not in FAULTS:
            raise CannotWork(f"no fault is named {fault!r}{nearest(fault, FAULTS)}")
    for name in ("out", "trace", "graph"):
        given = options[name]
        if given is None:
            continue
        path = Path(given)
        if path.is_dir() or not path.parent.is_dir():
            raise CannotWork(
                f"--{name} {given}: cannot be written there; name a file in a directory that exists"
            )
        if path.is_file() and path.stat().st_size and not options["force"]:
            raise CannotWork(f"--{name} {given}: exists and is not empty; choose another name, or --force")
    if options["graph"] is not None and Path(options["graph"]).suffix not in (".graphml", ".dot"):
        raise CannotWork(f"--graph {options['graph']}: need a name that ends in .graphml or .dot")


def _read(argument: str) -> Scope:
    """Return the scope that an argument means: a path if it looks like one, else a shipped scope's name."""
    from replaylife.cli.locate import SUFFIXES
    from replaylife.lifecycle.explore.loader import load_scope, shipped_scope, shipped_scopes
    from replaylife.lifecycle.names import nearest
    from replaylife.lifecycle.scenario.errors import ScenarioError

    shipped = shipped_scopes()
    try:
        if not argument.endswith(SUFFIXES) and argument in shipped:
            return shipped_scope(argument)
        if not Path(argument).exists():
            kind = "file" if argument.endswith(SUFFIXES) else "file and no shipped scope"
            raise CannotWork(
                f"no {kind} is named {argument!r}{nearest(Path(argument).stem or argument, shipped)}"
            )
        return load_scope(Path(argument))
    except ScenarioError as error:
        raise CannotWork(str(error), error.path, error.problems) from None


def _search(scope: Scope, faults: tuple[str, ...], options: dict[str, Any]) -> Found:
    from replaylife.lifecycle.explore.found import Budget
    from replaylife.lifecycle.explore.search import Search

    symmetry = False if options["no_symmetry"] else None
    try:
        if options["graph"] is not None:
            from replaylife.lifecycle.explore.graph import state_graph, write_graph

            graph, found = state_graph(scope, faults, symmetry=symmetry)
            write_graph(graph, Path(options["graph"]))
            return found
        budget = Budget(options["max_states"], options["max_seconds"])
        return Search(scope, faults, symmetry=symmetry, budget=budget, told=_progress()).run()
    except ValueError as error:
        raise CannotWork(str(error)) from None


def _progress() -> Any:
    """Return what shows on stderr how far a search is; nothing where stderr is no terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        return None

    def told(found: Found) -> None:
        rate = found.states / max(found.seconds, 1e-9)
        click.echo(
            f"{found.states:,} states, {found.transitions:,} transitions, depth {found.depth}, "
            f"{rate:,.0f} states/s, {found.seconds:.0f} s",
            err=True,
        )

    return told


def _example(scope: Scope, faults: tuple[str, ...], found: Found) -> Counterexample | None:
    if not found.troubles:
        return None
    from replaylife.lifecycle.explore.counterexample import counterexample

    return counterexample(scope, faults, found, found.troubles[0])


def _write(example: Counterexample, options: dict[str, Any]) -> None:
    """Write the scenario and, of its run without tensors, the trace."""
    for name in ("out", "trace"):
        if options[name] is None:
            continue
        try:
            if name == "out":
                Path(options[name]).write_text(example.scenario, encoding="utf-8")
            else:
                _record(example, Path(options[name]), force=options["force"])
        except OSError as error:
            raise CannotWork(f"--{name} {options[name]}: cannot be written: {error.strerror}") from None


def _record(example: Counterexample, path: Path, *, force: bool) -> None:
    from tempfile import TemporaryDirectory

    from replaylife.cli.options import Options, prepare
    from replaylife.cli.recording import recording
    from replaylife.lifecycle.factory import EngineFactory
    from replaylife.lifecycle.scenario.player import Player

    with TemporaryDirectory() as folder:
        written = Path(folder) / "found.yaml"
        written.write_text(example.scenario, encoding="utf-8")
        options = Options(backend="none", trace=str(path), force=force)
        scenario, run = prepare("found", written, options)
    engine = EngineFactory(run.config, run.faults).build()
    player = Player(scenario, engine)
    with recording(options, scenario, run, engine) as recorder:
        for outcome in player.play():
            recorder.tell(outcome)
        recorder.end(player.verdict, "complete")
