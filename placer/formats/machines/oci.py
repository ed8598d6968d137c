"""Oracle Cloud: where every host sits in the RDMA network.

Two shapes are read. From the hosts, one line each, as a parallel shell collects the
instance metadata ``/opc/v2/host/rdmaTopologyData``: ``gpu-3: {"customerLocalBlock":
...}``. From the API or the ``oci`` command, a list of compute hosts with
``localBlockId``, ``networkBlockId``, ``hpcIslandId`` and ``gpuMemoryFabricId`` (Oracle
Cloud Infrastructure API, ComputeHostSummary). GPUs of a memory fabric share NVLink. The
metadata of a whole host, ``/opc/v2/host/``, has ``rackId`` as well, and of a host
without that network only it and ``networkBlockId`` (kubernetes-sigs/dranet,
pkg/cloudprovider/oke). One host of the API has its rack in
``additionalData.locationDetails``, which counts within the memory fabric
(NVIDIA/topograph, pkg/providers/oci).
"""

from __future__ import annotations

import re

from placer.base.errors import Problem
from placer.documents import Value, parse_answer
from placer.formats.machines.findings import Findings, Level, some
from placer.formats.machines.labelled import are_numbers

_LEVELS = (
    Level("memory-fabric", True),
    Level("rack", None),
    Level("local-block", inside="network-block"),
    Level("network-block", inside="island"),
    Level("island"),
)
# Keys of each level in all shapes, without dashes and in lower case.
_KEYS = (
    ("customergpumemoryfabric", "gpumemoryfabricid"),
    (),
    ("customerlocalblock", "localblockid"),
    ("customernetworkblock", "networkblockid"),
    ("customerhpcislandid", "hpcislandid"),
)
_FABRIC, _RACK = 0, 1
# Kubernetes labels say this where the metadata of a host could not be read.
_UNKNOWN = "no-imds-data"
_LINE = re.compile(r"(\s*([A-Za-z0-9][\w.-]*)\s*:\s*)\{.*\}\s*")


def read(text: str, source: str) -> Findings:
    """What the hosts say: memory fabric, rack, local and network block, and island."""
    lines = text.split("\n")
    matches = [_LINE.fullmatch(line) for line in lines]
    if any(matches) and not text.lstrip().startswith(("{", "[")):
        return _read_lines(lines, matches, source)
    file = parse_answer(text, source)
    findings = Findings(source, _LEVELS)
    token = file.top.at("opc-next-page")
    if token is not None:
        token.problem("an opc-next-page is left: the list is not complete", "use --all")
    listed = file.top.at("data", "items") or file.top.at("data")
    listed = listed or file.top.at("items") or file.top
    if isinstance(listed.content, dict):
        listed.problem("which host is this?", "collect lines such as gpu-3: {...}")
        file.fail_if_problems()
    empty = 0
    for item in listed.items():
        name = _value(item, ("instanceid",))
        findings.add_node(item, name, _domains(item))
        empty += not name
    if not (findings.nodes or file.problems):
        file.top.problem("no host with an instance in it")
    file.fail_if_problems()
    _drop_racks_across_blocks(findings)
    if empty:
        findings.unused["host"] = empty
        findings.notes.append(f"hosts without an instance, left out: {empty}")
    return findings


def _read_lines(
    lines: list[str], matches: list[re.Match[str] | None], source: str
) -> Findings:
    """Findings of ``host: {json}`` lines."""
    findings = Findings(source, _LEVELS)
    names, bodies = [], []
    for number, (line, match) in enumerate(zip(lines, matches, strict=True), start=1):
        body = ""
        if match:
            names.append(match[2])
            body = " " * match.end(1) + line[match.end(1) :] + ","
        elif line.strip():
            problem = Problem("no line such as gpu-3: {...}", source, number, 1)
            findings.ignored.append(problem)
        bodies.append(body)
    # One list with every value where it stood, so that places stay right.
    text = "\n".join(bodies).rstrip()
    start = text.index("{")
    file = parse_answer(text[: start - 1] + "[" + text[start:-1] + "]", source)
    for item, name in zip(file.top.items(), names, strict=True):
        findings.add_node(item, name, _domains(item))
    file.fail_if_problems()
    _drop_racks_across_blocks(findings)
    findings.numbers = are_numbers(names)
    return findings


def _domains(host: Value) -> tuple[str, ...]:
    # The metadata of the whole host, /opc/v2/host/, holds it one level down.
    data = host.at("rdmaTopologyData") or host
    found = [_value(data, keys) for keys in _KEYS]
    found[_RACK] = _rack(host, found[_FABRIC])
    return tuple(found)


def _rack(host: Value, fabric: str) -> str:
    """The rack of a host: its id, or its name within the memory fabric."""
    if own := _value(host, ("rackid",)):
        return own
    more = host.at("additionalData") or host.at("additional-data")
    details = more and (more.at("locationDetails") or more.at("location-details"))
    name = details.name("rack") if details else ""
    return f"{fabric}.{name}" if name else ""


def _drop_racks_across_blocks(findings: Findings) -> None:
    """Leave racks out where they cut across the blocks of the network.

    They are places in a room: a rack with hosts of two blocks is no part of either.
    """
    for k in range(_RACK + 1, len(_LEVELS)):
        blocks: dict[str, set[str]] = {}
        racks: dict[str, set[str]] = {}
        for facts in findings.nodes.values():
            rack, block = facts.domains[_RACK], facts.domains[k]
            if rack and block:
                blocks.setdefault(rack, set()).add(block)
                racks.setdefault(block, set()).add(rack)
        torn = [rack for rack, found in blocks.items() if len(found) > 1]
        if torn and any(len(found) > 1 for found in racks.values()):
            findings.notes.append(
                f"racks with hosts of several {_LEVELS[k].name}s, so racks are left "
                f"out: {len(torn)} ({some(torn)})"
            )
            for facts in findings.nodes.values():
                own = facts.domains
                facts.domains = (*own[:_RACK], "", *own[_RACK + 1 :])
            return


def _value(host: Value, keys: tuple[str, ...]) -> str:
    """The first of ``keys`` that is there, in any spelling; empty when none is."""
    if not isinstance(host.content, dict):
        host.problem("expected a mapping")
        return ""
    for written in host.content:
        if written.replace("-", "").lower() in keys:
            found = host.name(written)
            return "" if found == _UNKNOWN else found
    return ""
