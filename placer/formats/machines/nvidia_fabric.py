"""NVLink domains as GPUs know them: ``nvidia-smi -q``, or its CSV form."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from placer.base.errors import Problem, refuse
from placer.base.hostlist import name_problem
from placer.formats.machines.fabric_domain import UUID, fabric_domain
from placer.formats.machines.findings import Findings, Level, NodeFacts, usual
from placer.formats.machines.labelled import Lines, are_numbers, lines_of_hosts

_LEVEL = Level("clique", True)
_NONE = r"\[?N/A\]?|\[?Not Supported\]?"
_CSV = re.compile(rf"\s*({UUID}|{_NONE})\s*,\s*([0-9]{{1,20}}|{_NONE})\s*")
_GPU = re.compile(r"GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9]\s*")
_ATTACHED = re.compile(r"Attached GPUs\s*:\s*([0-9]{1,4})\s*")
_KEY = re.compile(r"( *)([A-Za-z]\w*)\s*: *(\S.*)")
_PRODUCT = re.compile(r"\bProduct Name[ \t]*:[ \t]*([^\n]{1,99})")
_MARKER = re.compile(
    rf"(?:{_GPU.pattern}|{_ATTACHED.pattern}|\s+Fabric\s*|{_CSV.pattern})$"
)
_HOW = (
    "nvidia-smi -q, or nvidia-smi --query-gpu=fabric.clusterUuid,fabric.cliqueId "
    "--format=csv,noheader, with the host in front of every line"
)


@dataclass
class _Gpu:
    """The fabric of one GPU."""

    line: int
    uuid: str = ""
    clique: str = ""
    state: str = ""

    @property
    def domain(self) -> str:
        """Its domain; empty when it is in none."""
        return fabric_domain(self.state, self.uuid, self.clique)


def read(text: str, source: str) -> Findings:
    """The NVLink domain and the number of GPUs of every host.

    A file without host names is of one host, called as the file is.
    """
    hosts, ignored = lines_of_hosts(text, source, _MARKER)
    findings = Findings(source, (_LEVEL,), ignored=ignored, partial=True)
    problems: list[Problem] = []
    states: Counter[str] = Counter()
    for label, lines in hosts.items():
        host = label or Path(source).stem
        if not label and name_problem(host):
            message = "no line says which host it is of"
            problems.append(Problem(message, source, hint=_HOW))
            break
        gpus = _gpus(lines, source, problems)
        if not gpus:
            message = f'no fabric of a GPU of "{host}" in it'
            findings.ignored.append(Problem(message, source, lines.first, 1))
            continue
        states.update({gpu.state for gpu in gpus} - {"", "Completed", "N/A"})
        findings.nodes[host] = NodeFacts((_domain(gpus, host, findings),), len(gpus))
    if not (findings.nodes or problems):
        problems.append(Problem("no fabric of a GPU in it", source, hint=_HOW))
    refuse(problems)
    findings.gpu = usual(found[1].strip() for found in _PRODUCT.finditer(text))
    findings.numbers = "" not in hosts and are_numbers(hosts)
    if "" in hosts:
        findings.notes.append(f"without host names: taken for host {host}")
    for state, count in states.items():
        findings.notes.append(f"hosts whose NVLink fabric is {state}: {count}")
    if not any(facts.domains[0] for facts in findings.nodes.values()):
        findings.notes.append("no host is part of an NVLink domain of several hosts")
    return findings


def _domain(gpus: list[_Gpu], host: str, findings: Findings) -> str:
    """The domain that all GPUs of a host share; reported when they do not."""
    domains = {gpu.domain for gpu in gpus}
    if len(domains) == 1:
        return domains.pop()
    message = f'GPUs of "{host}" differ in their NVLink domain'
    at = Problem(message, findings.source, gpus[0].line, 1)
    findings.ignored.append(at)
    return ""


def _gpus(lines: Lines, source: str, problems: list[Problem]) -> list[_Gpu]:
    csv = ((number, _CSV.fullmatch(line)) for number, line in lines)
    if found := [_Gpu(n, match[1], match[2]) for n, match in csv if match]:
        return found
    return _sections(lines, source, problems)


_FIELDS = {"State": "state", "CliqueId": "clique", "ClusterUUID": "uuid"}


def _sections(lines: Lines, source: str, problems: list[Problem]) -> list[_Gpu]:
    """The GPUs in ``nvidia-smi -q`` of one host."""
    gpus: list[_Gpu] = []
    attached: int | None = None
    listed, inside = 0, -1
    for number, line in lines:
        stripped, indent = line.strip(), len(line) - len(line.lstrip())
        if stripped == "Fabric":
            gpus.append(_Gpu(number))
            inside = indent
        elif 0 <= inside < indent:
            key = _KEY.fullmatch(line.rstrip())
            if key and len(key[1]) == inside + 4 and key[2] in _FIELDS:
                setattr(gpus[-1], _FIELDS[key[2]], key[3])
        elif stripped:
            inside = -1
            listed += bool(_GPU.fullmatch(line))
            if match := _ATTACHED.fullmatch(line):
                attached = int(match[1])
    if listed and attached not in (None, listed):
        message = f"{attached} GPUs attached, {listed} listed: cut?"
        problems.append(Problem(message, source, lines.first, 1))
    return gpus
