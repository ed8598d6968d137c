"""Small machines and jobs whose degrees can all be tried."""

from dataclasses import replace
from random import Random

import placer
from placer.job.axes import Parallelism
from placer.job.memory import Memory
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.job.parallel import Overlap, TensorParallel

GB = 1e9


def machine(text="rack:2 node:2 gpu:4", memory=80 * GB):
    """A machine of this text whose GPUs have so much memory."""
    topology = placer.read_topology(text)
    return replace(topology, gpu=replace(topology.gpu, memory=memory))


def model(random):
    """A small transformer, with experts now and then."""
    heads = random.choice([4, 8, 6])
    experts = random.choice([0, 0, 4, 8])
    layers = random.choice([4, 6, 8])
    return Model(
        "small",
        layers=layers,
        hidden=256 * heads,
        ffn=1024 * heads,
        heads=heads,
        kv_heads=random.choice([heads, heads // 2]),
        vocab=32_000,
        experts=experts,
        top_k=2 if experts else 0,
        expert_ffn=512 if experts else 0,
        moe_layers=layers if experts else 0,
    )


def job(random):
    """A job of a small model, with a rate."""
    beside = Random()  # leaves the draws after these as they are
    beside.setstate(random.getstate())
    losses = ["gathered", "parallel", "parallel"]
    return Job(
        "small",
        Parallelism(dp=1),
        model=model(random),
        sequence=random.choice([2048, 8192]),
        micro_batches=random.choice([4, 8, 12]),
        overlap=Overlap(*(random.random() < 0.5 for _ in range(4))),
        compute=Compute(
            tflops_per_gpu=random.choice([100.0, 400.0]),
            fixed_time=beside.choice([0.0, 0.02]),
            memory_bandwidth=beside.choice([0.0, 0.0, 2e12]),
            multiprocessors=beside.choice([0, 0, 108]),
            peak_tflops=beside.choice([0.0, 1000.0]),
            output_tflops=beside.choice([0.0, 200.0]),
        ),
        host_time=beside.choice([None, 0.0, 1e-4, 2e-3]),
        tensor_parallel=TensorParallel(loss=beside.choice(losses)),
        memory=Memory(norm=beside.choice(["fused", "unfused"])),
    )
