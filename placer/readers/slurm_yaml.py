"""Slurm's ``topology.yaml``: a list of topologies, of which a tree and blocks are read.

Names and node sets are host-list texts (Slurm, ``topology.yaml`` manual page).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from placer.errors import Problem, refuse
from placer.readers.blocks import Block, sizes_problem
from placer.readers.plain import Item, Plain
from placer.readers.slurm_machine import slurm_findings
from placer.readers.switches import Switch

if TYPE_CHECKING:
    from placer.readers.findings import Findings

# Why topologies of other kinds are not read.
_OTHER = {
    "flat": "it has no switches",
    "ring": "a ring is no tree of domains",
    "torus3d": "a torus is no tree of domains",
}


def read(text: str, source: str) -> Findings:
    """What the file says: the tree, the blocks, or both over the same nodes.

    Of several trees (or sets of blocks) the cluster's default is read, else the first,
    and the others are reported.

    Raises
    ------
    InputError
        If the file is malformed, the switches are no tree, or there are no nodes.
    """
    file = Plain(text, source, yaml=True)
    topologies = file.root.items()
    tree, trees = _chosen(topologies, "tree")
    block, more = _chosen(topologies, "block")
    switches = _switches(tree) if tree else []
    blocks, sizes = _blocks(block) if block else ([], [])
    if not (tree or block):
        _refuse_others(file.root, topologies)
    file.finish()
    if not (switches or blocks):
        refuse([Problem("no switch and no block in it", source)])
    findings = slurm_findings(source, switches, blocks, sizes)
    rest = [(item, "another tree") for item in trees]
    rest += [(item, "other blocks") for item in more]
    rest += [(item, kind) for item in topologies for kind in _OTHER if item.get(kind)]
    if rest:
        findings.unused["topology"] = len(rest)
    for item, what in rest:
        name = item.text("topology") or "without a name"
        findings.notes.append(f"the topology {name} is not used: {what}")
    return findings


def _chosen(topologies: Sequence[Item], kind: str) -> tuple[Item | None, list[Item]]:
    """The topology of a kind to read, and the others of that kind."""
    found = [item for item in topologies if item.get(kind)]
    by_default = [item for item in found if _is_true(item.get("cluster_default"))]
    chosen = next(iter([*by_default, *found]), None)
    rest = [item for item in found if chosen and item.path != chosen.path]
    return (chosen.get(kind) if chosen else None), rest


def _refuse_others(root: Item, topologies: Sequence[Item]) -> None:
    """Problems of a file without a tree and without blocks."""
    hint = "describe such a machine in the topology format"
    for item in topologies:
        for kind, why in _OTHER.items():
            if item.get(kind):
                name = item.text("topology") or "without a name"
                item.problem(f"the topology {name} is {kind}: {why}", hint)
    if not root.file.has_problems:
        root.problem("no tree and no block topology in it")


def _is_true(item: Item | None) -> bool:
    return item is not None and item.value is True


def _switches(tree: Item) -> list[Switch]:
    listed = tree.get("switches")
    if listed is None:
        tree.problem('the key "switches" is missing')
        return []
    return [
        Switch(
            item.text("switch", required=True),
            _at(item),
            _hosts(item, "nodes"),
            _hosts(item, "children"),
        )
        for item in listed.items()
    ]


def _blocks(block: Item) -> tuple[list[Block], list[int]]:
    listed = block.get("blocks")
    if listed is None:
        block.problem('the key "blocks" is missing')
        return [], []
    blocks = [
        Block(item.text("block", required=True), _at(item), _hosts(item, "nodes"))
        for item in listed.items()
    ]
    return blocks, _sizes(block.get("block_sizes"))


def _sizes(item: Item | None) -> list[int]:
    if item is None:
        return []
    texts = [str(size.value) for size in item.items()]
    if not texts or not all(t.isdecimal() and len(t) < 7 for t in texts):
        item.problem("expected a list of sizes, such as [18, 36]")
        return []
    sizes = [int(text) for text in texts]
    if problem := sizes_problem(sizes):
        item.problem(problem)
        return []
    return sizes


def _at(item: Item) -> Problem:
    return item.file.placed(item.path, "")


def _hosts(item: Item, key: str) -> list[str]:
    listed = item.get(key)
    return listed.host_list() if listed else []
