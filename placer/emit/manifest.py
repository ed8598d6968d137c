"""Kubernetes objects as YAML text, and what pods of a plan say besides its ranks.

Their program is that of the script that the job was read from. Their tolerations and
resources are those of the nodes that the machine was read from.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import yaml

from placer.base.errors import EmitError
from placer.documents import document_of
from placer.emit.nodes import NodeRanks
from placer.placement.plan import Plan
from placer.placement.started import started_of
from placer.topology.kubernetes import Kubernetes, decode_kubernetes

Object = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"

# A node's name is an RFC 1123 subdomain, here also a label value of at most 63
# characters (Kubernetes documentation, "Object Names and IDs", "Labels and Selectors").
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NODE = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_MAX_LABEL = 63
# Grove takes 45 characters for the names of a set, a scaling group and a clique
# together (its ``maxCombinedResourceNameLength``); "slice" and "node" leave more.
_MAX_NAME, _MARK = 32, 6
_NOT_IN_NAME = re.compile(r"[^a-z0-9]+")


class Text(str):
    """A text that is written in quotes, whatever YAML would make of it."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Writes objects without anchors, several lines of text as a block."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """True: no object is written as a reference to another."""
        return True


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if isinstance(text, Text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style=style)


_Dumper.add_representer(str, _string)
_Dumper.add_representer(Text, _string)


def documents(comment: str, objects: Iterable[Object]) -> str:
    """YAML of several objects, under a comment."""
    texts = [
        yaml.dump(each, Dumper=_Dumper, sort_keys=False, width=10**9)
        for each in objects
    ]
    return comment + "---\n".join(texts)


def comment(text: str) -> str:
    """A text as the lines of a comment."""
    lines = textwrap.wrap(text, 88, initial_indent="# ", subsequent_indent="# ")
    return "".join(f"{line}\n" for line in lines)


def kube_object(api: str, kind: str, name: str, spec: Object) -> Object:
    """An object of a version of an API."""
    head = {"apiVersion": api, "kind": kind, "metadata": {"name": name}}
    return {**head, "spec": spec}


def object_name(plan: Plan) -> str:
    """What the objects of a plan are called: as its job, in what a label may hold.

    So those of two jobs stand beside each other in a namespace.
    """
    return label_name(str(plan.job["name"]))


def label_name(name: str) -> str:
    """A name in what a label may hold; two names may give the same."""
    name = _NOT_IN_NAME.sub("-", name.lower()).strip("-")
    name = name if name[:1].isalpha() else f"placer-{name}"
    if len(name) <= _MAX_NAME:
        return name.strip("-")
    # What was cut off may be all that tells two jobs apart.
    mark = sha256(name.encode()).hexdigest()[:_MARK]
    return f"{name[: _MAX_NAME - _MARK - 1].strip('-')}-{mark}"


def require_node_names(nodes: Sequence[NodeRanks]) -> None:
    """Nothing, when every host could be the ``kubernetes.io/hostname`` of a node."""
    for node in nodes:
        if not _NODE.fullmatch(node.host) or len(node.host) > _MAX_LABEL:
            raise EmitError(
                f"{node.host!r} is no name of a Kubernetes node that a label can hold: "
                "lower case letters, digits, '-' and '.', at most 63 characters"
            )


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
        return comment(text)

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
