"""Tiers inside the node: what they hold, what a launcher calls their GPUs."""

import numpy as np
import pytest

from placer.documents import parse_document
from placer.explain.score import score
from placer.job.read import decode_job
from placer.placement.baselines import baseline
from placer.placement.build import build_plan, placement_of_plan
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.topology.read import parse_topology
from tests.problems import problems_of
from tests.texts import data, table

MACHINE = data("topology/islands-machine.yaml")
MIXED = MACHINE.replace("size: 4,", "size: 4, members: [[0, 2, 3, 5], [1, 4, 6, 7]],")
WOUNDED = MIXED.replace(
    'layout: "cluster:1 node:4"',
    'nodes: [{names: "a[1-2]"}, {names: b, gpus: [3, 4]}, {names: c, gpus: [0, 2]}]',
)
JOB = data("topology/islands-job.yaml")


def machine(text):
    return parse_topology(text, "m.yaml")


def job_of(text):
    return decode_job(parse_document(text, "j.yaml"))


def test_the_view_by_island_has_islands_for_nodes():
    """GPUs keep their number, and lie in an island, a node and the whole."""
    found = machine(MACHINE)
    assert (found.num_nodes, found.num_gpus) == (4, 32)
    seen = found.by_island
    assert [tier.name for tier in seen.tiers] == ["island", "node", "cluster"]
    gpus = np.arange(32)
    assert (seen.domain_of_gpu == [gpus // 4, gpus // 8, gpus // 32]).all()
    assert seen.domain_names[0][:3] == ("n1/0", "n1/1", "n2/0")
    assert seen.gpus_of_domain(0).tolist() == [4] * 8
    assert seen.tiers[1].distance == 6.0  # over the bandwidth of an island
    assert seen.node_tier == 1


def test_missing_gpus_are_counted_by_island():
    """An island without GPUs is no leaf; what is left keeps its launcher's order."""
    found = machine(WOUNDED)
    assert found.gpus_of_node.tolist() == [8, 8, 7, 2]
    seen = found.by_island
    assert seen.domain_names[0] == ("a1/0", "a1/1", "a2/0", "a2/1", "b/0", "b/1", "c/1")
    assert found.index_of_gpu[:8].tolist() == [0, 2, 3, 5, 1, 4, 6, 7]
    # b misses GPU 5 of its first island: the launcher counts the other seven.
    assert found.index_of_gpu[16:].tolist() == [0, 2, 3, 1, 4, 5, 6, 0, 1]
    # Links of the islands keep the size they were built with.
    assert seen.gpus_of_domain(0).tolist() == [4] * 7
    chosen = found.select(np.array([3, 0]))
    assert chosen.by_island.domain_names[0] == ("c/1", "a1/0", "a1/1")
    assert chosen.index_of_gpu.tolist() == [0, 1, 0, 2, 3, 5, 1, 4, 6, 7]


@pytest.mark.parametrize("text", [MACHINE, MIXED])
def test_plans_name_gpus_as_launchers_do(text):
    """To a plan and back; the launcher's own order puts rank k on its GPU k."""
    topology, job = machine(text), job_of(JOB)
    usual = baseline("given-order", topology, job, 0)
    plan = build_plan(topology, job, usual)
    assert plan.gpu_of_rank.tolist() == [*range(8)] * 4
    assert placement_of_plan(plan, topology).same_as(usual)
    assert not violations(plan, topology, job)
    assert plan.outer_tiers == ["node", "cluster"]


def test_a_launcher_may_count_island_by_island():
    """Both orders of a node's GPUs are orders of a launch, a mix of them is none."""
    topology, job = machine(MIXED), job_of(JOB)
    torn = np.arange(32)
    assert not violations(Placement(np.arange(32)), topology, job)
    torn[[0, 7]] = torn[[7, 0]]
    assert "another order" in violations(Placement(torn), topology, job)[0]


def test_groups_inside_islands_cost_less():
    """The score sees which groups an island holds, and rules can ask for it."""
    topology, job = machine(MIXED), job_of(JOB)
    usual = baseline("given-order", topology, job, 0)
    inside, across = (
        score(topology, job, placement)
        for placement in (Placement(np.arange(32)), usual)
    )
    assert inside["crossings"]["tp"] == {"island": 8}
    assert across["crossings"]["tp"] == {"node": 8}
    assert inside["step_time_s"] < across["step_time_s"]
    strict = job_of(JOB + "require: {tp: island}\n")
    assert not violations(Placement(np.arange(32)), topology, strict)
    assert "leave their island" in violations(usual, topology, strict)[0]


@pytest.mark.parametrize(*table("topology/islands.yaml", "problems_name_their_place"))
def test_problems_name_their_place(old, new, key, words):
    """What cannot be is told with its key."""
    text = WOUNDED.replace(", members: [[0, 2, 3, 5], [1, 4, 6, 7]]", "")
    found = problems_of(machine, text.replace(old, new, 1))
    told = {problem.key: problem.message for problem in found}
    assert words in told[key]
