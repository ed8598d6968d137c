"""Jobs on nodes with islands, against every legal placement."""

from __future__ import annotations

import itertools
import json
import random
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.api.place import place
from placer.cost.step import StepModel
from placer.documents import parse_document
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.job.read import decode_job
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.search import solve
from placer.topology.read import parse_topology

if TYPE_CHECKING:
    from placer.topology.model import Topology

ORDERS = ("tp-cp-ep-pp-dp", "tp-cp-ep-dp-pp", "dp-tp-cp-ep-pp")
MODEL = {
    "hidden": 1024,
    "ffn": 4096,
    "heads": 12,
    "kv_heads": 12,
    "vocab": 32000,
}


def drawn_machine(rng: random.Random) -> dict[str, Any]:
    """Two or three hosts of two islands of one or two GPUs, some missing."""
    size = rng.choice([1, 2, 2])
    gpus = [*range(2 * size)]
    if rng.random() < 0.4:
        rng.shuffle(gpus)
    fast = rng.random() < 0.6
    inside = fast and rng.random() < 0.5
    tiers = [
        {
            "name": "island",
            "size": size,
            "members": [sorted(gpus[:size]), sorted(gpus[size:])],
            "bandwidth": rng.choice([100e9, 200e9]),
            "latency": 1e-6,
            "scale_up": fast,
        },
        {
            "name": "node",
            "size": 2,
            "bandwidth": rng.choice([20e9, 50e9]),
            "latency": 3e-6,
            "scale_up": inside,
        },
        {"name": "cluster", "bandwidth": rng.choice([10e9, 25e9]), "latency": 5e-6},
    ]
    nodes = [
        {"names": f"h{host}", "gpus": [size - (rng.random() < 0.2), size]}
        for host in range(rng.choice([2, 3]) if size == 1 else 2)
    ]
    head = {"format": "placer/topology", "version": 1, "name": "islands"}
    return {**head, "tiers": tiers, "nodes": nodes}


def drawn_job(rng: random.Random, num_gpus: int) -> dict[str, Any]:
    """A job of a few ranks, perhaps with a rule."""
    world = rng.randint(2, min(num_gpus, 6))
    degrees = rng.choice(
        [d for d in itertools.product(range(1, 7), repeat=3) if np.prod(d) == world]
    )
    axes = dict(zip(("tp", "pp", "dp"), degrees, strict=True))
    job: dict[str, Any] = {
        "format": "placer/job",
        "version": 1,
        "name": "small",
        "parallelism": {**axes, "order": rng.choice(ORDERS)},
        "launcher": {"ranks": rng.choice(["free", "node-contiguous"])},
        "model": {"layers": 2 * axes["pp"], **MODEL},
        "sequence": 2048,
        "micro_batches": 2 * axes["pp"],
        "compute": {"micro_batch_time": "2ms"},
        "weights": {"tp": 8, "pp": 2, "dp": 1},
    }
    if rng.random() < 0.3:
        tier = rng.choice(["island", "node"])
        job["require"] = {rng.choice(["tp", "pp", "dp"]): tier}
    rules = [
        {"pin": [{"ranks": "0", "nodes": "h1"}]},
        {"avoid": ["h0"]},
        {"spares": {"cluster": 1}},
        {"at_most": {"node": 1}},
    ]
    if rng.random() < 0.35:
        job["rules"] = rng.choice(rules)
    return job


def small(gpus: list[list[int]], size: int) -> Topology:
    """Hosts ``h0``, ``h1`` ... with two islands of at most so many GPUs."""
    machine = drawn_machine(random.Random(0))
    island, node, cluster = machine["tiers"]
    island |= {"size": size, "scale_up": False, "bandwidth": 100e9}
    node |= {"bandwidth": 50e9, "scale_up": False}
    cluster |= {"bandwidth": 10e9}
    del island["members"]
    machine["nodes"] = [{"names": f"h{i}", "gpus": own} for i, own in enumerate(gpus)]
    return parse_topology(json.dumps(machine), "m.json")


