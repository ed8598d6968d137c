"""Hosts with islands: what is best is found, and no host is taken for an island."""

import json

import pytest

import placer
from placer import testing
from placer.topology.read import parse_topology

MODEL = {"layers": 8, "hidden": 1024, "ffn": 512, "heads": 16, "vocab": 1000}
EXPERTS = {"experts": 24, "top_k": 2, "expert_ffn": 128}


def machine(*hosts, size=2, island=None, node=None, **cluster):
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
        ([{"gpus": [3, 4]}, {}, {}, {}], 4, {"pp": 2, "dp": 12, "ep": 12}),
    ],
    ids=str,
)
def test_experts_need_not_fill_hosts(hosts, size, axes):
    """Runs of expert groups are laid along islands, whatever hosts hold of them."""
    found = placer.place(machine(*hosts, size=size), job(axes), time_limit=20)
    placer.check(found.plan)
    assert found.bound["gap"] < 0.1


@pytest.mark.parametrize(
    ("gpus", "members", "launcher"),
    [
        ([1, 2], [[0, 1], [2, 3]], "free"),
        ([2, 1], [[0, 2], [1, 3]], "free"),
        ([1, 2], [[0, 2], [1, 3]], "node-contiguous"),
    ],
)
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
