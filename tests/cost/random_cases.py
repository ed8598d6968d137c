"""Random machines, jobs and placements, small enough for plain loops."""

from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

import numpy as np

from placer.job.adapters import Adapters
from placer.job.axes import Parallelism, pipeline_groups_agree
from placer.job.memory import KERNELS, METHODS, MODULES, PRECISIONS, RECOMPUTE, Memory
from placer.job.model import Collectives, Compute, Job
from placer.job.models import Model, total_parameters
from placer.job.parallel import (
    ContextParallel,
    DataParallel,
    ElementBytes,
    EndStages,
    ExpertParallel,
    Overlap,
    TensorParallel,
)
from placer.job.traffic import COLLECTIVES, Group
from placer.topology.build import Nodes, build
from placer.topology.links import Link
from placer.topology.model import Tier, Topology

MOST_RANKS = 64


@dataclass(frozen=True, eq=False)
class Case:
    """A machine, a job and where its ranks sit."""

    topology: Topology
    job: Job
    gpu_of_rank: np.ndarray


def random_case(seed, *, with_model=False):
    """The case of a seed; one job in ten has no model unless it must."""
    draw = np.random.default_rng(seed)
    job = random_job(draw, has_model=with_model or draw.random() < 0.9)
    topology = random_topology(draw, job.world_size)
    return Case(topology, job, random_placement(draw, topology, job.world_size))


def random_placement(draw, topology, ranks):
    """GPU of each rank: filled in order, shuffled, or in between."""
    gpus = np.arange(topology.num_gpus)
    style = draw.integers(4)
    if style == 0:
        draw.shuffle(gpus)
    elif style == 1:
        gpus = gpus[draw.integers(topology.num_gpus - ranks + 1) :]
    elif style == 2:
        for _ in range(3):
            i, j = draw.integers(topology.num_gpus, size=2)
            gpus[[i, j]] = gpus[[j, i]]
    return gpus[:ranks]


