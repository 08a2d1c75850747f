"""Where a reader is, and where each key leads: no terminal, no drawing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from replaylife.view.book import Page, Source, nearest_violation
from replaylife.view.look import clean
from replaylife.view.subject import Subject, subject_of, subjects

VIEWS = ("all", "tree", "slots", "requests", "invariants", "why")
MAX_TYPED = 80

Target: TypeAlias = Literal["step", "violation", "change", "words", "end"]
After: TypeAlias = Literal["look", "quit", "wait"]

HELP = (
    ("right left", "next, previous step (also l h, space, Enter)"),
    ("PgDn PgUp", "ten steps on, back"),
    ("Home End", "first, last step (also g G)"),
    ("v V", "next, previous step that breaks something new"),
    ("s  Tab", "follow a slot, request or node: slot 3, turn1, node 4; Tab takes the next one"),
    ("c C", "next, previous change of what is followed"),
    (":", "jump to a step"),
    ("/  n N", "filter: steps whose action or events have these words; next, previous such"),
    ("0..5", "all panes; only tree, slots, requests, invariants, why"),
    ("down up", "scroll (also j k)"),
    ("?", "this help"),
    ("q", "quit"),
)


@dataclass(slots=True)
class Wish:
    """What a reader waits for in a run that is still going on."""

    target: Target
    step: int = 0


@dataclass(slots=True)
class Navigator:
    """A reader's place in a source. :meth:`press` takes one key and says what comes after it.

    ``prompt`` is ``:``, ``/`` or ``s`` while something is typed. After ``wait`` the ``wish`` says what the
    run is to go on for.
    """

    source: Source
    step: int
    view: int = 0
    scroll: int = 0
    subject: Subject | None = None
    words: str = ""
    prompt: str = ""
    typed: str = ""
    message: str = ""
    help: bool = False
    wish: Wish | None = field(default=None)

    def press(self, key: str) -> After:
        """Do what a key means."""
        self.message = ""
        if self.prompt:
            return self._type(key)
        if self.help:
            self.help = False
            return "look"
        if key in ("q", "Q", "ctrl-d"):
            return "quit"
        if key in ("up", "down", "j", "k"):
            self.scroll = max(0, self.scroll + (1 if key in ("down", "j") else -1))
            return "look"
        if key.isdecimal() and len(key) == 1 and int(key) < len(VIEWS):
            self.view, self.scroll = int(key), 0
            return "look"
        if key in (":", "/", "s"):
            self.prompt, self.typed = key, ""
            return "look"
        if key == "?":
            self.help = True
            return "look"
        return self._travel(key)

    def fulfilled(self, page: Page) -> bool:
        """Whether a new page is what the reader waits for."""
        wish = self.wish
        if wish is None or wish.target == "end":
            return False
        if wish.target == "violation":
            return bool(page.played.fresh)
        if wish.target == "change":
            return self.subject is not None and self.subject.changes_in(page.played.transition)
        if wish.target == "words":
            return self.source.find(self.words, page.step - 1, forward=True) == page.step
        return page.step >= wish.step

    def go(self, step: int) -> None:
        """Go to a step that is there."""
        self.step, self.scroll, self.wish = step, 0, None

    def _travel(self, key: str) -> After:
        source = self.source
        steps = {"right": 1, "l": 1, " ": 1, "enter": 1, "left": -1, "h": -1, "pgdn": 10, "pgup": -10}
        if key in steps:
            return self._to(self.step + steps[key])
        if key in ("home", "g"):
            return self._to(source.first)
        if key in ("end", "G"):
            return self._wait(Wish("end")) if source.going_on else self._to(source.last)
        if key in ("v", "V"):
            found = nearest_violation(source, self.step, forward=key == "v")
            return self._there(found, "violation", "breaks something new", forward=key == "v")
        if key in ("tab", "backtab"):
            return self._follow_next(1 if key == "tab" else -1)
        if key in ("c", "C"):
            if self.subject is None:
                return self._say("nothing is followed yet: s names a slot, request or node, Tab takes one")
            found = source.change(self.subject, self.step, forward=key == "c")
            return self._there(found, "change", f"changes {self.subject}", forward=key == "c")
        if key in ("n", "N"):
            if not self.words:
                return self._say("no filter yet: / sets one")
            found = source.find(self.words, self.step, forward=key == "n")
            return self._there(found, "words", f"has {self.words!r}", forward=key == "n")
        return self._say("? shows the keys")

    def _to(self, step: int) -> After:
        source = self.source
        if step > source.last and source.going_on:
            return self._wait(Wish("step", step))
        bounded = max(source.first, min(step, source.last))
        if bounded == self.step != step:
            return self._say("the last step" if step > self.step else "the first step")
        self.go(bounded)
        return "look"

    def _there(self, found: int | None, target: Target, what: str, *, forward: bool) -> After:
        if found is not None:
            self.go(found)
            return "look"
        if forward and self.source.going_on:
            return self._wait(Wish(target))
        return self._say(f"no {'later' if forward else 'earlier'} step {what}")

    def _wait(self, wish: Wish) -> After:
        self.wish = wish
        return "wait"

    def _say(self, message: str) -> After:
        self.message = clean(message)
        return "look"

    def _follow_next(self, by: int) -> After:
        listed = subjects(self.source.page(self.step).played.transition.after)
        if not listed:
            return self._say("there is nothing to follow in this step")
        at = listed.index(self.subject) + by if self.subject in listed else 0 if by > 0 else -1
        self.subject = listed[at % len(listed)]
        return self._say(f"following {self.subject}: c and C go to its changes")

    def _type(self, key: str) -> After:
        if key == "esc":
            self.prompt = ""
        elif key == "backspace":
            self.typed = self.typed[:-1]
        elif key == "enter":
            prompt, self.prompt = self.prompt, ""
            return self._typed(prompt, self.typed.strip())
        elif len(key) == 1 and len(self.typed) < MAX_TYPED:
            self.typed += key
        return "look"

    def _typed(self, prompt: str, text: str) -> After:
        if prompt == "s":
            self.subject = subject_of(text)
            return self._say(f"following {self.subject}: c and C go to its changes" if self.subject else "")
        if prompt == "/":
            self.words = text
            return self._travel("n") if text else "look"
        if not text.isdecimal() or len(text) > 12:
            return self._say(f"{text!r} is no step; need a number") if text else "look"
        last = self.source.last
        if int(text) > last and not self.source.going_on:
            return self._say(f"there is no step {int(text)}; the last is {last}")
        return self._to(int(text))
