"""Machines from one line: ``block:16 rack:8 node:18 gpu:4``, outermost first.

The last item counts the GPUs of a node and the item before it is the node tier. A tier
``cluster`` that holds everything is added on top, unless the outermost tier already has
a count of 1 and is not the node.

The line says nothing about speed, so this is assumed: GPUs of a node talk at 450 GB/s
one way with 1 us (NVLink of an H100: 900 GB/s both ways together, NVIDIA H100 data
sheet), and every tier above at 50 GB/s with 5 us (one 400 Gb/s port a GPU, as in the
NVIDIA DGX H100 data sheet). The machine's ``sources`` say so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from placer.assumed import HARDWARE, Assumption
from placer.base.arrays import IntArray
from placer.base.errors import InputError
from placer.topology.build import Nodes, assumed_uplinks, build
from placer.topology.gpu_kinds import USUAL
from placer.topology.layout import Level, lay_out, parse_levels
from placer.topology.model import MAX_GPUS_OF_NODE, Tier, Topology

NODE_BANDWIDTH = 450e9  # B/s
NODE_LATENCY = 1e-6  # s
OUTER_BANDWIDTH = 50e9  # B/s
OUTER_LATENCY = 5e-6  # s
_LINKS = "a text says no speed: 450GB/s in a node, 50GB/s a GPU between nodes"
ASSUMED = (
    "synthetic: assumed 450GB/s and 1us between GPUs of a node (scale-up), "
    "50GB/s and 5us a GPU on every tier above"
)

_LOOKS_SYNTHETIC = re.compile(r"\s*[A-Za-z][\w-]*:[0-9]+(\s.*)?", re.DOTALL)


def is_synthetic(text: str) -> bool:
    """Whether ``text`` is meant as a synthetic string rather than a file name."""
    return _LOOKS_SYNTHETIC.fullmatch(text) is not None


class Laid(NamedTuple):
    """The nodes of a text."""

    tiers: tuple[str, ...]  # from the node outwards
    # domains and names: as in `Nodes`.
    domains: IntArray
    names: tuple[tuple[str, ...], ...]
    gpus: int  # of a node


def name_of(text: str) -> str:
    """The name of the machine that a text describes."""
    return " ".join(text.split())


def laid_out(text: str) -> Laid:
    """The nodes that a text describes, without any figure."""
    try:
        levels, gpus = _levels(text)
        domains, names = lay_out(levels)
        found = Laid(tuple(x.tier for x in reversed(levels)), domains, names, gpus)
        if problem := _nodes(found).problem:
            raise ValueError(problem)
    except ValueError as error:
        hint = 'write tiers outermost first: "block:16 rack:8 node:18 gpu:4"'
        raise InputError(str(error), f'"{text}"', hint=hint) from None
    return found


def read_synthetic(text: str) -> Topology:
    """The regular machine that a synthetic string describes."""
    laid = laid_out(text)
    machine = build(name_of(text), _tiers(laid.tiers), _nodes(laid), [ASSUMED])
    links = Assumption(HARDWARE, USUAL, _LINKS, "--gpu NAME")
    return replace(machine, assumed=(links, *assumed_uplinks(machine)))


def _nodes(laid: Laid) -> Nodes:
    """The nodes of a machine that is laid out."""
    num_nodes = len(laid.names[0])
    gpus = np.full(num_nodes, laid.gpus)
    return Nodes(laid.domains, laid.names, gpus, np.ones(num_nodes))


def _levels(text: str) -> tuple[list[Level], int]:
    """Tiers from the cluster to the node, and the GPUs of a node."""
    *levels, last = parse_levels(text)
    if last.tier != "gpu":
        raise ValueError(f"the last item is {last.tier}:{last.count}, not gpu:count")
    if last.count > MAX_GPUS_OF_NODE:
        most = MAX_GPUS_OF_NODE
        raise ValueError(f"{last.count} GPUs in a node, the most is {most}")
    if not levels:
        raise ValueError("there is no node tier before gpu")
    if levels[0].count != 1 or len(levels) == 1:
        if any(level.tier == "cluster" for level in levels):
            raise ValueError("the cluster is the whole machine, so its count is 1")
        levels.insert(0, Level("cluster", 1))
    return levels, last.count


def _tiers(names: Sequence[str]) -> list[Tier]:
    node, *outer = names
    distance = NODE_BANDWIDTH / OUTER_BANDWIDTH
    return [
        Tier(node, NODE_BANDWIDTH, NODE_LATENCY, True, 1.0, 1.0, 1.0),
        *(
            Tier(name, OUTER_BANDWIDTH, OUTER_LATENCY, False, 1.0, 1.0, distance)
            for name in outer
        ),
    ]
