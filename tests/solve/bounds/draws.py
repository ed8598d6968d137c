"""Tiny machines and jobs of which some bound has much to say."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np

from placer.job.axes import Parallelism
from placer.job.model import Compute, ExpertParallel, Job
from placer.job.parallel import DataParallel, EndStages, Overlap
from placer.job.traffic import RankTraffic
from placer.topology.model import Tier
from tests.cost.random_cases import unequal
from tests.solve.oracle import allowed_placements
from tests.solve.random_cases import machine_of, random_case, random_model

LAUNCHERS = ("free", "free", "node-contiguous")
ORDER = ("tp", "cp", "ep", "dp", "pp")
LISTED = 5_000  # ways to seat a free launch that are all looked at
MOST = 150  # placements of one case that are priced


def behind_nics(rng, gpus, tiers):
    """NVLink nodes behind one or two tiers, the uplinks of which may be thin."""
    slow, across = rng.choice((50e9, 10e9)), rng.choice((1e-6, 5e-6, 2e-4))
    outer = [
        Tier(name, slow, across, False, float(rng.choice((1, 1, 2, 4, 8))), 1.0, 9.0)
        for name in ("rack", "cluster")[-tiers:]
    ]
    rows = [[0, *range(len(gpus) - 1)], [0] * len(gpus)][-tiers:]
    node = Tier("node", 400e9, 1e-6, True, 1.0, 1.0, 1.0)
    return machine_of([*gpus], rows, [node, *outer])


def training(rng, axes, **more):
    """A job whose work is short beside what it sends."""
    sharding = rng.choice(("zero1", "zero1", "ddp", "zero3", "hsdp"))
    sharding = "zero1" if axes.ep > 1 and sharding == "hsdp" else sharding
    shards = [s for s in (1, 2, 3, 4) if not axes.dp * axes.cp % s]
    ends = rng.choice((EndStages(), EndStages(1, 1), EndStages(0.5, 0)))
    job = Job(
        name="drawn",
        parallelism=axes,
        model=random_model(rng, axes),
        sequence=rng.choice((512, 4096)),
        micro_batches=axes.pp * rng.choice((1, 2, 4)),
        data_parallel=DataParallel(
            sharding=sharding,
            bucket_parameters=rng.choice((10**5, 10**7)),
            overlap_reduce=rng.random() < 0.7,
            overlap_gather=rng.random() < 0.7,
            shard_size=rng.choice(shards) if sharding == "hsdp" else 0,
        ),
        overlap=Overlap(*(rng.random() < 0.4 for _ in range(4))),
        compute=Compute(micro_batch_time=rng.choice((1e-5, 1e-4, 1e-3))),
        stages=ends if axes.pp * axes.vp > 1 else EndStages(),
        launcher=rng.choice(LAUNCHERS),
    )
    return replace(job, **more)


def pipelines(rng):
    """Pipelines that cannot all stay inside a node."""
    tp, cp, pp, dp, *gpus = rng.choice(
        (
            (1, 1, 2, 3, 3, 3),
            (1, 1, 3, 2, 2, 2, 2),
            (1, 1, 3, 2, 4, 2, 1),
            (2, 1, 2, 2, 5, 4),
            (1, 2, 2, 2, 4, 3, 2),
            (1, 1, 4, 2, 4, 4),
            (1, 1, 2, 4, 4, 4),
        )
    )
    require = {"tp": "node", "cp": "node"} if rng.random() < 0.5 else {}
    axes = Parallelism(tp, cp, 1, pp, dp, rng.choice((1, 2, 2)), tp)
    machine = behind_nics(rng, tuple(gpus), rng.choice((1, 2)))
    return machine, training(rng, axes, require=require), "time"


def experts(rng):
    """Few domains hold whole groups of experts."""
    tp, ep, pp, dp, vp, *gpus = rng.choice(
        (
            (1, 4, 1, 8, 1, 5, 4),
            (1, 3, 2, 3, 1, 4, 2, 1),
            (1, 3, 2, 3, 2, 2, 2, 2),
            (1, 4, 2, 4, 2, 5, 3),
            (1, 6, 1, 6, 1, 4, 3),
            (1, 2, 4, 2, 2, 5, 3),
            (1, 2, 2, 2, 1, 3, 1, 1),
            (2, 4, 1, 4, 1, 5, 3),
            (2, 2, 1, 4, 1, 6, 2),
            (2, 2, 2, 2, 1, 6, 3),
        )
    )
    axes = Parallelism(tp, 1, ep, pp, dp, vp, tp if ep < 3 else 1, ORDER)
    require = {"tp": "node"} if tp > 1 and rng.random() < 0.7 else {}
    dispatch = ExpertParallel(1.0, rng.choice(("flat", "deduplicated")))
    job = training(rng, axes, require=require, expert_parallel=dispatch)
    return behind_nics(rng, tuple(gpus), 2), job, "time"


def traffic(rng):
    """One side to the other as between roles, a ring, pairs, or any flows."""
    gpus = tuple(rng.randint(1, 3) for _ in range(rng.randint(2, 4)))
    ranks = min(sum(gpus), rng.randint(3, 6))
    if ranks < 3:
        return traffic(rng)
    who = rng.sample(range(ranks), ranks)
    cut = rng.randint(1, ranks - 1)
    found = rng.choice(
        (
            [*product(who[:cut], who[cut:])],
            [*zip(who, who[1:] + who[:1], strict=True)],
            [*zip(who[: ranks // 2], who[ranks // 2 :], strict=False)],
            [*permutations(who, 2)],
        )
    )
    chosen = sorted(rng.sample(found, rng.randint(-(-len(found) // 2), len(found))))
    sizes = [1e8] if rng.random() < 0.5 else [1e5, 3e7, 1e8, 2.5e8]
    sent = np.array([rng.choice(sizes) for _ in chosen])
    job = Job("own", Parallelism(dp=ranks), launcher=rng.choice(LAUNCHERS))
    job = replace(job, traffic=RankTraffic(*np.array(chosen).T, sent))
    machine = behind_nics(rng, gpus, rng.choice((1, 2)))
    factors = np.array([rng.choice((1, 1, 0.5)) for _ in gpus])
    return replace(machine, bandwidth_factor=factors), job, "time"


def some_placements(machine, job, rng):
    """All that may be, or some where there are too many."""
    if job.launcher != "free" or machine.num_nodes**job.world_size <= LISTED:
        return allowed_placements(machine, job)
    seats = np.repeat(np.arange(machine.num_nodes), machine.gpus_of_node).tolist()
    drawn = [tuple(rng.sample(seats, job.world_size)) for _ in range(MOST)]
    return allowed_placements(machine, job, drawn)


def small(objective):
    """Of every sort, for one objective, where there is room."""

    def draw(rng):
        while True:
            machine, job = random_case(rng.randrange(10**6), objective)
            if job.world_size <= machine.num_gpus:
                return machine, job, objective

    return draw


def of_unequal(rng):
    """Links between domains, and hosts of several speeds."""
    machine, job, _ = small("time")(rng)
    return unequal(machine, rng.randrange(10**6)), job, "time"


def lines(rng):
    """Rings, cliques and pipelines on nodes and blocks that hold parts of them."""
    tp, cp, ep, pp, dp = rng.choice(
        (
            *((1, 2, 1, 1, 3), (1, 1, 1, 2, 3), (2, 1, 1, 1, 3), (1, 1, 1, 1, 6)),
            *((1, 1, 2, 2, 4), (1, 1, 3, 1, 6), (1, 1, 4, 1, 4), (1, 1, 2, 3, 2)),
            *((1, 1, 3, 2, 3), (1, 1, 2, 1, 6), (1, 1, 2, 4, 2), (2, 1, 2, 1, 4)),
        )
    )
    axes = Parallelism(tp=tp, cp=cp, ep=ep, pp=pp, dp=dp, etp=tp, order=ORDER)
    weights = {
        "tp": rng.choice((1, 3, 8, 0.5)),
        "cp": rng.choice((1, 3, 8, 0.5)),
        "ep": rng.choice((2, 8, 64)),
        "pp": rng.choice((0, 1, 3, 40, 64)),
        "dp": rng.choice((5, 20, 100)),
        "edp": rng.choice((0, 1, 4, 20)),
    }
    gpus = [rng.randint(1, 4) for _ in range(rng.choice((3, 4)))]
    gpus[0] += max(0, axes.world_size - sum(gpus))
    blocks = rng.choice(([0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 1, 2]))[: len(gpus)]
    near, far = rng.choice((0, 1)), rng.choice((1, 5, 9))
    tiers = [
        Tier(name, 1e9, 1e-6, name == "node", 1.0, 1.0, float(distance))
        for name, distance in (("node", near), ("block", far), ("cluster", 10))
    ]
    require = {"tp": "node"} if tp > 1 and rng.random() < 0.5 else {}
    job = Job("lines", axes, weights=weights, require=require, launcher="free")
    return machine_of(gpus, [blocks, [0] * len(gpus)], tiers), job, "hop-cost"


def kept(rng):
    """Lines of which those of an axis may not leave their node or block."""
    machine, job, objective = lines(rng)
    axes = job.parallelism
    axes = replace(axes, etp=1) if axes.ep > 1 else axes
    longer = [axis for axis in ORDER if axes.size(axis) > 1]
    require = {rng.choice(longer): rng.choice(("node", "block", "block"))}
    return machine, replace(job, parallelism=axes, require=require), objective


DRAWS = {
    "any, by time": small("time"),
    "any, by hops": small("hop-cost"),
    "pipelines": pipelines,
    "experts": experts,
    "unequal": of_unequal,
    "traffic": traffic,
    "lines": lines,
    "kept": kept,
}
