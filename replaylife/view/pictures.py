"""Pictures of one step: the screen as SVG; the tree, or the whole state, as Mermaid, Graphviz or GraphML.

Nothing is drawn here: the graphs are text for programs that lay them out. Every text from a trace is quoted
or escaped for its format, and no picture loads anything.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console

from replaylife.lifecycle.snapshot import Snapshot
from replaylife.view.book import Book, Page, run_of
from replaylife.view.look import Look, clean
from replaylife.view.requests import slot_of
from replaylife.view.screen.frame import overview, sight_of, timeline

if TYPE_CHECKING:
    from networkx import DiGraph

    Graph: TypeAlias = DiGraph[str]

WIDTH = 100  # columns of the picture
_SVG = """<svg class="replaylife" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace;
font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 16px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def svg(book: Book, step: int, width: int = WIDTH) -> str:
    """Return the screen at a step as SVG, all panes in full. Raises ``LookupError`` if it cannot be read."""
    look = Look(width)
    run = run_of(book.header)
    console = Console(
        record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor",
        highlight=False, markup=False, emoji=False,
    )  # fmt: skip
    lines = overview(sight_of(book, book.page(step), book.num_invariants), look, None)
    for line in (timeline(book, step, look), *lines):
        line.truncate(width, overflow="crop")
        console.print(line, no_wrap=True)
    names = " with ".join(dict.fromkeys([run.name, *run.faults]))
    title = f"{names} - step {step} of {book.last}"
    return console.export_svg(title=title, code_format=_SVG, unique_id="r")


# -- graphs ----------------------------------------------------------------------------------------------


def tree_graph(page: Page) -> Graph:
    """Return the radix tree after a step: a vertex for each node, an edge from parent to child."""
    from networkx import DiGraph

    graph: Graph = DiGraph()
    snapshot = page.played.transition.after
    known = {node.id for node in snapshot.nodes}
    for node in snapshot.nodes:
        slot = slot_of(snapshot, node.state)
        label = f"node {node.id}: key {node.key.length}"
        label += ", no state" if slot is None else f", state {slot.temporal.length} in slot {slot.index}"
        _add(graph, page, f"node {node.id}", "node" if slot is not None else "tombstone", label)
    for node in snapshot.nodes:
        if node.parent in known:
            graph.add_edge(f"node {node.parent}", f"node {node.id}", kind="child")
    return graph


def state_graph(page: Page) -> Graph:
    """Return the tree, the slots in use and the requests after a step, and who holds what of whom."""
    graph = tree_graph(page)
    snapshot = page.played.transition.after
    for slot in snapshot.slots:
        if slot.index and [owner.kind for owner in slot.owners] != ["free"]:
            ring = "" if slot.write_pos is None else f", ring {slot.write_pos}/{snapshot.ring_length}"
            label = f"slot {slot.index}: temporal {slot.temporal.length}, conv {slot.conv.length}{ring}"
            _add(graph, page, f"slot {slot.index}", "slot", label)
    for node in snapshot.nodes:
        if node.state is not None:
            graph.add_edge(f"node {node.id}", f"slot {node.state}", kind="state")
    _add_requests(graph, page, snapshot)
    return graph


def _add_requests(graph: Graph, page: Page, snapshot: Snapshot) -> None:
    for request in snapshot.requests:
        name = f"request {clean(request.id)}"
        _add(graph, page, name, "request", f"{name}: committed {request.committed}, {request.phase}")
        if request.slot is not None:
            graph.add_edge(name, f"slot {request.slot}", kind="live")
        for slot in request.track_slots:
            graph.add_edge(name, f"slot {slot}", kind="track")
        if request.locked is not None:
            graph.add_edge(name, f"node {request.locked}", kind="pins")
        if request.pending_cow is not None:
            source, target = request.pending_cow
            graph.add_edge(f"slot {source}", f"slot {target}", kind="copy pending")


def _add(graph: Graph, page: Page, name: str, kind: str, label: str) -> None:
    broken = any(violation.subject == name for violation in page.played.violations)
    graph.add_node(name, kind=kind, label=label, broken=broken)


def as_mermaid(graph: Graph) -> str:
    """Return a Mermaid flowchart; what is broken is drawn red, a tombstone dashed."""
    names = {vertex: f"v{number}" for number, vertex in enumerate(graph)}
    lines = ["flowchart TD"]
    for vertex, facts in graph.nodes(data=True):
        lines.append(f'  {names[vertex]}["{_for_mermaid(facts.get("label", vertex))}"]')
    for source, target, facts in graph.edges(data=True):
        kind = facts.get("kind", "child")
        arrow = "-->" if kind == "child" else f"-. {_for_mermaid(kind)} .->"
        lines.append(f"  {names[source]} {arrow} {names[target]}")
    lines += ["  classDef broken stroke:#c0182b,stroke-width:3px", "  classDef tombstone stroke-dasharray:4"]
    for style, fact, value in (("broken", "broken", True), ("tombstone", "kind", "tombstone")):
        chosen = [names[vertex] for vertex, facts in graph.nodes(data=True) if facts.get(fact) == value]
        lines += [f"  class {','.join(chosen)} {style}"] if chosen else []
    return "\n".join(lines) + "\n"


def _for_mermaid(text: str) -> str:
    return "".join(char if char.isalnum() or char in " .,:/-_()" else f"#{ord(char)};" for char in text)


def as_dot(graph: Graph) -> str:
    """Return a Graphviz graph; what is broken is drawn red, a tombstone dashed."""
    lines = ["digraph replaylife {", '  node [shape=box, fontname="monospace"];']
    for vertex, facts in graph.nodes(data=True):
        look = ", color=red, penwidth=2" if facts.get("broken") else ""
        look += ", style=dashed" if facts.get("kind") == "tombstone" else ""
        look += ", shape=ellipse" if facts.get("kind") == "request" else ""
        lines.append(f"  {_for_dot(vertex)} [label={_for_dot(facts.get('label', vertex))}{look}];")
    for source, target, facts in graph.edges(data=True):
        kind = facts.get("kind", "child")
        look = "" if kind == "child" else f" [style=dotted, label={_for_dot(kind)}]"
        lines.append(f"  {_for_dot(source)} -> {_for_dot(target)}{look};")
    return "\n".join([*lines, "}"]) + "\n"


def _for_dot(text: str) -> str:
    quoted = clean(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'


def as_graphml(graph: Graph) -> str:
    """Return GraphML, with kind, label and broken for each vertex and kind for each edge."""
    from networkx import generate_graphml

    return "\n".join(generate_graphml(graph)) + "\n"


FORMATS: dict[str, Callable[[Graph], str]] = {
    ".mmd": as_mermaid,
    ".dot": as_dot,
    ".gv": as_dot,
    ".graphml": as_graphml,
}
