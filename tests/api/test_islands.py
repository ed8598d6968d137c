"""Hosts with islands: what is best is found, and no host is taken for an island."""

import json

import numpy as np
import pytest

import placer
from placer import testing
from placer.cost.step import StepModel
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.search import solve
from placer.topology.read import parse_topology

MODEL = {"layers": 8, "hidden": 1024, "ffn": 512, "heads": 16, "vocab": 1000}
EXPERTS = {"experts": 24, "top_k": 2, "expert_ffn": 128}


def machine(
    *hosts,
    size=2,
    island=None,
    node=None,
    **cluster,
):
    """Hosts ``h0``, ``h1`` ... of two islands; what differs about hosts and tiers."""
    inner = {"size": size, "bandwidth": 15e10, "scale_up": True}
    tiers = [
        {"name": "island", **inner, **(island or {})},
        {"name": "node", "size": 2, "bandwidth": 25e9, **(node or {})},
        {"name": "cluster", "bandwidth": 25e9, **cluster},
    ]
    for t, tier in enumerate(tiers):
        tier["latency"] = 1e-6 * (1 + 2 * t)
    nodes = [{"names": f"h{number}", **host} for number, host in enumerate(hosts)]
    head = {"format": "placer/topology", "version": 1, "name": "islands"}
    text = json.dumps({**head, "tiers": tiers, "nodes": nodes})
    return parse_topology(text, "t.json")


def job(axes, **more):
    """A job of a small model, with experts where it has groups of them."""
    return testing.job(
        "small",
        model=MODEL | (EXPERTS if "ep" in axes else {}),
        sequence=1024,
        micro_batches=4,
        compute={"micro_batch_time": 0.001},
        **{"weights": {"dp": 1}} | axes | more,
    )


def names_of(plan):
    """Host of every rank, and what a launcher calls its GPU."""
    return list(zip(plan.host_of_rank, plan.gpu_of_rank.tolist(), strict=True))


@pytest.mark.parametrize(
    ("hosts", "size", "axes"),
    [
        ([{}], 2, {"cp": 3, "ep": 3}),
        ([{}, {}], 4, {"dp": 12, "ep": 6}),
        ([{"gpus": [3, 4]}, {}, {}, {}], 4, {"pp": 2, "dp": 12, "ep": 12}),
    ],
    ids=str,
)
def test_experts_need_not_fill_hosts(hosts, size, axes):
    """Runs of expert groups are laid along islands, whatever hosts hold of them."""
    found = placer.place(machine(*hosts, size=size), job(axes), time_limit=20)
    placer.check(found.plan)
    assert found.bound["gap"] < 0.1


@pytest.mark.parametrize("launcher", ["free", "node-contiguous"])
@pytest.mark.parametrize("members", [[[0, 1], [2, 3]], [[0, 2], [1, 3]]], ids=str)
@pytest.mark.parametrize("gpus", [[1, 2], [2, 1]], ids=str)
def test_a_plan_stays_beside_itself(gpus, members, launcher):
    """Seats are found again by host and launcher's number, and lost ones only move."""
    topology = machine({}, {"gpus": gpus}, {}, island={"members": members})
    small = job({"dp": 7}, launcher=launcher)
    options = {"objective": "hop-cost", "time_limit": 5}
    plan = placer.place(topology, small, hosts=["h0", "h1"], **options).plan
    again = placer.place(topology, small, hosts=["h1", "h0"], previous=plan, **options)
    assert again.plan.previous == {"kept": 7, "moved": 0, "new": 0}
    assert names_of(again.plan) == names_of(plan)
    left = placer.replace(plan, failed="h1", added="h2").plan
    kept = [seat for seat in names_of(plan) if seat[0] == "h0"]
    assert left.previous["kept"] == len(kept)
    assert [seat for seat in names_of(left) if seat[0] == "h0"] == kept


def test_the_ranks_of_a_lost_host_go_to_one_host():
    """A host of two islands is lost and replaced as one."""
    topology = machine({}, {}, {}, {})
    small = job({"dp": 8}, weights={"dp": 1})
    before = placer.place(topology, small, hosts="h[0-1]").plan
    options = {"exclude": "h0", "previous": before, "time_limit": 5}
    after = placer.place(topology, small, **options).plan
    assert after.previous == {"kept": 4, "moved": 4, "new": 0}


def test_a_fresh_plan_is_like_one_that_was_read():
    """Lists of GPUs by island are no obstacle to checks, scores and repairs."""
    topology = machine(*[{"gpus": [1, 2]}] * 3)
    plan = placer.place(topology, job({"dp": 4})).plan
    placer.check(plan)
    assert placer.score(plan)["step_time_s"] == plan.score["step_time_s"]
    used = {*plan.nodes}
    assert placer.replace(plan, failed=min({"h0", "h1", "h2"} - used)).plan.nodes


