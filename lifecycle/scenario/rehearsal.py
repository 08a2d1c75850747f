"""Goes through a scenario's steps by lengths alone, and says which cannot happen where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from replaylife.lifecycle.config import ModelConfig
from replaylife.lifecycle.names import nearest
from replaylife.lifecycle.scenario.errors import Problem
from replaylife.lifecycle.scenario.schema import Admit, Decode, Expect, Prefill, Step


@dataclass(slots=True)
class _Life:
    """What is known of a request without running it.

    With ``may_hit`` a cached prefix can shorten what is prefilled, so that fewer tokens complete the prompt:
    it is then ``complete`` for all that is known here, but not for ``certain``.
    """

    admitted: int
    prompt_len: int
    may_hit: bool
    prefilled: int = 0
    complete: bool = False
    certain: bool = False
    decoded: int = 0
    finished: bool = False
    retracted: bool = False
    aborted: bool = False

    @property
    def length(self) -> int:
        """Prompt and reply tokens, the sampled one included."""
        return self.prompt_len + self.decoded + (1 if self.complete else 0)


@dataclass(slots=True)
class _Rehearsal:
    model: ModelConfig
    lives: dict[str, _Life] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def complain(self, line: int, message: str) -> None:
        self.problems.append(Problem(line, message))

    def find(self, line: int, name: str) -> _Life | None:
        life = self.lives.get(name)
        if life is None:
            self.complain(line, f"no request {name!r} has been admitted{nearest(name, self.lives)}")
        return life

    def running(self, line: int, name: str) -> _Life | None:
        life = self.find(line, name)
        if life is not None and life.aborted:
            self.complain(line, f"request {name!r} was aborted; admit a new one")
            return None
        if life is not None and life.retracted:
            self.complain(line, f"request {name!r} is retracted; add a 'resume' step first")
            return None
        if life is not None and life.finished:
            self.complain(
                line, f"request {name!r} is finished; a later turn is a new request that continues it"
            )
            return None
        return life

    def decoding(self, line: int, name: str, verb: str) -> _Life | None:
        life = self.running(line, name)
        if life is not None and not life.complete:
            self.complain(
                line, f"{verb} of {name!r} before its prompt is prefilled; add a 'prefill' step first"
            )
            return None
        return life

    def admit(self, line: int, step: Admit) -> None:
        if step.request in self.lives:
            first = self.lives[step.request].admitted
            self.complain(
                line, f"request {step.request!r} was admitted in line {first} already; use another name"
            )
            return
        earlier = 0
        if step.continues is not None:
            before = self.find(line, step.continues)
            if before is None:
                return
            if not before.finished and not before.aborted:
                self.complain(line, f"{step.continues!r} is not finished; a turn continues a finished one")
                return
            earlier = before.length
        segments = step.prompt if isinstance(step.prompt, list) else [step.prompt]
        own = sum(segment if isinstance(segment, int) else segment.tokens for segment in segments)
        may_hit = any(life.prefilled or life.complete for life in self.lives.values())
        self.lives[step.request] = _Life(line, earlier + own, may_hit)

    def prefill(self, line: int, step: Prefill) -> None:
        life = self.running(line, step.request)
        if life is None:
            return
        if life.certain:
            self.complain(line, f"the prompt of {step.request!r} is prefilled already")
        elif step.chunks is None:
            life.complete = life.certain = True
        else:
            life.prefilled += sum(step.chunks)
            if life.prefilled > life.prompt_len:
                self.complain(
                    line,
                    f"chunks of {step.request!r} add up to {life.prefilled} tokens, "
                    f"its prompt has {life.prompt_len}",
                )
            life.certain = life.prefilled >= life.prompt_len
            life.complete = life.may_hit or life.certain

    def decode(self, line: int, step: Decode) -> None:
        life = self.decoding(line, step.request, "decode")
        if life is None:
            return
        life.decoded += step.n
        capacity = self.model.heads * self.model.key_dim
        if self.model.witness and life.length - 1 > capacity:
            self.complain(
                line,
                f"a witness run has heads * key_dim = {capacity} positions, {step.request!r} comes to "
                f"{life.length - 1} tokens; shorten it or raise model.key_dim",
            )

    def end(self, line: int, name: str) -> None:
        life = self.decoding(line, name, "finish")
        if life is not None:
            life.finished = True

    def retract(self, line: int, name: str) -> None:
        life = self.running(line, name)
        if life is not None:
            life.retracted = True

    def resume(self, line: int, name: str) -> None:
        life = self.find(line, name)
        if life is None:
            return
        if not life.retracted:
            self.complain(line, f"request {name!r} is not retracted; only a retracted request resumes")
            return
        # Its next life has every token known so far as its prompt; anything of it may be cached.
        self.lives[name] = _Life(life.admitted, life.length, may_hit=True)

    def abort(self, line: int, name: str) -> None:
        life = self.running(line, name)
        if life is not None:
            life.aborted = True

    def expect(self, line: int, step: Expect) -> None:
        for name in {**(step.cached or {}), **(step.cursor or {})}:
            self.running(line, name)
        for name in step.logits or {}:
            self.find(line, name)
        for name in step.reply or {}:
            life = self.find(line, name)
            if life is not None and not life.finished:
                self.complain(line, f"{name!r} is not finished; its reply is known after 'finish'")


def rehearse(model: ModelConfig, steps: Sequence[tuple[int, Step]]) -> list[Problem]:
    """Return what cannot happen in this order, whatever the cache does; the engine refuses the rest."""
    stage = _Rehearsal(model)
    for line, step in steps:
        if step.admit is not None:
            stage.admit(line, step.admit)
        elif step.prefill is not None:
            stage.prefill(line, step.prefill)
        elif step.decode is not None:
            stage.decode(line, step.decode)
        elif step.match is not None and step.match.continues is not None:
            stage.find(line, step.match.continues)
        elif step.expect is not None:
            stage.expect(line, step.expect)
        else:
            _rehearse_request(stage, line, step)
    return stage.problems


def _rehearse_request(stage: _Rehearsal, line: int, step: Step) -> None:
    """The steps that name nothing but their request."""
    if step.checkpoint is not None:
        stage.decoding(line, step.checkpoint.request, "checkpoint")
    elif step.fold is not None:
        stage.decoding(line, step.fold.request, "fold")
    elif step.finish is not None:
        stage.end(line, step.finish.request)
    elif step.retract is not None:
        stage.retract(line, step.retract.request)
    elif step.resume is not None:
        stage.resume(line, step.resume.request)
    elif step.abort is not None:
        stage.abort(line, step.abort.request)
