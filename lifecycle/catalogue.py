"""Collects what a package's files define, so that a new member is one file and one line in a list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from inspect import isabstract
from typing import Any, TypeVar

T = TypeVar("T")


def instances(package: str, files: Iterable[str], kind: type[T]) -> Iterator[T]:
    """Yield the instances of ``kind`` that the files define, in the order of files and of lines."""
    for value in _values(package, files):
        if isinstance(value, kind):
            yield value


def classes(package: str, files: Iterable[str], kind: type[T]) -> Iterator[type[T]]:
    """Yield the concrete public subclasses of ``kind`` that the files themselves define, in order."""
    for name in files:
        for value in _values(package, (name,)):
            if isinstance(value, type) and issubclass(value, kind) and _is_member(value, f"{package}.{name}"):
                yield value


def _is_member(value: type, home: str) -> bool:
    return value.__module__ == home and not isabstract(value) and not value.__name__.startswith("_")


def _values(package: str, files: Iterable[str]) -> Iterator[Any]:
    for name in files:
        yield from list(vars(import_module(f"{package}.{name}")).values())
