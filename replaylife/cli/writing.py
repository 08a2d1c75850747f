"""Writes what a command exports: a file that holds something already is left alone, unless told otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from replaylife.cli.errors import CannotWork


def check_writable(wanted: Mapping[str, str], source: str, *, force: bool) -> None:
    """Raise :class:`CannotWork` for a file that is a directory, holds something, or is the trace itself.

    ``wanted`` maps the option to its file; none of them is opened.
    """
    if force and not wanted:
        raise CannotWork("--force lets a file be replaced: name one to be written, or leave it out")
    for option, name in wanted.items():
        path = Path(name)
        if path.is_dir():
            raise CannotWork(f"{option} {name}: is a directory, need a file")
        if path.exists() and Path(source).exists() and path.samefile(source):
            raise CannotWork(f"{option} {name}: is the trace itself; choose another name")
        if path.is_file() and path.stat().st_size and not force:
            raise CannotWork(f"{option} {name}: exists and is not empty; choose another name, or --force")


def write(option: str, name: str, text: str) -> None:
    """Write a file and say so on stderr. Raises :class:`CannotWork` if that fails."""
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CannotWork(f"{option} {name}: cannot be written: {error.strerror or error}") from None
    click.echo(f"wrote {name} ({len(text.encode()):,} bytes)", err=True)
