"""What a source says of one node holds for every node that other sources list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from placer.formats.machines.findings import Findings, Known, NodeFacts, some


def same_everywhere(findings: Findings, gpus: int) -> Findings:
    """The findings, which give every listed node ``gpus`` GPUs."""

    def join(known: Known) -> Findings:
        nodes = {host: NodeFacts((), gpus) for host in known.hosts}
        return replace(findings, nodes=nodes)

    return replace(findings, join=join)


def kinds_of_hosts(words: Mapping[str, str]) -> list[str]:
    """A note for each kind of host, given each host's description."""
    hosts: dict[str, list[str]] = {}
    for host, kind in words.items():
        hosts.setdefault(kind, []).append(host)
    if len(hosts) == 1:
        return [f"every host: {kind}" for kind in hosts]
    return [f"{len(names)} hosts ({some(names)}): {k}" for k, names in hosts.items()]
