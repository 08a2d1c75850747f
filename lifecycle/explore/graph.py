"""The state graph of a small scope, as a networkx object: export, paths, and what leads into trouble."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replaylife.lifecycle.explore.found import Budget, Edge, Found
from replaylife.lifecycle.explore.schema import Scope
from replaylife.lifecycle.explore.search import Search
from replaylife.lifecycle.wander.moves import Leave, Open, Resume, Retry

if TYPE_CHECKING:
    import networkx as nx

TROUBLE = "trouble"
MAX_STATES = 50_000


def state_graph(
    scope: Scope, faults: tuple[str, ...] = (), *, symmetry: bool | None = None
) -> tuple[nx.MultiDiGraph[Any], Found]:
    """Explore a scope to its end; return its states and transitions, and what the search has seen.

    Nodes are states, 0 the beginning, with their ``depth``; edges carry ``kind`` and ``action``. A transition
    that breaks an invariant leads to the node ``trouble``, with what it ``breaks``. Raises ``ValueError`` for
    a scope of more than 50,000 states.
    """
    import networkx as nx

    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
    graph.add_node(0)

    def book(edge: Edge) -> None:
        target: int | str = TROUBLE if edge.target is None else edge.target
        graph.add_edge(edge.source, target, kind=edge.kind, action=words(edge.move))

    search = Search(scope, faults, symmetry=symmetry, stop=False, budget=Budget(states=MAX_STATES), edge=book)
    found = search.run()
    if found.states >= MAX_STATES:
        raise ValueError(f"the scope has more than {MAX_STATES:,} states; narrow it to draw its graph")
    depths = [0] * found.states
    for state in range(1, found.states):
        depths[state] = depths[found.parents[state]] + 1
        graph.nodes[state]["depth"] = depths[state]
    graph.nodes[0]["depth"] = 0
    for trouble in found.troubles:
        broken = [violation.invariant for violation in trouble.violations] or ["breakdown"]
        for data in graph.get_edge_data(trouble.parent, TROUBLE).values():
            if data["action"] == words(trouble.move):
                data["breaks"] = " ".join(dict.fromkeys(broken))
    return graph, found


def words(move: object) -> str:
    """Name a move as people read it."""
    match move:
        case Open(name, _, continues):
            return f"admit {name}" + (f" after {continues}" if continues else "")
        case Resume(name):
            return f"resume {name}"
        case Retry(name):
            return f"retry {name}"
        case Leave(name):
            return f"end the session of {name}"
        case _:
            return str(move)


def shortest_path(graph: nx.MultiDiGraph[Any], state: int | str) -> list[str]:
    """Return the actions of a shortest path from the beginning to a state, or to ``trouble``.

    Raises ``networkx.NetworkXNoPath`` or ``NodeNotFound`` where there is none.
    """
    import networkx as nx

    path = nx.shortest_path(graph, 0, state)
    return [str(min(graph.get_edge_data(a, b).items())[1]["action"]) for a, b in pairwise(path)]


def into_trouble(graph: nx.MultiDiGraph[Any]) -> dict[str, dict[str, int]]:
    """Return how often each kind of action leads into trouble, and how often it does not."""
    counts: dict[str, dict[str, int]] = {}
    for _, target, data in graph.edges(data=True):
        entry = counts.setdefault(data["kind"], {TROUBLE: 0, "fine": 0})
        entry[TROUBLE if target == TROUBLE else "fine"] += 1
    return counts


def write_graph(graph: nx.MultiDiGraph[Any], path: Path) -> None:
    """Write a graph as GraphML, or as dot where the name ends so. Raises ``ValueError`` for other endings."""
    import networkx as nx

    if path.suffix == ".graphml":
        nx.write_graphml(graph, path, edge_id_from_attribute=None)
    elif path.suffix == ".dot":
        path.write_text("\n".join(_dot(graph)) + "\n", encoding="utf-8")
    else:
        raise ValueError(f"{path.name}: found ending {path.suffix!r}, need .graphml or .dot")


def _dot(graph: nx.MultiDiGraph[Any]) -> Iterable[str]:
    yield "digraph states {"
    for node, data in graph.nodes(data=True):
        yield f'  "{node}" [depth={data["depth"]}];' if "depth" in data else f'  "{node}" [color=red];'
    for source, target, data in graph.edges(data=True):
        yield f'  "{source}" -> "{target}" [label="{data["action"]}"];'
    yield "}"
