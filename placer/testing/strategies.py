"""Strategies of Hypothesis for machines, jobs and placements, and a tiny plan of each.

Names and figures are plain: nodes ``n000``, racks ``r0``, blocks, and one cluster.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.traffic import Group
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.placement.plan import Plan
from placer.topology.model import Tier, Topology

TIERS = ("node", "rack", "block", "cluster")
AXES = ("tp", "cp", "pp", "dp", "ep", "etp", "edp")


def machine(racks: list[tuple[str, list[int]]], name: str = "machine") -> Topology:
    """A machine of racks: each in a block, with a GPU count for each of its nodes."""
    blocks = sorted({block for block, _ in racks})
    nodes = [(rack, gpus) for rack, (_, own) in enumerate(racks) for gpus in own]
    rack_of_node = [rack for rack, _ in nodes]
    return Topology(
        name=name,
        tiers=tuple(Tier(tier, 1e9, 1e-6, tier == "node", 1, 1, 1) for tier in TIERS),
        gpus_of_node=np.array([gpus for _, gpus in nodes]),
        bandwidth_factor=np.ones(len(nodes)),
        domain_of_node=np.array(
            [
                range(len(nodes)),
                rack_of_node,
                [blocks.index(racks[rack][0]) for rack in rack_of_node],
                [0] * len(nodes),
            ]
        ),
        domain_names=(
            tuple(f"n{i:03d}" for i in range(len(nodes))),
            tuple(f"r{i}" for i in range(len(racks))),
            tuple(blocks),
            ("all",),
        ),
        sha256=f"digest of {racks}",
    )


def tiny() -> tuple[Topology, Job]:
    """Two blocks of two racks of two nodes of two GPUs; tp 2, pp 2, dp 4 on all 16."""
    topology = machine([("b0", [2, 2]), ("b0", [2, 2]), ("b1", [2, 2]), ("b1", [2, 2])])
    parallelism = Parallelism(
        tp=2, pp=2, dp=4, order=("tp", "cp", "ep", "pp", "dp"), etp=2
    )
    job = Job("tiny", parallelism, require={"tp": "node"}, sha256="digest of tiny")
    return topology, job


def tiny_plan(**sections: Any) -> Plan:
    """Rank r of `tiny` on GPU r, so that nothing is violated."""
    topology, job = tiny()
    return build_plan(topology, job, Placement(np.arange(16)), **sections)


@st.composite
def machines(draw: st.DrawFn, least_gpus: int = 1) -> Topology:
    """Racks of nodes of 1 to 4 GPUs, with at least so many in all."""
    racks = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["b0", "b1", "b2"]),
                st.lists(st.integers(1, 4), min_size=1, max_size=4),
            ),
            min_size=1,
            max_size=6,
        )
    )
    short = least_gpus - sum(sum(own) for _, own in racks)
    while short > 0:
        racks.append((draw(st.sampled_from(["b0", "b1"])), [min(4, short)]))
        short -= 4
    return machine(racks)


@st.composite
def parallelisms(draw: st.DrawFn) -> Parallelism:
    """Axes and an order; pipeline outermost, as Megatron asks of experts."""
    small = st.sampled_from([1, 2, 3])
    p = Parallelism(draw(small), draw(small), 1, draw(small), draw(small))
    inner = p.tp * p.cp * p.dp
    ep = draw(st.sampled_from([d for d in range(1, inner + 1) if inner % d == 0]))
    etp = draw(st.sampled_from([1, p.tp]))
    if inner % (ep * etp):
        etp = 1
    order = (*draw(st.permutations(["tp", "cp", "ep", "dp"])), "pp")
    return replace(p, ep=ep, etp=etp, order=order)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """Up to 81 ranks, with a group of their own, requirements and either launcher."""
    parallelism = draw(parallelisms())
    ranks = st.integers(0, parallelism.world_size - 1)
    members = st.lists(ranks, min_size=1, max_size=4, unique=True).map(tuple)
    rows = draw(st.lists(members, min_size=1, max_size=3))
    group = Group("mine", "all_to_all", 1.0, 1.0, False, tuple(rows))
    require = draw(
        st.dictionaries(
            st.sampled_from([*AXES, "mine"]), st.sampled_from(TIERS), max_size=4
        )
    )
    return Job(
        "job",
        parallelism,
        require=require,
        launcher=draw(st.sampled_from(["node-contiguous", "free"])),
        groups=(group,),
        sha256="digest of job",
    )


@st.composite
def placements(draw: st.DrawFn, topology: Topology, world_size: int) -> Placement:
    """Ranks on GPUs of their own, node by node or anyhow."""
    if draw(st.booleans()):
        gpus = draw(st.permutations(range(topology.num_gpus)))
    else:
        first = topology.first_gpu_of_node.tolist()
        nodes = draw(st.permutations(range(topology.num_nodes)))
        gpus = [gpu for n in nodes for gpu in range(first[n], first[n + 1])]
    return Placement(np.array(gpus[:world_size], dtype=np.int64))


@st.composite
def placed(draw: st.DrawFn) -> tuple[Topology, Job, Placement]:
    """A job on a machine that holds it, rules kept or not."""
    job = draw(jobs())
    topology = draw(machines(job.world_size))
    return topology, job, draw(placements(topology, job.world_size))