def random_topology(draw, at_least):
    """A machine of 1 to 4 tiers with at least so many GPUs."""
    num_tiers = int(draw.integers(1, 5))
    scale_up = int(draw.integers(0, num_tiers + 1))
    gpus = []
    while sum(gpus) < at_least:
        gpus.append(int(draw.integers(1, 9)))
        if num_tiers == 1:
            gpus = [at_least + int(draw.integers(3))]
    domains = [np.arange(len(gpus))]
    for t in range(1, num_tiers):
        below = int(domains[-1].max()) + 1
        parent = np.sort(draw.integers(0, max(1, below // 2), size=below))
        if t == num_tiers - 1:
            parent = np.zeros(below, dtype=np.int64)
        parent = np.unique(parent, return_inverse=True)[1]
        domains.append(parent[domains[-1]])
    tiers = tuple(_tier(draw, t, scale_up) for t in range(num_tiers))
    names = tuple(
        tuple(f"t{t}d{d}" for d in range(int(row.max()) + 1))
        for t, row in enumerate(domains)
    )
    factor = np.where(draw.random(len(gpus)) < 0.2, draw.uniform(0.3, 1, len(gpus)), 1)
    nodes = Nodes(np.array(domains), names, np.array(gpus), factor)
    return build("random", tiers, nodes)


def _tier(draw, t, scale_up):
    fast = t < scale_up
    return Tier(
        f"tier{t}",
        bandwidth=float(draw.choice([450e9, 900e9] if fast else [10e9, 50e9, 100e9])),
        latency=float(draw.choice([0.0, 1e-6, 5e-6, 20e-6])),
        scale_up=fast,
        oversubscription=float(draw.choice([1.0, 1.0, 2.0, 7.0, 0.5])),
        efficiency=float(draw.choice([1.0, 0.8])),
        distance=1.0,
        rails=t >= scale_up > 0 and bool(draw.random() < 0.3),
    )


def random_job(draw, *, has_model):
    """A job over all axes, with custom groups."""
    axes = _random_axes(draw)
    by_rate = has_model and draw.random() < 0.3
    chunks = axes.pp * axes.vp
    model = _random_model(draw, axes) if has_model else None
    return Job(
        "random",
        axes,
        model=model,
        sequence=int(draw.choice([1024, 4096])),
        micro_batch=int(draw.integers(1, 3)),
        micro_batches=int(draw.integers(1, draw.choice([3, 3, 3, 12]) * axes.pp + 2)),
        bytes=ElementBytes(*(float(x) for x in draw.choice([1.0, 2.0, 4.0], 3))),
        data_parallel=_random_sync(draw, axes),
        overlap=Overlap(*(bool(x) for x in draw.integers(0, 2, 4))),
        compute=_random_compute(draw, by_rate),
        groups=tuple(
            _random_group(draw, i, axes.world_size) for i in range(draw.integers(0, 3))
        ),
        collectives=Collectives(
            str(draw.choice(["auto", "auto", "ring", "tree", "nvls"]))
        ),
        tensor_parallel=TensorParallel(bool(draw.random() < 0.7)),
        context_parallel=ContextParallel(
            str(draw.choice(["p2p", "all_gather", "a2a"]))
        ),
        expert_parallel=ExpertParallel(
            float(draw.choice([1.0, 1.3])),
            str(draw.choice(["flat", "deduplicated"])),
            float(_aside(draw).choice([0.0, 0.12, 0.3])),
        ),
        stages=_random_ends(draw, model.layers, chunks) if model else EndStages(),
        memory=_random_memory(_aside(draw)),
        host_time=(None, 0.0, 1e-5, 1e-3)[int(_aside(draw).integers(4))],
    )


def with_adapters(case, seed):
    """The case with adapters of a rank, or of so many parameters in all."""
    draw, model = np.random.default_rng([seed, 2]), case.job.model
    if model is None:
        return case
    experts = not model.experts or bool(draw.random() < 0.6)
    adapters = Adapters(rank=int(draw.choice([1, 8, 256])), experts=experts)
    if draw.random() < 0.5:
        many = int(draw.integers(1, total_parameters(model)))
        adapters = Adapters(parameters=many, experts=experts)
    return replace(case, job=replace(case.job, adapters=adapters))


def with_other_work(job, seed):
    """The job with other work beside its products, and adapters alone at times."""
    draw, model = np.random.default_rng([seed, 4]), job.model
    host_time = (None, 0.0, 1e-5, 1e-3)[int(draw.integers(4))]
    case = replace(job, memory=_random_memory(draw), host_time=host_time)
    beside = _random_compute(draw, by_rate=False)
    compute = replace(beside, micro_batch_time=job.compute.micro_batch_time)
    sync = replace(job.data_parallel, sm_share=float(draw.choice([0.0, 0.2])))
    taken = float(draw.choice([0.0, 0.12]))
    dispatch = replace(job.expert_parallel, sm_share=taken)
    case = replace(case, compute=compute, data_parallel=sync, expert_parallel=dispatch)
    if model is not None and draw.random() < 0.3:
        case = replace(case, adapters=Adapters(rank=8, experts=not model.experts))
    return case


def _random_compute(draw, by_rate):
    """How long a micro-batch takes, and what its GPUs reach at times."""
    micro_batch_s = 0.0 if by_rate else float(draw.uniform(1e-3, 0.1))
    fixed_s = float(draw.choice([0.0, 0.2]))
    attention_rate = float(draw.choice([0.83, 0.5, 1.0]))
    beside = _aside(draw)
    return Compute(
        micro_batch_s,
        400.0 if by_rate else 0.0,
        fixed_s,
        attention_rate=attention_rate,
        memory_bandwidth=float(beside.choice([0.0, 1e12, 8e12])),
        peak_tflops=float(beside.choice([0.0, 1e3, 1e5])),
        output_tflops=float(beside.choice([0.0, 1e2, 1e3])),
    )


def _aside(draw):
    """Draws of their own: what comes after them is as without."""
    return np.random.default_rng(draw.bit_generator.state["state"]["state"] % 2**32)


def _random_memory(draw):
    """What backward computes again, and what passes memory beside products."""
    return Memory(
        str(draw.choice(["none", *RECOMPUTE])),
        tuple(str(m) for m in draw.permutation(MODULES)[: draw.integers(1, 4)]),
        str(draw.choice(METHODS)),
        int(draw.integers(1, 3)),
        norm=str(draw.choice(KERNELS)),
        attention=str(draw.choice(KERNELS)),
        dropout=bool(draw.random() < 0.3),
        gemm=str(draw.choice(PRECISIONS)),
        gradient_bytes=(None, 2.0, 4.0)[int(draw.integers(3))],
    )


def _random_ends(draw, layers, chunks):
    """Ends that count for at most one chunk each."""
    while draw.random() < 0.5:
        embedding, loss = (float(x) for x in draw.choice([0.0, 0.5, 1.0, 2.0, 3.0], 2))
        chunk = (layers + embedding + loss) / chunks
        if chunks == 1 or max(embedding, loss) <= chunk:
            return EndStages(embedding, loss)
    return EndStages()


def _random_axes(draw):
    with_experts = draw.random() < 0.5
    while True:
        tp, cp, pp, dp = (int(x) for x in draw.choice([1, 1, 2, 2, 3, 4, 5, 8], 4))
        if prod((tp, cp, pp, dp)) > MOST_RANKS:
            continue
        ep, etp = 1, tp
        if with_experts:
            ep, etp = (int(x) for x in draw.choice([1, 2, 3, 4], 2))
        if (tp * cp * dp) % (ep * etp):
            continue
        order = tuple(str(a) for a in draw.permutation(["tp", "cp", "ep", "pp", "dp"]))
        vp = int(draw.choice([1, 1, 2, 3]))
        axes = Parallelism(tp, cp, ep, pp, dp, vp, etp, order)
        if pp == 1 or pipeline_groups_agree(axes):
            return axes


def _random_model(draw, axes):
    layers = axes.pp * axes.vp * int(draw.integers(1, 3))
    heads = 4 * int(draw.integers(1, 5))
    experts = axes.ep * int(draw.integers(1, 4))
    if axes.ep == 1 and draw.random() < 0.5:
        experts = 0
    return Model(
        "random",
        layers=layers,
        hidden=128 * heads,
        ffn=int(draw.choice([1024, 4096])),
        heads=heads,
        kv_heads=heads // int(draw.choice([1, 2, 4])),
        vocab=32_000,
        gated=bool(draw.integers(2)),
        experts=experts,
        top_k=int(draw.integers(1, experts + 1)) if experts else 0,
        tied_embeddings=bool(draw.random() < 0.3),
        shared_experts=int(draw.integers(2)) if experts else 0,
        expert_ffn=512 if experts else 0,
        moe_layers=int(draw.integers(1, layers + 1)) if experts else 0,
        attention_parameters=int(draw.choice([0, 0, 1_000_000])),
        head_dim=int(draw.choice([0, 0, 80])),
        kv_lora_rank=int(draw.choice([0, 0, 512])),
        qk_head_dim=128,
        rope_head_dim=int(_aside(draw).choice([0, 64])),
        v_head_dim=96,
        vocab_multiple=int(draw.choice([0, 0, 1, 128])),
    )


def _random_sync(draw, axes):
    sharding = str(draw.choice(["ddp", "zero1", "zero2", "zero3", "hsdp"]))
    members = axes.dp * axes.cp
    sizes = [n for n in range(1, members + 1) if members % n == 0]
    return DataParallel(
        sharding,
        bucket_parameters=int(draw.choice([100_000, 40_000_000])),
        overlap_reduce=bool(draw.random() < 0.7),
        overlap_gather=bool(draw.random() < 0.7),
        sync_every=int(draw.choice([1, 1, 1, 10])),
        shard_size=int(draw.choice(sizes)) if sharding == "hsdp" else 0,
        keep_parameters=sharding in ("zero3", "hsdp") and bool(draw.random() < 0.4),
        optimizer_instances=int(draw.choice(sizes))
        if sharding in ("zero1", "zero2") and draw.random() < 0.4
        else 1,
    )


def _random_group(draw, index, world_size):
    ranks = draw.permutation(world_size)
    cuts = np.sort(draw.integers(1, world_size + 1, size=draw.integers(0, 4)))
    parts = [part for part in np.split(ranks, cuts) if len(part)]
    if draw.random() < 0.5:
        size = max(1, world_size // int(draw.integers(1, 4)))
        parts = [ranks[i : i + size] for i in range(0, world_size - size + 1, size)]
    return Group(
        f"group{index}",
        collective=str(draw.choice(COLLECTIVES)),
        size_bytes=float(draw.uniform(0, 1e8)),
        per_step=float(draw.choice([1.0, 3.0, 0.5])),
        overlap=bool(draw.integers(2)),
        ranks=tuple(tuple(part.tolist()) for part in parts),
    )


def unequal(topology, seed):
    """The machine with links between some of its domains, and hosts of other speeds."""
    draw = np.random.default_rng([seed, 1])
    links = []
    for t, tier in enumerate(topology.tiers[1:], start=1):
        names, inside = topology.domain_names[t - 1], topology.tiers[t - 1].name
        parent = np.zeros(len(names), dtype=np.int64)
        parent[topology.domain_of_node[t - 1]] = topology.domain_of_node[t]
        for one, other in combinations(range(len(names)), 2):
            if tier.scale_up or parent[one] != parent[other] or draw.random() < 0.3:
                continue
            ends = (other, one) if draw.random() < 0.5 else (one, other)
            more = float(draw.choice([0.0, 0.0, 1e-5, 1e-3]))
            links.append(
                Link(
                    inside,
                    (names[ends[0]], names[ends[1]]),
                    float(draw.choice([1e9, 5e9, 20e9, 50e9])),
                    tier.latency + more,
                )
            )
    speed = draw.choice([1.0, 1.0, 0.5, 0.8], size=topology.num_nodes)
    return replace(topology, links=tuple(links), compute_factor=speed)
