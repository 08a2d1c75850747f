"""Claims about the tensors themselves, judged from the engine's measurements."""

from __future__ import annotations

from collections.abc import Iterable

from replaylife.lifecycle.invariants.base import Invariant
from replaylife.lifecycle.protocol import Capabilities
from replaylife.lifecycle.snapshot import Measurement, Transition, Violation


class StateMatchesOracle(Invariant):
    """States and windows against a float64 fold of the key's tokens."""

    id = "state-matches-oracle"
    claim = "tensors equal a float64 fold of the key's tokens, per layer, within the dtype's tolerance"
    from_tensors = True

    def applies_to(self, capabilities: Capabilities) -> bool:
        """Only where there are tensors and an oracle."""
        return capabilities.numeric

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check the state measurements of this action; one violation per subject."""
        off: dict[str, list[Measurement]] = {}
        for measured in t.after.measurements:
            if measured.kind == "state" and measured.exceeded:
                off.setdefault(measured.subject, []).append(measured)
        for subject, measurements in off.items():
            parts = " and ".join(m.component for m in measurements)
            worst = max(measurements, key=lambda m: m.error)
            yield self.broken(
                subject,
                f"{parts} off by {worst.error:.1e}",
                f"at most {worst.tolerance:.0e}",
                f"Let {subject} stand for {worst.position} tokens, folded in float64 from an empty state.",
                *(
                    f"Its {m.component} differs from that by {m.error:.1e} relative ({m.detail}), "
                    f"{m.error / m.tolerance:,.0f} times the tolerance {m.tolerance:.0e}."
                    for m in measurements
                ),
            )


class WarmEqualsCold(Invariant):
    """Logits against those of a run that reused nothing."""

    id = "warm-equals-cold"
    claim = "logits after a cache hit equal those of a cold run fed the same tokens"
    from_tensors = True

    def applies_to(self, capabilities: Capabilities) -> bool:
        """Only where there are logits and an oracle."""
        return capabilities.numeric

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check the logit measurements of this action."""
        for measured in t.after.measurements:
            if measured.kind != "logits" or not measured.exceeded:
                continue
            request = t.after.request(measured.subject.removeprefix("request "))
            cached = 0 if request is None else request.cached
            yield self.broken(
                measured.subject,
                f"logits at position {measured.position} off by {measured.error:.1e}",
                f"at most {measured.tolerance:.0e}",
                f"Let {measured.subject} reuse {cached} cached tokens, and a cold run get the same tokens.",
                f"Their logits part at position {measured.position} (counted from 0) by {measured.error:.1e} "
                f"relative, {measured.error / measured.tolerance:,.0f} times the tolerance "
                f"{measured.tolerance:.0e}; {measured.detail}.",
            )


class TensorsTestify(Invariant):
    """Witness runs: what tensors spell out is what the ledger says."""

    id = "tensors-testify"
    claim = "the tokens that a slot's tensors spell out are those that the ledger says it has absorbed"
    from_tensors = True

    def applies_to(self, capabilities: Capabilities) -> bool:
        """Only in witness runs."""
        return capabilities.witness

    def violations(self, t: Transition) -> Iterable[Violation]:
        """Check the witness measurements of this action."""
        for measured in t.after.measurements:
            if measured.kind == "witness" and measured.exceeded:
                yield self.broken(
                    measured.subject,
                    f"{measured.component}: {measured.error:.0f} columns differ",
                    "none",
                    f"The ledger says that {measured.component} of {measured.subject} has absorbed "
                    f"{measured.position} records.",
                    f"Read back from the tensors, {measured.detail}.",
                )
