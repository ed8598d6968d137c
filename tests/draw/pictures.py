"""Reading pictures back, and plans to draw."""

from xml.etree import ElementTree as Xml

import numpy as np
from hypothesis import strategies as st

from placer.placement.build import build_plan
from placer.testing.strategies import placed

SVG = "{http://www.w3.org/2000/svg}"
SCORE = {
    "step_time_s": 1.0,
    "compute_s": 0.6,
    "bubble_s": 0.15,
    "fixed_s": 0.05,
    "exposed_s": {"tp": 0.1, "cp": 0.0, "pp": 0.025, "dp": 0.05, "mine": 0.025},
    "exposed_scale_out_s": 0.06,
    "traffic_bytes": {
        "tp": {"node": 4e12},
        "dp": {"rack": 1.5e9, "cluster": 123456789.0},
        "mine": {"node": 7.0},
    },
}


def parse(picture):
    root = Xml.fromstring(picture)
    assert root.tag == f"{SVG}svg"
    return root


def of_class(root, name):
    return [e for e in root.iter() if e.get("class") == name]


def hover(element):
    return element.findtext(f"{SVG}title") or ""


@st.composite
def plans(draw):
    topology, job, placement = draw(placed())
    return topology, job, build_plan(topology, job, placement, score=SCORE)


def groups_by_loops(job, axis):
    """Ranks of every group whose place matters, by comparing coordinates."""
    others = {
        "dp": ("dp",),
        "pp": ("tp", "cp", "dp"),
        "tp": ("cp", "pp", "dp"),
        "ep": ("etp", "edp", "pp"),
    }
    at = job.parallelism.coordinates
    found = {}
    for rank in range(job.world_size):
        key = tuple(int(at[a][rank]) for a in others[axis])
        found.setdefault(key, []).append(rank)
    return list(found.values())


def leaving_by_loops(topology, job, axis, gpu_of_rank):
    """Groups beyond the innermost tier from NVLink outwards that can hold such a group.

    A tier can where a tenth of them lie so, or where some domain has as many ranks as
    the group and all groups of the axes within it take.
    """
    node_of_gpu = [n for n, g in enumerate(topology.gpus_of_node) for _ in range(g)]
    groups = groups_by_loops(job, axis)

    def domains(rank):
        node = node_of_gpu[gpu_of_rank[rank]]
        return [int(row[node]) for row in topology.domain_of_node]

    def inside(tier):
        return [g for g in groups if len({domains(rank)[tier] for rank in g}) == 1]

    axes = job.parallelism
    stage = axes.tp * axes.cp
    experts = axes.ep * axes.etp if axes.divides_experts else 1
    wanted = {"tp": axes.tp, "ep": experts, "dp": len(groups[0])}
    wanted["pp"] = int(np.lcm(stage, experts)) * axes.pp
    home = max(t for t, tier in enumerate(topology.tiers) if tier.scale_up)
    while home < len(topology.tiers) - 1 and 10 * len(inside(home)) < len(groups):
        places = [domains(rank)[home] for rank in range(len(gpu_of_rank))]
        if max(places.count(place) for place in places) >= wanted[axis]:
            break
        home += 1
    return [group for group in groups if group not in inside(home)]
