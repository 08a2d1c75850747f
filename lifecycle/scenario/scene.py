"""What a step sees of the run while it is played."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from replaylife.lifecycle.config import ModelConfig
from replaylife.lifecycle.events import Accepted, Decoded, Event, Finished, Prefilled, Released
from replaylife.lifecycle.scenario.expectations import Chronicle
from replaylife.lifecycle.scenario.fields import Prompt
from replaylife.lifecycle.scenario.prompts import prompt_tokens
from replaylife.lifecycle.snapshot import Snapshot


@dataclass(slots=True)
class Scene:
    """The run so far: the engine's ``snapshot``, the last action's ``events``, every token of every request.

    ``transcripts`` has the tokens by request, prompt and reply; ``chronicle`` what expectations
    ask for.
    """

    model: ModelConfig
    snapshot: Snapshot
    chronicle: Chronicle
    events: tuple[Event, ...] = ()
    transcripts: dict[str, list[int]] = field(default_factory=dict)

    def prompt(self, prompt: Prompt, owner: str, continues: str | None) -> tuple[int, ...]:
        """Return a prompt's tokens, those of the request that it continues first."""
        before = [] if continues is None else self.transcripts[continues]
        return (*before, *prompt_tokens(prompt, owner, self.model.vocab, self.model.seed))

    def listen(self, events: Iterable[Event]) -> None:
        """Append what was sampled to the transcripts; cut what a request's end discarded.

        A request's tokens are those that the host has seen go in, and the one sampled after them. Call it
        while ``snapshot`` is still that before the events.
        """
        for event in events:
            if isinstance(event, Decoded | Prefilled) and event.sampled is not None:
                self.transcripts[event.request].append(event.sampled)
            elif isinstance(event, Accepted):
                self.transcripts[event.request] += (*event.tokens[1:], *event.sampled[-1:])
            elif isinstance(event, Finished | Released):
                request = self.snapshot.request(event.request)
                known = event.committed + 1
                if request is not None and known > request.prompt_len:
                    del self.transcripts[event.request][known:]
