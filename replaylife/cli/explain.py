"""``replaylife explain``: all there is to say of a fault, an invariant, a strategy, a scenario, a trace."""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches

import click

from replaylife.cli.complete import complete_ids
from replaylife.cli.errors import CannotWork
from replaylife.cli.listing import format_option, print_entries, write_json

HELP = """Explain a fault, an invariant, a strategy or a scenario by its ID, or what went wrong in a TRACE.

What it claims or how it goes wrong, where it was reported, the right value, the invariants that catch it, the
smallest scenario, the command that shows it, and related ids. Where a fault and a scenario share an id, both
are explained.

Of a trace, each root of its violations is told as a short proof: the steps that planted it, those that
carried it on, where an answer is computed from it, and the command that reproduces it.
"""


@click.command("explain", help=HELP)
@click.argument("id", metavar="ID|TRACE", shell_complete=complete_ids)
@format_option
def command(id: str, form: str) -> None:
    """Explain an id; the parsed arguments come from click."""
    from replaylife.reference import meanings, record

    found = meanings(id)
    if not found and _looks_like_trace(id):
        from replaylife.cli.explain_trace import explain_trace

        explain_trace(id, form)
        return
    if not found:
        raise _unknown(id)
    if form == "json":
        write_json({"id": id, "meanings": [record(entry) for entry in found]})
        return
    from replaylife.view.reference import full_lines

    print_entries(found, full_lines)


def _looks_like_trace(id: str) -> bool:
    return id.endswith((".jsonl", ".json")) or os.sep in id or os.path.isfile(id)


def _unknown(id: str) -> CannotWork:
    from replaylife.reference import MEANINGS

    kinds = {name: kind for kind, (names, _) in reversed(MEANINGS.items()) for name in names()}
    close = get_close_matches(id, kinds, n=1) or _with_word_like(id, kinds)
    hint = (
        f"did you mean {' or '.join(f'{name!r} ({kinds[name]})' for name in close)}?"
        if close
        else "see replaylife faults, replaylife invariants and replaylife scenarios"
    )
    return CannotWork(f"no fault, invariant, strategy or scenario is named {id!r}; {hint}")


def _with_word_like(id: str, names: Iterable[str]) -> list[str]:
    """Return up to three names that have a word like this one, as in ``curser``."""
    words = {word for name in names for word in name.split("-")}
    close = get_close_matches(id, words, n=1)
    return [name for name in names if close and close[0] in name.split("-")][:3]
