"""A topology from a file, a preset or a synthetic string."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from placer.assumed import decode_assumed
from placer.documents import Document, open_document, parse_document
from placer.documents.presets import is_preset, preset_path
from placer.topology.affinity import read_affinity
from placer.topology.budgets import read_budgets
from placer.topology.build import NO_NODES, build
from placer.topology.gpu import decode_gpu
from placer.topology.kubernetes import decode_kubernetes
from placer.topology.nodes import read_nodes
from placer.topology.synthetic import is_synthetic, read_synthetic
from placer.topology.tiers import read_tiers
from placer.topology.uplinks import assumed_uplinks, with_assumption

if TYPE_CHECKING:
    from placer.topology.model import Topology

FORMAT = "placer/topology"
SCHEDULERS = ("slurm", "kubernetes")

_SUFFIXES = (".yaml", ".yml", ".json")


def read_topology(source: str | os.PathLike[str]) -> Topology:
    """The machine that ``source`` describes.

    Parameters
    ----------
    source : str or path
        A preset name, a synthetic string (``block:16 rack:8 node:18 gpu:4``), a file of
        the topology format, or ``-`` for standard input.

    Raises
    ------
    InputError
        If there is no such preset or file, or anything is wrong with it; the error
        lists all problems.
    """
    text = os.fspath(source)
    if is_preset("topologies", text):
        return decode_topology(open_document(str(preset_path("topologies", text))))
    if is_synthetic(text):
        return read_synthetic(text)
    if isinstance(source, str) and not _means_file(text):
        preset_path("topologies", text)
    return decode_topology(open_document(text))


def parse_topology(text: str, source: str) -> Topology:
    """The machine in a YAML or JSON text; ``source`` names it in messages.

    Raises
    ------
    InputError
        If anything is wrong with it.
    """
    return decode_topology(parse_document(text, source))


def decode_topology(document: Document) -> Topology:
    """The machine in a parsed file.

    Raises
    ------
    InputError
        If anything is wrong with it.
    """
    document.check_format(FORMAT)
    root = document.root
    name = root.text("name")
    description = root.text("description", "")
    sources = root.texts("sources")
    known = root.has("scheduler")
    scheduler = root.choice("scheduler", SCHEDULERS) if known else ""
    gpu = decode_gpu(root.section("gpu"))
    tiers = read_tiers(document)
    names = [tier.name for tier in tiers.tiers]
    kubernetes = decode_kubernetes(root.section("kubernetes"), names)
    affinity = read_affinity(root, tiers.gpus)
    given = [key for key in ("unavailable", "nodes", "layout") if root.has(key)]
    nodes = read_nodes(document, tiers) if tiers.are_named else NO_NODES
    if nodes is not NO_NODES and nodes.problem:
        root.problem(nodes.problem, given[0])
    budgets = read_budgets(root, gpu, nodes.names[0])
    assumed = decode_assumed(root)
    document.finish()
    machine = replace(
        build(name, tiers.tiers, nodes, sources, description),
        gpu=gpu,
        affinity=affinity,
        scheduler=scheduler,
        kubernetes=kubernetes,
        budgets=budgets,
        assumed=assumed,
    )
    if tiers.say_uplinks:
        return machine
    return replace(machine, assumed=with_assumption(machine, assumed_uplinks(machine)))


def _means_file(text: str) -> bool:
    """Whether ``text`` is the name of a file, there or not, rather than of a preset."""
    if text == "-" or os.sep in text or text.lower().endswith(_SUFFIXES):
        return True
    try:
        return bool(text) and Path(text).exists()
    except OSError:
        return True
