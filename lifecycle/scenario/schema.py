"""The scenario language: what a YAML file may say."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from replaylife.lifecycle.faults import FAULTS
from replaylife.lifecycle.invariants import INVARIANTS
from replaylife.lifecycle.names import nearest
from replaylife.lifecycle.strategies import STRATEGIES
from replaylife.pool import DType, Gate

MAX_TOKENS = 100_000
MAX_STEPS = 10_000


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


class Strict(BaseModel):
    """Refuses unknown keys and silent conversions."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ModelSection(Strict):
    """The tiny hybrid network."""

    gate: Gate = "gdn"
    layers: Annotated[int, Field(ge=1, le=16)] = 2
    heads: Annotated[int, Field(ge=1, le=64)] = 2
    value_heads: Annotated[int, Field(ge=1, le=64)] = 4
    key_dim: Annotated[int, Field(ge=1, le=256)] = 32
    value_dim: Annotated[int, Field(ge=1, le=256)] = 16
    conv_width: Annotated[int, Field(ge=2, le=8)] = 4
    width: Annotated[int, Field(ge=1, le=1024)] = 64
    vocab: Annotated[int, Field(ge=2, le=65536)] = 256
    state_dtype: DType = "fp32"
    conv_dtype: DType = "fp32"
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 53
    witness: Switch = False

    @model_validator(mode="after")
    def _heads_divide(self) -> ModelSection:
        if self.value_heads % self.heads:
            raise ValueError(f"value_heads {self.value_heads} is no multiple of heads {self.heads}")
        return self


class CacheSection(Strict):
    """Sizes and policies of the cache."""

    strategy: StrategyId = "no_buffer"
    slots: Annotated[int, Field(ge=2, le=4096)] = 16
    kv_tokens: Tokens = 1024
    replayssm: Switch = True
    ring_length: Annotated[int, Field(ge=1, le=64)] = 16
    ring_dtype: DType = "fp32"
    track_interval: Tokens = 256
    finish: Literal["truncate", "fold"] = "truncate"
    track: Literal["snapshot", "fold-only"] = "snapshot"


class Text(Strict):
    """The first ``tokens`` tokens of a named text: the same for every request that names it."""

    text: Name
    tokens: Tokens


Prompt = Tokens | Annotated[list[Tokens | Text], Field(min_length=1, max_length=64)]


class Admit(Strict):
    """A new request. ``prompt`` is a number of tokens of its own, or a list of numbers and named texts."""

    request: Name
    prompt: Prompt
    continues: Name | None = None


class Prefill(Strict):
    """Prompt tokens, chunk by chunk; one chunk with all that is left if none are given."""

    request: Name
    chunks: Annotated[list[Tokens], Field(min_length=1, max_length=1024)] | None = None


class Decode(Strict):
    """``n`` decode forwards of one request."""

    request: Name
    n: Tokens


class Evict(Strict):
    """Evict the least recently used: so many states, or leaves until so many tokens are freed."""

    states: Tokens | None = None
    kv_tokens: Tokens | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Evict:
        if (self.states is None) == (self.kv_tokens is None):
            raise ValueError("need exactly one of states, kv_tokens")
        return self


class Match(Strict):
    """What a prompt would reuse: ``kv`` tokens in the tree, a state of ``state`` tokens. Changes nothing."""

    prompt: Prompt
    continues: Name | None = None
    kv: Count | None = None
    state: Count


class OfRequest(Strict):
    """A step that names nothing but its request."""

    request: Name


class NodeExpectation(Strict):
    """A node of the tree by the length of its key and of its state (null: none)."""

    key: Count
    state: Count | None


class ViolationExpectation(Strict):
    """A violation by invariant and, if given, subject (as in ``node 4``)."""

    invariant: InvariantId
    subject: str | None = None


class DamageExpectation(Strict):
    """Where a request's logits part from the cold run's, and by how many tolerances at least."""

    position: Count
    times_tolerance: Annotated[int, Field(ge=1)] = 100


class Expect(Strict):
    """What must be true at this point.

    ``tree``: exactly these nodes, in any order. ``cached``: tokens that a request took from the tree.
    ``cursor``: write_pos of a request's slot. ``owner``: who holds a slot (``free``, ``tree 3`` for node 3,
    ``request a``). ``free_slots``: length of the free list. ``rejected``: these admissions, and no others,
    were rejected and not made good since.

    ``violations`` and ``numeric``: the action just applied broke exactly these for the first time, judged
    from positions and from tensors. They, and what follows from them, then do not fail the run.

    Judged only where there are tensors: ``numeric``; ``logits``: the first position at which a request's
    logits part from the cold run's; ``reply``: a finished request's reply is the cold run's, or differs.
    """

    tree: list[NodeExpectation] | None = None
    cached: dict[Name, Count] | None = None
    cursor: dict[Name, Count] | None = None
    owner: dict[int, str] | None = None
    free_slots: Count | None = None
    rejected: list[Name] | None = None
    violations: list[ViolationExpectation] | None = None
    numeric: list[ViolationExpectation] | None = None
    logits: dict[Name, DamageExpectation] | None = None
    reply: dict[Name, Literal["cold", "differs"]] | None = None


class Step(Strict):
    """One step: exactly one of these keys."""

    admit: Admit | None = None
    prefill: Prefill | None = None
    decode: Decode | None = None
    checkpoint: OfRequest | None = None
    finish: OfRequest | None = None
    fold: OfRequest | None = None
    retract: OfRequest | None = None
    resume: OfRequest | None = None
    abort: OfRequest | None = None
    evict: Evict | None = None
    match: Match | None = None
    expect: Expect | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Step:
        if len(self.model_fields_set) != 1:
            found = ", ".join(sorted(self.model_fields_set)) or "nothing"
            raise ValueError(
                f"a step has exactly one key ({', '.join(type(self).model_fields)}), found {found}"
            )
        return self


class ScenarioFile(Strict):
    """A scenario: what to build, what to do, what must hold."""

    title: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=4000)] = ""
    model: ModelSection = Field(default_factory=ModelSection)
    cache: CacheSection = Field(default_factory=CacheSection)
    faults: list[FaultId] = Field(default_factory=list)
    steps: Annotated[list[Step], Field(min_length=1, max_length=MAX_STEPS)]
