"""Slurm's switches and blocks, from whichever of its files, as findings.

Each block size is the first one times a power of two, and a larger block is that many
consecutive blocks (Slurm, ``topology.conf`` manual page, ``BlockSizes``). The first
size is a base for planning: a block may hold more nodes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from placer.base.errors import Problem, refuse
from placer.base.units import counted
from placer.formats.machines.findings import (
    MAX_NODES,
    Findings,
    Level,
    NodeFacts,
    some,
)
from placer.formats.machines.switches import (
    Switch,
    display_names,
    switch_domains,
    switch_levels,
)

# As NVIDIA/topograph a23ca7a names them; their partition is called fake, too.
_PADDING = re.compile(r"fake-?[0-9]+")


def is_padding(node: str) -> bool:
    """Whether topograph made a node up, which fills a block to its size."""
    return bool(_PADDING.fullmatch(node))


def without_padding(blocks: Sequence[Switch]) -> tuple[list[Switch], str]:
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
    blocks: Sequence[Switch], sizes: Sequence[int]
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


def sizes_note(blocks: Sequence[Switch], sizes: Sequence[int]) -> str:
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


_MAX_NAME = 64
# Where topograph puts nodes that it knows no switch of (NVIDIA/topograph e2b62507,
# pkg/topology/graph.go).
_NOWHERE = "no-topology"


def slurm_findings(
    source: str,
    switches: Sequence[Switch],
    blocks: Sequence[Switch],
    sizes: Sequence[int] = (),
    shown: Mapping[str, str] | None = None,
) -> Findings:
    """Findings of a tree of switches, of blocks, or of both over the same nodes.

    ``blocks``: in the file's order, which says which are neighbours. ``sizes``: of
    blocks, the base first; none when the file gives none. ``shown``: names to show
    instead of those of switches and blocks.
    """
    problems = list(_names_problems(switches))
    shown_switch = display_names((s.name for s in switches), shown or {})
    shown_block = display_names((b.name for b in blocks), shown or {})
    blocks = [replace(block, name=shown_block[block.name]) for block in blocks]
    paths, notes = switch_domains(switches, problems, shown_switch)
    refuse([*problems, *_blocks_problems(blocks)])
    depth = len(next(iter(paths.values()), ()))
    blocks, padding = without_padding(blocks)
    notes += [padding] if padding else []
    levels, of_block = block_levels(blocks, sizes) if blocks else ((), [])
    findings = Findings(source, levels + switch_levels(depth), notes=notes)
    block_of: dict[str, tuple[str, ...]] = {}
    for block, domains in zip(blocks, of_block, strict=True):
        block_of |= dict.fromkeys(block.nodes, domains)
    path_of, twice = _nodes_of_switches(switches, paths)
    nowhere = _nowhere(switches, path_of)
    path_of = {name: path for name, path in path_of.items() if name not in nowhere}
    no_block, no_path = ("",) * len(levels), ("",) * depth
    for name in dict.fromkeys([*path_of, *block_of, *nowhere]):
        domains = block_of.get(name, no_block) + path_of.get(name, no_path)
        reason = "no switch known" if name in nowhere else ""
        findings.nodes[name] = NodeFacts(domains, unavailable=reason)
    _check_count(len(findings.nodes), (*switches, *blocks)[0])
    if trees := _trees(path_of):
        *inner, outermost = findings.levels
        findings.levels = (*inner, replace(outermost, apart=True))
        findings.notes.append(trees)
    if twice:
        findings.notes.append(
            f"nodes on several switches, of which the first counts: {len(twice)} "
            f"({some(twice)})"
        )
    if note := sizes_note(blocks, sizes):
        findings.notes.append(note)
    return findings


def _names_problems(switches: Sequence[Switch]) -> Iterator[Problem]:
    seen: set[str] = set()
    for switch in switches:
        if switch.name in seen:
            yield switch.problem(f'switch "{switch.name}" comes twice')
        if len(switch.name) > _MAX_NAME:
            yield switch.problem(f"a switch name has at most {_MAX_NAME} characters")
        seen.add(switch.name)


def _blocks_problems(blocks: Sequence[Switch]) -> Iterator[Problem]:
    seen: set[str] = set()
    block_of: dict[str, str] = {}
    for block in blocks:
        if block.name in seen:
            yield block.problem(f'block "{block.name}" comes twice')
        seen.add(block.name)
        for name in block.nodes:
            if (other := block_of.setdefault(name, block.name)) != block.name:
                yield block.problem(f'node "{name}" is in block "{other}" and here')


def _check_count(count: int, first: Switch) -> None:
    if not count:
        refuse([first.problem("no node in it")])
    if count > MAX_NODES:
        refuse([first.problem(f"{count} nodes, the most is {MAX_NODES}")])


def _nodes_of_switches(
    switches: Sequence[Switch],
    paths: Mapping[str, tuple[str, ...]],
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Path of every node, and the nodes that are on several switches."""
    path_of: dict[str, tuple[str, ...]] = {}
    twice: dict[str, None] = {}
    for switch in switches:
        path = paths[switch.name]
        for node in switch.nodes:
            if path_of.setdefault(node, path) != path:
                twice[node] = None
    return path_of, list(twice)


def _nowhere(
    switches: Sequence[Switch], path_of: Mapping[str, tuple[str, ...]]
) -> dict[str, None]:
    """Nodes that no switch is known of, where some is known of others.

    Slurm runs no job on them and on others.
    """
    above = {child for switch in switches for child in switch.children}
    lone = [s for s in switches if s.name == _NOWHERE and s.name not in above]
    found = dict.fromkeys(name for switch in lone for name in switch.nodes)
    return found if len(found) < len(path_of) else {}


def _trees(path_of: Mapping[str, tuple[str, ...]]) -> str:
    """A note on trees that no switch joins; empty where all nodes are in one.

    Jobs can only span nodes connected by the same switch fabric (Slurm,
    ``topology.conf`` manual page).
    """
    roots = Counter(next(filter(None, path[::-1]), "") for path in path_of.values())
    if len(roots) < 2:
        return ""
    listed = [f"{root} ({counted(count, 'node')})" for root, count in roots.items()]
    return f"trees that no switch joins: {some(listed)}: Slurm runs no job across them"
