"""The viewer: what each key does, and that a frame is what its snapshot shows and fits the terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaylife.view.book import Book, run_of
from replaylife.view.look import ASCII, Look
from replaylife.view.screen.frame import Framing, clip, frame, share, timeline
from replaylife.view.screen.navigator import HELP, VIEWS, Navigator, Wish
from replaylife.view.screen.terminal import keys_in

from .command import invoke
from .recorded import HOSTILE, book_of, faulty, record, renamed

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return faulty(tmp_path_factory.mktemp("trace") / "t.jsonl")


@pytest.fixture
def book(trace: Path) -> Iterator[Book]:
    with book_of(trace) as opened:
        yield opened


def _shown(
    navigator: Navigator, book: Book, width: int = 80, height: int = 24, look: Look | None = None
) -> str:
    framing = Framing(run_of(book.header), 20, look or Look(width), height)
    return "\n".join(line.plain.rstrip() for line in frame(navigator, framing)) + "\n"


def _press(navigator: Navigator, *keys: str) -> Navigator:
    for key in keys:
        assert navigator.press(key) == "look", key
    return navigator


# -- keys ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "step"),
    [
        (["right"], 2), (["right", "right", "left"], 2), (["left"], 1), (["pgdn"], 11), (["end"], 47),
        (["end", "right"], 47), (["end", "pgup"], 37), (["end", "home"], 1), (["v"], 24), (["v", "v"], 26),
        (["v", "v", "v", "v"], 47), (["end", "V"], 26), (["V"], 1), ([":", "3", "1", "enter"], 31),
        ([":", "9", "9", "enter"], 1), ([":", "3", "1", "esc"], 1),
        ([":", "3", "1", "backspace", "enter"], 3),
        (["/", *"finish", "enter"], 24), (["/", *"finish", "enter", "n"], 47),
        (["/", *"finish", "enter", "n", "N"], 24), (["n"], 1), (["c"], 1),
        (["s", *"slot 2", "enter", "c"], 2), (["s", *"turn2", "enter", "c"], 25),
        (["s", *"turn2", "enter", "C"], 1),
        (["end", "s", *"node 3", "enter", "C"], 26), (["x"], 1),
    ],
)  # fmt: skip
def test_a_key_leads_where_the_help_says(keys: list[str], step: int, book: Book) -> None:
    assert _press(Navigator(book, 1), *keys).step == step


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (["left"], "the first step"), (["c"], "nothing is followed yet"), (["n"], "no filter yet"),
        (["V"], "no earlier step breaks something new"), (["x"], "? shows the keys"),
        ([":", "9", "9", "enter"], "the last is 47"), ([":", "x", "enter"], "'x' is no step"),
        (["/", *"nothing", "enter"], "no later step has 'nothing'"),
        (["s", *"slot 9", "enter", "c"], "no later step changes slot 9"),
        (["tab"], "following request turn1"),
    ],
)  # fmt: skip
def test_a_key_that_leads_nowhere_says_why(keys: list[str], words: str, book: Book) -> None:
    navigator = _press(Navigator(book, 1), *keys)
    assert words in navigator.message
    assert words in _shown(navigator, book)


def test_q_quits_and_in_a_prompt_it_is_a_letter(book: Book) -> None:
    assert Navigator(book, 1).press("q") == "quit"
    navigator = _press(Navigator(book, 1), "/", "q")
    assert navigator.typed == "q"


def test_digits_choose_a_pane_and_every_pane_can_be_drawn(book: Book) -> None:
    for number, name in enumerate(VIEWS):
        text = _shown(_press(Navigator(book, 24), str(number)), book)
        assert (f"─ {name} ─" in text) or number == 0


def test_the_why_pane_scrolls_to_its_end_and_stops_there(book: Book) -> None:
    navigator = _press(Navigator(book, 24), "5", *["down"] * 500)
    text = _shown(navigator, book)
    assert "bites at    step 26, prefill turn2" in text
    assert "more lines" not in text.partition("─ why")[2]
    assert 0 < navigator.scroll < 40


def test_what_is_typed_is_bounded(book: Book) -> None:
    assert len(_press(Navigator(book, 1), "/", *"x" * 500).typed) == 80


def test_a_reader_of_a_run_that_goes_on_waits_for_what_is_not_there_yet(book: Book) -> None:
    class Going:
        first, note, going_on, violating, last = 1, "", True, (), 10

        def change(self, *_: object, **__: object) -> None:
            return None

    navigator = Navigator(Going(), 10)  # type: ignore[arg-type]  # only what these keys ask for
    for key, wish in [("right", Wish("step", 11)), ("v", Wish("violation")), ("end", Wish("end"))]:
        assert navigator.press(key) == "wait"
        assert navigator.wish == wish
    navigator.wish = Wish("violation")
    assert [step for step in range(1, 48) if navigator.fulfilled(book.page(step))] == [24, 26, 47]


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("\x1b[A\x1b[B", ["up", "down"]), ("\x1bOC\x1b[D", ["right", "left"]),
        ("\x1b[5~\x1b[6~", ["pgup", "pgdn"]),
        ("\x1b[H\x1b[4~", ["home", "end"]), ("q", ["q"]), ("\x1b", ["esc"]),
        ("\r\x7f\t\x1b[Z", ["enter", "backspace", "tab", "backtab"]),
        ("\x1b[99;5u", []), ("aé", ["a", "é"]), ("\x00\x01", []),
    ],
)  # fmt: skip
def test_what_a_terminal_sends_is_read_as_keys(sent: str, keys: list[str]) -> None:
    assert list(keys_in(sent)) == keys


# -- frames ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [80, 120])
def test_a_frame_reads_as_its_snapshot(book: Book, columns: int) -> None:
    parts = [
        _shown(Navigator(book, step), book, columns, 24 if columns == 80 else 40) for step in (3, 24, 26)
    ]
    text = "\n".join(parts)
    stored = SNAPSHOTS / f"view-faulty-{columns}.txt"
    if os.environ.get("REPLAYLIFE_UPDATE_SNAPSHOTS"):
        stored.write_text(text, encoding="utf-8")
    assert text == stored.read_text(encoding="utf-8")


@pytest.mark.parametrize("size", [(40, 10), (60, 15), (80, 24), (132, 50), (300, 100), (20, 5), (1, 1)])
def test_a_frame_has_exactly_the_size_of_the_terminal(size: tuple[int, int], book: Book) -> None:
    width, height = size
    seen = 0
    for step in (1, 3, 24, 26, 47):
        for keys in ([], ["5"], ["1"], ["?"], [":"]):
            lines = frame(
                _press(Navigator(book, step), *keys), Framing(run_of(book.header), 20, Look(width), height)
            )
            assert len(lines) == height
            assert max(line.cell_len for line in lines) <= width
            seen += 1
    assert seen == 25


def test_a_page_that_cannot_be_read_says_why_in_its_place(tmp_path: Path) -> None:
    path = faulty(tmp_path / "cut.jsonl")
    path.write_bytes(path.read_bytes()[: len(path.read_bytes()) * 2 // 3])
    with book_of(path) as cut:
        text = _shown(Navigator(cut, 47), cut)
    assert "step 47: the trace has steps 1..2" in text
    assert "it was cut" in text


def test_where_the_terminal_knows_only_ascii_a_frame_is_ascii(book: Book) -> None:
    text = _shown(Navigator(book, 20), book, look=Look(80, ASCII))
    assert "####" in text.replace("#...", "####")
    assert text.isascii()


def test_the_timeline_marks_what_is_broken_and_where_the_reader_is(book: Book) -> None:
    line = timeline(book, 1, Look(47)).plain
    assert line == "▮" + "─" * 22 + "✗" + "─" + "✗" + "─" * 20 + "✗"


def test_room_is_shared_until_all_are_content() -> None:
    wants = {"what": 3, "columns": 6, "requests": 2, "invariants": 1, "why": 0}
    assert share(wants, 40) == wants
    tight = share({"what": 9, "columns": 30, "requests": 9, "invariants": 3, "why": 40}, 20)
    assert sum(tight.values()) == 20
    assert min(tight.values()) >= 1


def test_what_is_cut_off_is_counted() -> None:
    from rich.text import Text

    lines = [Text(str(number)) for number in range(10)]
    assert [line.plain for line in clip(lines, 4)] == ["0", "1", "2", "  … 7 more lines"]
    assert clip(lines, 10) == lines


def test_the_help_names_every_key_that_travels(book: Book) -> None:
    named = " ".join(keys for keys, _ in HELP)
    for key in (
        "right",
        "left",
        "PgDn",
        "Home",
        "v V",
        "s",
        "Tab",
        "c C",
        ":",
        "/",
        "n N",
        "0..5",
        "down",
        "?",
        "q",
    ):
        assert key in named
    assert all(meaning.split()[0] in _shown(_press(Navigator(book, 1), "?"), book) for _, meaning in HELP)


def test_a_hostile_trace_sends_nothing_to_the_terminal_but_text(tmp_path: Path) -> None:
    path = renamed(faulty(tmp_path / "t.jsonl"), "turn1", HOSTILE)
    with book_of(path) as hostile:
        for step in (1, 3, 24):
            for keys in ([], ["3"], ["5"], ["tab"]):
                text = _shown(_press(Navigator(hostile, step), *keys), hostile)
                assert "\x1b" not in text
                assert "\u2028" not in text
        assert "</script>" in _shown(Navigator(hostile, 3), hostile)


# -- the command ------------------------------------------------------------------------------------------


def test_without_a_terminal_the_story_is_printed_with_its_chain(trace: Path) -> None:
    result = invoke("view", str(trace))
    assert result.exit_code == 0, result.output
    assert "committed 27..30" in result.stdout
    assert "planted by  steps 20..23, decode turn1" in result.stdout
    assert "✗ did not hold: 47 steps" in result.stdout
    assert max(map(len, (line for line in result.stdout.splitlines() if "reproduce" not in line))) <= 80


def test_one_step_is_printed_with_all_its_panes(trace: Path) -> None:
    path = str(trace)
    named = [invoke("view", path, "--at", at).stdout for at in ("24", "violation")]
    assert named[0] == named[1]
    assert "step 24 of 47" in named[0]
    assert "more lines" not in named[0]
    assert "step 47 of 47" in invoke("view", path, "--at", "last-violation").stdout


@pytest.mark.parametrize("at", ["0", "48", "x", "-1", "9" * 50])
def test_a_step_that_is_not_there_is_refused(at: str, trace: Path) -> None:
    result = invoke("view", str(trace), "--at", at)
    assert result.exit_code == 2
    assert "need a step from 1 to 47" in result.output


def test_a_clean_trace_has_no_violation_to_go_to(tmp_path: Path) -> None:
    result = invoke("view", str(record(tmp_path / "t.jsonl")), "--at", "violation")
    assert result.exit_code == 2
    assert "no step of" in result.output


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "is empty"), ("hello\n", "not a trace"), ('{"type":"header"}\n', "need a header of format")],
)
def test_what_is_no_trace_is_refused_with_one_message(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text, encoding="utf-8")
    for file in (path, tmp_path / "missing.jsonl", tmp_path):
        result = invoke("view", str(file))
        assert result.exit_code == 2
        assert "Traceback" not in result.output
    assert words in invoke("view", str(path)).output


def test_a_trace_without_a_step_says_so(tmp_path: Path) -> None:
    path = record(tmp_path / "t.jsonl")
    path.write_text(path.read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    result = invoke("view", str(path))
    assert result.exit_code == 2
    assert "there is no step in it" in result.output
