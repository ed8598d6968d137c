"""Probes of nodes: the lines that ``placer probe`` prints in a job.

What a node says of NVLink and of its cloud is read as the label of Kubernetes nodes
that says the same, so that one set of rules tells what they mean. Slurm's address of a
node (``SLURM_TOPOLOGY_ADDR``, srun(1)) names its switches from the outermost, or its
block.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from placer.base.errors import Problem, capped, refuse
from placer.base.hostlist import name_problem
from placer.base.units import counted
from placer.documents import Document, Value, records
from placer.documents.builder import Places
from placer.documents.facts import TEXT
from placer.documents.keys import Key, Kind, integer, key, list_of, map_of, special
from placer.formats.machines import kubernetes
from placer.formats.machines.findings import (
    MAX_NODES,
    Findings,
    Level,
    NodeFacts,
    some,
    usual,
)
from placer.formats.machines.node_labels import LabelRules
from placer.formats.machines.switches import switch_levels

PROBE = re.compile(r'\{"format": ?"placer/probe"')
_CLIQUE = "nvidia.com/gpu.clique"
_CLOUD = {
    ("gce", "block"): "cloud.google.com/gce-topology-block",
    ("gce", "subblock"): "cloud.google.com/gce-topology-subblock",
    ("oci", "island"): "oci.oraclecloud.com/rdma.hpc_island_id",
    ("oci", "network_block"): "oci.oraclecloud.com/rdma.network_block_id",
    ("oci", "local_block"): "oci.oraclecloud.com/rdma.local_block_id",
    ("oci", "memory_fabric"): "oci.oraclecloud.com/host.gpu_memory_fabric_id",
    ("oci", "rack"): "oci.oraclecloud.com/host.rack_id",
}
_LONGEST = 1000
_HOW = "run srun --ntasks-per-node=1 placer probe > FILE"


def _words(value: Value, _: Any) -> dict[str, str]:
    """Names and texts; what is null, empty or cannot be printed is left out."""
    found = _MAP.read(value, {})
    return {k: v for k, v in found.items() if _is_text(k) and v and _is_text(v)}


def _printable(value: Value, usual: Any) -> Any:
    if not _is_text(value.content):
        value.expected("a printable text")
        return usual
    return value.content


def _host(value: Value, usual: Any) -> Any:
    text = value.text()
    if text and (why := name_problem(text)):
        value.problem(why)
    return text or usual


def _problems(value: Value, _: Any) -> tuple[str, ...]:
    return tuple(text for text in _TEXTS.read(value, ()) if text and _is_text(text))


_TEXT_OR_NULL = Kind(
    lambda: {"type": ["string", "null"]},
    lambda value, usual: usual if value.content is None else TEXT.read(value, usual),
    "",
)
_MAP = map_of(_TEXT_OR_NULL)
_TEXTS = list_of(_TEXT_OR_NULL)
_HOST = Kind(lambda: {"type": "string", "minLength": 1}, _host, "")
_TEXT = Kind(TEXT.schema, _printable, "")
_WORDS = Kind(_MAP.schema, _words, {})
_LIST = Kind(_TEXTS.schema, _problems, ())
_UNUSED = special(dict)  # told to people: whatever it is, a probe can be read


@dataclass(frozen=True)
class Probed:
    """One node, as its probe describes it; ``line`` is where it stands."""

    host: str = key(
        _HOST,
        "name of the node: `PLACER_HOST`, Slurm's, a pod's `NODE_NAME`, else its own",
    )
    gpus: int = key(integer(0, 1024), "GPUs that are there")
    gpu: str = key(_TEXT, "what most of them are called; empty where nothing tells", "")
    memory = Key(_UNUSED, "the least that one of them has, MiB", None)
    domain: str = key(
        _TEXT,
        "NVLink domain of several nodes, CLUSTER-UUID.CLIQUE; null where there is none",
        "",
        called="nvlink_domain",
    )
    address: str = key(
        _TEXT,
        "`SLURM_TOPOLOGY_ADDR`, such as spine1.leaf3.n07",
        "",
        called="topology_addr",
    )
    pattern: str = key(
        _TEXT,
        "`SLURM_TOPOLOGY_ADDR_PATTERN`, such as switch.switch.node",
        "",
        called="topology_pattern",
    )
    labels: dict[str, str] = key(
        _WORDS, "labels of Kubernetes that the downward API wrote", dict
    )
    cloud: dict[str, str] = key(
        _WORDS, "what the metadata service told, with the cloud's name", dict
    )
    nics = Key(_UNUSED, "NICs for RDMA", None)
    rails = Key(_UNUSED, "the nearest NIC of each GPU; empty where unknown", None)
    problems: tuple[str, ...] = key(
        _LIST, "what could not be told, and GPUs that differ", ()
    )
    line: int = 0
    is_open = True

    def all_labels(self) -> dict[str, str]:
        """Its labels, with those that say what the probe found itself."""
        cloud = self.cloud.get("name", "")
        found = {
            _CLOUD[cloud, key]: value
            for key, value in self.cloud.items()
            if (cloud, key) in _CLOUD
        }
        domain = {_CLIQUE: self.domain} if self.domain else {}
        return found | self.labels | domain

    def parts(self, kind: str) -> list[str]:
        """Names of its switches, or of its block, from the outermost."""
        names, kinds = _split(self.address), _split(self.pattern)
        if len(names) != len(kinds):
            return []
        return [n for n, k in zip(names, kinds, strict=True) if k == kind]


def read(text: str, source: str, rules: LabelRules | None = None) -> Findings:
    """What the nodes say: NVLink domains, switches, labels, clouds, and GPUs."""
    problems: list[Problem] = []
    probed = list(_probes(text, source, problems))
    if not (probed or problems):
        problems.append(Problem("there is no probe in it", source, hint=_HOW))
    if len(probed) > MAX_NODES:
        problems.append(Problem(f"more than {MAX_NODES} nodes", source))
    problems += _clashes(probed, source)
    refuse(capped(problems))
    probed = list({one.host: one for one in probed}.values())
    findings = kubernetes.read(_as_nodes(probed), source, rules)
    findings.gpu_resource = ""
    own = list(_own_levels(probed))
    findings.levels += tuple(level for level, _ in own)
    findings.gpu = usual(one.gpu for one in probed) or findings.gpu
    for number, one in enumerate(probed):
        domains = findings.nodes[one.host].domains + tuple(c[number] for _, c in own)
        findings.nodes[one.host] = NodeFacts(domains, one.gpus or None)
        if instance := one.cloud.get("instance_id", ""):
            findings.aliases[instance] = one.host
    findings.notes += _notes(probed)
    return findings


def _probes(text: str, source: str, problems: list[Problem]) -> Iterator[Probed]:
    """Every probe, whatever launchers put before it and between them."""
    decoder = json.JSONDecoder()
    for number, line in enumerate(text.splitlines(), start=1):
        at = 0
        while match := PROBE.search(line, at):
            column = match.start() + 1
            try:
                data, at = decoder.raw_decode(line, match.start())
            except (ValueError, RecursionError):
                message = "this probe is cut or malformed"
                problems.append(Problem(message, source, number, column))
                break
            here: Places = {(): (number, column)}
            document = Document(source, data, here.copy)
            if data.get("version") != 1:
                message = "expected 1: the probe is of another placer"
                document.problem(message, ("version",))
            one = records.read(document.root, Probed, line=number)
            if document.problems:
                problems.append(document.problems[0])
            else:
                yield one


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and len(value) <= _LONGEST


def _clashes(probed: Sequence[Probed], source: str) -> Iterator[Problem]:
    """Names that two nodes have; a node that was probed twice is one."""
    seen: dict[str, Probed] = {}
    for one in probed:
        first = seen.setdefault(one.host, one)
        said = [(probe.domain, probe.address, probe.gpus) for probe in (first, one)]
        if said[0] != said[1]:
            message = f'line {first.line} says otherwise of "{one.host}"'
            hint = "two nodes of one name? set PLACER_HOST on each"
            yield Problem(message, source, one.line, 1, "host", hint)


def _as_nodes(probed: Iterable[Probed]) -> str:
    items = [
        {"metadata": {"name": one.host, "labels": one.all_labels()}} for one in probed
    ]
    return json.dumps({"kind": "NodeList", "items": items})


def _own_levels(probed: Sequence[Probed]) -> Iterator[tuple[Level, list[str]]]:
    """Slurm's blocks and switches, with the domain of every node."""
    blocks = [next(iter(one.parts("block")), "") for one in probed]
    if any(blocks):
        yield Level("block", None), blocks
    switches = [one.parts("switch")[::-1] for one in probed]
    for height, level in enumerate(switch_levels(max(map(len, switches)))):
        yield level, [at[height] if height < len(at) else "" for at in switches]


