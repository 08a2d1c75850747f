"""Pictures of a step: SVG that loads nothing, and graphs that other programs can read."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import networkx
import pytest

from replaylife.view.pictures import FORMATS, as_dot, as_graphml, as_mermaid, state_graph, svg, tree_graph

from .command import invoke
from .recorded import HOSTILE, book_of, faulty, record, renamed


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return faulty(tmp_path_factory.mktemp("trace") / "t.jsonl")


def test_the_tree_is_a_graph_of_its_nodes(trace: Path) -> None:
    with book_of(trace) as book:
        graph = tree_graph(book.page(24))
    assert sorted(graph.edges) == [("node 1", "node 2"), ("node 2", "node 3")]
    assert graph.nodes["node 3"]["label"] == "node 3: key 30, state 26 in slot 1"
    assert [name for name, facts in graph.nodes(data=True) if facts["broken"]] == ["node 3"]


def test_the_state_has_slots_and_requests_and_who_holds_them(trace: Path) -> None:
    with book_of(trace) as book:
        graph = state_graph(book.page(25))
    kinds = {(source, target): facts["kind"] for source, target, facts in graph.edges(data=True)}
    assert kinds["request turn2", "slot 4"] == "live"
    assert kinds["request turn2", "node 3"] == "pins"
    assert kinds["node 3", "slot 1"] == "state"
    assert kinds["slot 1", "slot 4"] == "copy pending"


def test_graphml_is_read_back_as_the_same_graph(tmp_path: Path) -> None:
    with book_of(record(tmp_path / "t.jsonl", "agents")) as book:
        graph = state_graph(book.page(60))
    assert len(graph) >= 15
    read = networkx.parse_graphml(as_graphml(graph))
    assert dict(read.nodes(data=True)) == dict(graph.nodes(data=True))
    assert sorted(read.edges(data="kind")) == sorted(graph.edges(data="kind"))


def test_mermaid_and_graphviz_have_a_line_for_each_vertex_and_edge(trace: Path) -> None:
    with book_of(trace) as book:
        graph = tree_graph(book.page(24))
    assert as_mermaid(graph).splitlines() == [
        "flowchart TD",
        '  v0["node 1: key 6, state 6 in slot 2"]',
        '  v1["node 2: key 10, state 10 in slot 3"]',
        '  v2["node 3: key 30, state 26 in slot 1"]',
        "  v0 --> v1",
        "  v1 --> v2",
        "  classDef broken stroke:#c0182b,stroke-width:3px",
        "  classDef tombstone stroke-dasharray:4",
        "  class v2 broken",
    ]
    assert '  "node 2" -> "node 3";' in as_dot(graph).splitlines()
    assert '[label="node 3: key 30, state 26 in slot 1", color=red, penwidth=2];' in as_dot(graph)


def test_a_tombstone_is_told_from_a_state(tmp_path: Path) -> None:
    with book_of(record(tmp_path / "t.jsonl", "tombstone-reuse")) as book:
        kinds = {
            f["kind"]
            for step in range(1, book.last + 1)
            for _, f in tree_graph(book.page(step)).nodes(data=True)
        }
    assert kinds == {"node", "tombstone"}


def test_the_svg_is_xml_that_loads_nothing_and_shows_the_step(trace: Path) -> None:
    with book_of(trace) as book:
        drawn = svg(book, 24)
    text = " ".join("".join(ElementTree.fromstring(drawn).itertext()).split())
    assert "step 24 of 47" in text.replace("\u00a0", " ")
    assert "key-matches-state" in text
    assert drawn.count("http") == 1  # the name of the format itself
    assert "url(" not in drawn.replace("url(#r-", "")


def test_a_hostile_trace_stays_text_in_every_format(trace: Path, tmp_path: Path) -> None:
    path = tmp_path / "hostile.jsonl"
    path.write_bytes(trace.read_bytes())
    with book_of(renamed(renamed(path, "turn1", HOSTILE), "multiturn", HOSTILE)) as book:
        graph = state_graph(book.page(20))
        drawn = svg(book, 20)
    assert {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(drawn).iter()} <= {
        "svg", "style", "defs", "clipPath", "rect", "g", "text", "circle", "line"
    }  # fmt: skip
    assert networkx.parse_graphml(as_graphml(graph)).number_of_nodes() == graph.number_of_nodes()
    assert "<" not in as_mermaid(graph)
    assert '"' not in as_mermaid(graph).replace('["', "").replace('"]', "")
    assert as_dot(graph).count("\n") == graph.number_of_nodes() + graph.number_of_edges() + 3


def test_the_command_draws_what_it_is_asked_for(trace: Path, tmp_path: Path) -> None:
    files = {"svg": "a.svg", "tree": "b.mmd", "graph": "c.graphml"}
    options = [word for option, name in files.items() for word in (f"--{option}", str(tmp_path / name))]
    result = invoke("view", str(trace), "--at", "26", *options)
    assert result.exit_code == 0, result.output
    assert all((tmp_path / name).stat().st_size > 100 for name in files.values())
    assert "node 4: key 39, state 35" in (tmp_path / "b.mmd").read_text(encoding="utf-8")


def test_a_graph_whose_name_says_no_format_is_refused(trace: Path, tmp_path: Path) -> None:
    result = invoke("view", str(trace), "--tree", str(tmp_path / "tree.png"))
    assert result.exit_code == 2
    assert "need one that ends in .mmd" in result.output
    assert set(FORMATS) == {".mmd", ".dot", ".gv", ".graphml"}
