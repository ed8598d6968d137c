"""Azure's ``azslurm``: NVLink blocks as JSON, ``[{"blockname", "size", "nodelist"}]``.

CycleCloud's Slurm project prints the blocks of a block topology so, the smallest first
(Azure/cyclecloud-slurm, azure-slurm/slurmcc/topology.py): the order says nothing of
neighbours. What ``azslurm topology`` itself writes is a ``topology.conf``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.documents import Value, parse_answer
from placer.formats.machines.blocks import Block
from placer.formats.machines.slurm_machine import slurm_findings

if TYPE_CHECKING:
    from placer.formats.machines.findings import Findings


def read(text: str, source: str) -> Findings:
    """The blocks."""
    file = parse_answer(text, source)
    blocks = [_block(item) for item in file.top.items()]
    if not (blocks or file.problems):
        file.top.problem("no block in it")
    file.fail_if_problems()
    findings = slurm_findings(source, [], blocks)
    # Block sizes are no matter of this list.
    findings.notes.clear()
    return findings


def _block(item: Value) -> Block:
    name = item.name("blockname", required=True)
    nodes = item.names("nodelist")
    size = item.at("size")
    if size is not None and size.content != len(nodes):
        size.problem(f"{len(nodes)} nodes are listed")
    return Block(name, item.place, nodes)
