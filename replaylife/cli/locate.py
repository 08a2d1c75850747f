"""Finds scenarios: files by path, shipped ones by name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

from replaylife.cli.errors import CannotWork
from replaylife.lifecycle.names import nearest

SUFFIXES = (".yaml", ".yml")


def shipped_scenarios() -> dict[str, str]:
    """Return the name and file name of every scenario in the package."""
    names = (entry.name for entry in files("replaylife.scenarios").iterdir())
    return {name.removesuffix(".yaml"): name for name in sorted(names) if name.endswith(".yaml")}


@contextmanager
def scenario_file(argument: str) -> Iterator[Path]:
    """Yield the file that an argument means: a path if it looks like one, else a shipped scenario's name.

    Raises :class:`CannotWork`, with the nearest name, where there is neither.
    """
    shipped = shipped_scenarios()
    looks_like_path = argument.endswith(SUFFIXES) or os.sep in argument
    if not looks_like_path and argument in shipped:
        with as_file(files("replaylife.scenarios") / shipped[argument]) as path:
            yield path
        return
    path = Path(argument)
    if path.is_dir():
        raise CannotWork(
            f"{argument!r} is a directory, need a scenario file; give the files in it one by one"
        )
    if not path.exists():
        kind = "file" if looks_like_path else "file and no shipped scenario"
        hint = nearest(path.stem or argument, shipped)
        raise CannotWork(f"no {kind} is named {argument!r}{hint}")
    yield path


def readable_path(path: Path) -> str:
    """Return the path as people type it: relative where it lies below the working directory."""
    try:
        return str(path.resolve().relative_to(Path.cwd().resolve()))
    except (ValueError, OSError):
        return str(path)
