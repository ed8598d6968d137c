"""Eight ranks on two racks of two nodes of two GPUs, to be worked out by hand."""

from dataclasses import replace

from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from tests.cost.machines import machine, tier

JOB = Job(
    "toy",
    Parallelism(tp=2, pp=2, dp=2, order=("tp", "cp", "ep", "pp", "dp")),
    Model("toy", layers=4, hidden=512, ffn=1024, heads=8, kv_heads=4, vocab=1000),
    sequence=1024,
    micro_batches=4,
    compute=Compute(micro_batch_time=1e-3),
    weights={"tp": 10.0, "pp": 3.0, "dp": 1.0},
)


def two_racks(factor=None):
    """The machine; ``factor`` is the share of its bandwidth that each node reaches."""
    tiers = [
        tier("node", 400e9, 1e-6, scale_up=True),
        replace(tier("rack", 50e9, 2e-6), distance=8.0),
        replace(tier("cluster", 25e9, 4e-6, oversubscription=2), distance=20.0),
    ]
    return machine([2, 2, 2], tiers, factor)
