"""topograph: its graph of instances, and its simulation models.

In a graph every instance has its network layers, closest first and of varying number,
and labels of accelerators; ids are the cloud's instance ids, not host names. In a model
``switches`` maps a switch to its children; a block names its switch, its nodes and, in
annotations or labels, the accelerator domain and sub-domain that its nodes share
(NVIDIA/topograph e2b62507, docs and tests/models).
"""

from __future__ import annotations

from placer.base.errors import Problem, refuse
from placer.base.hostlist import HostLists
from placer.documents import Value, parse_answer
from placer.formats.machines.findings import (
    MAX_NODES,
    Findings,
    Level,
    NodeFacts,
    hosts_of,
)
from placer.formats.machines.switches import Switch, switch_domains, switch_levels

_SUB_DOMAIN = "accelerator.topograph.run/sub-domain"
_DOMAIN = "accelerator.topograph.run/domain"
_MAX_LAYERS = 12


_LEVELS = (Level("sub-domain", None, inside="domain"), Level("domain", None))
_OLD_DOMAIN = "network.topology.nvidia.com/accelerator"


def read_graph(text: str, source: str) -> Findings:
    """What a graph says: accelerator sub-domains and domains, and network layers."""
    file = parse_answer(text, source)
    instances = file.top.listed("instances")
    if not (instances or file.problems):
        hint = "with an output path set, topograph answers just OK: read that file"
        file.top.problem("no instance in it", hint)
    layers = [_layers(item) for item in instances]
    depth = max(map(len, layers), default=0)
    findings = Findings(source, _LEVELS + switch_levels(depth))
    for item, names in zip(instances, layers, strict=True):
        padded = names + ("",) * (depth - len(names))
        name = item.name("id", required=True)
        findings.add_node(item, name, _accelerator(item) + padded)
    file.fail_if_problems()
    return findings


def _layers(instance: Value) -> tuple[str, ...]:
    listed = instance.at("network_layers")
    names = tuple(instance.names("network_layers"))
    if len(names) > _MAX_LAYERS and listed:
        listed.problem(f"more than {_MAX_LAYERS} network layers")
    return names[:_MAX_LAYERS]


def _accelerator(instance: Value) -> tuple[str, str]:
    labels = instance.at("labels")
    if labels is None:
        return "", ""
    return labels.name(_SUB_DOMAIN), labels.name(_DOMAIN)


def read_model(text: str, source: str) -> Findings:
    """What a model says: accelerator sub-domains and domains, and the switches."""
    file = parse_answer(text, source, yaml=True)
    switches = _switches(file.top)
    blocks = file.top.listed("blocks")
    for item in blocks:
        name = item.name("switch")
        if name:
            switches.setdefault(name, Switch(name, item.place, []))
    file.fail_if_problems()
    problems: list[Problem] = []
    paths, notes = switch_domains(list(switches.values()), problems)
    refuse(problems)
    depth = len(next(iter(paths.values()), ()))
    findings = Findings(source, _LEVELS + switch_levels(depth), notes=notes)
    lists = HostLists(2 * MAX_NODES)
    for item in blocks:
        path = paths.get(item.name("switch"), ("",) * depth)
        _add_nodes(findings, item, _model_accelerator(item) + path, lists)
    if not (findings.nodes or file.problems):
        file.top.problem("no node in it", "a model lists its nodes under blocks")
    file.fail_if_problems()
    return findings


def _switches(root: Value) -> dict[str, Switch]:
    """Every switch that is named, as a key or as a child."""
    switches: dict[str, Switch] = {}
    listed = root.at("switches")
    for name, item in listed.entries() if listed else ():
        switches[name] = Switch(name, item.place, [], item.names("switches"))
    for switch in list(switches.values()):
        for child in switch.children:
            switches.setdefault(child, Switch(child, switch.place, []))
    return switches


def _model_accelerator(block: Value) -> tuple[str, str]:
    """Accelerator sub-domain and domain of a block, empty where it gives none."""
    found = {"sub-domain": "", "domain": ""}
    for where in ("labels", "annotations"):
        listed = block.at(where)
        for key, value in listed.entries() if listed else ():
            kind = "domain" if key == _OLD_DOMAIN else key.rpartition("/")[2]
            if kind in found and key.startswith(("accelerator.", _OLD_DOMAIN)):
                found[kind] = value.name()
    return found["sub-domain"], found["domain"]


def _add_nodes(
    findings: Findings, block: Value, domains: tuple[str, ...], lists: HostLists
) -> None:
    for item in block.listed("nodes"):
        for name in hosts_of(item, lists):
            if name in findings.nodes:
                item.problem(f'node "{name}" is listed twice')
            findings.nodes[name] = NodeFacts(domains)
        if len(findings.nodes) > MAX_NODES:
            item.problem(f"more than {MAX_NODES} nodes")
            item.document.fail_if_problems()
