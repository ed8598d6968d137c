"""Slurm's ``topology.yaml``: a list of topologies, of which a tree and blocks are read.

Names and node sets are host-list texts (Slurm, ``topology.yaml`` manual page). A
ConfigMap has it, or a ``topology.conf``, as a text under ``data``, as Slinky mounts it
into its cluster (SlinkyProject's Slurm operator; NVIDIA/topograph,
docs/engines/slinky.md). The former counts, as it does for Slurm.
"""

from __future__ import annotations

from collections.abc import Sequence

from placer.base.errors import InputError
from placer.base.hostlist import HostLists
from placer.documents import Value, parse_answer
from placer.formats.machines.findings import MAX_NODES, Findings, hosts_of
from placer.formats.machines.slurm_conf import read_conf
from placer.formats.machines.slurm_machine import sizes_problem, slurm_findings
from placer.formats.machines.switches import Switch

# Why topologies of other kinds are not read.
_OTHER = {
    "flat": "it has no switches",
    "ring": "a ring is no tree of domains",
    "torus3d": "a torus is no tree of domains",
}


def read_yaml(text: str, source: str) -> Findings:
    """What the file says: the tree, the blocks, or both over the same nodes.

    Of several trees (or sets of blocks) the cluster's default is read, else the first,
    and the others are reported.
    """
    file = parse_answer(text, source, yaml=True)
    topologies = file.top.items()
    lists = HostLists(2 * MAX_NODES)
    tree, trees = _chosen(topologies, "tree")
    block, more = _chosen(topologies, "block")
    switches = _switches(tree, lists) if tree else []
    blocks, sizes = _blocks(block, lists) if block else ([], [])
    if not (tree or block):
        _refuse_others(file.top, topologies)
    file.fail_if_problems()
    if not (switches or blocks):
        raise InputError("no switch and no block in it", source)
    findings = slurm_findings(source, switches, blocks, sizes)
    # A partition has one topology, so a job lies in one.
    rest = [(item, "another tree, and a job lies in one") for item in trees]
    rest += [(item, "other blocks, and a job lies in one") for item in more]
    rest += [(item, kind) for item in topologies for kind in _OTHER if item.at(kind)]
    if rest:
        findings.unused["topology"] = len(rest)
    for item, what in rest:
        name = item.name("topology") or "without a name"
        findings.notes.append(f"the topology {name} is not used: {what}")
    return findings


def _chosen(topologies: Sequence[Value], kind: str) -> tuple[Value | None, list[Value]]:
    """The topology of a kind to read, and the others of that kind."""
    found = [item for item in topologies if item.at(kind)]
    key = "cluster_default"
    by_default = [item for item in found if (own := item.at(key)) and own.boolean()]
    chosen = next(iter([*by_default, *found]), None)
    rest = [item for item in found if chosen and item.path != chosen.path]
    return (chosen.at(kind) if chosen else None), rest


def _refuse_others(root: Value, topologies: Sequence[Value]) -> None:
    """Problems of a file without a tree and without blocks."""
    hint = "describe such a machine in the topology format"
    for item in topologies:
        for kind, why in _OTHER.items():
            if item.at(kind):
                name = item.name("topology") or "without a name"
                item.problem(f"the topology {name} is {kind}: {why}", hint)
    if not root.document.problems:
        root.problem("no tree and no block topology in it")


def _switches(tree: Value, lists: HostLists) -> list[Switch]:
    listed = tree.at("switches")
    if listed is None:
        tree.problem('the key "switches" is missing')
        return []
    return [
        Switch(
            item.name("switch", required=True),
            item.place,
            hosts_of(item.at("nodes"), lists),
            hosts_of(item.at("children"), lists),
        )
        for item in listed.items()
    ]


def _blocks(block: Value, lists: HostLists) -> tuple[list[Switch], list[int]]:
    listed = block.at("blocks")
    if listed is None:
        block.problem('the key "blocks" is missing')
        return [], []
    blocks = [
        Switch(
            item.name("block", required=True),
            item.place,
            hosts_of(item.at("nodes"), lists),
        )
        for item in listed.items()
    ]
    return blocks, _sizes(block.at("block_sizes"))


def _sizes(item: Value | None) -> list[int]:
    if item is None:
        return []
    texts = [str(size.content) for size in item.items()]
    if not texts or not all(t.isdecimal() and len(t) < 7 for t in texts):
        item.problem("expected a list of sizes, such as [18, 36]")
        return []
    sizes = [int(text) for text in texts]
    if problem := sizes_problem(sizes):
        item.problem(problem)
        return []
    return sizes


_READERS = {"topology.yaml": read_yaml, "topology.conf": read_conf}


def read_configmap(text: str, source: str) -> Findings:
    """What the topology in the ConfigMap says; lines are counted in that text."""
    file = parse_answer(text, source, yaml=True)
    listed = file.top.at("items")
    maps = listed.items() if listed else [file.top]
    found = [
        (key, inner)
        for item in maps
        for key in _READERS
        if (inner := item.at("data", key))
    ]
    holders = {inner.path[:-1] for _, inner in found}
    if not found:
        hint = f"it reads {' or '.join(_READERS)} under data"
        file.top.problem("a ConfigMap without a Slurm topology", hint)
    if len(holders) > 1:
        message = f"{len(holders)} ConfigMaps with a Slurm topology"
        file.top.problem(message, "give the one of the cluster")
    for _, inner in found:
        if not isinstance(inner.content, str) or not inner.content.strip():
            inner.problem("expected the text of the file")
    file.fail_if_problems()
    key, inner = found[0]
    findings = _READERS[key](inner.content, f"{source}:{key}")
    findings.source = source
    return findings
