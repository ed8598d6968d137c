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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placer.base.errors import Problem, capped, refuse
from placer.base.hostlist import name_problem
from placer.formats.machines import kubernetes
from placer.formats.machines.findings import MAX_NODES, Findings, Level, NodeFacts, some
from placer.formats.machines.switches import switch_levels

if TYPE_CHECKING:
    from placer.formats.machines.node_labels import LabelRules

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


@dataclass(frozen=True)
class Probed:
    """One node, as its probe describes it; ``line`` is where it stands."""

    host: str
    gpus: int
    gpu: str
    domain: str
    address: str
    pattern: str
    labels: dict[str, str]
    cloud: dict[str, str]
    problems: tuple[str, ...]
    line: int = 0

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

    def switches(self) -> tuple[str, ...]:
        """Names of its switches, closest first."""
        return tuple(reversed(self._parts("switch")))

    def block(self) -> str:
        """Name of its block; empty where it has none."""
        return next(iter(self._parts("block")), "")

    def _parts(self, kind: str) -> list[str]:
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
    names = Counter(one.gpu for one in probed if one.gpu)
    findings.gpu = next((name for name, _ in names.most_common(1)), findings.gpu)
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
            wrong = _wrong(data)
            if wrong is None:
                yield _probed(data, number)
            else:
                key, message = wrong
                problems.append(Problem(message, source, number, column, key))


def _wrong(data: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first key of a probe that cannot be used, and why."""
    if data.get("version") != 1:
        return "version", "expected 1: the probe is of another placer"
    host = data.get("host")
    if not isinstance(host, str) or not host:
        return "host", "expected a text"
    if why := name_problem(host):
        return "host", why
    gpus = data.get("gpus")
    if type(gpus) is not int or not 0 <= gpus <= 1024:
        return "gpus", "expected a number from 0 to 1024"
    for key in ("gpu", "nvlink_domain", "topology_addr", "topology_pattern"):
        if not _is_text(data.get(key) or ""):
            return key, "expected a printable text"
    for key in ("labels", "cloud"):
        if not isinstance(data.get(key, {}), dict):
            return key, "expected an object"
    if not isinstance(data.get("problems", []), list):
        return "problems", "expected a list"
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and len(value) <= _LONGEST


def _probed(data: Mapping[str, Any], line: int) -> Probed:
    return Probed(
        host=data["host"],
        gpus=data["gpus"],
        gpu=data.get("gpu") or "",
        domain=data.get("nvlink_domain") or "",
        address=data.get("topology_addr") or "",
        pattern=data.get("topology_pattern") or "",
        labels=_texts(data.get("labels", {})),
        cloud=_texts(data.get("cloud", {})),
        problems=tuple(text for text in data.get("problems", []) if _is_text(text)),
        line=line,
    )


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {k: v for k, v in values.items() if _is_text(k) and v and _is_text(v)}


def _clashes(probed: Sequence[Probed], source: str) -> Iterator[Problem]:
    """Names that two nodes have; a node that was probed twice is one."""
    seen: dict[str, Probed] = {}
    for one in probed:
        first = seen.setdefault(one.host, one)
        if (first.domain, first.address, first.gpus) != (
            one.domain,
            one.address,
            one.gpus,
        ):
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
    blocks = [one.block() for one in probed]
    if any(blocks):
        yield Level("block", None), blocks
    switches = [one.switches() for one in probed]
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
    yield from _odd(probed, [str(one.gpus) for one in probed], "{} GPUs")
    yield from _odd(probed, [one.gpu for one in probed], "{}")
    domains = Counter(one.domain for one in probed)
    outside = [one.host for one in probed if not one.domain]
    if outside and len(outside) < len(probed):
        yield f"in no NVLink domain, as others are: {some(outside)}"
    alone = [one.host for one in probed if one.domain and domains[one.domain] == 1]
    if alone and max(domains.values()) > 1 and len(alone) * 4 <= len(probed):
        yield f"alone in their NVLink domain: {some(alone)}"


def _odd(probed: Sequence[Probed], values: Sequence[str], shown: str) -> Iterator[str]:
    """The nodes that have another value than most."""
    (usual, _), *others = Counter(values).most_common()
    for value, _ in others[:5]:
        hosts = [p.host for p, own in zip(probed, values, strict=True) if own == value]
        said = shown.format(value or "no")
        yield f"{said} instead of {shown.format(usual or 'no')}: {some(hosts)}"
