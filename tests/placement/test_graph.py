"""Who talks to whom under a plan, against a job worked by hand."""

import numpy as np
import pytest

import placer
from placer import testing
from placer.base.errors import InputError
from placer.placement.build import build_plan
from placer.placement.inputs import Inputs
from placer.placement.placement import Placement
from placer.testing.strategies import tiny_plan

MODEL = {
    "model": {"layers": 8, "hidden": 512, "ffn": 2048, "heads": 8, "vocab": 32000},
    "sequence": 512,
    "micro_batches": 4,
    "compute": {"tflops_per_gpu": 400},
}
PAIR = {"name": "pair", "collective": "send_recv", "bytes": "1MB", "per_step": 1}
GROUP = {"groups": [PAIR | {"ranks": [[0, 7, 5]]}]}


def plan_of(**more):
    """Rank r on GPU r of two racks of two nodes of two GPUs."""
    job = testing.job(tp=2, pp=2, dp=2, order="tp-cp-ep-pp-dp", **(more or MODEL))
    topology = placer.read_topology("rack:2 node:2 gpu:2")
    inputs = Inputs.given(topology, job).to_document()
    return build_plan(topology, job, Placement(np.arange(8)), inputs=inputs)


def test_ranks():
    """Ranks are joined along tp (0, 1), pp (0, 2) and dp (0, 4), and their place."""
    plan = plan_of()
    graph = plan.to_networkx()
    assert {other: data["pairs"] for other, data in graph[0].items()} == {
        1: {"tp": 1},
        2: {"pp": 1},
        4: {"dp": 1},
    }
    assert graph.number_of_edges() == 12
    assert graph.nodes[5]["gpu"] == 1
    assert graph.nodes[5]["domains"]["node"] == plan.nodes[2]


def test_domains():
    """Nodes are joined by four pp and four dp pairs; tp stays inside them."""
    plan = plan_of()
    graph = plan.to_networkx("node")
    vertices = [("node", name) for name in plan.nodes]
    assert list(graph) == vertices
    assert graph.nodes[vertices[0]] == {"tier": "node", "ranks": 2}
    a, b, c, d = vertices
    assert {frozenset(ends): data for *ends, data in graph.edges(data=True)} == {
        frozenset((a, b)): {"pairs": {"pp": 2}, "weight": 2.0},
        frozenset((c, d)): {"pairs": {"pp": 2}, "weight": 2.0},
        frozenset((a, c)): {"pairs": {"dp": 2}, "weight": 2.0},
        frozenset((b, d)): {"pairs": {"dp": 2}, "weight": 2.0},
    }
    (data,) = (data for *_, data in plan.to_networkx("rack").edges(data=True))
    assert data == {"pairs": {"dp": 4}, "weight": 4.0}


def test_weights_and_groups_are_those_of_the_job():
    """Pairs weigh what the job says of their axis; no pair lacks a weight.

    A send_recv group is a chain in its own order.
    """
    graph = plan_of(weights={"tp": 8, "pp": 1}).to_networkx()
    assert graph[0][1]["weight"] == 8.0
    assert not graph.has_edge(0, 4)
    graph = plan_of(**MODEL, **GROUP).to_networkx()
    assert graph[0][7]["pairs"] == {"pair": 1}
    assert graph[7][5]["pairs"] == {"pp": 1, "pair": 1}
    assert graph[7][5]["weight"] == 2.0
    assert not graph.has_edge(0, 5)
    alone = plan_of(**GROUP)
    assert list(alone.to_networkx().edges) == [(0, 7), (5, 7)]


def test_what_cannot_be_drawn():
    """A tier that the plan does not name, and a plan without inputs, are refused."""
    plan = plan_of()
    with pytest.raises(InputError, match=r'tier "rak".*\n.*"rack"'):
        plan.to_networkx("rak")
    with pytest.raises(InputError, match="does not keep its inputs"):
        tiny_plan().to_networkx()
