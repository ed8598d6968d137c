"""The printed answer of ``scontrol show topology``, which needs no privileges.

The same lines as in ``topology.conf`` with more keys: ``Level``, ``BlockIndex``,
``BlockSize``, and lines of larger blocks (``AggregatedBlock``). A switch above the
leaves lists its switches and, again, all nodes below it.
"""

from __future__ import annotations

from placer.errors import Problem
from placer.readers.blocks import Block, sizes_problem
from placer.readers.findings import Findings, fail
from placer.readers.slurm_lines import HostLists, Line, read_lines
from placer.readers.slurm_machine import slurm_findings
from placer.readers.switches import Switch


def read(text: str, source: str) -> Findings:
    """What the answer says: leaf, spine, ... switches, or blocks.

    Raises
    ------
    InputError
        If a host list is bad, the switches are no tree, or there are no nodes.
    """
    problems: list[Problem] = []
    lists = HostLists(problems)
    ignored: list[Problem] = []
    switches: list[Switch] = []
    blocks: list[tuple[int, Block]] = []
    base: set[int] = set()
    larger: set[int] = set()
    for line in read_lines(text, source).lines:
        values = line.values
        if "switchname" in values:
            switches.append(_switch(line, lists))
        elif "blockname" in values:
            nodes = lists.names(line, "nodes")
            block = Block(values["blockname"], line.place, nodes)
            base.add(_number(line, "blocksize", 0))
            blocks.append((_number(line, "blockindex", len(blocks)), block))
        elif "aggregatedblock" in values:
            larger.add(_number(line, "blocksize", 0))
        else:
            ignored.append(line.problem("not a line of scontrol show topology"))
    fail(problems)
    if not (switches or blocks):
        fail([Problem("no switch and no block in it", source)])
    in_order = [block for _, block in sorted(blocks, key=lambda pair: pair[0])]
    sizes = sorted(base)[:1] + sorted(larger)
    if not sizes or sizes_problem(sizes):
        sizes = []
    findings = slurm_findings(source, switches, in_order, sizes)
    findings.ignored += ignored
    return findings


def _switch(line: Line, lists: HostLists) -> Switch:
    children = lists.names(line, "switches")
    # All nodes below an upper switch are listed again: only a leaf's are its own.
    nodes = [] if children else lists.names(line, "nodes")
    return Switch(line.values["switchname"], line.place, nodes, children)


def _number(line: Line, key: str, default: int) -> int:
    text = line.values.get(key, "")
    return int(text) if text.isdecimal() and len(text) < 7 else default
