"""The page of a trace: its data, and what a real browser makes of it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from replaylife.view.page.build import assemble, build_page, embedded
from replaylife.view.page.data import page_data

from . import browser as browsers
from .browser import Browser
from .command import invoke
from .recorded import HOSTILE, book_of, faulty, record, renamed

SNAPSHOTS = Path(__file__).parent / "snapshots"
needs_browser = pytest.mark.skipif(bool(browsers.MISSING), reason=browsers.MISSING)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return faulty(tmp_path_factory.mktemp("trace") / "t.jsonl")


def _page(trace: Path, name: str = "t.html") -> Path:
    path = trace.parent / name
    with book_of(trace) as book:
        path.write_text(build_page(book), encoding="utf-8")
    return path


class _Elements(HTMLParser):
    """The elements of a page, and the addresses that it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action")]


# -- without a browser -------------------------------------------------------------------------------------


def _rebuilt(data: dict[str, Any], name: str) -> list[list[dict[str, Any]]]:
    """What the page's program makes of the changes."""
    known: dict[str, dict[str, Any]] = {}
    ids: list[str] = []
    found = []
    for step in data["steps"]:
        known.update({view["id"]: view for view in step[name]})
        ids = step.get(f"{name}Ids", ids)
        found.append([known[identity] for identity in ids])
    return found


def test_the_changes_add_up_to_what_each_step_shows(tmp_path: Path) -> None:
    from replaylife.view.page.data import VIEWS

    with book_of(record(tmp_path / "t.jsonl", "agents")) as book:
        data = page_data(book)
        assert len(data["steps"]) == 165
        for name, (views, describe) in VIEWS.items():
            for shown, step in zip(_rebuilt(data, name), data["steps"], strict=True):
                after = book.page(step["n"]).played.transition.after
                assert shown == [describe(after, view) for _, view in views(after)]


def test_a_long_trace_is_windowed_and_says_so_and_each_window_stands_alone(trace: Path) -> None:
    with book_of(trace) as book:
        data = page_data(book, limit=40)
        numbers = [step["n"] for step in data["steps"]]
        assert numbers == [*range(1, 6), *range(19, 28), *range(42, 48)]
        assert "27 of 47 steps are left out" in data["notes"][0]
        for step in data["steps"]:
            if step["n"] in (1, 19, 42):
                assert [slot["id"] for slot in step["slots"]] == step["slotsIds"]


def test_the_page_loads_nothing_and_has_two_scripts(trace: Path) -> None:
    page = _Elements(_page(trace).read_text(encoding="utf-8"))
    assert page.loaded == []
    assert page.tags.count("script") == 2
    assert not {"img", "iframe", "link", "object"} & set(page.tags)


def test_a_hostile_trace_adds_no_element_to_the_page(trace: Path, tmp_path: Path) -> None:
    plain = _Elements(_page(trace).read_text(encoding="utf-8")).tags
    path = tmp_path / "hostile.jsonl"
    path.write_bytes(trace.read_bytes())
    hostile = _page(renamed(renamed(path, "turn1", HOSTILE), "multiturn", HOSTILE)).read_text(
        encoding="utf-8"
    )
    assert _Elements(hostile).tags == plain
    assert "onerror" in hostile


def test_what_stands_in_a_script_element_cannot_end_it() -> None:
    text = embedded({"a": HOSTILE + "<!--", "b": "\ud800"})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text.replace("?", "\ud800"))["a"] == HOSTILE + "<!--"


def test_what_looks_like_a_mark_of_the_page_is_left_alone(trace: Path) -> None:
    with book_of(trace) as book:
        data = page_data(book)
    data["title"] = "{{program}} {{data}}"
    assert assemble(data).count("{{program}}") == 1


