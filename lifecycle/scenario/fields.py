"""The kinds of values that scenario files are made of."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from replaylife.lifecycle.faults import FAULTS
from replaylife.lifecycle.invariants import INVARIANTS
from replaylife.lifecycle.names import nearest
from replaylife.lifecycle.profiles import PROFILES
from replaylife.lifecycle.strategies import STRATEGIES

MAX_TOKENS = 100_000


def _switch(value: Any) -> Any:
    """YAML 1.2 reads ``on`` and ``off`` as text; accept them beside true and false."""
    return {"on": True, "off": False}.get(value, value) if isinstance(value, str) else value


def _known(kind: str, names: Any) -> BeforeValidator:
    def check(value: Any) -> Any:
        if isinstance(value, str) and value not in names:
            raise ValueError(f"no {kind} is named {value!r}{nearest(value, names)}")
        return value

    return BeforeValidator(check)


Switch = Annotated[bool, BeforeValidator(_switch)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS)]
Count = Annotated[int, Field(ge=0, le=MAX_TOKENS)]
InvariantId = Annotated[str, _known("invariant", INVARIANTS)]
FaultId = Annotated[str, _known("fault", FAULTS)]
StrategyId = Annotated[str, _known("strategy", STRATEGIES)]
ProfileId = Annotated[str, _known("profile", PROFILES)]


class Strict(BaseModel):
    """Refuses unknown keys and silent conversions. The text below a field is its description."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class Text(Strict):
    """The first ``tokens`` tokens of a named text: the same for every request that names it."""

    text: Name
    """The text's name."""
    tokens: Tokens
    """How many of its tokens."""


Prompt = Tokens | Annotated[list[Tokens | Text], Field(min_length=1, max_length=64)]


def prompt_len(prompt: Prompt) -> int:
    """Return how many tokens a prompt has, whatever they are."""
    segments = prompt if isinstance(prompt, list) else [prompt]
    return sum(segment if isinstance(segment, int) else segment.tokens for segment in segments)
