"""Slurm's ``topology.conf``, for the tree and the block plugin.

``LinkSpeed`` is a number without unit or meaning (Slurm, ``topology.conf`` manual
page), so no bandwidth is taken from it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from placer.base.errors import Problem, refuse
from placer.formats.machines.blocks import Block, sizes_problem
from placer.formats.machines.slurm_lines import HostLists, Line, read_lines
from placer.formats.machines.slurm_machine import slurm_findings
from placer.formats.machines.switches import Switch

if TYPE_CHECKING:
    from placer.formats.machines.findings import Findings

_KEYS = {
    "switchname": {"nodes", "switches", "linkspeed"},
    "blockname": {"nodes"},
    "blocksizes": set(),
    "ringname": {"nodes"},
}
_NAME = re.compile(r"[^\s\[\],=]+")
_LINK_SPEED = re.compile(r"[0-9]+|infinite|unlimited", re.IGNORECASE)
_WHERE = "topology.conf has SwitchName, BlockName and BlockSizes lines"


def read(text: str, source: str) -> Findings:
    """What a ``topology.conf`` says: leaf, spine, ... switches, blocks, or both."""
    found = read_lines(text, source)
    reader = _Reader(found.problems)
    for line in found.lines:
        reader.add(line)
    refuse(reader.problems)
    if not (reader.switches or reader.blocks):
        refuse([Problem("no switch and no block in it", source, hint=_WHERE)])
    return slurm_findings(
        source, reader.switches, reader.blocks, reader.sizes, found.shown
    )


class _Reader:
    """Takes line after line."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self.host_lists = HostLists(problems)
        self.switches: list[Switch] = []
        self.blocks: list[Block] = []
        self.sizes: list[int] = []

    def add(self, line: Line) -> None:
        kind = next(iter(line.values), "")
        if kind not in _KEYS or line.rest:
            what = line.rest or line.keys.get(kind, "")
            self.problems.append(
                line.problem(f'"{what[:60]}" is not understood', kind, _WHERE)
            )
            return
        for key in set(line.values) - {kind} - _KEYS[kind]:
            message = f"{line.keys[key]} does not belong on a {line.keys[kind]} line"
            self.problems.append(line.problem(message, key))
        getattr(self, f"_{kind}")(line)

    def _switchname(self, line: Line) -> None:
        name = self._name(line, "switchname")
        if "nodes" in line.values and "switches" in line.values:
            message = f'switch "{name}" has both Nodes and Switches'
            self.problems.append(line.problem(message, "switches"))
        if not _LINK_SPEED.fullmatch(line.values.get("linkspeed", "1")):
            message = "expected a number without a unit"
            self.problems.append(line.problem(message, "linkspeed"))
        nodes = self._nodes(line)
        children = self.host_lists.names(line, "switches")
        self.switches.append(Switch(name, line.place, nodes, children))

    def _blockname(self, line: Line) -> None:
        name = self._name(line, "blockname")
        self.blocks.append(Block(name, line.place, self._nodes(line)))

    def _blocksizes(self, line: Line) -> None:
        texts = line.values["blocksizes"].split(",")
        if not all(re.fullmatch(r"[0-9]{1,6}", text) for text in texts):
            message = "expected sizes such as 18,36,72"
        elif self.sizes:
            message = "BlockSizes comes twice"
        else:
            self.sizes = [int(text) for text in texts]
            message = sizes_problem(self.sizes)
        if message:
            self.problems.append(line.problem(message, "blocksizes"))

    def _ringname(self, line: Line) -> None:
        hint = "a ring has no domains; describe it in the topology format"
        message = "a topology of rings is no tree"
        self.problems.append(line.problem(message, "ringname", hint))

    def _name(self, line: Line, key: str) -> str:
        name = line.values[key]
        if not _NAME.fullmatch(name) or not name.isprintable():
            message = f"{name[:70]!r} cannot name one switch or block"
            hint = "it is taken literally, brackets and = too: write a line for each"
            self.problems.append(line.problem(message, key, hint))
        return name

    def _nodes(self, line: Line) -> list[str]:
        if line.values.get("nodes", "").upper() == "ALL":
            hint = "list the nodes: only the cluster's slurm.conf knows what ALL is"
            self.problems.append(line.problem("Nodes=ALL names no node", "nodes", hint))
            return []
        return self.host_lists.names(line, "nodes")
