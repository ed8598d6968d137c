"""NetQ: the topology graph of a fabric, and the compute nodes of NVLink domains.

The answer of ``topologygraph/fetch-topology``: ``nodes`` in groups
(``compounded_nodes``) with ``id``, ``name`` and ``tier``, and ``links`` from ``src`` to
``target``; hosts are of tier -1. The switches that hosts share are found as for
InfiniBand. The answer of ``GET nmx/v1/compute-nodes``: a list of trays with ``Name``,
``DomainUUID`` and ``GpuIDList`` (NVIDIA/topograph, pkg/providers/netq and
tests/output/netq, of both).
"""

from __future__ import annotations

from placer.documents import Value, parse_answer
from placer.formats.machines.findings import Findings, Level, some
from placer.formats.machines.ibnetdiscover import waiting
from placer.formats.machines.infiniband import Fabric, Link

_HOST_TIER = -1


_LEVELS = (Level("nvlink-domain", True),)


def read_netq(text: str, source: str) -> Findings:
    """The leaves or sets of leaves, and the spines, that hosts share."""
    file = parse_answer(text, source)
    graphs = file.top.items() if isinstance(file.top.content, list) else [file.top]
    fabric = Fabric()
    ids: dict[str, str] = {}
    for graph in graphs:
        for group in graph.listed("nodes"):
            for device in group.listed("compounded_nodes"):
                _add_device(fabric, ids, device)
        links = graph.at("links")
        for number, link in enumerate(links.items() if links else ()):
            _add_link(fabric, ids, link, number)
    for start, what in (("S-", "switch"), ("H-", "host")):
        if not (file.problems or any(n.startswith(start) for n in ids.values())):
            file.top.problem(f"no {what} in it")
    file.fail_if_problems()
    return waiting(Findings(source), fabric)


def _add_device(fabric: Fabric, ids: dict[str, str], device: Value) -> None:
    own = device.name("id", required=True)
    name = device.name("name", required=True)
    tier = device.at("tier")
    if tier is None or not isinstance(tier.content, int):
        (tier or device).problem("expected the tier of the device, a number")
        return
    if own in ids:
        device.problem(f'"{own}" is listed twice')
    is_host = tier.content == _HOST_TIER
    ids[own] = f"{'H' if is_host else 'S'}-{own}"
    # An adapter is described as its host and the device in it.
    fabric.descriptions[ids[own]] = f"{name} {own}" if is_host else name


def _add_link(fabric: Fabric, ids: dict[str, str], link: Value, number: int) -> None:
    ends = (link.name("src", required=True), link.name("target", required=True))
    unknown = [end for end in ends if end and end not in ids]
    for end in unknown:
        link.problem(f'no node has the id "{end}"')
    if unknown or not all(ends):
        return
    a, b = (ids[end] for end in ends)
    fabric.links[a, number] = Link(a, number, b, number, 0.0, 0)
    fabric.links[b, number] = Link(b, number, a, number, 0.0, 0)


def read_nmx(text: str, source: str) -> Findings:
    """NVLink domain and GPUs of every node."""
    file = parse_answer(text, source)
    listed = file.top.items()
    if not (listed or file.problems):
        file.top.problem("no compute node in it")
    findings = Findings(source, _LEVELS)
    unwell = []
    for item in listed:
        name = item.name("Name", required=True)
        facts = findings.add_node(item, name, (item.name("DomainUUID"),))
        facts.gpus = _gpus(item)
        if item.name("Health") not in ("", "HEALTHY"):
            unwell.append(f"{name} {item.name('Health')}")
    file.fail_if_problems()
    if unwell:
        findings.notes.append(f"nodes that are not HEALTHY: {some(unwell)}")
    return findings


def _gpus(node: Value) -> int | None:
    listed = node.at("GpuIDList")
    return None if listed is None else len(listed.items())
