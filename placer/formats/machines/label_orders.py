"""``Topology`` objects of Kueue and KAI: the order of node labels.

``spec.levels`` lists the keys of labels, outermost first (Kueue, "Topology Aware
Scheduling"; KAI Scheduler, docs on topology). They say nothing of nodes: the order
serves the labels of a ``kubernetes`` source beside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from placer.base.errors import Problem, refuse
from placer.documents import Value, parse_answer
from placer.formats.machines.findings import Findings

_MOST_LEVELS = 16
_SEPARATOR = re.compile(r"^---[ \t]*(?:#.*)?$", re.MULTILINE)


def read(text: str, source: str) -> Findings:
    """The orders in a ``Topology``, or in a list of them."""
    findings = Findings(source)
    for document in _documents(text):
        file = parse_answer(document, source, yaml=True)
        listed = file.top.at("items")
        items = listed.items() if listed else [file.top]
        findings.label_orders += orders_of(items)
        file.fail_if_problems()
    if not findings.label_orders:
        hint = "it reads what kubectl get topologies -o yaml prints"
        refuse([Problem("no Topology in it", source, hint=hint)])
    findings.notes += [
        f"labels, outermost first: {' > '.join(reversed(order))}"
        for order in findings.label_orders
    ]
    return findings


def orders_of(items: Sequence[Value]) -> tuple[tuple[str, ...], ...]:
    """Keys of each ``Topology`` among ``items``, innermost first."""
    return tuple(
        _keys(item)
        for item in items
        if isinstance(item.content, dict) and item.content.get("kind") == "Topology"
    )


def _documents(text: str) -> list[str]:
    """Documents of a YAML manifest that may hold a Topology, each where it stood."""
    found, start = [], 0
    for end in [*_SEPARATOR.finditer(text), None]:
        document = text[start : end.start() if end else len(text)]
        if "Topology" in document:
            found.append("\n" * text.count("\n", 0, start) + document)
        start = end.end() if end else start
    return found


def _keys(topology: Value) -> tuple[str, ...]:
    levels = topology.at("spec", "levels")
    if levels is None:
        topology.problem('the key "spec.levels" is missing')
        return ()
    found = [item.name("nodeLabel", required=True) for item in levels.items()]
    if len(found) > _MOST_LEVELS:
        levels.problem(f"more than {_MOST_LEVELS} levels")
    if len(set(found)) < len(found):
        levels.problem("a label comes twice")
    return tuple(found[:_MOST_LEVELS][::-1])
