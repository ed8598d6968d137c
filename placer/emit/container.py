"""What the pods of a plan say besides its ranks: program, tolerations, resources.

The program is that of the script that the job was read from. Taints and resources are
those of the nodes that the machine was read from.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from placer.documents import document_of
from placer.emit.manifest import Object, Text
from placer.emit.nodes import NodeRanks
from placer.placement.baselines import started_of
from placer.placement.plan import Plan
from placer.topology.kubernetes import Kubernetes, decode_kubernetes

# What starts a process a rank itself, with variables of its own.
_BY_RANK = ("slurm", "openmpi", "hydra")
_IMAGE, _PROGRAM = "IMAGE", ("train.py",)
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_DOLLAR = re.compile(r"\$(?=\()")
# A device plugin that shares NICs counts the pods that may have them, hundreds; one
# that hands them out counts NICs (Mellanox/k8s-rdma-shared-dev-plugin, rdmaHcaMax).
_SHARED, _MOST_NICS = "rdma/", 16


class Program(NamedTuple):
    """What a container runs."""

    image: str
    command: tuple[str, ...]  # words behind ``torchrun``
    environment: list[Object]  # entries of ``env``
    asked: list[str]  # variables whose values nobody said
    # Whether what starts it so far gives ranks by other variables than torchrun.
    needs_rank: bool = False


class Containers:
    """The containers of a plan's pods, and what the pods say of their nodes."""

    def __init__(self, plan: Plan) -> None:
        self._program = _program(plan)
        self._cluster = _cluster(plan)

    def about(self, what: str, nodes: Sequence[NodeRanks]) -> str:
        """Comment that opens a manifest: what it is, and what has to be put in."""
        program = self._program
        to_do = [f"your image for {_IMAGE}"] * (program.image == _IMAGE)
        to_do += ["your program for train.py"] * (program.command == _PROGRAM)
        to_do += [f"a value for <{name}>" for name in program.asked]
        text = f"{what} Put {' and '.join(to_do)}, then" if to_do else f"{what} Use"
        text += ": kubectl apply -f FILE"
        if program.needs_rank:
            text += ". The program must take its rank from RANK, as torchrun sets it"
        _, some = self._cluster.resources_of(node.host for node in nodes)
        if some:
            text += f". Not asked for, as some nodes lack it: {', '.join(some)}"
        lines = textwrap.wrap(text, 88, initial_indent="# ", subsequent_indent="# ")
        return "".join(f"{line}\n" for line in lines)

    def container(self, gpus: int, consecutive: bool, hosts: Sequence[str]) -> Object:
        """The one of a pod that has GPUs up to some of any of the hosts."""
        program = self._program
        python = [] if consecutive else ["python"]
        network = self._network(hosts)
        # What RDMA registers must stay in memory.
        lock = {"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}
        return {
            "name": "train",
            "image": program.image,
            "command": ["bash", "/placer/launch.sh", *python, *program.command],
            "env": [*program.environment],
            "resources": {"limits": {self._cluster.gpu: gpus, **network}},
            **(lock if network else {}),
        }

    def tolerations(self, hosts: Sequence[str]) -> Object:
        """The key ``tolerations`` of pods there; empty where no host has a taint."""
        found = []
        for taint in self._cluster.taints_of(hosts):
            value = {"operator": "Equal", "value": Text(taint.value)}
            said = value if taint.value else {"operator": "Exists"}
            found.append({"key": Text(taint.key), **said, "effect": taint.effect})
        return {"tolerations": found} if found else {}

    def _network(self, hosts: Sequence[str]) -> dict[str, int]:
        """The NICs that each of the hosts offers."""
        offered, _ = self._cluster.resources_of(hosts)
        return {
            name: 1 if name.startswith(_SHARED) and count > _MOST_NICS else count
            for name, count in offered.items()
        }


def labels_of(plan: Plan) -> Mapping[str, str]:
    """Key of the node label whose values are the domains of a tier, by tier."""
    return _cluster(plan).labels


def _program(plan: Plan) -> Program:
    """The program of the script that the job was read from, or marks for one."""
    started = started_of(plan)
    if started is None:
        return Program(_IMAGE, _PROGRAM, [], [])
    said = started.environment
    asked = dict.fromkeys(
        name
        for word in started.command
        for name in _VARIABLE.findall(word)
        if name not in said
    )
    values = {**said, **{name: f"<{name}>" for name in asked}}
    command = tuple(_VARIABLE.sub(r"$(\1)", _plain(w)) for w in started.command)
    return Program(
        started.image or _IMAGE,
        command or _PROGRAM,
        [{"name": n, "value": Text(_plain(v))} for n, v in values.items()],
        list(asked),
        bool(started.command) and started.name in _BY_RANK,
    )


def _plain(text: str) -> str:
    """The text so that Kubernetes finds no variable in it."""
    return _DOLLAR.sub("$$", text)


def _cluster(plan: Plan) -> Kubernetes:
    """What the plan's topology knows of the cluster."""
    machine = plan.inputs.get("topology")
    kept: Any = machine.get("kubernetes") if isinstance(machine, dict) else None
    if not isinstance(machine, dict) or not isinstance(kept, dict):
        return Kubernetes()
    document = document_of(kept, "inputs.topology.kubernetes")
    tiers = [tier for tier in machine.get("tiers", ()) if isinstance(tier, dict)]
    names = [str(tier.get("name")) for tier in tiers]
    found = decode_kubernetes(document.root, names)
    document.finish()
    return found
