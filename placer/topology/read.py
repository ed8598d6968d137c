"""A topology from a file, a preset or a synthetic string."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from placer.assumed import Assumption, decode_assumed
from placer.documents import Document, open_document, parse_document
from placer.documents.keys import TEXT, Key, key, list_of, map_of, one_of, special
from placer.documents.presets import is_preset, preset_path
from placer.documents.records import nested, read
from placer.topology.affinity import Affinity, read_affinity
from placer.topology.budgets import Limits, read_budgets
from placer.topology.build import NO_NODES, assumed_uplinks, build
from placer.topology.gpu_kinds import Gpu, hosts_of_gpu, kind_of_gpu, usual_gpu
from placer.topology.kubernetes import Kubernetes, decode_kubernetes
from placer.topology.links import MAX_LINKS, Link
from placer.topology.model import Tier, Topology
from placer.topology.nodes import Entry, read_nodes
from placer.topology.synthetic import is_synthetic, read_synthetic
from placer.topology.tiers import MAX_TIERS, read_tiers

FORMAT = "placer/topology"

_SUFFIXES = (".yaml", ".yml", ".json")


def _tiers_schema() -> dict[str, Any]:
    return {**list_of(nested(Tier)).schema(), "minItems": 1, "maxItems": MAX_TIERS}


def _links_schema() -> dict[str, Any]:
    return {**list_of(nested(Link)).schema(), "maxItems": MAX_LINKS}


@dataclass(frozen=True)
class File:
    """What a topology file says of a machine as a whole, and its other keys."""

    name: str = key(TEXT, "name of the machine")
    description: str = key(TEXT, "one line for `placer topology list`", "")
    sources: tuple[str, ...] = key(list_of(TEXT), "where each figure comes from", ())
    assumed: tuple[Assumption, ...] = key(
        list_of(nested(Assumption)), "what no source says, as placer writes it", ()
    )
    gpu: Gpu = key(nested(Gpu), "what one GPU holds and can do", Gpu)
    tiers = Key(
        special(_tiers_schema),
        "the levels, innermost first: the node, or islands in it",
    )
    layout = Key(TEXT, "a regular machine: counts, outermost first", absent="")
    nodes = Key(
        special(lambda: list_of(nested(Entry)).schema()),
        "an explicit machine: nodes and their domains",
        absent="",
    )
    links = Key(
        special(_links_schema),
        "pairs of domains that are slower than their tier says",
        absent="",
    )
    affinity = Key(
        special(nested(Affinity).schema),
        "NUMA nodes and NICs of the GPUs of a node",
        absent="",
    )
    budgets = Key(
        special(lambda: list_of(nested(Limits)).schema()),
        "what sets of hosts may use in all",
        absent="",
    )
    unavailable = Key(
        special(map_of(TEXT).schema),
        "host list of nodes that must not be used: the reason",
        absent="",
    )
    scheduler: str = key(
        one_of(("slurm", "kubernetes")),
        "`slurm` or `kubernetes`: who hands out the nodes. Known for machines read "
        "from either; the commands that `placer place` suggests fit it",
        "",
    )
    kubernetes = Key(
        special(nested(Kubernetes).schema), "what pods must say on the nodes", absent=""
    )
    together: ClassVar[dict[str, Any]] = {
        "oneOf": [{"required": ["layout"]}, {"required": ["nodes"]}]
    }


def read_topology(source: str | os.PathLike[str]) -> Topology:
    """The machine that ``source`` describes.

    ``source``: a preset name, a synthetic string (``block:16 rack:8 node:18 gpu:4``), a
    file of the topology format, or ``-`` for standard input.
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
    """The machine in a YAML or JSON text; ``source`` names it in messages."""
    return decode_topology(parse_document(text, source))


def decode_topology(document: Document) -> Topology:
    """The machine in a parsed file."""
    document.check_format(FORMAT)
    root = document.root
    gpu = read(root.section("gpu"), Gpu)
    tiers = read_tiers(document)
    names = [tier.name for tier in tiers.tiers]
    kubernetes = decode_kubernetes(root.section("kubernetes"), names)
    affinity = read_affinity(root, tiers.gpus)
    root.has("links")  # which nothing reads where the nodes are wrong
    given = [k for k in ("unavailable", "nodes", "layout") if root.has(k)]
    nodes = read_nodes(document, tiers) if tiers.are_named else NO_NODES
    if nodes is not NO_NODES and nodes.problem:
        root.problem(nodes.problem, given[0])
    budgets = read_budgets(root, gpu, nodes.names[0])
    found = read(root, File, gpu=gpu, assumed=decode_assumed(root))
    document.finish()
    machine = replace(
        build(found.name, tiers.tiers, nodes, found.sources, found.description),
        gpu=gpu,
        affinity=affinity,
        scheduler=found.scheduler,
        kubernetes=kubernetes,
        budgets=budgets,
        assumed=found.assumed,
    )
    if tiers.say_uplinks:
        return machine
    both = (*machine.assumed, *assumed_uplinks(machine))
    return replace(machine, assumed=tuple({each.key: each for each in both}.values()))


def usual_gpu_of(machine: Topology) -> tuple[Gpu, str]:
    """The GPU that a machine names, or the usual one of such hosts; how to call it."""
    if kind := kind_of_gpu(machine.gpu.name):
        return read_topology(hosts_of_gpu(kind)).gpu, kind
    size = int(machine.gpus_of_node.max())
    kind, _ = usual_gpu(size, trays=machine.scale_up_tier > 0)
    return read_topology(hosts_of_gpu(kind)).gpu, f"an {kind}, the usual GPU"


def _means_file(text: str) -> bool:
    """Whether ``text`` is the name of a file, there or not, rather than of a preset."""
    if text == "-" or os.sep in text or text.lower().endswith(_SUFFIXES):
        return True
    try:
        return bool(text) and Path(text).exists()
    except OSError:
        return True
