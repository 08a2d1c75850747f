"""What action and events of a step explain about requests, and which tokens each of them must have run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from replaylife.lifecycle.actions import Abort, Admit, Finish, Prefill, Retract
from replaylife.lifecycle.events import (
    AdmissionRejected,
    CheckpointCopied,
    Decoded,
    Finished,
    Matched,
    Prefilled,
    Published,
)
from replaylife.lifecycle.snapshot import RequestView, Transition, Violation
from replaylife.lifecycle.trace.succession import RULES, broken, differences, named
from replaylife.pool import EMPTY, Fold


def requests(t: Transition) -> Iterator[Violation]:
    """Check which requests come, go and change."""
    before = {request.id: request for request in t.before.requests}
    after = {request.id: request for request in t.after.requests}
    concerned = set(named(t.action))
    expected = before.keys() | _arriving(t)
    if isinstance(t.action, Finish | Retract | Abort):
        expected -= {t.action.request}
    for name in sorted(after.keys() - expected):
        yield broken(t, f"request {name}", "request", "there", "not there", "after this action it is")
    for name in sorted(expected - after.keys()):
        yield broken(t, f"request {name}", "request", "gone", "there", "after this action it is")
    for name, was in before.items():
        request = after.get(name)
        if request is None or request is was:
            continue
        allowed = RULES[type(t.action)].fields if name in concerned else frozenset()
        for changed in differences(was, request):
            if changed not in allowed:
                old, new = getattr(was, changed), getattr(request, changed)
                why = "this action does not touch it"
                yield broken(t, f"request {name}", changed, _brief(new), _brief(old), why)
    yield from _progress(t, before, after)


def _arriving(t: Transition) -> set[str]:
    rejected = any(isinstance(event, AdmissionRejected) for event in t.events)
    return {t.action.request} if isinstance(t.action, Admit) and not rejected else set()


def _brief(value: object) -> str:
    return f"cover {value.length}" if isinstance(value, Fold) else str(value)


def _progress(
    t: Transition, before: dict[str, RequestView], after: dict[str, RequestView]
) -> Iterator[Violation]:
    """Executed tokens move as Prefilled and Decoded say, from where they were."""
    reached = {name: request.executed for name, request in before.items()}
    for event in t.events:
        if not isinstance(event, Prefilled | Decoded):
            continue
        start = event.start if isinstance(event, Prefilled) else event.position
        end = event.end if isinstance(event, Prefilled) else start + 1
        kind, name = type(event).__name__, event.request
        if start != reached.get(name):
            yield broken(t, f"request {name}", kind, f"from {start}", reached.get(name), "it stood at")
        request = after.get(name)
        if request is not None and request.slot != event.slot:
            yield broken(t, f"request {name}", f"{kind}.slot", event.slot, request.slot, "its slot is")
        reached[name] = end
    for name, request in after.items():
        if name in before and request.executed != reached[name]:
            why = "as Prefilled and Decoded events say"
            yield broken(t, f"request {name}", "executed", request.executed, reached[name], why)
    for event in t.events:
        if isinstance(event, Prefilled) and isinstance(t.action, Prefill):
            count = event.end - event.start
            if count != t.action.count:
                why = "the action asks for"
                yield broken(t, f"request {event.request}", "Prefilled", count, t.action.count, why)
    yield from _copies(t, before, after)


def _copies(
    t: Transition, before: dict[str, RequestView], after: dict[str, RequestView]
) -> Iterator[Violation]:
    for name, request in after.items():
        was = before.get(name)
        run = sum(
            isinstance(event, CheckpointCopied) and event.purpose == "cow" and event.request == name
            for event in t.events
        )
        copies = (0 if was is None else was.copies) + run
        if request.copies != copies:
            why = "counted through CheckpointCopied events"
            yield broken(t, f"request {name}", "copies", request.copies, copies, why)


@dataclass(slots=True)
class _Life:
    """All tokens of a running request, and the fold of those it has executed."""

    tokens: list[int]
    prompt_len: int
    executed: Fold = EMPTY


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
        for event in t.events:
            life = self.lives.get(getattr(event, "request", None) or "")
            if life is not None and isinstance(event, Published):
                yield from self._published(t, event, life)
            if life is not None and isinstance(event, Finished):
                reply = tuple(life.tokens[life.prompt_len :])
                if event.reply != reply:
                    found, expected = (f"of {len(tokens)} tokens" for tokens in (event.reply, reply))
                    why = "the sampled tokens are another reply"
                    yield broken(t, f"request {event.request}", "Finished.reply", found, expected, why)
        for name in self.lives.keys() - {request.id for request in t.after.requests}:
            del self.lives[name]

    def _listen(self, t: Transition) -> None:
        for event in t.events:
            if isinstance(event, Matched) and isinstance(t.action, Admit):
                tokens = t.action.tokens
                cached = EMPTY.after(tokens[: max(0, event.state_len)])
                self.lives[t.action.request] = _Life(list(tokens), len(tokens), cached)
            elif isinstance(event, Prefilled | Decoded) and event.request in self.lives:
                life = self.lives[event.request]
                end = event.end if isinstance(event, Prefilled) else event.position + 1
                life.executed = life.executed.after(life.tokens[life.executed.length : max(0, end)])
                if event.sampled is not None:
                    life.tokens.append(event.sampled)

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
