"""Slurm's blocks of nodes: the blocks, and the larger ones it plans with.

Each block size is the first one times a power of two, and a larger block is that many
consecutive blocks (Slurm, ``topology.conf`` manual page, ``BlockSizes``). The first
size is a base for planning: a block may hold more nodes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from placer.formats.machines.findings import Level, some

if TYPE_CHECKING:
    from placer.base.errors import Problem


# As NVIDIA/topograph a23ca7a names them; their partition is called fake, too.
_PADDING = re.compile(r"fake-?[0-9]+")


@dataclass
class Block:
    """One block: its name, the name to show, its nodes, and where it stands."""

    name: str
    place: Problem
    nodes: list[str]


def is_padding(node: str) -> bool:
    """Whether topograph made a node up, which fills a block to its size."""
    return bool(_PADDING.fullmatch(node))


def without_padding(blocks: Sequence[Block]) -> tuple[list[Block], str]:
    """The blocks without nodes that were made up, and a note of those.

    Blocks of such names alone are those of machines that are called so.
    """
    fake = [node for block in blocks for node in block.nodes if is_padding(node)]
    if not fake or len(fake) == sum(len(block.nodes) for block in blocks):
        return [*blocks], ""
    kept = [
        replace(block, nodes=[n for n in block.nodes if not is_padding(n)])
        for block in blocks
    ]
    return kept, f"nodes that fill blocks up, left out: {len(fake)} ({some(fake)})"


def block_sizes(smallest: int, count: int) -> list[int]:
    """Sizes that ``count`` blocks of at least ``smallest`` nodes can be planned with.

    Doubling up to the largest power of two that does not exceed ``count``, as topograph
    infers them (NVIDIA/topograph e2b62507, docs/engines/slurm.md).
    """
    return [smallest << k for k in range(count.bit_length())]


def sizes_problem(sizes: Sequence[int]) -> str:
    """What is wrong with the sizes of a file; empty when they are good."""
    base = sizes[0]
    if base < 1:
        return "a block size is at least 1"
    for size in sizes:
        factor, rest = divmod(size, base)
        if rest or factor.bit_count() != 1:
            return f"block size {size} is not {base} times a power of two"
    return ""


def block_levels(
    blocks: Sequence[Block], sizes: Sequence[int]
) -> tuple[tuple[Level, ...], list[tuple[str, ...]]]:
    """Levels of blocks and of every larger size, and the domains of each block."""
    factors = sorted({size // sizes[0] for size in sizes} - {1}) if sizes else []
    factors = [factor for factor in factors if factor < len(blocks)]
    levels = [Level("block", None)]
    levels += [Level(f"blocks-{factor}", planned=True) for factor in factors]
    domains = []
    for index, block in enumerate(blocks):
        of_block = [block.name]
        for factor in factors:
            first = index - index % factor
            last = min(first + factor, len(blocks)) - 1
            of_block.append(f"{blocks[first].name}..{blocks[last].name}")
        domains.append(tuple(of_block))
    return tuple(levels), domains


def sizes_note(blocks: Sequence[Block], sizes: Sequence[int]) -> str:
    """What the sizes mean for the tiers; empty when nothing is odd."""
    filled = [block for block in blocks if block.nodes]
    if not filled:
        return ""
    if sizes:
        small = [block.name for block in filled if len(block.nodes) < sizes[0]]
        count = f"{len(small)} of {len(filled)} blocks ({some(small)})"
        return f"{count} hold fewer than {sizes[0]} nodes" if small else ""
    smallest = min(len(block.nodes) for block in filled)
    usual = ",".join(map(str, block_sizes(smallest, len(filled))))
    return f"no BlockSizes ({usual} would fit): no tier of larger blocks is made"
