"""The work of a restart, by hand on a tiny model and against plain loops."""

from dataclasses import replace
from math import gcd, lcm

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import InputError
from placer.cost.volumes import volumes
from placer.job.adapters import Adapters
from placer.job.axes import Parallelism
from placer.job.models import Model
from placer.job.parallel import DataParallel
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.report.diff import diff
from placer.report.diff_text import diff_text
from placer.report.restart import bytes_to_receive
from placer.testing.strategies import jobs, machines, placements, tiny

# A layer: 4 x 64 attention, 3 x 8 x 16 feed-forward, 2 x 8 norms; a vocabulary: 32 x 8.
MODEL = Model("tiny", layers=2, hidden=8, ffn=16, heads=2, kv_heads=2, vocab=32)
STAGE = 656 + 256
EXPERTS = replace(MODEL, experts=6, top_k=1, expert_ffn=4, moe_layers=2)


def plan_of_nodes(nodes):
    """`tiny` on these nodes in turn: node 2d + p has stage p of replica d."""
    topology, job = tiny()
    gpus = np.arange(16).reshape(8, 2)[nodes].ravel()
    axes = replace(job.parallelism, dp=len(nodes) // 2)
    return build_plan(topology, replace(job, parallelism=axes), Placement(gpus))


def job_with(sharding, shard_size=0):
    mode = DataParallel(sharding, shard_size=shard_size)
    return replace(tiny()[1], model=MODEL, data_parallel=mode)


SAME = list(range(8))
STAGES = [0, 6, 2, 3, 4, 5, 1, 7]


def test_adapters_have_the_optimizer():
    """Weights that are not trained move with their adapters, without an optimizer.

    Rank 2: 8 + 8 for each of four, 8 + 16 for each of three, 272 a layer and stage.
    """
    job = replace(job_with("zero1"), adapters=Adapters(rank=2))
    found = bytes_to_receive(plan_of_nodes(SAME), plan_of_nodes(STAGES), job)
    few = 2 * (4 * 16 + 3 * 24)
    assert found == pytest.approx(
        {"parameters": 2 * 2 * (STAGE + few), "optimizer": 2 * 12 * few / 4}
    )


def test_jobs_whose_state_is_not_known():
    """Without a model there is none; a job of other axes is refused with both sizes."""
    plan = plan_of_nodes(SAME)
    assert bytes_to_receive(plan, plan, tiny()[1]) is None
    job = replace(job_with("zero1"), parallelism=Parallelism(tp=4, dp=4, etp=2))
    with pytest.raises(InputError, match="tp 4 against 2, pp 1 against 2"):
        bytes_to_receive(plan, plan, job)


@st.composite
def changes(draw):
    """Two plans of one job, perhaps of another data parallel size, with experts."""
    job = draw(jobs())
    sharding = draw(st.sampled_from(["ddp", "zero1", "zero3", "hsdp"]))
    mode = DataParallel(sharding, shard_size=2 if sharding == "hsdp" else 0)
    job = replace(job, model=EXPERTS, data_parallel=mode, groups=(), require={})
    topology = draw(machines(job.world_size))
    axes = job.parallelism
    dp = draw(st.integers(1, axes.dp)) if axes.ep == axes.etp == 1 else axes.dp
    smaller = replace(job, parallelism=replace(axes, dp=dp))
    old, new = (
        build_plan(topology, one, draw(placements(topology, one.world_size)))
        for one in (job, smaller)
    )
    return old, new, job


def pieces(plan, job, cuts):
    """Small pieces of state by node, found rank by rank, with their bytes."""
    axes = plan.axes
    assert axes is not None
    at = {axis: values.tolist() for axis, values in axes.coordinates.items()}
    sizes = volumes(replace(job, parallelism=axes))
    dense = sizes.dense_parameters().sum(axis=1)
    expert = sizes.expert_parameters().sum(axis=1)
    found = {}
    for part, parameters, same in (
        ("dense", dense, ("tp", "pp")),
        ("expert", expert, ("etp", "ep", "pp")),
    ):
        for rank in range(plan.world_size):
            shard = tuple(at[axis][rank] for axis in same)
            group = [
                other
                for other in range(plan.world_size)
                if tuple(at[axis][other] for axis in same) == shard
            ]
            for kind, width in (("parameters", 2), ("optimizer", 12)):
                n = shares(job.data_parallel, kind, len(group), axes.dp * axes.cp)
                first = group.index(rank) % n * cuts // n
                size = parameters[at["pp"][rank]] * width / cuts
                for piece in range(first, first + cuts // n):
                    found[plan.host_of_rank[rank], part, kind, shard, piece] = size
    return found


def shares(mode, kind, members, dense):
    whole = mode.sharding == "ddp" or (mode.sharding, kind) == ("zero1", "parameters")
    if whole:
        return 1
    # Experts have as many copies as the rest, if they can.
    copies = dense // gcd(mode.shard_size, dense) if mode.shard_size else 1
    return members // gcd(copies, members)


@given(changes())
def test_against_small_pieces(change):
    """Nodes receive the pieces that a loop over all ranks finds new on them."""
    old, new, job = change
    cuts = lcm(*(plan.axes.size(a) for plan in (old, new) for a in ("dp", "cp", "edp")))
    cuts = lcm(cuts, *(plan.axes.dp * plan.axes.cp for plan in (old, new)))
    before, after = pieces(old, job, cuts), pieces(new, job, cuts)
    missing = {"parameters": 0.0, "optimizer": 0.0}
    for key in after.keys() - before.keys():
        missing[key[2]] += after[key]
    assert bytes_to_receive(old, new, job) == pytest.approx(missing, abs=1e-6)


def test_fewer_replicas():
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
