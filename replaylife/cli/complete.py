"""What a shell offers for an argument when Tab is pressed."""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

from replaylife.cli.locate import shipped_scenarios


def complete_scenarios(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the shipped scenarios not yet given; files where none begins like this."""
    given = ctx.params.get(param.name or "") or ()
    found = _beginning(incomplete, (name for name in shipped_scenarios() if name not in given))
    return found or [CompletionItem(incomplete, type="file")]


def complete_faults(
    ctx: click.Context, param: click.Parameter, incomplete: str  # noqa: ARG001
) -> list[CompletionItem]:  # fmt: skip
    """Offer the ids of faults, with their titles."""
    from replaylife.lifecycle.faults import FAULTS

    return [CompletionItem(id, help=FAULTS[id].title) for id in FAULTS if id.startswith(incomplete)]


def complete_invariants(
    ctx: click.Context, param: click.Parameter, incomplete: str  # noqa: ARG001
) -> list[CompletionItem]:  # fmt: skip
    """Offer the ids of invariants, with their claims."""
    from replaylife.lifecycle.invariants import INVARIANTS

    return [
        CompletionItem(id, help=kind.claim) for id, kind in INVARIANTS.items() if id.startswith(incomplete)
    ]


def complete_ids(
    ctx: click.Context, param: click.Parameter, incomplete: str  # noqa: ARG001
) -> list[CompletionItem]:  # fmt: skip
    """Offer everything that ``explain`` knows, with what it is."""
    from replaylife.lifecycle.faults import FAULTS
    from replaylife.lifecycle.invariants import INVARIANTS
    from replaylife.lifecycle.strategies import STRATEGIES

    known = {
        **dict.fromkeys(shipped_scenarios(), "scenario"),
        **dict.fromkeys(STRATEGIES, "strategy"),
        **dict.fromkeys(INVARIANTS, "invariant"),
        **dict.fromkeys(FAULTS, "fault"),
    }
    return [CompletionItem(id, help=what) for id, what in sorted(known.items()) if id.startswith(incomplete)]


def _beginning(incomplete: str, names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
