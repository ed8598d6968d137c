"""Random tiny machines and jobs of every sort."""

import random
from dataclasses import replace

import numpy as np

from placer.job.axes import Parallelism, pipeline_groups_agree
from placer.job.model import Collectives, Compute, ExpertParallel, Job
from placer.job.models import Model
from placer.job.parallel import (
    ContextParallel,
    DataParallel,
    EndStages,
    Overlap,
    TensorParallel,
)
from placer.job.traffic import COLLECTIVES, Group
from placer.topology.model import Tier, Topology

TIER_NAMES = ("node", "rack", "block", "cluster")
SIZES = (1, 1, 2, 2, 3, 4, 5, 6, 7, 8)


def machine_of(gpus, rows, tiers, factors=None):
    """A machine from each node's GPUs and its domain at each tier above the node."""
    rows, names = [list(range(len(gpus))), *rows], [tier.name for tier in tiers[1:]]
    return Topology(
        name="random",
        tiers=tuple(tiers),
        gpus_of_node=np.array(gpus, dtype=np.int64),
        bandwidth_factor=np.array(factors or [1.0] * len(gpus)),
        domain_of_node=np.array(rows, dtype=np.int64),
        domain_names=tuple(
            tuple(f"{name}{d}" for d in range(max(row) + 1))
            for name, row in zip(["n", *names], rows, strict=True)
        ),
    )


def random_tiers(rng, count):
    """Tiers that mostly slow down outwards, and sometimes do the opposite."""
    inner = rng.choice((200e9, 400e9, 50e9))
    bandwidth = [inner, *(rng.choice((inner, 50e9, 25e9, 10e9)) for _ in range(3))]
    latency = [rng.choice((1e-6, 2e-6, 5e-6, 1e-5, 0.0)) for _ in range(4)]
    distance = [float(rng.choice((1, 1, 2, 4, 9, 0.5))) for _ in range(4)]
    if rng.random() < 0.8:
        bandwidth.sort(reverse=True)
        distance.sort()
    if rng.random() < 0.7:
        latency.sort()
    up_to = rng.choice((0, 1, 1, 1, 2, 2, 4))
    names = (*TIER_NAMES[: count - 1], "cluster")
    return [
        Tier(
            name,
            bandwidth[t],
            latency[t],
            t < up_to,
            float(rng.choice((1, 1, 2, 4))) if t else 1.0,
            rng.choice((1.0, 1.0, 0.8)),
            distance[t],
        )
        for t, name in enumerate(names)
    ]


def random_machine(rng, ranks, most_nodes, node_sizes):
    """A machine of one to four tiers, mostly with room for ``ranks``."""
    if rng.random() < 0.06:
        return machine_of([ranks + rng.randint(0, 2)], [], random_tiers(rng, 1))
    gpus = []
    same = rng.choice(node_sizes) if rng.random() < 0.4 else 0
    while len(gpus) < most_nodes and (sum(gpus) < ranks or rng.random() < 0.4):
        gpus.append(same or rng.choice(node_sizes))
    tiers = rng.choice((2, 3, 3, 4))
    rows = []
    below = list(range(len(gpus)))
    for _ in range(tiers - 2):
        rows.append(_merged(rng, below))
        below = rows[-1]
    rows.append([0] * len(gpus))
    slow = rng.random() < 0.3
    factors = [rng.choice((1.0, 0.5, 0.9)) if slow else 1.0 for _ in gpus]
    return machine_of(gpus, rows, random_tiers(rng, tiers), factors)


def _merged(rng, below):
    """Domains of the next tier: those below, 1 to 3 each, at times interleaved."""
    count = max(below) + 1
    order = list(range(count))
    if rng.random() < 0.3:
        rng.shuffle(order)
    of_domain, here = {}, 0
    while order:
        for _ in range(min(rng.choice((1, 2, 2, 3)), len(order))):
            of_domain[order.pop(0)] = here
        here += 1
    first = {}
    return [first.setdefault(of_domain[domain], len(first)) for domain in below]


def random_axes(rng, world):
    """Axes of ``world`` ranks, with experts and virtual stages at times."""
    while True:
        tp, cp, pp = (rng.choice(SIZES) for _ in range(3))
        if world % (tp * cp * pp):
            continue
        order = ["tp", "cp", "ep", "pp", "dp"]
        rng.shuffle(order)
        dp = world // (tp * cp * pp)
        ep, etp = 1, tp
        if rng.random() < 0.4:
            stage = tp * cp * dp
            etp = rng.choice((1, tp))
            ep = rng.choice([e for e in range(1, stage + 1) if not stage % (e * etp)])
        vp = rng.choice((1, 2)) if pp > 1 else 1
        axes = Parallelism(tp, cp, ep, pp, dp, vp, etp, tuple(order))
        if pipeline_groups_agree(axes):
            return axes


def random_model(rng, axes):
    """A small transformer that the axes can cut."""
    experts = axes.ep * rng.choice((1, 2)) if axes.ep > 1 or axes.etp != axes.tp else 0
    return Model(
        name="random",
        layers=axes.pp * axes.vp * rng.choice((1, 2)),
        hidden=1024,
        ffn=rng.choice((1024, 4096)),
        heads=16,
        kv_heads=rng.choice((4, 16)),
        vocab=32000,
        tied_embeddings=rng.random() < 0.3,
        experts=experts,
        top_k=min(experts, 2),
        expert_ffn=1024 if experts else 0,
        moe_layers=axes.pp * axes.vp if experts else 0,
    )


