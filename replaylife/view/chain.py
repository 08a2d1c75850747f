"""The chain of a violation in words: planted by, carried by, bites at."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from replaylife.lifecycle.trace.chain import Chain, Link
from replaylife.view.look import BOLD, DIM, Look, clean, count, hang

LABEL = 12


def chain_lines(chain: Chain, look: Look, indent: int = 2) -> Iterator[Text]:
    """Yield the chain, a link a line: what planted it, what carried it, where it bites."""
    for label, text in chain_rows(chain):
        lead = Text.assemble((label.ljust(LABEL), DIM), clean(text))
        yield from hang(lead, indent, look.width, deeper=LABEL)


def chain_rows(chain: Chain) -> Iterator[tuple[str, str]]:
    """Yield (label, sentence) of each link, in the order of their steps; the label is not repeated."""
    yield "planted by", _words(chain.planted)
    if chain.cut:
        yield "", "(or before: earlier steps were not looked at)"
    told = ""
    for role, link in _in_order(chain):
        yield ("" if role == told else role), _words(link)
        told = role
    if chain.num_carried > len(chain.carried):
        yield "", f"and {count(chain.num_carried - len(chain.carried), 'more step')} that carried it on"
    if not chain.bites:
        yield "bites at", "nothing in this trace computes from it after that"


def _in_order(chain: Chain) -> list[tuple[str, Link]]:
    links = [("carried by", link) for link in chain.carried] + [("bites at", link) for link in chain.bites]
    return sorted(links, key=lambda entry: entry[1].first)


def _words(link: Link) -> str:
    action = link.action.partition(" (")[0]
    return f"{link.steps}, {action}: {link.text}"


def proof_lines(chain: Chain, look: Look) -> Iterator[Text]:
    """Yield the chain as a short proof: the claim, the links, the contradiction."""
    violation = chain.violation
    title = Text.assemble(
        (f"{look.signs.bad} {clean(violation.invariant)}", "bold red"), f", step {chain.step}, "
    )
    title.append(clean(f"{violation.subject}: {violation.found}, expected {violation.expected}"))
    yield from hang(title, 0, look.width, deeper=2)
    for number, sentence in enumerate(violation.proof):
        last = number == len(violation.proof) - 1
        if last:
            yield from chain_lines(chain, look)
        yield from hang(Text(clean(sentence), BOLD if last else "none"), 2, look.width, deeper=2)
    if not violation.proof:
        yield from chain_lines(chain, look)
    if chain.also:
        later = dict.fromkeys(f"{v.subject} {v.invariant} (step {step})" for step, v in chain.also)
        shown = [*list(later)[:8], *([f"and {len(later) - 8} more"] if len(later) > 8 else [])]
        yield from hang(Text(clean(f"of the same root: {', '.join(shown)}"), DIM), 2, look.width, deeper=2)
