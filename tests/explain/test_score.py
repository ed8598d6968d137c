"""The score of a placement and the facts behind it: keys, sums, bytes by counting."""

import itertools
import json
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.explain.score import explain, score, score_with
from placer.job.model import Collectives, ExpertParallel
from placer.job.parallel import ContextParallel, DataParallel, EndStages, TensorParallel
from placer.placement.placement import Placement
from tests.cost.machines import TOY, machine, racks, swapped, tier
from tests.cost.random_cases import random_case
from tests.cost.reference.beside import layers_twice
from tests.cost.reference.groups import groups
from tests.cost.reference.machine import Machine

KEYS = {
    *("step_time_s", "compute_s", "bubble_s", "fixed_s", "exposed_s", "worst_group"),
    *("exposed_scale_out_s", "exposed_scale_out_share", "crossings", "traffic_bytes"),
    *("hottest_links", "critical_path"),
}
SEEDS = range(12)


def score_of(case):
    return score(case.topology, case.job, Placement(case.gpu_of_rank))


def test_keys_and_shapes():
    """Every key of the format is there, with plain JSON types."""
    result = score(racks(), TOY, Placement(np.arange(32)))
    share = result["exposed_scale_out_s"] / result["step_time_s"]
    assert result["exposed_scale_out_share"] == pytest.approx(share)
    assert set(result) == KEYS
    assert set(result["exposed_s"]) == {"tp", "cp", "ep", "pp", "dp"}
    tiers = {"rack", "cluster"}
    for key in ("crossings", "traffic_bytes"):
        for by_tier in result[key].values():
            assert set(by_tier) <= tiers
    assert all(
        isinstance(n, int) for c in result["crossings"].values() for n in c.values()
    )
    link = result["hottest_links"][0]
    assert set(link) == {"tier", "domain", "direction", "bytes", "busy_s"}
    busy = [entry["busy_s"] for entry in result["hottest_links"]]
    assert busy == sorted(busy, reverse=True)
    path = [entry["seconds"] for entry in result["critical_path"]]
    assert path == sorted(path, reverse=True)
    assert sum(path) == pytest.approx(result["step_time_s"])


@pytest.mark.parametrize("seed", SEEDS)
def test_crossings_by_counting(seed):
    """Crossings are what a loop over groups and domains counts."""
    case = random_case(seed)
    axes, expected = case.job.parallelism, {}
    for axis in ("tp", "cp", "ep", "pp", "dp", "etp", "edp"):
        rows = groups(axes, axis)
        if len(rows[0]) > 1 and (axes.ep > 1 or axis not in ("ep", "etp", "edp")):
            expected[axis] = crossings_of(case, rows)
    for group in case.job.groups:
        expected[group.name] = crossings_of(case, [list(r) for r in group.ranks])
    assert score_of(case)["crossings"] == expected


def crossings_of(case, rows):
    domain_of_gpu, found = case.topology.domain_of_gpu, Counter()
    for row in rows:
        inside = [len({*d[case.gpu_of_rank[row]]}) == 1 for d in domain_of_gpu]
        found[case.topology.tiers[inside.index(True)].name] += 1
    return dict(found)


def plain(job, **changes):
    """The job with rings, sequence parallelism, equal chunks and no vocabulary."""
    return replace(
        job,
        model=replace(job.model, vocab=0, tied_embeddings=False),
        collectives=Collectives("ring"),
        tensor_parallel=TensorParallel(),
        context_parallel=ContextParallel(),
        expert_parallel=ExpertParallel(),
        stages=EndStages(),
        **changes,
    )


# How gradients are reduced and parameters gathered, and how often in a step of seven
# micro-batches: ZeRO-3 gathers twice and reduces once in each.
SYNCS = [
    (DataParallel("ddp"), 2, 0),
    (DataParallel("zero1", sync_every=3), 1 / 3, 1 / 3),
    (DataParallel("zero3"), 7, 14),
    (DataParallel("zero3", keep_parameters=True), 1, 1),
]


