"""Reading pictures back, and plans to draw."""

from xml.etree import ElementTree as Xml

import numpy as np
from hypothesis import strategies as st

from placer.job.model import Job
from placer.placement.build import build_plan
from placer.placement.plan import Plan
from placer.topology.model import Topology
from tests.plan_cases import placed

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


def parse(picture: str) -> Xml.Element:
    root = Xml.fromstring(picture)
    assert root.tag == f"{SVG}svg"
    return root


def of_class(root: Xml.Element, name: str) -> list[Xml.Element]:
    return [e for e in root.iter() if e.get("class") == name]


def hover(element: Xml.Element) -> str:
    return element.findtext(f"{SVG}title") or ""


@st.composite
def plans(draw: st.DrawFn) -> tuple[Topology, Job, Plan]:
    topology, job, placement = draw(placed())
    return topology, job, build_plan(topology, job, placement, score=SCORE)


def groups_by_loops(job: Job, axis: str) -> list[list[int]]:
    """Ranks of every group whose place matters, by comparing coordinates."""
    others = {
        "dp": ("dp",),
        "pp": ("tp", "cp", "dp"),
        "tp": ("cp", "pp", "dp"),
        "ep": ("etp", "edp", "pp"),
    }
    at = job.parallelism.coordinates
    found: dict[tuple[int, ...], list[int]] = {}
    for rank in range(job.world_size):
        key = tuple(int(at[a][rank]) for a in others[axis])
        found.setdefault(key, []).append(rank)
    return list(found.values())


def leaving_by_loops(
    topology: Topology, groups: list[list[int]], gpu_of_rank: np.ndarray
) -> list[list[int]]:
    """Groups that reach beyond the scale-up domain, or any other that could hold one.

    A domain can hold as many ranks as the plan puts there.
    """
    node_of_gpu = [n for n, g in enumerate(topology.gpus_of_node) for _ in range(g)]

    def domains(rank: int) -> list[int]:
        node = node_of_gpu[gpu_of_rank[rank]]
        return [int(row[node]) for row in topology.domain_of_node]

    home = max(t for t, tier in enumerate(topology.tiers) if tier.scale_up)
    used: list[dict[int, int]] = [{} for _ in topology.tiers]
    for rank in range(len(gpu_of_rank)):
        for tier, domain in enumerate(domains(rank)):
            used[tier][domain] = used[tier].get(domain, 0) + 1
    size = len(groups[0])
    while max(used[home].values()) < size:
        home += 1
    return [g for g in groups if len({domains(rank)[home] for rank in g}) > 1]
