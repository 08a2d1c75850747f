"""What a run is: its title, its engine, the command that repeats it, and the words of its trace."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from rich.text import Text

from replaylife.lifecycle.config import EngineConfig
from replaylife.lifecycle.faults import FAULTS
from replaylife.view.look import BAD, BOLD, DIM, GUTTER, RING, STATE, Look, clean, hang

REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Run:
    """One scenario on one engine. ``path`` is as people should read it, ``command`` repeats the run.

    ``engine`` is ``reference`` or the name of an adapter, ``engine_title`` what the adapter calls it.
    """

    name: str
    title: str
    path: str
    config: EngineConfig
    faults: tuple[str, ...]
    command: tuple[str, ...]
    engine: str = REFERENCE
    engine_title: str = ""


def engine_words(run: Run) -> str:
    """Say which engine a run is on: backend, device, gate and dtypes."""
    model, cache, backend = run.config.model, run.config.cache, run.config.backend
    if run.engine != REFERENCE:
        return f"{run.engine_title}, on {run.config.device}; {model.gate}, positions read off its tensors"
    where = "ledger only, no tensors" if backend == "none" else f"{backend} on {run.config.device}"
    kind = "witness model, " if model.witness and backend != "none" else ""
    dtypes = f"state {model.state_dtype}, conv {model.conv_dtype}"
    if cache.replayssm:
        dtypes += f", ring {cache.ring_dtype}"
        if cache.ring_key_dtype:
            dtypes += f" with {cache.ring_key_dtype} keys"
    return f"{where}; {kind}{model.gate}, {dtypes}"


def cache_words(run: Run) -> str:
    """Say how the cache is set up, as far as a reader of the trace needs it."""
    cache = run.config.cache
    ring = f"ring of {cache.ring_length}" if cache.replayssm else "ReplaySSM off"
    track = f"track point every {cache.track_point}"
    return f"{cache.strategy}, {ring}, finish {cache.finish}, {track}"


def heading(run: Run, look: Look) -> Iterator[Text]:
    """Yield the title of a run, what it runs on, and which faults are seeded."""
    yield from hang(Text(clean(run.title), BOLD), 0, look.width)
    yield from hang(Text(f"{run.name} {look.signs.dot} {cache_words(run)}", DIM), 0, look.width, deeper=2)
    yield from hang(Text(engine_words(run), DIM), 0, look.width, deeper=2)
    for fault in run.faults:
        known = FAULTS.get(fault)
        title = f": {known.title}" if known is not None else ""
        yield from hang(Text.assemble((f"fault {fault}", BAD), title), 0, look.width, deeper=2)


def legend(run: Run, look: Look) -> Iterator[Text]:
    """Yield the words of the trace, for who reads one for the first time."""
    signs, length = look.signs, run.config.cache.ring_length
    rows: list[tuple[str, str, str]] = [
        ("committed", "none", "tokens of the request that the host has seen"),
        ("temporal", STATE, "tokens folded into the recurrent state"),
        ("ring", RING, f"newer tokens, kept as records; {length} of them are folded at once"),
        ("conv", "none", "token at which the short convolution's window ends"),
        (f"{signs.state} node", STATE, "offers the state of its key's tokens for reuse"),
        (f"{signs.no_state} node", "none", "holds key-value only, no state (or a tombstone of one)"),
    ]
    yield Text()
    for word, style, meaning in rows:
        if word != "ring" or run.config.cache.replayssm:
            label = Text.assemble("  ", (word.ljust(11), style), (meaning, DIM))
            yield from hang(label, 0, look.width, deeper=13)


def reproduce_line(run: Run, indent: int = GUTTER) -> Text:
    """Return the command that repeats the run, unwrapped, so that it can be copied."""
    command = shlex.join(run.command)
    return Text.assemble(" " * indent, ("reproduce: ", DIM), command, no_wrap=True, overflow="ignore")
