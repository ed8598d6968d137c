"""topograph's simulation models: a map of switches and a list of node blocks.

``switches`` maps a switch to its children; a block names its switch, its nodes and, in
annotations or labels, the accelerator domain and sub-domain that its nodes share
(NVIDIA/topograph e2b62507, tests/models).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.errors import refuse
from placer.readers.findings import MAX_NODES, Findings, Level, NodeFacts
from placer.readers.plain import Item, Plain
from placer.readers.switches import Switch, SwitchProblem, switch_levels, switch_paths

if TYPE_CHECKING:
    from placer.errors import Problem

_LEVELS = (Level("sub-domain", None, inside="domain"), Level("domain", None))
_OLD_DOMAIN = "network.topology.nvidia.com/accelerator"


def read(text: str, source: str) -> Findings:
    """What a model says: accelerator sub-domains and domains, and the switches.

    Raises
    ------
    InputError
        If the file is malformed, the switches are no tree, or there are no nodes.
    """
    file = Plain(text, source, yaml=True)
    switches = _switches(file.root)
    listed = file.root.get("blocks")
    blocks = listed.items() if listed else []
    for item in blocks:
        name = item.text("switch")
        if name:
            switches.setdefault(name, Switch(name, _at(item), [], []))
    file.finish()
    problem = SwitchProblem()
    paths = switch_paths(list(switches.values()), problem)
    refuse(problem.problems)
    depth = len(next(iter(paths.values()), ()))
    findings = Findings(source, _LEVELS + switch_levels(depth))
    for item in blocks:
        domains = _accelerator(item) + paths.get(item.text("switch"), ("",) * depth)
        _add_nodes(findings, item, domains)
    if not (findings.nodes or file.has_problems):
        file.root.problem("no node in it", "a model lists its nodes under blocks")
    file.finish()
    return findings


def _switches(root: Item) -> dict[str, Switch]:
    """Every switch that is named, as a key or as a child."""
    switches: dict[str, Switch] = {}
    listed = root.get("switches")
    for name, item in listed.entries() if listed else ():
        children = item.get("switches")
        names = [child.as_text() for child in children.items()] if children else []
        switches[name] = Switch(name, _at(item), [], names)
    for switch in list(switches.values()):
        for child in switch.children:
            switches.setdefault(child, Switch(child, switch.place, [], []))
    return switches


def _accelerator(block: Item) -> tuple[str, str]:
    """Accelerator sub-domain and domain of a block, empty where it gives none."""
    found = {"sub-domain": "", "domain": ""}
    for where in ("labels", "annotations"):
        listed = block.get(where)
        for key, value in listed.entries() if listed else ():
            kind = "domain" if key == _OLD_DOMAIN else key.rpartition("/")[2]
            if kind in found and key.startswith(("accelerator.", _OLD_DOMAIN)):
                found[kind] = value.as_text()
    return found["sub-domain"], found["domain"]


def _add_nodes(findings: Findings, block: Item, domains: tuple[str, ...]) -> None:
    listed = block.get("nodes")
    for item in listed.items() if listed else ():
        for name in item.host_list():
            if name in findings.nodes:
                item.problem(f'node "{name}" is listed twice')
            findings.nodes[name] = NodeFacts(domains)
        if len(findings.nodes) > MAX_NODES:
            item.problem(f"more than {MAX_NODES} nodes")
            item.file.finish()


def _at(item: Item) -> Problem:
    return item.file.placed(item.path, "")