def test_the_command_writes_the_page_and_leaves_other_files_alone(trace: Path, tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    assert invoke("view", str(trace), "--html", str(page)).exit_code == 0
    before = page.read_bytes()
    again = invoke("view", str(trace), "--html", str(page))
    assert (again.exit_code, page.read_bytes()) == (2, before)
    assert "exists and is not empty" in again.output
    assert invoke("view", str(trace), "--html", str(page), "--force").exit_code == 0
    for wrong in (str(trace), str(tmp_path), str(tmp_path / "no" / "p.html")):
        assert invoke("view", str(trace), "--html", wrong, "--force").exit_code == 2
    assert trace.read_bytes().startswith(b'{"type":"header"')
    assert invoke("view", str(trace), "--force").exit_code == 2


# -- in a browser ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsers.opened() as opened:
        yield opened


@needs_browser
@pytest.mark.parametrize("width", [500, 1200])
def test_the_page_reads_as_its_snapshot(browser: Browser, trace: Path, width: int) -> None:
    browser.resize(width)
    parts = []
    for step in (3, 24):
        browser.open(_page(trace), f"#step={step}")
        parts.append(re.sub(r"recorded by .*", "recorded by (a version)", browser.text()))
    text = re.sub(r"\d+ (others|invariants) hold", r"(some) \1 hold", "\n\n".join(parts)) + "\n"
    text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    stored = SNAPSHOTS / f"view-page-{width}.txt"
    if os.environ.get("REPLAYLIFE_UPDATE_SNAPSHOTS"):
        stored.write_text(text, encoding="utf-8")
    assert text == stored.read_text(encoding="utf-8")


@needs_browser
def test_the_page_begins_at_the_first_violation_or_where_its_address_says(
    browser: Browser, trace: Path
) -> None:
    page = _page(trace)
    for fragment, step in (("", 24), ("#step=7", 7), ("#step=999", 47), ("#step=x", 24), ("#step=0", 1)):
        browser.open(page, fragment)
        assert browser.step() == step
        assert browser.run("return location.hash") == f"#step={step}"


@needs_browser
def test_keys_slider_links_and_clicks_go_where_they_say(browser: Browser, trace: Path) -> None:
    browser.open(_page(trace), "#step=1")
    for keys, step in [
        (["right"], 2), (["left"], 1), (["v"], 24), (["v"], 26), (["V"], 24), (["end"], 47), (["home"], 1),
        (["pgdn"], 11), (["pgup"], 1), (["/", *"finish", "enter"], 24), (["esc", "n"], 47), (["N"], 24),
    ]:  # fmt: skip
        browser.press(*keys)
        assert browser.step() == step, keys
    browser.run("location.hash = '#step=5'")
    browser.run(
        "const s = document.getElementById('slider'); s.value = '9'; s.dispatchEvent(new Event('input'))"
    )
    assert browser.step() == 10
    browser.click("#nextBroken")
    assert browser.step() == 24
    browser.click("tr[data-id='slot 1']")
    browser.press("c")
    assert browser.text("#message") == "no later step changes slot 1"
    browser.press("C")
    assert browser.step() == 23
    browser.press("?")
    assert browser.run("return document.getElementById('keys').open") is True


@needs_browser
def test_the_page_is_dark_where_its_reader_wants_it_dark(browser: Browser, trace: Path) -> None:
    browser.open(_page(trace))
    seen = {}
    for scheme in ("light", "dark"):
        browser.dark(scheme)
        seen[scheme] = browser.run("return getComputedStyle(document.body).backgroundColor")
    browser.dark("light")
    assert seen == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}


@needs_browser
def test_nothing_of_a_hostile_trace_runs_and_all_of_it_is_shown(
    browser: Browser, trace: Path, tmp_path: Path
) -> None:
    path = tmp_path / "hostile.jsonl"
    path.write_bytes(trace.read_bytes())
    browser.open(_page(renamed(path, "turn1", HOSTILE)), "#step=3")
    assert browser.run("return document.images.length") == 0
    assert "</script><img src=x onerror=alert(1)>" in browser.text("#requests")


@needs_browser
def test_a_script_that_is_not_the_page_s_own_does_not_run(
    browser: Browser, trace: Path, tmp_path: Path
) -> None:
    page = _page(trace).read_text(encoding="utf-8")
    planted = tmp_path / "planted.html"
    planted.write_text(page + "<script>document.body.dataset.planted = 'yes'</script>", encoding="utf-8")
    browser.open(planted)
    assert browser.run("return document.body.dataset.ready") == "yes"
    assert browser.run("return document.body.dataset.planted || 'no'") == "no"


@needs_browser
def test_a_windowed_page_says_what_is_not_on_it(browser: Browser, trace: Path, tmp_path: Path) -> None:
    page = tmp_path / "windowed.html"
    with book_of(trace) as book:
        page.write_text(assemble(page_data(book, limit=40)), encoding="utf-8")
    browser.open(page, "#step=5")
    browser.press("right")
    assert browser.step() == 19
    assert "(steps 6..18 are not on this page)" in browser.text("#what")
    assert "27 of 47 steps are left out" in browser.text("#notes")
    browser.open(page, "#step=32")
    assert browser.step() == 27
    assert "step 32 is not on this page" in browser.text("#message")
