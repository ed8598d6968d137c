"""Requests for a next allocation, by hand and against what the schedulers know.

An API server drops fields that a definition lacks in silence, and no scheduler says
that it does not know an annotation. So the names that requests use are in a table, each
list with the file that it is from.
"""

import json
import re
import subprocess
from dataclasses import replace
from itertools import pairwise

import pytest
import yaml
from hypothesis import given

from placer.base.errors import EmitError
from placer.emit import emit
from placer.emit.domains import tiers_of
from placer.emit.nodes import nodes_of
from tests.emit.readback import plan_of, tiered, tiered_plans
from tests.texts import content

KNOWN = content("emit/schedulers.yaml")
HEAD = {"apiVersion": "text", "kind": "text", "metadata": {"name": "text"}}
KINDS = {str: "text", int: "integer", dict: "mapping"}


def strangers(known, value, at=""):
    """Paths of what has no place in a definition, or is of another type."""
    if isinstance(known, dict) and isinstance(value, dict):
        return [
            path
            for key, inside in value.items()
            for path in (
                strangers(known[key], inside, f"{at}.{key}")
                if key in known
                else [f"{at}.{key}"]
            )
        ]
    if isinstance(known, list) and isinstance(value, list):
        return [path for v in value for path in strangers(known[0], v, f"{at}[]")]
    return [] if KINDS.get(type(value)) == known else [at]


def options(plan):
    """What sbatch reads from the request."""
    lines = emit(plan, "slurm-request").splitlines()
    assert all(line.startswith("#") for line in lines)
    found = (re.fullmatch(r"#SBATCH --([a-z-]+)(?:=(\S+))?", line) for line in lines)
    return {match[1]: match[2] or "" for match in found if match}


def notes(plan, format):
    """The lines that say what no option says."""
    lines = emit(plan, format).splitlines()
    return [line[12:] for line in lines if line.startswith("# Not said: ")]


def annotations(plan, format):
    """Those of the workload and of its pods, which the scheduler knows all."""
    found = {}
    for part in yaml.safe_load(emit(plan, format)).values():
        found |= part["metadata"]["annotations"]
    assert set(found) <= {*KNOWN[format]}
    assert all(isinstance(value, str) for value in found.values())
    return {re.sub("^.*/(podset-)?", "", key): value for key, value in found.items()}


def objects(plan, format):
    """What an API server is given, of which its definitions know every field."""
    found = list(yaml.safe_load_all(emit(plan, format)))
    for item in found:
        spec = KNOWN[f"{item['apiVersion']} {item['kind']}"]
        assert strangers({**HEAD, "spec": spec}, item) == []
    return found


def within(section):
    """Highest tier that pods may share, if they must share any."""
    found = section.get("networkTopology")
    assert found is None or found["mode"] == "hard"
    return None if found is None else found["highestTierAllowed"]


@given(tiered_plans())
def test_hyper_nodes_are_a_tree(plan):
    """Every node lies once on every tier, with the nodes of its own domain alone."""
    *hyper_nodes, job = objects(plan, "volcano-request")
    inside = {host: [host] for host in plan.nodes}
    for row in hyper_nodes:
        assert row["kind"] == "HyperNode"
        own = [one["selector"]["exactMatch"]["name"] for one in row["spec"]["members"]]
        assert own
        inside[row["metadata"]["name"]] = [host for one in own for host in inside[one]]
    tiers = tiers_of(plan, nodes_of(plan))
    for number, tier in enumerate(tiers, start=1):
        hosts = [h for n, h in inside.items() if f"-tier{number}-" in n]
        assert sorted(host for group in hosts for host in group) == sorted(plan.nodes)
        assert sorted(map(len, hosts)) == sorted(tier.counts)
    (task,) = job["spec"]["tasks"]
    part = task.get("partitionPolicy")
    if part:
        assert part["totalPartitions"] * part["partitionSize"] == task["replicas"]
        assert (within(job["spec"]) or len(tiers) + 1) > (within(part) or 0)


# Racks of four and two nodes: node ranks 0-1, 2-3, 4-5 share a rack each.
UNEVEN = tiered(["r0"] * 4 + ["r1"] * 2, list("aaaabb"))
# Racks of two in blocks of four: Kueue takes both layers, outermost first.
LAYERS = tiered([f"r{k // 2}" for k in range(8)], [f"b{k // 4}" for k in range(8)])
ON_RACK, ON_BLOCK = "<label of rack>", "<label of block>"
IN_LAYERS = [{"topology": ON_BLOCK, "size": 4}, {"topology": ON_RACK, "size": 2}]


