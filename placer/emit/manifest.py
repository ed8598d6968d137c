"""Kubernetes objects as YAML text, and what pods of a plan say besides its ranks.

Their program is that of the script that the job was read from. Their tolerations and
resources are those of the nodes that the machine was read from.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import yaml

from placer.base.errors import EmitError
from placer.documents import document_of
from placer.emit.nodes import NodeRanks
from placer.placement.baselines import started_of
from placer.placement.plan import Plan
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
IMAGE, PROGRAM = "IMAGE", ("train.py",)
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_DOLLAR = re.compile(r"\$(?=\()")


class Program(NamedTuple):
    """What a container runs."""

    image: str
    command: tuple[str, ...]  # words behind ``torchrun``
    environment: list[Object]  # entries of ``env``
    asked: list[str]  # variables whose values nobody said
    # Whether what starts it so far gives ranks by other variables than torchrun.
    needs_rank: bool = False


def program_of(plan: Plan) -> Program:
    """The program of the script that the job was read from, or marks for one."""
    started = started_of(plan)
    if started is None:
        return Program(IMAGE, PROGRAM, [], [])
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
        started.image or IMAGE,
        command or PROGRAM,
        [{"name": n, "value": Text(_plain(v))} for n, v in values.items()],
        list(asked),
        bool(started.command) and started.name in _BY_RANK,
    )


def _plain(text: str) -> str:
    """The text so that Kubernetes finds no variable in it."""
    return _DOLLAR.sub("$$", text)


def cluster_of(plan: Plan) -> Kubernetes:
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
