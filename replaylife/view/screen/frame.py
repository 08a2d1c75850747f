"""Lays out one frame: exactly as many lines as the terminal has, none wider than it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.text import Text

from replaylife.view.book import Page, Source
from replaylife.view.heading import Run
from replaylife.view.look import BAD, BOLD, DIM, NEUTRAL, Look, hang, shorten
from replaylife.view.panes import (
    Sight,
    invariant_lines,
    request_lines,
    slot_lines,
    tree_lines,
    what_lines,
    why_lines,
)
from replaylife.view.screen.navigator import HELP, VIEWS, Navigator

SMALLEST = (40, 10)
KEYS = "←→ step  v broken  c change  s follow  : jump  / filter  0-5  ? help  q quit"
KEYS_ASCII = KEYS.replace("←→", "<- ->")
PROMPTS = {
    ":": "jump to step: ",
    "/": "filter (words of an action or event): ",
    "s": "follow (slot 3, turn1, node 4): ",
}
PANES: dict[str, Callable[[Sight, Look], list[Text]]] = {
    "tree": tree_lines,
    "slots": slot_lines,
    "requests": request_lines,
    "invariants": invariant_lines,
    "why": why_lines,
}


@dataclass(frozen=True, slots=True)
class Framing:
    """What a frame needs beside the reader's place: the run, how many invariants watch it, and the look."""

    run: Run
    num_invariants: int
    look: Look
    height: int = 24


def frame(navigator: Navigator, framing: Framing) -> list[Text]:
    """Return the lines of the screen. A source that cannot give the page says why in its place."""
    width, height = framing.look.width, framing.height
    if (width, height) < SMALLEST or height < SMALLEST[1]:
        lines = [Text(f"need at least {SMALLEST[0]}x{SMALLEST[1]}")]
    elif navigator.help:
        lines = _help(framing.look)
    else:
        head = [_title(navigator, framing), timeline(navigator.source, navigator.step, framing.look)]
        lines = [*head, *_body(navigator, framing, height - len(head) - 1)]
    lines = [*lines[: height - 1], *[Text()] * (height - 1 - len(lines)), _footer(navigator, framing.look)]
    for line in lines:
        line.no_wrap = True
        line.truncate(width, overflow="crop")
    return lines[:height]


def sight_of(source: Source, page: Page, num_invariants: int) -> Sight:
    """Return a page as it is looked at, with the chains of what it broke."""
    chains = [source.chain(page.step, violation) for violation in page.played.fresh]
    return Sight(page, None, chains, num_invariants)


def _title(navigator: Navigator, framing: Framing) -> Text:
    source, run = navigator.source, framing.run
    last = f"{source.last}{'+' if source.going_on else ''}"
    right = f" step {navigator.step} of {last} "
    name = " ".join([run.name, *(f"with {fault}" for fault in run.faults)])
    left = f" {shorten(framing.look.signs, name, max(8, framing.look.width - len(right) - 2))}"
    return Text(left.ljust(framing.look.width - len(right)) + right, "reverse")


def timeline(source: Source, step: int, look: Look) -> Text:
    """Draw the steps as one line: where the reader is, and where something broke."""
    width, count = look.width, max(1, source.last - source.first)
    cells = ["-" if look.signs.full == "#" else "─"] * width
    styles = [DIM] * width

    def at(number: int) -> int:
        return (number - source.first) * (width - 1) // count

    for number in source.violating:
        cells[at(number)], styles[at(number)] = look.signs.bad[:1], BAD
    here = at(max(source.first, min(step, source.last)))
    cells[here] = cells[here] if styles[here] == BAD else look.signs.full
    styles[here] = "bold reverse" if styles[here] != BAD else f"{BAD} reverse"
    return Text.assemble(*zip(cells, styles, strict=True))


def _footer(navigator: Navigator, look: Look) -> Text:
    if navigator.prompt:
        return Text.assemble((PROMPTS[navigator.prompt], BOLD), navigator.typed, ("_", "blink"))
    if navigator.help:
        return Text("any key goes back", DIM)
    if navigator.message:
        return Text(navigator.message, NEUTRAL)
    if navigator.source.note:
        return Text(shorten(look.signs, navigator.source.note, look.width), BAD)
    extra = f"/{navigator.words}  " if navigator.words else ""
    followed = f"[{navigator.subject}]  " if navigator.subject else ""
    return Text(extra + followed + (KEYS if look.signs.full != "#" else KEYS_ASCII), DIM)