def _split(text: str) -> list[str]:
    """Parts between dots, without those in brackets: ``[s1.a,s2].n1`` has two."""
    return re.findall(r"(?:\[[^\]]*\]|[^.\[])+", text)


def _notes(probed: Sequence[Probed]) -> Iterator[str]:
    """Nodes whose probe failed, and those that differ from most."""
    failed: dict[str, list[str]] = {}
    for one in probed:
        if one.problems:
            failed.setdefault("; ".join(one.problems)[:300], []).append(one.host)
    for problem, hosts in [*failed.items()][:20]:
        yield f"{some(hosts)}: {problem}"
    yield from _odd(probed, [counted(one.gpus, "GPU") for one in probed])
    named = [one for one in probed if one.gpu]
    yield from _odd(named, [one.gpu for one in named])
    domains = Counter(one.domain for one in probed)
    outside = [one.host for one in probed if not one.domain]
    if outside and len(outside) < len(probed):
        yield f"in no NVLink domain, as others are: {some(outside)}"
    alone = [one.host for one in probed if one.domain and domains[one.domain] == 1]
    if alone and max(domains.values()) > 1 and len(alone) * 4 <= len(probed):
        yield f"alone in their NVLink domain: {some(alone)}"


def _odd(probed: Sequence[Probed], values: Sequence[str]) -> Iterator[str]:
    """The nodes that have another value than most."""
    (usual, _), *others = Counter(values).most_common() or [("", 0)]
    for value, _ in others[:5]:
        hosts = [p.host for p, own in zip(probed, values, strict=True) if own == value]
        yield f"{value} instead of {usual}: {some(hosts)}"
