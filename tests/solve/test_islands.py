"""Jobs on nodes with islands, where what is best is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placer.api.place import place
from placer.cost.step import StepModel
from placer.documents import document_of
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.search import solve
from placer.testing import job
from placer.topology.read import decode_topology

if TYPE_CHECKING:
    from placer.topology.model import Topology

MODEL = {
    "hidden": 1024,
    "ffn": 4096,
    "heads": 12,
    "kv_heads": 12,
    "vocab": 32000,
}
TRAINING = {
    "sequence": 2048,
    "micro_batches": 10,
    "compute": {"micro_batch_time": "2ms"},
    "weights": {"tp": 8, "pp": 2, "dp": 1},
}


def islands(gpus: list[list[int]], size: int, fast: bool, **island: Any) -> Topology:
    """Hosts ``h0``, ``h1`` ... with two islands of at most so many GPUs."""
    inner, outer = (150e9, 25e9) if island else (450e9, 50e9)
    tiers = [
        {"name": "island", "size": size, "bandwidth": inner, **island},
        {"name": "node", "size": 2, "bandwidth": inner if fast else outer},
        {"name": "cluster", "bandwidth": outer / (1 if fast or island else 5)},
    ]
    for number, tier in enumerate(tiers):
        tier |= {"latency": 1e-6 + 2e-6 * number}
        tier.setdefault("scale_up", fast and number < 2)
    nodes = [{"names": f"h{i}", "gpus": own} for i, own in enumerate(gpus)]
    head = {"format": "placer/topology", "version": 1, "name": "islands"}
    content = {**head, "tiers": tiers, "nodes": nodes}
    return decode_topology(document_of(content, "m"))


def test_the_order_of_unlike_islands_counts() -> None:
    """Hosts of islands 2 + 1 and 1 + 2 are not the same to a launch in order."""
    topology = islands([[2, 1], [1, 2]], 2, fast=False)
    long = job(pp=5, model={"layers": 10, **MODEL}, **TRAINING)
    best = StepModel(topology, long).step(np.array([4, 5, 0, 1, 2])).step_time_s
    bound = place(topology, long, objective="time").bound
    assert bound["lower_bound"] <= best
    assert bound["status"] != "optimal" or bound["value"] <= best * (1 + 1e-9)


def test_hosts_to_avoid_are_counted_whole() -> None:
    """Two islands of a host to avoid are no worse than one."""
    pair = job(tp=2, weights={"tp": 8}, rules={"avoid": ["h0"]})
    topology = islands([[1, 1], [1, 0]], 1, fast=False)
    result = place(topology, pair, objective="hop-cost")
    assert result.plan.node_of_rank.tolist() == [0, 0]
    assert result.plan.nodes == ("h0",)


def test_tensor_groups_go_inside_islands() -> None:
    """Islands need not be consecutive GPUs: the launch takes them one by one."""
    own = [[0, 2, 3, 5], [1, 4, 6, 7]]
    topology = islands([[4, 4]] * 8, 4, fast=False, members=own, scale_up=True)
    model = {"layers": 2, **MODEL, "heads": 16, "kv_heads": 16}
    groups = job(tp=4, dp=16, model=model, require={"tp": "island"}, **TRAINING)
    plan = place(topology, groups).plan
    assert plan.score["crossings"]["tp"] == {"island": 16}
    assert plan.gpu_of_rank[:8].tolist() == [0, 2, 3, 5, 1, 4, 6, 7]


def test_groups_are_cut_where_hosts_end() -> None:
    """Ten groups of 3 on three hosts of 2 x 4 and one of 7: two are cut."""
    machine = islands([[4, 4], [3, 4], [4, 4], [4, 4]], 4, fast=True)
    model = {"layers": 4, **MODEL}
    work = {"sequence": 1024, "compute": {"micro_batch_time": 0.05}}
    groups = job(tp=3, dp=10, model=model, **work)
    problem = Problem.of(machine, groups, "time").with_params(enough_gap=0.01)
    gpus = solve(problem, Budget(60.0)).placement.gpu_of_rank
    assert problem.allows(gpus)
    hosts = problem.machine.host_of_gpu[gpus].reshape(-1, 3)
    assert (hosts != hosts[:, :1]).any(axis=1).sum() == 2
