"""What one group costs: worked out by hand, and adding up to the score."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.explain.group_cost import GroupCosts
from placer.explain.score import score_with
from placer.job.model import Job
from placer.placement.placement import Placement
from tests.cost.random_cases import random_case
from tests.cost.two_racks import JOB, two_racks
from tests.marks import slow

SLAB = 1024 * 512 * 2  # bytes: tokens x width x bytes an element
MESSAGE = SLAB / 2  # a rank's slice
SEEDS = [*range(2), *slow(range(2, 22))]


def costs(job=JOB, factor=None, gpus=None):
    at = np.arange(8) if gpus is None else gpus
    return GroupCosts(StepModel(two_racks(factor), job).step(at), at)


def test_pipeline_lane():
    """A lane over two nodes of a rack: its message, and its share of both uplinks.

    Both lanes of a replica leave node 0 for node 1: half of the link's bytes each.
    """
    found = costs().facts("pp", 1, 1)
    assert found["ranks"] == [1, 3]
    assert found["common_tier"] == "rack"
    # Two messages share an uplink of 2 x 50 GB/s.
    assert found["seconds"] == pytest.approx(MESSAGE / 50e9 + 2e-6)
    # One message a micro-batch forward, and one back.
    assert found["bytes_by_tier"] == {"rack": pytest.approx(2 * 4 * MESSAGE)}
    (up, down) = sorted(found["links"], key=lambda link: link["direction"] == "down")
    for link in (up, down):
        assert (link["tier"], link["domain"]) == ("rack", "node0")
        assert link["bandwidth"] == 2 * 50e9
        assert link["bytes"] == pytest.approx(4 * MESSAGE)
    # No virtual stages: the last stage sends nothing back to the first but gradients.
    assert found["neighbours"] == {"next": [{"rank": 3, "tier": "rack"}]}
    assert costs().facts("pp", 1, 3)["neighbours"] == {
        "previous": [{"rank": 1, "tier": "rack"}]
    }
    assert found["hop_cost"] == 3.0 * 8.0


def test_job_of_weights_alone():
    """Without a model a group has its place and its hop cost, and no seconds."""
    job = Job("toy", JOB.parallelism, weights=JOB.weights)
    found = costs(job).facts("dp", 2, 2)
    assert found["ranks"] == [2, 6]
    assert found["hop_cost"] == 20.0
    assert "seconds" not in found
    assert set(costs(job).axes) == {"tp", "pp", "dp"}


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_add_up_to_the_score(seed):
    """Bytes of all groups are the score's, and every link's shares sum to one."""
    case = random_case(seed)
    # The all-reduce between first and last stage is of no group.
    model = case.job.model and replace(case.job.model, tied_embeddings=False)
    case = replace(case, job=replace(case.job, model=model))
    step = StepModel(case.topology, case.job).step(case.gpu_of_rank)
    found = GroupCosts(step, case.gpu_of_rank)
    score = score_with(found.model, Placement(case.gpu_of_rank))
    sent = {}
    shares = Counter()
    for axis, groups in found.axes.items():
        of_axis = axis if axis in score["traffic_bytes"] else "dp"
        for group in range(len(groups)):
            facts = found.facts(axis, group)
            sent.setdefault(of_axis, Counter()).update(facts.get("bytes_by_tier", {}))
            for link in facts.get("links", ()):
                key = (link["tier"], link["domain"], link["direction"])
                shares[key] += link["share"]
            if "exposed_s" in facts:
                assert facts["exposed_s"] == score["exposed_s"][of_axis]
    for axis, by_tier in score["traffic_bytes"].items():
        assert sent.get(axis, {}) == pytest.approx(by_tier)
    assert dict(shares) == pytest.approx(dict.fromkeys(shares, 1.0))
    for link in score["hottest_links"]:
        assert (link["tier"], link["domain"], link["direction"]) in shares


@pytest.mark.parametrize("seed", SEEDS)
def test_the_worst_group_of_a_score(seed):
    """It is of the axis that is exposed longest, and none of that axis is slower."""
    case = random_case(seed)
    step = StepModel(case.topology, case.job).step(case.gpu_of_rank)
    found = GroupCosts(step, case.gpu_of_rank)
    score = score_with(step.model, Placement(case.gpu_of_rank))
    exposed = score["exposed_s"]
    worst = score.get("worst_group")
    if worst is None:
        assert max(exposed.values(), default=0.0) <= 1e-9 * score["step_time_s"]
        return
    assert worst["exposed_s"] == max(exposed[a] for a in found.axes if a in exposed)
    facts = [
        found.facts(worst["axis"], group)
        for group, ranks in enumerate(found.axes[worst["axis"]])
        if len(ranks) > 1
    ]
    assert worst["seconds"] == max(entry["seconds"] for entry in facts)
    (named,) = (entry for entry in facts if entry["group"] == worst["group"])
    assert named["seconds"] == worst["seconds"]
    assert named["ranks"][0] == worst["rank"]
    assert len(named["ranks"]) == worst["ranks"]
    assert len(named["members"]) == worst["domains"]
    for key in ("common_tier", "operation", "groups", "as_slow", "exposed_s"):
        assert named[key] == worst[key]
