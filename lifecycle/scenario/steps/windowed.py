"""What ``verify`` and ``draft`` have in common: the windows of one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, model_validator

from replaylife.lifecycle.scenario.fields import Name, Strict
from replaylife.lifecycle.scenario.steps.base import StepBody

if TYPE_CHECKING:
    from replaylife.lifecycle.actions import Windows
    from replaylife.lifecycle.scenario.stage import Stage

WindowTokens = Annotated[int, Field(ge=1, le=64)]


class WindowRow(Strict):
    """One row of a verify step."""

    request: Name
    """The request."""
    window: WindowTokens
    """Tokens that go through the model: the sampled one and drafts after it."""
    keep: WindowTokens
    """Tokens that are kept of them; the draft after these is wrong."""

    @model_validator(mode="after")
    def _keeps_no_more_than_it_has(self) -> WindowRow:
        if self.keep > self.window:
            raise ValueError(f"keep: {self.keep} of a window of {self.window}, need 1 to {self.window}")
        return self


class Windowed(StepBody):
    """Windows of one step: one request's, or several under ``rows``."""

    key: ClassVar[str]

    request: Name | None = None
    """The request, where there is one."""
    window: WindowTokens | None = None
    """Tokens that go through the model: the sampled one and drafts after it. At most the ring's length."""
    keep: WindowTokens | None = None
    """Tokens that are kept of them, 1 to all; the draft after these is wrong."""
    rows: Annotated[list[WindowRow], Field(min_length=1)] | None = None
    """Several requests' windows in one step, each with `request`, `window` and `keep`."""

    @model_validator(mode="after")
    def _one_form(self) -> Windowed:
        single = (self.request, self.window, self.keep)
        if self.rows is None and None in single:
            raise ValueError("need request, window and keep, or rows with these for each")
        if self.rows is not None and single != (None, None, None):
            raise ValueError("found rows beside request, window or keep; need one form or the other")
        _ = self.windows
        return self

    @property
    def windows(self) -> Windows:
        """The windows as the actions take them."""
        if self.rows is not None:
            return tuple((row.request, row.window, row.keep) for row in self.rows)
        row = WindowRow(request=self.request or "", window=self.window or 0, keep=self.keep or 0)
        return ((row.request, row.window, row.keep),)

    def rehearse_windows(self, stage: Stage, times: int) -> None:
        """Only after the prompts; a witness has a limit, for rejected tokens too."""
        for name, window, keep in self.windows:
            life = stage.decoding(name, self.key)
            if life is not None:
                life.decoded += times * keep
                stage.fit_witness(name, life.length - 1 - keep + window)
