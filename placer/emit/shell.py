"""The part all emitted scripts share: find this host in the plan, or stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from shlex import quote
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.emit.nodes import NodeRanks

HEAD = """\
set -euo pipefail

die() {
  printf 'placer: %s\\n' "$1" >&2
  exit 1
}
"""

# HOSTNAME is no substitute for `uname -n`: batch systems pass the submitting host's on.
_LOOKUP = """\
host=${PLACER_HOST:-${SLURMD_NODENAME:-$(uname -n)}}
find_node "$host" || find_node "${host%%.*}" || find_label "$host" ||
  die "host '$host' is not in the plan"
"""


def script(
    usage: str,
    nodes: Sequence[NodeRanks],
    assignments: Callable[[int, NodeRanks], str],
    body: str,
) -> str:
    """A bash script that runs ``body`` after the assignments of the node it is on.

    The host is ``PLACER_HOST``, else ``SLURMD_NODENAME``, else ``uname -n``. It matches
    a node's whole name, or a name without a domain by its own first label, or the first
    label of one name only. A host outside the plan ends the script with status 1.

    ``usage``: comment lines that open the script. ``nodes``: by node rank.
    ``assignments``: node rank and node -> shell assignments. ``body``: shell text; may
    use ``die``.
    """
    by_name = {
        node.host: assignments(node_rank, node) for node_rank, node in enumerate(nodes)
    }
    by_label = {
        label: f"find_node {quote(host)}"
        for label, host in _labels(list(by_name)).items()
    }
    parts = (
        f"#!/usr/bin/env bash\n{usage}{HEAD}",
        _function("find_node", by_name),
        _function("find_label", by_label),
        _LOOKUP,
        body,
    )
    return "\n".join(parts)


def words(numbers: Sequence[int]) -> str:
    """A bash array literal of ``numbers``."""
    return f"({' '.join(map(str, numbers))})"


def _function(name: str, command_of_host: dict[str, str]) -> str:
    """A bash function that runs the command of host ``$1``, or fails.

    The parenthesis before a pattern lets a host be called ``esac``.
    """
    arms = "".join(
        f"    ({quote(host)}) {command} ;;\n"
        for host, command in command_of_host.items()
    )
    return f'{name}() {{\n  case "$1" in\n{arms}    (*) return 1 ;;\n  esac\n}}\n'


def _labels(hosts: Sequence[str]) -> dict[str, str]:
    """First label -> host, for dotted names whose first label is theirs alone."""
    label_of_host = {host: host.split(".", 1)[0] for host in hosts}
    uses = Counter(label_of_host.values())
    return {
        label: host
        for host, label in label_of_host.items()
        if label != host and uses[label] == 1
    }
