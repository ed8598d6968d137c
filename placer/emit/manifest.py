"""Kubernetes objects as YAML text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import yaml

from placer.base.errors import EmitError

if TYPE_CHECKING:
    from placer.emit.nodes import NodeRanks
    from placer.placement.plan import Plan

Object = dict[str, Any]

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
