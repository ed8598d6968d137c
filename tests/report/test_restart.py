"""The work of a restart, against plain loops and by hand."""

from dataclasses import replace

import numpy as np
from hypothesis import given

from placer.placement.build import build_plan
from placer.placement.launcher_orders import in_natural_order
from placer.placement.placement import Placement
from placer.placement.plan import Plan
from placer.report.diff import diff
from placer.report.diff_text import diff_text
from placer.testing.strategies import tiny
from tests.report.test_diff import two_plans
from tests.report.test_state_bytes import MODEL


def on_node(plan: Plan) -> dict[str, set[tuple[int, int]]]:
    """Rank and GPU of everything on each node."""
    found: dict[str, set[tuple[int, int]]] = {}
    for rank, host in enumerate(plan.host_of_rank):
        found.setdefault(host, set()).add((rank, int(plan.gpu_of_rank[rank])))
    return found


@given(two_plans())
def test_nodes_whose_ranks_changed(plans: tuple[Plan, Plan]) -> None:
    """They are the nodes where a loop over all ranks finds another rank on a GPU."""
    before, after = map(on_node, plans)
    changed = [
        node
        for node in in_natural_order(before.keys() | after.keys())
        if before.get(node) != after.get(node)
    ]
    assert list(diff(*plans).restart.nodes) == changed


def test_fewer_replicas() -> None:
    """Ranks that stop or start change their nodes and are counted; state goes along."""
    topology, job = tiny()
    job = replace(job, model=MODEL)
    fewer = replace(job, parallelism=replace(job.parallelism, dp=3))
    old = build_plan(topology, job, Placement(np.arange(16)))
    new = build_plan(topology, fewer, Placement(np.arange(12)))
    found = diff(old, new, job)
    data = found.to_dict()["restart"]
    assert data["nodes"] == ["n006", "n007"]
    assert (data["ranks_started"], data["ranks_stopped"]) == (0, 4)
    back = diff(new, old, job).to_dict()["restart"]
    assert back["nodes"] == ["n006", "n007"]
    assert (back["ranks_started"], back["ranks_stopped"]) == (4, 0)
    assert data["state_bytes"]["to_old"] == back["state_bytes"]["to_new"]
    assert data["state_bytes"]["to_new"] == back["state_bytes"]["to_old"]
    # Of a stage's 912 parameters x 12 bytes, replica 0 has 3 of 12 parts and needs 0-3,
    # 1 has 3-5 and needs 4-7, 2 has 6-8 and needs 8-11: 1 + 2 + 3 parts on two nodes.
    assert data["state_bytes"]["to_new"] == {
        "parameters": 0.0,
        "optimizer": 2 * 912 * 12 * 6 / 12,
        "total": 2 * 912 * 12 * 6 / 12,
    }
    text = diff_text(found)
    assert "nodes whose ranks changed: 2 (n[006-007])\nranks that stop: 4\n" in text
    state = "state to move: 10.94 kB (0 B parameters, 10.94 kB optimizer)"
    assert state in text
