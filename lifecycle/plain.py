"""Data that is made by the million: frozen for whoever checks types, and cheap to make at run time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def plain(kind: type[T]) -> type[T]:
    """Make a class a dataclass with slots, to be compared and hashed by value.

    Its attributes are not to be assigned, and a type checker says so. At run time nothing looks: a frozen
    dataclass pays for that at every construction, and a search makes a dozen for each action that it tries.
    """
    return dataclass(slots=True, unsafe_hash=True)(kind)