def random_groups(rng, world):
    """One or two custom groups, of equal or unequal sizes."""
    found = []
    for name in ("embedding", "ring")[: rng.choice((1, 1, 2))]:
        ranks = list(range(world))
        rng.shuffle(ranks)
        rows = []
        while ranks:
            size = rng.choice((1, 2, 2, 3, 4))
            row, ranks = ranks[:size], ranks[size:]
            rows.append(tuple(row if rng.random() < 0.5 else sorted(row)))
        found.append(
            Group(
                name,
                rng.choice(COLLECTIVES),
                rng.choice((1e6, 64e6)),
                float(rng.choice((1, 3))),
                rng.random() < 0.3,
                tuple(rows[: rng.randint(1, len(rows))]),
            )
        )
    return tuple(found)


def random_job(rng, world, topology, objective):
    """A job of ``world`` ranks with random traffic, requirements and launcher."""
    axes = random_axes(rng, world)
    groups = random_groups(rng, world) if rng.random() < 0.25 else ()
    has_model = objective == "time" and (not groups or rng.random() < 0.5)
    weights = {
        axis: rng.choice((0.0, 1.0, 2.0, 7.0, 0.3, 40.0))
        for axis in ("tp", "cp", "pp", "dp", "ep", "edp")
        if rng.random() < 0.8
    }
    replicas = axes.dp * axes.cp
    sharding = rng.choice(("zero1", "zero2", "ddp", "zero3", "hsdp"))
    if sharding == "hsdp" and has_model and axes.ep > 1:
        sharding = "zero1"
    shard = rng.choice([s for s in range(1, replicas + 1) if not replicas % s])
    return Job(
        name="random",
        parallelism=axes,
        model=random_model(rng, axes) if has_model else None,
        sequence=rng.choice((512, 4096)),
        micro_batch=1,
        micro_batches=axes.pp * rng.choice((1, 2)),
        data_parallel=DataParallel(
            sharding=sharding,
            bucket_parameters=rng.choice((10**5, 10**7)),
            overlap_reduce=rng.random() < 0.7,
            overlap_gather=rng.random() < 0.7,
            sync_every=rng.choice((1, 1, 4)),
            shard_size=shard if sharding == "hsdp" else 0,
            optimizer_instances=replicas // shard
            if sharding == "zero2" and axes.ep == 1
            else 1,
            keep_parameters=sharding in ("zero3", "hsdp") and rng.random() < 0.5,
        ),
        overlap=Overlap(*(rng.random() < 0.5 for _ in range(4))),
        compute=Compute(
            micro_batch_time=rng.choice((1e-4, 1e-3, 1e-2)) if has_model else 0.0,
            fixed_time=rng.choice((0.0, 0.01)),
        ),
        require=_requirements(rng, topology, groups),
        launcher=rng.choice(("free", "node-contiguous")),
        groups=groups,
        weights=weights or {"dp": 1.0},
        **(_options(rng, axes) if has_model and rng.random() < 0.5 else {}),
    )


def _options(rng, axes):
    """How collectives, tensor, context and expert parallelism work; uneven stages."""
    ends = EndStages(*rng.choice(((0, 0), (1, 1), (0.5, 0), (0, 1))))
    return {
        "collectives": Collectives(
            rng.choice(("auto", "auto", "ring", "tree", "nvls"))
        ),
        "tensor_parallel": TensorParallel(rng.random() < 0.5),
        "context_parallel": ContextParallel(rng.choice(("p2p", "all_gather", "a2a"))),
        "expert_parallel": ExpertParallel(
            rng.choice((1.0, 1.5)), rng.choice(("flat", "deduplicated"))
        ),
        "stages": ends if axes.pp * axes.vp > 1 else EndStages(),
    }


def _requirements(rng, topology, groups):
    if rng.random() < 0.4:
        return {}
    tiers = [tier.name for tier in topology.tiers]
    names = ["tp", "cp", "pp", "dp", "ep", "etp", "edp"]
    names += [group.name for group in groups]
    chosen = rng.sample(names, k=rng.choice((1, 1, 2)))
    return {axis: rng.choice(tiers) for axis in chosen}


# (ranks, most nodes, GPUs of a node): all placements of one can be tried.
SMALL = ((3, 5, (1, 2, 3)), (4, 5, (1, 2, 4)), (5, 4, (1, 2, 3)), (6, 4, (1, 2, 3, 4)))
LARGE = ((6, 5, (1, 2, 3)), (7, 3, (2, 3, 4)), (8, 3, (2, 3, 4)), (8, 4, (2,)))
# For node-contiguous launches, where whole runs of ranks are placed.
RUNS = ((9, 3, (4, 6)), (12, 4, (4, 6)), (16, 4, (4, 8)), (16, 5, (4,)), (24, 3, (8,)))
SIZES_OF = {"small": SMALL, "large": LARGE, "runs": RUNS}


def random_case(seed, objective, sort="small"):
    """Machine and job number ``seed`` of a sort in `SIZES_OF`."""
    rng = random.Random(f"{seed} {objective} {sort}")
    world, most_nodes, node_sizes = rng.choice(SIZES_OF[sort])
    topology = random_machine(rng, world, most_nodes, node_sizes)
    job = random_job(rng, world, topology, objective)
    if sort == "runs":
        job = replace(job, launcher="node-contiguous")
    return topology, job
