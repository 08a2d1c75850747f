"""A trace as a book: any page by its number, the pages worth turning to, and what damage does."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from replaylife.lifecycle.scenario.player import Failed
from replaylife.lifecycle.trace.errors import TraceError
from replaylife.lifecycle.trace.reader import RecordedStep, TraceReader
from replaylife.view.book import CHUNK, KEPT, Book, nearest_violation
from replaylife.view.subject import Subject, subject_of, subjects
from replaylife.view.windows import EDGE, from_both_ends, left_out, windows

from .recorded import book_of, edited, faulty, record


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    return record(tmp_path / "agents.jsonl", "agents")


def _entries(path: Path) -> list[RecordedStep]:
    with TraceReader(path) as reader:
        return [entry for entry in reader.entries() if isinstance(entry, RecordedStep)]


def test_each_page_is_the_step_as_it_is_read_from_start_to_end(agents: Path) -> None:
    entries = _entries(agents)
    with book_of(agents) as book:
        assert (book.first, book.last, len(entries)) == (1, 165, 165)
        for number in (*range(165, 0, -13), *range(1, 166)):
            page, entry = book.page(number), entries[number - 1]
            assert page.played.transition == entry.transition
            assert page.played.fresh == entry.violations
            assert page.played.line == entry.line


def test_a_book_keeps_a_few_chunks_and_no_more(agents: Path) -> None:
    with book_of(agents) as book:
        for number in range(1, 166):
            book.page(number)
        assert len(book._chunks) == 165 // CHUNK + 1 <= KEPT


def test_the_steps_that_break_something_are_known_before_any_page_is_read(tmp_path: Path) -> None:
    with book_of(faulty(tmp_path / "t.jsonl")) as book:
        assert list(book.violating) == [24, 26, 47]
        assert not book._chunks
        steps = [nearest_violation(book, at, forward=True) for at in (1, 24, 47)]
        assert steps == [24, 26, None]
        assert [nearest_violation(book, at, forward=False) for at in (47, 24)] == [26, None]


def test_expectations_stand_on_the_page_after_which_they_were_judged(tmp_path: Path) -> None:
    with book_of(faulty(tmp_path / "t.jsonl")) as book:
        judged = {step: book.page(step).judged for step in range(1, 48) if book.page(step).judged}
        assert list(judged) == [3, 23, 24, 25, 47]
        assert isinstance(judged[24][0], Failed)
        assert list(book.contents.failed) == [24, 25, 47]


@pytest.mark.parametrize("words", ["slot 3", "slot 9", "node 4", "main", "nobody"])
def test_changes_found_in_lines_are_those_found_in_snapshots(words: str, agents: Path) -> None:
    subject = subject_of(words)
    assert subject is not None
    expected = [e.transition.step for e in _entries(agents) if subject.changes_in(e.transition)]
    with book_of(agents) as book:
        onward, back, at = [], [], book.first - 1
        while (found := book.change(subject, at, forward=True)) is not None:
            onward.append(at := found)
        at = book.last + 1
        while (found := book.change(subject, at, forward=False)) is not None:
            back.insert(0, at := found)
    assert onward == back
    assert set(onward) >= set(expected)  # a line may name a view that ends up as it was


def test_a_subject_that_is_there_changes_at_least_once(agents: Path) -> None:
    with book_of(agents) as book:
        after = book.page(20).played.transition.after
        listed = subjects(after)
        assert {subject.kind for subject in listed} == {"slot", "request", "node"}
        for subject in listed:
            assert book.change(subject, 21, forward=False) is not None


def test_words_are_looked_for_in_actions_and_events_only(tmp_path: Path) -> None:
    with book_of(record(tmp_path / "t.jsonl")) as book:
        found = [book.find(words, 0, forward=True) for words in ("finish", "TURN2", "temporal", "slots")]
        assert found == [24, 25, None, None]
        assert book.find("finish", 48, forward=False) == 47


def test_subjects_are_named_as_violations_name_them() -> None:
    assert subject_of("slot 3") == Subject("slot", 3)
    assert subject_of(" node 12 ") == Subject("node", 12)
    assert subject_of("request slot 3") == Subject("request", "slot 3")
    assert subject_of("turn1") == Subject("request", "turn1")
    assert subject_of("  ") is None


# -- damage ----------------------------------------------------------------------------------------------


def test_a_cut_trace_is_shown_up_to_the_cut_and_says_so(tmp_path: Path) -> None:
    path = faulty(tmp_path / "t.jsonl")
    path.write_bytes(path.read_bytes()[: len(path.read_bytes()) * 2 // 3])
    with book_of(path) as book:
        assert 20 < book.last < 47
        assert "it was cut" in book.note
        assert book.page(book.last).step == book.last
        with pytest.raises(LookupError, match="the trace has steps"):
            book.page(47)


def test_damage_that_shows_only_when_it_is_applied_ends_the_pages_there(tmp_path: Path) -> None:
    def edit(line: dict[str, object]) -> None:
        if line["type"] == "step" and line["step"] == 30:
            line["changes"] = {"slots": [{"index": 99, "write_pos": 1}]}

    with book_of(edited(faulty(tmp_path / "t.jsonl"), edit)) as book:
        assert book.page(29).step == 29
        with pytest.raises(LookupError, match=r"step 30 cannot be read: .*slot 99, which does not exist"):
            book.page(30)
        assert "slot 99" in book.note


def test_keys_in_another_order_are_read_too(tmp_path: Path) -> None:
    path = faulty(tmp_path / "t.jsonl")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    turned = [
        line if line["type"] in ("header", "keyframe") else dict(reversed(line.items())) for line in lines
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in turned), encoding="utf-8")
    with book_of(path) as book:
        assert (book.last, list(book.violating)) == (47, [24, 26, 47])
        assert book.page(24).played.fresh


def test_a_pipe_is_refused_because_nothing_can_be_jumped_to_in_it(tmp_path: Path) -> None:
    text = faulty(tmp_path / "t.jsonl").read_bytes()[:30_000]
    ours, theirs = os.pipe()
    os.write(theirs, text)
    os.close(theirs)
    with pytest.raises(TraceError, match="is a pipe"), TraceReader(Path(f"/dev/fd/{ours}")) as reader:
        Book(reader)
    os.close(ours)


# -- windows ---------------------------------------------------------------------------------------------


def test_a_short_trace_is_shown_whole_and_a_long_one_around_its_violations() -> None:
    assert windows(1, 2_000, [7]) == [range(1, 2_001)]
    assert left_out(1, 2_000, [range(1, 2_001)], [7]) == ""
    shown = windows(1, 100_000, [50_000, 99_990])
    assert shown == [range(1, EDGE + 1), range(49_880, 50_041), range(99_870, 100_001)]
    assert "99,668 of 100,000 steps are left out" in left_out(1, 100_000, shown, [50_000, 99_990])


def test_where_violations_are_too_many_the_first_and_the_last_are_shown() -> None:
    violating = list(range(500, 100_000, 500))
    shown = windows(1, 100_000, violating)
    inside = [v for v in violating if any(v in steps for steps in shown)]
    assert sum(map(len, shown)) <= 2_000
    assert violating[0] in inside
    assert violating[-1] in inside
    assert "of the 199 steps with violations among them" in left_out(1, 100_000, shown, violating)
    assert from_both_ends([1, 2, 3, 4, 5]) == [1, 5, 2, 4, 3]
