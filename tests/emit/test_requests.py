"""Requests for a next allocation, checked by hand and against the schedulers' rules."""

import json
import re
import subprocess
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import yaml
from hypothesis import given

from placer.base.errors import EmitError
from placer.emit import emit
from placer.emit.domains import tiers_of
from placer.emit.nodes import nodes_of
from placer.placement.plan import Plan
from tests.emit.readback import plan_of
from tests.emit.tiered import tiered, tiered_plans

KUEUE = "kueue.x-k8s.io/podset-"
KAI = "kai.scheduler/"


def options(plan: Plan) -> dict[str, str]:
    """What sbatch reads from the request."""
    lines = emit(plan, "slurm-request").splitlines()
    found = (re.fullmatch(r"#SBATCH --([a-z-]+)(?:=(\S+))?", line) for line in lines)
    return {match[1]: match[2] or "" for match in found if match}


def notes(plan: Plan, format: str) -> list[str]:
    """The lines that say what no option says."""
    lines = emit(plan, format).splitlines()
    return [line[12:] for line in lines if line.startswith("# Not said: ")]


def kueue(plan: Plan) -> dict[str, str]:
    """Annotations of the pod template."""
    data = yaml.safe_load(emit(plan, "kueue-request"))
    assert set(data) == {"podTemplate"}
    found: dict[str, str] = data["podTemplate"]["metadata"]["annotations"]
    assert all(isinstance(value, str) for value in found.values())
    return {key.removeprefix(KUEUE): value for key, value in found.items()}


def kai(plan: Plan) -> tuple[dict[str, str], dict[str, str]]:
    """Annotations of the workload and of the pod template."""
    data: Any = yaml.safe_load(emit(plan, "kai-request"))
    both = [
        data.get(part, {"metadata": {"annotations": {}}})["metadata"]["annotations"]
        for part in ("workload", "podTemplate")
    ]
    workload, pods = ({k.removeprefix(KAI): v for k, v in x.items()} for x in both)
    return workload, pods


def volcano(plan: Plan) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """The specification of the job, and the members of every HyperNode."""
    *hyper_nodes, job = yaml.safe_load_all(emit(plan, "volcano-request"))
    assert job["kind"] == "Job"
    assert {row["kind"] for row in hyper_nodes} <= {"HyperNode"}
    members = {
        row["metadata"]["name"]: [
            member["selector"]["exactMatch"]["name"]
            for member in row["spec"]["members"]
        ]
        for row in hyper_nodes
    }
    return job["spec"], members


def within(section: dict[str, Any]) -> int | None:
    """Highest tier that pods may share, if they must share any."""
    found = section.get("networkTopology")
    assert found is None or found["mode"] == "hard"
    return None if found is None else found["highestTierAllowed"]


# Racks of four and two nodes: node ranks 0-1, 2-3, 4-5 share a rack each.
UNEVEN = tiered(["r0"] * 4 + ["r1"] * 2, list("aaaabb"))
# Racks of two and one.
ODD = tiered(["r0", "r0", "r1"])


@given(tiered_plans())
def test_hyper_nodes_are_a_tree(plan: Plan) -> None:
    """Every node lies once on every tier, with the nodes of its own domain alone."""
    spec, members = volcano(plan)
    inside: dict[str, list[str]] = {host: [host] for host in plan.nodes}
    for name, own in members.items():
        inside[name] = [host for member in own for host in inside[member]]
    tiers = tiers_of(plan, nodes_of(plan))
    for number, tier in enumerate(tiers, start=1):
        hosts = [h for n, h in inside.items() if f"-tier{number}-" in n]
        assert sorted(host for group in hosts for host in group) == sorted(plan.nodes)
        assert sorted(map(len, hosts)) == sorted(tier.counts)
    (task,) = spec["tasks"]
    part = task.get("partitionPolicy")
    if part:
        assert part["totalPartitions"] * part["partitionSize"] == task["replicas"]
        assert (within(spec) or len(tiers) + 1) > (within(part) or 0)


def test_uneven_racks() -> None:
    """Four and two nodes are no segment size: two is asked for, the rest is said."""
    assert options(UNEVEN)["segment"] == "2"
    assert notes(UNEVEN, "slurm-request") == [
        "2 domains of rack hold 2 to 4 nodes.",
        "2 domains of block hold 2 to 4 nodes.",
    ]
    assert kueue(UNEVEN) == {
        "slice-required-topology": "<label of rack>",
        "slice-size": "2",
    }
    assert notes(UNEVEN, "kueue-request")[0].endswith("nodes; each 2 stay together.")
    assert notes(UNEVEN, "kai-request") == notes(UNEVEN, "kueue-request")


def test_nothing_to_ask_for() -> None:
    """Racks of two and one node have no slice in common but one node."""
    assert "segment" not in options(ODD)
    assert kueue(ODD) == {"required-topology": "<label of block>"}
    assert kai(ODD)[1] == {}
    apart = tiered(["r0", "r1"], ["a", "b"])
    assert "segment" not in options(apart)
    assert kueue(apart) == {"unconstrained-topology": "true"}
    assert kai(apart) == ({"topology": "<name of the Topology>"}, {})