@pytest.mark.parametrize("seed", range(16))
def test_traffic_by_counting(seed):
    """Bytes by axis and tier are what loops over pairs of ranks and rings add up."""
    case = random_case(seed, with_model=True)
    sync, reductions, gathers = SYNCS[seed % len(SYNCS)]
    job = plain(case.job, data_parallel=sync, micro_batches=7)
    axes, width = job.parallelism, job.bytes
    case = replace(case, job=job)
    sizes = StepModel(case.topology, job).volumes
    runs = job.micro_batches * axes.vp
    twice = layers_twice(job)
    experts_twice = 1.0 if job.memory.recomputes("moe") else twice
    counted = Counted(case)
    for row in groups(axes, "tp"):
        share = (axes.tp - 1) / axes.tp * sizes.tp_slab
        times = runs * sizes.layers_per_chunk * (10 + 4 * twice)
        counted.add("tp", counted.ring(row), share * times)
    for row in groups(axes, "cp"):
        times = runs * sizes.layers_per_chunk * (3 + twice) * (axes.cp - 1)
        pairs = zip(row, row[1:] + row[:1], strict=True)
        counted.add("cp", pairs, sizes.cp_block * times)
    for row in groups(axes, "ep"):
        times = runs * sizes.moe_layers_per_chunk * (4 + 2 * experts_twice)
        pairs = [(a, b) for a in row for b in row if a != b]
        counted.add("ep", pairs, sizes.ep_buffer / axes.ep * times)
    for row in groups(axes, "pp"):
        message = sizes.pp_message * job.micro_batches
        for one, other in itertools.pairwise(row):
            counted.add("pp", [(one, other), (other, one)], message * axes.vp)
        ends = [(row[-1], row[0]), (row[0], row[-1])]
        counted.add("pp", ends, message * (axes.vp - 1))
    for axis, held in (("dp_cp", sizes.dense_chunk), ("edp", sizes.expert_chunk)):
        for row in groups(axes, axis):
            size = reductions * width.gradient + gathers * width.parameter_gather
            size *= held * axes.vp * (len(row) - 1) / len(row)
            counted.add("dp", counted.ring(row), size)
    found = score_of(case)["traffic_bytes"]
    for axis, expected in counted.by_tier.items():
        if expected and (axis == "dp" or axes.size(axis) > 1):
            assert found[axis] == pytest.approx(dict(expected), rel=1e-9), axis


class Counted:
    """Bytes by axis and tier, flow by flow."""

    def __init__(self, case):
        self.case = case
        self.machine = Machine(case.topology, free=False)
        self.by_tier = defaultdict(Counter)

    def ring(self, row):
        """Pairs of neighbours, island by island."""
        islands = {}
        for rank in row:
            island = self.machine.island(int(self.case.gpu_of_rank[rank]))
            islands.setdefault(island, []).append(rank)
        order = [rank for part in islands.values() for rank in part]
        return zip(order, order[1:] + order[:1], strict=True)

    def add(self, axis, pairs, size):
        tiers = self.case.topology.tiers
        for pair in pairs:
            one, other = (int(self.case.gpu_of_rank[rank]) for rank in pair)
            if size and one != other:
                self.by_tier[axis][tiers[self.machine.tier(one, other)].name] += size


# Blocks of two racks, each an NVLink domain of 8 GPUs in two nodes of 4.
HOSTS = machine(
    [4, 2, 2, 2],
    [
        tier("node", 900e9, 0.5e-6, scale_up=True),
        tier("rack", 900e9, 0.5e-6, scale_up=True),
        tier("block", 100e9, 3e-6),
        tier("cluster", 50e9, 5e-6),
    ],
)


def facts(gpus):
    return explain(StepModel(HOSTS, TOY), Placement(gpus))


def test_split_cp_pair():
    """One pair over two racks of a block is the worst; its facts say why.

    Ranks 1 and 9 change places: TP pair (0, 1) and CP pair (1, 3) are cut, and so are
    (8, 9) and (9, 11), which come later.
    """
    found = facts(swapped((1, 9)))
    cp = found["worst_groups"]["cp"]
    assert cp["worst"]["ranks"] == (1, 3)
    assert cp["worst"]["members"] == {"rack0": 1, "rack1": 1}
    assert cp["worst"]["domains"] == {"node": 2, "rack": 2, "block": 1, "cluster": 1}
    assert cp["worst"]["common_tier"] == "block"
    assert cp["worst"]["hops"] == {"node": 0, "rack": 0, "block": 2, "cluster": 0}
    assert cp["best"]["common_tier"] == "node"
    assert cp["why"] == ["common_tier", "members", "hops", "fullest_uplink"]
    assert found["worst_groups"]["tp"]["worst"]["ranks"] == (0, 1)
    # One pass: half a slab of 1,024 tokens x 512 x 2 bytes over one NIC of 100 GB/s.
    seconds = found["worst_groups"]["tp"]["worst"]["seconds"]
    assert seconds == pytest.approx(1024 * 512 * 2 / 2 / 100e9 + 3e-6)


@pytest.mark.parametrize("seed", range(15))
def test_shares_sum_to_one(seed):
    """Shares of the path, and of each link, sum to 1; savings sum to what is saved."""
    case = random_case(seed)
    model = StepModel(case.topology, case.job)
    found = explain(model, Placement(case.gpu_of_rank))
    if not found:
        assert model.step(case.gpu_of_rank).step_time_s == 0.0
        return
    total = sum(entry["share"] for entry in found["critical_path"])
    assert total == pytest.approx(1.0)
    for link in found["hottest_links"]:
        assert sum(link["share_by_axis"].values()) == pytest.approx(1.0)
    score = score_with(model, Placement(case.gpu_of_rank))
    free = found["free_scale_out"]
    assert free["saved_s"] == score["exposed_scale_out_s"]
    assert sum(free["saved_by_axis_s"].values()) == pytest.approx(
        free["saved_s"], abs=1e-12 * score["step_time_s"]
    )
    json.dumps(found, allow_nan=False)
