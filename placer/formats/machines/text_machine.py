"""A machine in one line, ``rack:3 node:18 gpu:4``, as a tree that takes hardware."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from placer.assumed import HARDWARE, Assumption
from placer.base.errors import Problem, refuse
from placer.formats.machines.assumed import RACK_NODES
from placer.formats.machines.built import machine_of
from placer.formats.machines.combine import Tree
from placer.formats.machines.given import plain_machine
from placer.formats.machines.layers import Layer
from placer.topology.gpu_kinds import TRAY_GPUS, USUAL_IN_RACKS, hosts_of_gpu
from placer.topology.read import read_topology
from placer.topology.synthetic import Laid, laid_out, name_of, read_synthetic

if TYPE_CHECKING:
    from placer.formats.machines.given import Given
    from placer.topology.model import Topology

_RACK = "rack"


def machine_of_text(text: str, given: Given, tell: Callable[[str], None]) -> Topology:
    """The machine that a text describes, with the hardware that is given.

    Without any, 4-GPU hosts in racks are those of NVLink racks; others have the figures
    of `read_synthetic`.

    Raises
    ------
    InputError
        If the text is malformed, or does not fit the hardware.
    """
    refuse(
        Problem("the text says it", key=key, hint="leave it out")
        for key, value in (
            ("gpus_per_node", given.gpus_per_node),
            ("label", given.labels),
        )
        if value
    )
    kind = given.kind
    found = None if kind else assumed_racks(text)
    if kind is None and found is None:
        return plain_machine([read_synthetic(text)], 1, given)
    preset, assumed = found or ("", ())
    kind = kind or read_topology(preset)
    laid = laid_out(text)
    tree = text_tree(laid, multi_node_nvlink=kind.scale_up_tier >= 1)
    name = name_of(text)
    machine = machine_of(tree, (), kind, given, name, (), tell, laid.tiers)
    return given.with_assumed(machine, kind, assumed)


def text_tree(laid: Laid, multi_node_nvlink: bool) -> Tree:
    """The nodes of a text.

    What lies right around the nodes is an NVLink domain where hardware has such, but
    for the cluster around nodes that are in nothing else.
    """
    is_flat = len(laid.tiers) == 2 and laid.tiers[1] == "cluster"
    nvlink = multi_node_nvlink and not is_flat
    rows = zip(laid.tiers, laid.domains, laid.names, strict=True)
    layers = [
        Layer(name, "the text", level == 1 and nvlink, False, of_node, names)
        for level, (name, of_node, names) in enumerate(rows)
        if level
    ]
    nodes = laid.names[0]
    return Tree(nodes, layers, [laid.gpus] * len(nodes), {})


def assumed_racks(text: str) -> tuple[str, tuple[Assumption, ...]] | None:
    """The hardware of hosts of 4 GPUs in racks of NVLink; None of other texts."""
    laid = laid_out(text)
    if laid.gpus != TRAY_GPUS or laid.tiers[1] != _RACK:
        return None
    if _nodes_a_rack(laid) not in RACK_NODES:
        return None
    why = f"racks of {_nodes_a_rack(laid)} hosts of 4 GPUs are NVLink domains"
    links = Assumption(HARDWARE, USUAL_IN_RACKS, why, "--gpu NAME")
    return hosts_of_gpu(USUAL_IN_RACKS), (links,)


def _nodes_a_rack(laid: Laid) -> int:
    return len(laid.names[0]) // len(laid.names[1])
