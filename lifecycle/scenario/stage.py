"""What is known of a scenario's requests by lengths alone, before anything is played."""

from __future__ import annotations

from dataclasses import dataclass, field

from replaylife.lifecycle.config import ModelConfig
from replaylife.lifecycle.names import nearest
from replaylife.lifecycle.scenario.errors import Problem


@dataclass(slots=True)
class Life:
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
class Stage:
    """Where steps are rehearsed: the lives so far, and the ``line`` of the step that is on.

    A step complains at its line; what it asks for and cannot have is complained of already, and ``None``.
    """

    model: ModelConfig
    line: int = 1
    lives: dict[str, Life] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def complain(self, message: str) -> None:
        """Book a mistake."""
        self.problems.append(Problem(self.line, message))

    def enter(self, name: str, prompt_len: int) -> None:
        """A new request comes in."""
        may_hit = any(life.prefilled or life.complete for life in self.lives.values())
        self.lives[name] = Life(self.line, prompt_len, may_hit)

    def reenter(self, name: str) -> None:
        """A request begins its next life with every token known so far; anything of it may be cached."""
        life = self.lives[name]
        self.lives[name] = Life(life.admitted, life.length, may_hit=True)

    def find(self, name: str) -> Life | None:
        """Return a request that has been admitted."""
        life = self.lives.get(name)
        if life is None:
            self.complain(f"no request {name!r} has been admitted{nearest(name, self.lives)}")
        return life

    def running(self, name: str) -> Life | None:
        """Return a request that is running."""
        life = self.find(name)
        if life is None:
            return None
        if life.aborted:
            self.complain(f"request {name!r} was aborted; admit a new one")
        elif life.retracted:
            self.complain(f"request {name!r} is retracted; add a 'resume' step first")
        elif life.finished:
            self.complain(f"request {name!r} is finished; a later turn is a new request that continues it")
        else:
            return life
        return None

    def decoding(self, name: str, verb: str) -> Life | None:
        """Return a request whose prompt is prefilled; ``verb`` says what for."""
        life = self.running(name)
        if life is not None and not life.complete:
            self.complain(f"{verb} of {name!r} before its prompt is prefilled; add a 'prefill' step first")
            return None
        return life

    def fit_witness(self, name: str, tokens: int) -> None:
        """Complain of more tokens than a witness run has positions for."""
        capacity = self.model.heads * self.model.key_dim
        if self.model.witness and tokens > capacity:
            self.complain(
                f"a witness run has heads * key_dim = {capacity} positions, {name!r} comes to "
                f"{tokens} tokens; shorten it or raise model.key_dim"
            )
