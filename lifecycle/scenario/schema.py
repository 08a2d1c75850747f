"""The scenario language: what a YAML file may say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model, model_validator

from replaylife.lifecycle.profiles import PROFILES
from replaylife.lifecycle.scenario.fields import FaultId, ProfileId, StrategyId, Strict, Switch, Tokens
from replaylife.lifecycle.scenario.steps import STEPS
from replaylife.lifecycle.scenario.steps.base import StepBody
from replaylife.pool import DType, Gate, Gates, Keys

MAX_STEPS = 10_000


class ModelSection(Strict):
    """The tiny hybrid network."""

    gate: Gate = "gdn"
    """Decay: one per head (`gdn`, Gated DeltaNet) or one per channel (`kda`, Kimi Delta Attention)."""
    layers: Annotated[int, Field(ge=1, le=16)] = 2
    """Linear-attention layers."""
    heads: Annotated[int, Field(ge=1, le=64)] = 2
    """Heads of q and k."""
    value_heads: Annotated[int, Field(ge=1, le=64)] = 4
    """Heads of v and of the state; a multiple of `heads`."""
    key_dim: Annotated[int, Field(ge=1, le=256)] = 32
    """Channels of a head of q and k."""
    value_dim: Annotated[int, Field(ge=1, le=256)] = 16
    """Channels of a head of v."""
    conv_width: Annotated[int, Field(ge=2, le=8)] = 4
    """Taps of the short causal convolution."""
    width: Annotated[int, Field(ge=1, le=1024)] = 64
    """Channels of the residual stream."""
    vocab: Annotated[int, Field(ge=2, le=65536)] = 256
    """Token ids."""
    state_dtype: DType = "fp32"
    """Type of the recurrent state (temporal)."""
    conv_dtype: DType = "fp32"
    """Type of the convolution's window."""
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 53
    """Seed of weights and prompts."""
    witness: Switch = False
    """Use the model whose state tensors spell out the tokens they have absorbed."""

    @model_validator(mode="after")
    def _heads_divide(self) -> ModelSection:
        if self.value_heads % self.heads:
            raise ValueError(f"value_heads {self.value_heads} is no multiple of heads {self.heads}")
        return self


class CacheSection(Strict):
    """Sizes and policies of the cache."""

    strategy: StrategyId = "no_buffer"
    """When running requests leave checkpoints, and what they donate at the end."""
    slots: Annotated[int, Field(ge=2, le=4096)] = 16
    """Slots of recurrent state; slot 0 is reserved for padding."""
    kv_tokens: Tokens = 1024
    """Tokens of key-value cache."""
    page: Annotated[int, Field(ge=1, le=1024)] = 1
    """Tokens of a page: keys are whole pages; the block of `align`."""
    chunk_grid: Annotated[int, Field(ge=1, le=4096)] = 1
    """Checkpoints of prefill chunks lie on multiples of this and of the page."""
    replayssm: Switch = True
    """Keep decoded tokens as records in a ring and fold them now and then; off: fold every token."""
    ring_length: Annotated[int, Field(ge=1, le=64)] = 16
    """Records that a slot's ring holds (L): a full ring is folded."""
    ring_dtype: DType = "fp32"
    """Type of the ring's delta vectors, and of its keys unless `ring_key_dtype` says otherwise."""
    ring_key_dtype: DType | None = None
    """Type of the ring's keys; none: that of `ring_dtype`."""
    ring_keys: Keys = "raw"
    """Keep keys as they came in, their norm in the delta vector; or `normalised`, rounded to the key type."""
    ring_gates: Gates = "step"
    """Keep the log-decay of each step, or the `cumulative` sum since the last fold."""
    track_interval: Tokens = 256
    """Tokens between two track points of a running request."""
    finish: Literal["truncate", "fold"] = "truncate"
    """At finish, cut the key to the last fold, or fold what is in the ring."""
    track: Literal["snapshot", "fold-only"] = "snapshot"
    """At a track point, leave a checkpoint in the tree, or only fold."""
    overlap: Switch = False
    """Allow a step to be scheduled before the one before it has committed."""
    graph_rows: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Graph mode: static buffers of so many rows, captured once where there is a GPU."""
    host_slots: Annotated[int, Field(ge=0, le=4096)] = 0
    """Places for checkpoints in host memory (0: none): offloads, and backups of retracted requests."""
    peer_slots: Annotated[int, Field(ge=0, le=4096)] = 0
    """Places in another engine's pool that requests can be transferred to (0: none)."""
    profile: ProfileId | None = None
    """Refuse what a release refuses (`sglang-0.5.23`, `vllm-0.33.0`), with its reason."""

    @model_validator(mode="after")
    def _consistent(self) -> CacheSection:
        if self.strategy == "no_buffer" and (self.page, self.chunk_grid) != (1, 1):
            raise ValueError(
                f"no_buffer donates slots at any length: page {self.page} and chunk_grid {self.chunk_grid} "
                "must be 1; use extra_buffer for a grid"
            )
        refusal = None if self.profile is None else PROFILES[self.profile].refuses(self)
        if refusal is not None:
            raise ValueError(f"profile {self.profile} refuses this: {refusal}")
        return self


class OneOf(Strict):
    """One step: exactly one of these keys."""

    @model_validator(mode="after")
    def _exactly_one(self) -> OneOf:
        given = sorted(self.model_fields_set)
        if len(given) != 1:
            raise ValueError(
                f"a step has exactly one key ({', '.join(STEPS)}), found {', '.join(given) or 'nothing'}"
            )
        if getattr(self, given[0]) is None:
            raise ValueError(f"{given[0]}: found nothing, need a mapping such as {{request: a}}")
        return self

    @property
    def kind(self) -> str:
        """The step's key."""
        return next(iter(self.model_fields_set))

    @property
    def body(self) -> StepBody:
        """What stands under the key."""
        body: StepBody = getattr(self, self.kind)
        return body


_FIELDS: dict[str, Any] = {
    name: (body | None, Field(None, description=body.summary())) for name, body in STEPS.items()
}
if TYPE_CHECKING:
    Step = OneOf
else:
    Step = create_model("Step", __base__=OneOf, __doc__=OneOf.__doc__, __module__=__name__, **_FIELDS)


class ScenarioFile(Strict):
    """A scenario: what to build, what to do, what must hold."""

    title: Annotated[str, Field(min_length=1, max_length=200)]
    """One line that says what happens."""
    description: Annotated[str, Field(max_length=4000)] = ""
    """More, for readers: why it matters, and where it was seen."""
    model: ModelSection = Field(default_factory=ModelSection)
    """Sizes, dtypes and seed of the network; a default for each."""
    cache: CacheSection = Field(default_factory=CacheSection)
    """Slots, ring, grids and policies; a default for each."""
    faults: list[FaultId] = Field(default_factory=list)
    """Faults to seed, by id."""
    steps: Annotated[list[Step], Field(min_length=1, max_length=MAX_STEPS)]
    """What happens, in order; each entry has exactly one key."""