def test_islands_are_refused_where_hosts_are_asked_for():
    """A machine by island is not a topology."""
    topology, small = machine({}, {}), job({"dp": 4})
    with pytest.raises(placer.InputError, match="topology"):
        placer.place(topology.by_island, small)


def test_explanations_know_hosts_and_islands():
    """A rank is on a host; it could change places with others, or its island could."""
    topology = machine({}, {"bandwidth_factor": 0.5}, {})
    plan = placer.place(topology, job({"tp": 2, "dp": 6}), time_limit=60).plan
    asked = {"ranks": [0], "hosts": ["h1"], "groups": ["dp:0"]}
    rank, group, host = placer.explain(plan, **asked)["subjects"]
    assert (rank["host"], host["host"]) == (plan.host_of_rank[0], "h1")
    assert group["facts"]["slowest_node"] == "h1"
    units = {name for kind in rank["exchanges"] for name in kind["unit"].split(" = ")}
    assert {"rank", "island", "node", "tp group"} <= units


def test_pins_that_cannot_hold_name_hosts():
    """What cannot be pinned is told by host, with the GPUs of all its islands."""
    topology = machine({}, {}, {})
    pinned = job({"dp": 8}, rules={"pin": [{"ranks": "0-4", "nodes": "h1"}]})
    with pytest.raises(placer.InfeasibleError) as caught:
        placer.place(topology, pinned)
    assert "ranks 0-4 are pinned to h1: 5 ranks, 4 GPUs" in str(caught.value)
    far = job({"dp": 8}, rules={"pin": [{"ranks": "0,7", "nodes": "h1"}]})
    with pytest.raises(placer.InfeasibleError, match="0-7 to h1: 8 ranks, 4 GPUs"):
        placer.place(topology, far)


WIDE = {"hidden": 1024, "ffn": 4096, "heads": 12, "kv_heads": 12, "vocab": 32000}
TRAINING = {
    "sequence": 2048,
    "micro_batches": 10,
    "compute": {"micro_batch_time": "2ms"},
    "weights": {"tp": 8, "pp": 2, "dp": 1},
}
SLOW = {"island": {"bandwidth": 450e9, "scale_up": False}, "node": {"bandwidth": 50e9}}


def test_the_order_of_unlike_islands_counts():
    """Hosts of islands 2 + 1 and 1 + 2 are not the same to a launch in order."""
    topology = machine({"gpus": [2, 1]}, {"gpus": [1, 2]}, **SLOW, bandwidth=10e9)
    long = testing.job(pp=5, model={"layers": 10, **WIDE}, **TRAINING)
    best = StepModel(topology, long).step(np.array([4, 5, 0, 1, 2])).step_time_s
    bound = placer.place(topology, long, objective="time").bound
    assert bound["lower_bound"] <= best
    assert bound["status"] != "optimal" or bound["value"] <= best * (1 + 1e-9)


def test_hosts_to_avoid_are_counted_whole():
    """Two islands of a host to avoid are no worse than one."""
    pair = testing.job(tp=2, weights={"tp": 8}, rules={"avoid": ["h0"]})
    hosts = {"gpus": [1, 1]}, {"gpus": [1, 0]}
    topology = machine(*hosts, size=1, **SLOW, bandwidth=10e9)
    result = placer.place(topology, pair, objective="hop-cost")
    assert result.plan.node_of_rank.tolist() == [0, 0]
    assert result.plan.nodes == ("h0",)


def test_tensor_groups_go_inside_islands():
    """Islands need not be consecutive GPUs: the launch takes them one by one."""
    own = {"members": [[0, 2, 3, 5], [1, 4, 6, 7]]}
    topology = machine(*[{}] * 8, size=4, island=own)
    model = {"layers": 2, **WIDE, "heads": 16, "kv_heads": 16}
    sizes = {"tp": 4, "dp": 16, "require": {"tp": "island"}}
    plan = placer.place(topology, testing.job(model=model, **sizes, **TRAINING)).plan
    assert plan.score["crossings"]["tp"] == {"island": 16}
    assert plan.gpu_of_rank[:8].tolist() == [0, 2, 3, 5, 1, 4, 6, 7]


def test_groups_are_cut_where_hosts_end():
    """Ten groups of 3 on three hosts of 2 x 4 and one of 7: two are cut."""
    fast = {"bandwidth": 450e9, "scale_up": True}
    hosts = [{}, {"gpus": [3, 4]}, {}, {}]
    topology = machine(*hosts, size=4, island=fast, node=fast, bandwidth=50e9)
    work = {"sequence": 1024, "compute": {"micro_batch_time": 0.05}}
    groups = testing.job(tp=3, dp=10, model={"layers": 4, **WIDE}, **work)
    problem = Problem.of(topology, groups, "time").with_params(enough_gap=0.01)
    gpus = solve(problem, Budget(60.0)).placement.gpu_of_rank
    assert problem.allows(gpus)
    hosts_of = problem.machine.host_of_gpu[gpus].reshape(-1, 3)
    assert (hosts_of != hosts_of[:, :1]).any(axis=1).sum() == 2