def _help(look: Look) -> list[Text]:
    lines = [Text("Keys", BOLD), Text()]
    for keys, meaning in HELP:
        lines += hang(Text.assemble((f"  {keys:<11}", BOLD), meaning), 0, look.width, deeper=13)
    marks = "In the panes + is new and ~ changed in this step, - is gone; reversed is what you follow."
    return [*lines, Text(), *hang(Text(marks, DIM), 2, look.width)]


def _body(navigator: Navigator, framing: Framing, height: int) -> list[Text]:
    try:
        page = navigator.source.page(navigator.step)
    except LookupError as error:
        return list(hang(Text(str(error), BAD), 0, framing.look.width))
    sight = replace(sight_of(navigator.source, page, framing.num_invariants), subject=navigator.subject)
    if navigator.view:
        return _one(sight, navigator, framing.look, height)
    return overview(sight, framing.look, height, navigator.scroll)


def _one(sight: Sight, navigator: Navigator, look: Look, height: int) -> list[Text]:
    name = VIEWS[navigator.view]
    what = clip(what_lines(sight, look), 3)
    lines = PANES[name](sight, look) or [Text("nothing new was broken in this step", DIM)]
    room = height - len(what) - 1
    navigator.scroll = min(navigator.scroll, max(0, len(lines) - room))
    return [*what, rule([name], [look.width], look), *clip(lines[navigator.scroll :], room)]


def overview(sight: Sight, look: Look, height: int | None, scroll: int = 0) -> list[Text]:
    """Return all panes: in ``height`` lines, or as many as they need."""
    right = max(30, (look.width - 1) * 7 // 16)
    left = look.width - 1 - right
    tree, slots = tree_lines(sight, replace(look, width=left)), slot_lines(sight, replace(look, width=right))
    what, why = what_lines(sight, look), why_lines(sight, look)
    requests, invariants = request_lines(sight, look), invariant_lines(sight, look, apart=False)
    wants = {
        "what": len(what),
        "columns": max(len(tree), len(slots)),
        "requests": len(requests),
        "invariants": len(invariants),
        "why": len(why),
    }
    rooms = wants if height is None else share(wants, height - (4 if why else 3))
    if height is not None and scroll:
        scroll = min(scroll, max(0, wants["why"] - rooms["why"], wants["columns"] - rooms["columns"]))
        why, tree, slots = why[scroll:], tree[scroll:], slots[scroll:]
    lines = clip(what, rooms["what"])
    lines.append(rule(["tree", "slots"], [left, right], look))
    lines += _beside(clip(tree, rooms["columns"]), clip(slots, rooms["columns"]), left, look)
    lines += [rule(["requests"], [look.width], look), *clip(requests, rooms["requests"])]
    lines += [rule(["invariants"], [look.width], look), *clip(invariants, rooms["invariants"])]
    if why:
        lines += [rule(["why"], [look.width], look), *clip(why, rooms["why"])]
    return lines


def share(wants: dict[str, int], height: int) -> dict[str, int]:
    """Divide ``height`` lines: all get a little, then in turns until all are content or none is left."""
    least = {"what": 2, "columns": 4, "requests": 1, "invariants": 1, "why": 4}
    rooms = {name: min(want, least.get(name, 1)) for name, want in wants.items()}
    left = height - sum(rooms.values())
    while left > 0 and any(rooms[name] < want for name, want in wants.items()):
        for name, want in wants.items():
            if left > 0 and rooms[name] < want:
                rooms[name] += 1
                left -= 1
    return rooms


def clip(lines: Sequence[Text], room: int) -> list[Text]:
    """Return at most ``room`` lines; the last says how many are left out."""
    if len(lines) <= room:
        return list(lines)
    if room < 2:
        return [lines[0].copy().append(f"  … {len(lines) - 1} more", DIM)] if room else []
    hidden = len(lines) - room + 1
    return [*lines[: room - 1], Text(f"  … {hidden} more lines", DIM)]


def rule(names: Sequence[str], widths: Sequence[int], look: Look) -> Text:
    """Return a line with the names of the panes below it."""
    dash = "-" if look.signs.full == "#" else "─"
    parts = [f"{dash} {name} ".ljust(width, dash) for name, width in zip(names, widths, strict=True)]
    return Text(dash.join(parts), DIM)


def _beside(left: list[Text], right: list[Text], width: int, look: Look) -> list[Text]:
    bar = "|" if look.signs.full == "#" else "│"
    lines = []
    for index in range(max(len(left), len(right))):
        line = left[index].copy() if index < len(left) else Text()
        line.truncate(width, overflow="crop", pad=True)
        line.append(bar, DIM)
        lines.append(line.append_text(right[index]) if index < len(right) else line)
    return lines