def small_job(axes: dict[str, int], **more: Any) -> Job:
    """A job that torchrun starts."""
    launcher = {"launcher": {"ranks": "node-contiguous"}}
    job = drawn_job(random.Random(1), 6) | {"parallelism": axes, **launcher, **more}
    job["model"] = {"layers": 2 * axes.get("pp", 1), **MODEL}
    job.pop("require", None)
    return decode_job(parse_document(json.dumps(job), "j.json"))


def test_the_order_of_unlike_islands_counts() -> None:
    """Hosts of islands 2 + 1 and 1 + 2 are not the same to a launch in order."""
    topology = small([[2, 1], [1, 2]], 2)
    job = small_job({"pp": 5}, rules={}, micro_batches=10)
    best = StepModel(topology, job).step(np.array([4, 5, 0, 1, 2])).step_time_s
    bound = place(topology, job, objective="time").bound
    assert bound["lower_bound"] <= best
    assert bound["status"] != "optimal" or bound["value"] <= best * (1 + 1e-9)


def test_hosts_to_avoid_are_counted_whole() -> None:
    """Two islands of a host to avoid are no worse than one."""
    topology = small([[1, 1], [1, 0]], 1)
    job = small_job({"tp": 2}, rules={"avoid": ["h0"]})
    result = place(topology, job, objective="hop-cost")
    assert result.plan.node_of_rank.tolist() == [0, 0]
    assert result.plan.nodes == ("h0",)


def test_tensor_groups_go_inside_islands() -> None:
    """Islands need not be consecutive GPUs: the launch takes them one by one."""
    text = """\
format: placer/topology
version: 1
name: xgmi
tiers:
  - {name: island, size: 4, bandwidth: 150GB/s, latency: 1us, scale_up: true,
     members: [[0, 2, 3, 5], [1, 4, 6, 7]]}
  - {name: node, size: 2, bandwidth: 25GB/s, latency: 3us}
  - {name: cluster, bandwidth: 25GB/s, latency: 5us}
layout: "cluster:1 node:8"
"""
    rng = random.Random(0)
    job = drawn_job(rng, 6) | {
        "parallelism": {"tp": 4, "dp": 16},
        "launcher": {"ranks": "node-contiguous"},
        "model": {"layers": 2, **MODEL, "heads": 16, "kv_heads": 16},
        "require": {"tp": "island"},
        "rules": {},
    }
    decoded = decode_job(parse_document(json.dumps(job), "j.json"))
    plan = place(parse_topology(text, "m.yaml"), decoded).plan
    assert plan.score["crossings"]["tp"] == {"island": 16}
    assert plan.gpu_of_rank[:8].tolist() == [0, 2, 3, 5, 1, 4, 6, 7]


def test_groups_are_cut_where_hosts_end() -> None:
    """Eight groups of 3 on three hosts of 2 x 4: two are cut, and no other is."""
    link = {"bandwidth": 450e9, "latency": 1e-6, "scale_up": True}
    tiers = [
        {"name": "island", "size": 4, **link},
        {"name": "node", "size": 2, **link},
        {"name": "cluster", "bandwidth": 50e9, "latency": 5e-6},
    ]
    gpus = [[4, 4], [3, 4], [4, 4], [4, 4]]
    nodes = [{"names": f"h{host}", "gpus": one} for host, one in enumerate(gpus)]
    head = {"format": "placer/topology", "version": 1, "name": "islands"}
    text = json.dumps({**head, "tiers": tiers, "nodes": nodes})
    machine = parse_topology(text, "islands.json")
    axes = Parallelism(tp=3, dp=10)
    job = Job(
        "j",
        axes,
        Model("m", 4, **MODEL),
        1024,
        compute=Compute(micro_batch_time=0.05),
    )
    problem = Problem.of(machine, job, "time").with_params(enough_gap=0.01)
    gpus = solve(problem, Budget(60.0)).placement.gpu_of_rank
    assert problem.allows(gpus)
    groups = problem.machine.host_of_gpu[gpus].reshape(-1, 3)
    assert (groups != groups[:, :1]).any(axis=1).sum() == 2
