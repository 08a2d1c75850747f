"""Claims about speculative decoding: what a verify window may keep."""

from __future__ import annotations

from collections.abc import Iterable

from replaylife.lifecycle.events import Accepted
from replaylife.lifecycle.invariants.base import Invariant
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import Transition, Violation


class KeptAsSampled(Invariant):
    """Speculation changes how fast a reply comes, not what it says."""

    id = "kept-as-sampled"
    claim = "each draft that a window keeps is the token that the model sampled after the one before it"
    only_after = frozenset({Accepted})

    def applies_to(self, capabilities: Capabilities) -> bool:
        """Only where there are verify windows."""
        return capabilities.speculation

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check every window that was closed."""
        for event in t.events:
            if not isinstance(event, Accepted):
                continue
            pairs = zip(event.tokens[1:], event.sampled, strict=False)
            wrong = next((i for i, (kept, sampled) in enumerate(pairs) if kept != sampled), None)
            if wrong is not None:
                place = event.position + wrong + 2
                kept, sampled = event.tokens[wrong + 1], event.sampled[wrong]
                yield self.broken(
                    f"request {event.request}",
                    f"token {place} is {kept}",
                    f"{sampled}",
                    f"Let request {event.request} keep {len(event.tokens)} of a window of {event.window} "
                    f"tokens, from token {event.position + 1} on.",
                    f"After token {place - 1} the model sampled {sampled}; the draft kept there is {kept}.",
                    "Then the reply says what the model would not have said, and its state has absorbed it.",
                )
