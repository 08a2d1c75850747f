"""Which tokens each running request must have run, by those it was given and those it sampled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from replaylife.lifecycle.actions import Abort, AbortCopy, Action, Admit, Finish, Retract, Transfer
from replaylife.lifecycle.events import (
    Accepted,
    CopyFinished,
    Decoded,
    Drafted,
    Finished,
    Matched,
    Prefilled,
    Published,
    Released,
)
from replaylife.lifecycle.snapshot import RequestView, Transition, Violation
from replaylife.lifecycle.trace.succession import broken
from replaylife.pool import EMPTY, Fold


@dataclass(slots=True)
class _Life:
    """All tokens of a running request, the fold of those it has executed, and how its end was asked for."""

    tokens: list[int]
    prompt_len: int
    executed: Fold = EMPTY
    closing: type[Action] | None = None
    drafts: tuple[int, ...] = ()

    def draft(self, position: int, tokens: tuple[int, ...]) -> None:
        """A window has run: the token sampled last, which is known, and drafts."""
        self.drafts = tokens
        self.tokens[position + 1 :] = tokens[1:]
        self.executed = self.executed.after(tokens)

    def accept(self, position: int, event: Accepted) -> None:
        """Of the window these are kept, and one more has been sampled."""
        self.drafts = ()
        self.tokens[position + len(event.tokens) :] = event.sampled[-1:]
        self.executed = EMPTY.after(self.tokens[: position + len(event.tokens)])


@dataclass(slots=True)
class Transcripts:
    """Follows every running request from the tokens it was given and those it sampled.

    Holds the tokens of requests that are running now, no others. A request whose admission was not seen is
    left alone.
    """

    lives: dict[str, _Life] = field(default_factory=dict)

    def follow(self, t: Transition) -> Iterator[Violation]:
        """Take note of one step, then check what requests and published nodes claim to have absorbed."""
        self._listen(t)
        for request in t.after.requests:
            life = self.lives.get(request.id)
            if life is not None and request.tokens != life.executed:
                yield self._differs(t, f"request {request.id}", "tokens", request.tokens, life.executed)
            if life is not None and request.drafts != life.drafts:
                found, expected = (f"of {len(drafts)} tokens" for drafts in (request.drafts, life.drafts))
                why = "by the window that Drafted tells of, and no Accepted has closed, they are"
                yield broken(t, f"request {request.id}", "drafts", found, expected, why)
            if life is not None and request.stamps:
                yield from self._stamped(t, request, life)
        for event in t.events:
            life = self.lives.get(getattr(event, "request", None) or "")
            if life is not None and isinstance(event, Published):
                yield from self._published(t, event, life)
            if life is not None and isinstance(event, Finished | Released):
                yield from self._ended(t, event, life)
        for name in self.lives.keys() - {request.id for request in t.after.requests}:
            del self.lives[name]

    def _listen(self, t: Transition) -> None:
        if isinstance(t.action, Finish | Retract | Abort) and t.action.request in self.lives:
            self.lives[t.action.request].closing = type(t.action)
        if isinstance(t.action, Transfer) and t.action.request in self.lives:
            self.lives[t.action.request].closing = Retract  # it leaves as one that may come back
        if isinstance(t.action, AbortCopy) and (name := t.action.of.removeprefix("request ")) in self.lives:
            self.lives[name].closing = None
        for event in t.events:
            if isinstance(event, CopyFinished) and event.kind == "restore":
                life = self.lives[event.of.removeprefix("request ")]
                life.executed = EMPTY.after(life.tokens[: max(0, event.length)])
            elif isinstance(event, Matched) and isinstance(t.action, Admit):
                tokens = t.action.tokens
                cached = EMPTY.after(tokens[: max(0, event.state_len)])
                self.lives[t.action.request] = _Life(list(tokens), len(tokens), cached)
            elif isinstance(event, Prefilled | Decoded) and event.request in self.lives:
                life = self.lives[event.request]
                end = event.end if isinstance(event, Prefilled) else event.position + 1
                life.executed = life.executed.after(life.tokens[life.executed.length : max(0, end)])
                if event.sampled is not None:
                    life.tokens.append(event.sampled)
            elif isinstance(event, Drafted) and event.request in self.lives:
                self.lives[event.request].draft(max(0, event.position), event.tokens)
            elif isinstance(event, Accepted) and event.request in self.lives:
                self.lives[event.request].accept(max(0, event.position), event)

    def _stamped(self, t: Transition, request: RequestView, life: _Life) -> Iterator[Violation]:
        """A stamp names tokens of the request, in order from the first."""
        was = t.before.request(request.id)
        for slot, stamp in request.stamps:
            if was is not None and (slot, stamp) in was.stamps:
                continue
            due = EMPTY.after(life.tokens[: max(0, stamp.length)])
            if stamp != due:
                yield self._differs(t, f"request {request.id}", f"stamp of slot {slot}", stamp, due)

    def _ended(self, t: Transition, event: Finished | Released, life: _Life) -> Iterator[Violation]:
        """A request ends as it was asked to, and with the tokens that the host had seen by then."""
        subject, kind = f"request {event.request}", type(event).__name__
        asked = "nothing" if life.closing is None else life.closing.__name__
        ends = "Finish" if isinstance(event, Finished) else "Retract" if event.retracted else "Abort"
        if asked != ends:
            yield broken(t, subject, kind, f"as after {ends}", f"as after {asked}", "it was asked to")
        was = t.before.request(event.request)
        if was is not None and event.committed != was.committed:
            why = "the host had seen"
            yield broken(t, subject, f"{kind}.committed", event.committed, was.committed, why)
        if not isinstance(event, Finished) or was is None:
            return
        if event.key_len + event.dropped != event.committed:
            why = "the committed tokens less those in the key"
            due = event.committed - event.key_len
            yield broken(t, subject, "Finished.dropped", event.dropped, due, why)
        reply = tuple(life.tokens[life.prompt_len : was.committed + 1])
        if event.reply != reply:
            found, expected = (f"of {len(tokens)} tokens" for tokens in (event.reply, reply))
            why = "the sampled tokens that the host has seen are another reply"
            yield broken(t, subject, "Finished.reply", found, expected, why)

    def _published(self, t: Transition, event: Published, life: _Life) -> Iterator[Violation]:
        node = t.after.node(event.node)
        if node is not None:
            key = life.executed
            if node.key.length != key.length:
                key = EMPTY.after(life.tokens[: node.key.length])
            if node.key != key:
                yield self._differs(t, f"node {node.id}", "key", node.key, key)

    def _differs(self, t: Transition, subject: str, field: str, found: Fold, expected: Fold) -> Violation:
        same = " (other tokens)" if found.length == expected.length else ""
        why = "by the tokens of the admission and those sampled since"
        lengths = f"covers {found.length}{same}", f"{expected.length}"
        return broken(t, subject, field, *lengths, why)