@pytest.mark.parametrize(
    ("plan", "segment", "kueue", "kai"),
    [
        # Four and two nodes are no segment size: two is asked for.
        (UNEVEN, "2", {"slice-required-topology": ON_RACK, "slice-size": "2"}, "2"),
        # Racks of two and one have no slice in common but one node.
        (tiered(["r0", "r0", "r1"]), None, {"required-topology": ON_BLOCK}, None),
        (
            tiered(["r0", "r1"], ["a", "b"]),
            *(None, {"unconstrained-topology": "true"}, None),
        ),
        # The innermost shared domain.
        (tiered(["r0"] * 3), "3", {"required-topology": ON_RACK}, None),
        (
            *(LAYERS, "2"),
            {"slice-required-topology-constraints": json.dumps(IN_LAYERS)},
            "2",
        ),
    ],
)
def test_what_is_asked_for(plan, segment, kueue, kai):
    """The largest slices that the plan fills, of the innermost tier that has some."""
    assert options(plan).get("segment") == segment
    found = annotations(plan, "kueue-request")
    assert found.keys() == kueue.keys()
    for key, value in kueue.items():
        if value[0] == "[":
            assert json.loads(found[key]) == json.loads(value)
        else:
            assert found[key] == value
    assert annotations(plan, "kai-request").get("segment-size") == kai


def test_what_no_option_says_is_noted():
    """Domains of unequal sizes, and outer tiers; a single switch of a tree."""
    assert notes(UNEVEN, "slurm-request") == [
        "2 domains of rack hold 2 to 4 nodes.",
        "2 domains of block hold 2 to 4 nodes.",
    ]
    assert notes(UNEVEN, "kueue-request")[0].endswith("nodes; each 2 stay together.")
    assert notes(UNEVEN, "kai-request") == notes(UNEVEN, "kueue-request")
    assert notes(LAYERS, "kai-request") == ["2 domains of block hold 4 nodes each."]
    request = emit(tiered(["r0"] * 3), "slurm-request")
    assert "# With topology/tree instead: --switches=1" in request
    assert "--consolidate-segments" not in request  # one segment has nothing to join


def test_plans_without_tiers():
    """Where a plan names no tier, sizes are asked for and the rest is left open."""
    plan = plan_of([("b", 0), ("b", 1), ("a", 2)])
    assert options(plan) == {
        "nodes": "2",
        "ntasks": "3",
        "gpus-per-node": "3",
        "exclusive": "",
    }
    request = emit(plan, "slurm-request")
    assert "names no tier" in request
    assert "nodes hold 1 to 2 ranks each" in request
    assert "nodes need 2 to 3 GPUs" in request
    assert "Nodes need 2 to 3 GPUs" in emit(plan, "sbatch")
    assert request.endswith("##SBATCH --nodelist=a,b\n")
    for format in ("kueue-request", "kai-request", "volcano-request"):
        with pytest.raises(EmitError, match="nodes need 2 to 3 GPUs"):
            emit(plan, format)
        text = emit(plan_of([("b", 0), ("a", 0)]), format)
        assert "# Not said: the plan names no tier" in text


@given(tiered_plans())
def test_requests_are_valid(plan):
    """Requests keep the rules of Slurm's manual, Kueue's webhook and KAI's guide."""
    num_nodes = len(plan.nodes)
    assert num_nodes % int(options(plan).get("segment", 1)) == 0
    found = annotations(plan, "kueue-request")
    assert not {"required-topology", "unconstrained-topology"} <= set(found)
    assert ("slice-required-topology" in found) == ("slice-size" in found)
    layers = json.loads(found.get("slice-required-topology-constraints", "[]"))
    sizes = [layer["size"] for layer in layers]
    assert len(sizes) in (0, 2, 3)
    assert not (sizes and "slice-size" in found)
    for outer, inner in pairwise(sizes):
        assert outer > inner
        assert outer % inner == 0
    assert num_nodes % int(found.get("slice-size", sizes[0] if sizes else 1)) == 0
    kai = annotations(plan, "kai-request")
    assert 1 < int(kai.get("segment-size", 2)) <= max(num_nodes, 2)


@given(tiered_plans())
def test_grove_keeps_its_webhook(plan):
    """Slices are all of the pods and one gang; one topology; no set narrower than one.

    https://github.com/ai-dynamo/grove/blob/fcc3b3bb/operator/internal/webhook/admission/
    pcs/validation
    """
    (item,) = objects(plan, "grove-request")
    template = item["spec"]["template"]
    (clique,) = template["cliques"]
    groups = template.get("podCliqueScalingGroups", [])
    count = clique["spec"]["replicas"]
    for group in groups:
        assert group["cliqueNames"] == [clique["name"]]
        assert group["minAvailable"] == group["replicas"]
        count *= group["replicas"]
    assert count == len(plan.nodes)
    packed = [
        row["topologyConstraint"]
        for row in (template, *groups)
        if "topologyConstraint" in row
    ]
    assert len({row["topologyName"] for row in packed}) <= 1
    tiers = [row["pack"]["required"].split()[-1].rstrip(">") for row in packed]
    order = list(plan.topology["tiers"])
    assert tiers == sorted(set(tiers), key=order.index, reverse=True)


@pytest.mark.parametrize(
    "name", ["x\ntouch pwned", "a b", '"', "<script>", "é\x1b[31m"]
)
@pytest.mark.parametrize(
    "format",
    ["slurm-request", "kueue-request", "kai-request", "volcano-request", "nccl"],
)
def test_names_of_tiers_are_quoted(name, format):
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