def test_all_in_one_rack() -> None:
    """The innermost shared domain is asked for, and a single switch of a tree."""
    plan = tiered(["r0"] * 3)
    assert options(plan)["segment"] == "3"
    request = emit(plan, "slurm-request")
    assert "# With topology/tree instead: --switches=1" in request
    assert "--consolidate-segments" not in request  # one segment has nothing to join
    assert kueue(plan) == {"required-topology": "<label of rack>"}


def test_several_tiers() -> None:
    """Racks of two in blocks of four: Kueue takes both layers, outermost first."""
    plan = tiered([f"r{k // 2}" for k in range(8)], [f"b{k // 4}" for k in range(8)])
    found = kueue(plan)
    assert list(found) == ["slice-required-topology-constraints"]
    assert json.loads(found["slice-required-topology-constraints"]) == [
        {"topology": "<label of block>", "size": 4},
        {"topology": "<label of rack>", "size": 2},
    ]
    assert kai(plan)[1]["segment-size"] == "2"
    assert notes(plan, "kai-request") == ["2 domains of block hold 4 nodes each."]


def test_plans_without_tiers() -> None:
    """Where a plan names no tier, sizes are asked for and the rest is left open."""
    plan = plan_of([("b", 0), ("b", 1), ("a", 2)])
    assert options(plan) == {
        "nodes": "2",
        "ntasks": "3",
        "gpus-per-node": "3",
        "exclusive": "",
    }
    assert "names no tier" in emit(plan, "slurm-request")
    assert emit(plan, "slurm-request").endswith("##SBATCH --nodelist=a,b\n")
    for format in ("kueue-request", "kai-request", "volcano-request"):
        with pytest.raises(EmitError, match="nodes need 2 to 3 GPUs"):
            emit(plan, format)
        text = emit(plan_of([("b", 0), ("a", 0)]), format)
        assert "# Not said: the plan names no tier" in text


@given(tiered_plans())
def test_slices_lie_in_one_domain(plan: Plan) -> None:
    """A slice is as large as the nodes allow, found by trying every size."""
    nodes = nodes_of(plan)
    for tier in tiers_of(plan, nodes):
        names = [
            (plan.domains[tier.tier][k], plan.domains["block"][k])
            for k in range(len(nodes))
        ]
        counts = {names.count(name) for name in names}
        fits = [
            size
            for size in range(1, len(nodes) + 1)
            if len(nodes) % size == 0
            and all(
                len(set(names[start : start + size])) == 1
                for start in range(0, len(nodes), size)
            )
        ]
        assert tier.slice == (counts.pop() if len(counts) == 1 else max(fits))


@given(tiered_plans())
def test_requests_are_valid(plan: Plan) -> None:
    """Requests keep the rules of Slurm's manual, Kueue's webhook and KAI's guide."""
    num_nodes = len(plan.nodes)
    asked = options(plan)
    assert num_nodes % int(asked.get("segment", 1)) == 0
    text = emit(plan, "slurm-request")
    assert all(line.startswith("#") for line in text.splitlines())
    found = kueue(plan)
    assert not {"required-topology", "unconstrained-topology"} <= set(found)
    assert ("slice-required-topology" in found) == ("slice-size" in found)
    layers = json.loads(found.get("slice-required-topology-constraints", "[]"))
    sizes = [layer["size"] for layer in layers]
    assert len(sizes) != 1
    assert len(sizes) <= 3
    assert not (sizes and "slice-size" in found)
    for outer, inner in pairwise(sizes):
        assert outer > inner
        assert outer % inner == 0
    assert num_nodes % int(found.get("slice-size", sizes[0] if sizes else 1)) == 0
    assert 1 < int(kai(plan)[1].get("segment-size", 2)) <= max(num_nodes, 2)


@pytest.mark.parametrize(
    "name", ["x\ntouch pwned", "a b", '"', "<script>", "é\x1b[31m"]
)
@pytest.mark.parametrize(
    "format",
    ["slurm-request", "kueue-request", "kai-request", "volcano-request", "nccl"],
)
def test_names_of_tiers_are_quoted(name: str, format: str) -> None:
    """A tier or domain of any name stays inside its comment or value."""
    plan = tiered(["r0", "r0", "r1", name], scale_up=2)
    topology = {**plan.topology, "tiers": ("node", name, "block", "cluster")}
    domains = {name: plan.domains["rack"], "block": plan.domains["block"]}
    text = emit(replace(plan, topology=topology, domains=domains), format)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\uffff]", text)
    assert "\ntouch" not in text
    if format == "slurm-request":
        assert all(line.startswith("#") for line in text.splitlines())
        run = subprocess.run(["bash"], input=text, capture_output=True, text=True)
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    elif format != "nccl":
        assert all(isinstance(data, dict) for data in yaml.safe_load_all(text))
