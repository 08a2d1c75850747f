"""What lies outside the pool is on the screen, in the story and on the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from replaylife.lifecycle.faults import FAULTS
from replaylife.lifecycle.snapshot import Snapshot
from replaylife.playing import Result, play
from replaylife.view.look import Look, Signs
from replaylife.view.places import free_places, outside_sentences, place_lines, places_in_use

from .command import invoke


def _after(result: Result, action: str) -> tuple[Snapshot, Snapshot]:
    """The states before and after the first step whose action begins like this."""
    step = next(step for step in result.played if str(step.transition.action).startswith(action))
    return step.transition.before, step.transition.after


@pytest.fixture(scope="module")
def offloaded() -> Result:
    return play("offload-and-load")


def test_a_copy_in_flight_names_both_ends_and_what_it_pins(offloaded: Result) -> None:
    _, after = _after(offloaded, "offload")
    (sentence,) = outside_sentences(after, Signs())
    copy = after.copies[0]
    assert sentence.startswith(
        f"copy in flight: offload of {copy.of}, slot {copy.src} → host place {copy.dst}"
    )
    assert sentence.endswith(f"pins {copy.of}")


def test_a_place_in_use_stands_below_the_slots_with_its_owner(offloaded: Result) -> None:
    before, after = _after(offloaded, "finish the copy")
    (line, *_) = place_lines(after, before, Look(), 10, set())
    ((name, place), *_) = places_in_use(after)
    shown = line.plain.split()
    assert shown[:2] == ["~", f"{name[0]}{place.index}"]
    assert shown[-3:] == [str(place.temporal.length), str(place.conv.length), "host"]


def test_free_places_are_counted_only_where_there_are_places(offloaded: Result) -> None:
    _, after = _after(offloaded, "offload")
    assert list(free_places(after)) == [f"host {len(after.host_free)} of {len(after.host_places)} free"]
    assert list(free_places(play("multiturn").played[-1].transition.after)) == []


def test_who_waits_is_told_with_the_place_of_its_checkpoint() -> None:
    fault = FAULTS["retract-drops-ring"]
    _, after = _after(play(fault.scenario, faults=[fault.id]), "retract")
    assert list(outside_sentences(after, Signs())) == ["a waits: 14 tokens in host place 0"]


def test_the_page_has_places_copies_and_free_places(tmp_path: Path) -> None:
    trace, page = tmp_path / "t.jsonl", tmp_path / "t.html"
    invoke("run", "offload-and-load", "--backend", "none", "--trace", str(trace), "--quiet")
    assert invoke("view", str(trace), "--html", str(page)).exit_code == 0
    text = page.read_text(encoding="utf-8")
    data = json.loads(text.split('id="data">', 1)[1].split("</script>", 1)[0])
    told = [sentence for step in data["steps"] for sentence in step["outside"]]
    places = [view for step in data["steps"] for view in step["slots"] if view["where"]]
    assert any(sentence.startswith("copy in flight: offload") for sentence in told)
    assert {place["where"] for place in places} == {"host"}
    assert all(step["free"] for step in data["steps"])
