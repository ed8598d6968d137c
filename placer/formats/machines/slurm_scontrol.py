"""The printed answer of ``scontrol show topology``, which needs no privileges.

The same lines as in ``topology.conf`` with more keys: ``Level``, ``BlockIndex``,
``BlockSize``, and lines of larger blocks (``AggregatedBlock``). A switch above the
leaves lists its switches and, again, all nodes below it, and so does a larger block:
nodes that stand there only are those of lines that were cut away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.base.errors import Problem, refuse
from placer.formats.machines.blocks import Block, is_padding, sizes_problem
from placer.formats.machines.findings import some
from placer.formats.machines.slurm_lines import HostLists, Line, read_lines
from placer.formats.machines.slurm_machine import slurm_findings
from placer.formats.machines.switches import Switch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.formats.machines.findings import Findings


def read(text: str, source: str) -> Findings:
    """What the answer says: leaf, spine, ... switches, or blocks."""
    problems: list[Problem] = []
    lists = HostLists(problems)
    ignored: list[Problem] = []
    switches: list[Switch] = []
    blocks: list[tuple[int, Block]] = []
    base: set[int] = set()
    larger: dict[int, list[Line]] = {}
    upper: dict[str, Line] = {}
    for line in read_lines(text, source).lines:
        values = line.values
        if "switchname" in values:
            switches.append(_switch(line, lists))
            if switches[-1].children:
                upper[switches[-1].name] = line
        elif "blockname" in values:
            nodes = lists.names(line, "nodes")
            block = Block(values["blockname"], line.place, nodes)
            base.add(_number(line, "blocksize", 0))
            blocks.append((_number(line, "blockindex", len(blocks)), block))
        elif "aggregatedblock" in values:
            larger.setdefault(_number(line, "blocksize", 0), []).append(line)
        else:
            ignored.append(line.problem("not a line of scontrol show topology"))
    refuse(problems)
    if not (switches or blocks):
        refuse([Problem("no switch and no block in it", source)])
    in_order = [block for _, block in sorted(blocks, key=lambda pair: pair[0])]
    sizes = sorted(base)[:1] + sorted(larger)
    if not sizes or sizes_problem(sizes):
        sizes = []
    findings = slurm_findings(source, switches, in_order, sizes)
    findings.ignored += ignored
    below = {child for switch in switches for child in switch.children}
    whole = [line for name, line in upper.items() if name not in below]
    whole += larger[max(larger)] if larger else []
    refuse(_cut_away(whole, findings))
    return findings


def _cut_away(whole: Sequence[Line], findings: Findings) -> list[Problem]:
    """What the lines of the whole machine list and no leaf or block has."""
    problems: list[Problem] = []
    lists = HostLists(problems)
    for line in whole:
        lost = [
            node
            for node in lists.names(line, "nodes")
            if node not in findings.nodes and not is_padding(node)
        ]
        if lost:
            message = f"no leaf and no block has {some(lost)}"
            hint = "lines are missing: save the whole answer"
            problems.append(line.problem(message, "nodes", hint))
    return problems


def _switch(line: Line, lists: HostLists) -> Switch:
    children = lists.names(line, "switches")
    # All nodes below an upper switch are listed again: only a leaf's are its own.
    nodes = [] if children else lists.names(line, "nodes")
    return Switch(line.values["switchname"], line.place, nodes, children)


def _number(line: Line, key: str, default: int) -> int:
    text = line.values.get(key, "")
    return int(text) if text.isdecimal() and len(text) < 7 else default
