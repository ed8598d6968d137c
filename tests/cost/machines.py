"""Small regular machines, given tier by tier, and a job to lie on them."""

import numpy as np

from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.topology.build import Nodes, build
from placer.topology.model import Tier

# A job of 32 ranks for them.
TOY = Job(
    "toy",
    Parallelism(tp=2, cp=2, pp=2, dp=4, vp=2, order=("tp", "cp", "ep", "pp", "dp")),
    Model("toy", layers=8, hidden=512, ffn=1024, heads=8, kv_heads=4, vocab=1000),
    sequence=2048,
    micro_batches=4,
    compute=Compute(micro_batch_time=1e-3, fixed_time=2e-3),
)


def tier(name, bandwidth, latency=0.0, *, scale_up=False, oversubscription=1.0):
    """A tier at full efficiency."""
    return Tier(name, bandwidth, latency, scale_up, oversubscription, 1.0, 1.0)


def machine(counts, tiers, factor=None):
    """GPUs of a node, nodes of a domain, and so on outwards; one tier a count."""
    num_nodes = int(np.prod(counts[1:], dtype=np.int64))
    domains, width = [], 1
    for count in (1, *counts[1:]):
        width *= count
        domains.append(np.arange(num_nodes) // width)
    names = tuple(
        tuple(f"{t.name}{d}" for d in range(int(row.max()) + 1))
        for t, row in zip(tiers, domains, strict=True)
    )
    gpus = np.full(num_nodes, counts[0])
    share = np.ones(num_nodes) if factor is None else factor
    return build("grid", tiers, Nodes(np.array(domains), names, gpus, share))


def racks(num_racks=8, oversubscription=1.0, *, gpus=4):
    """Racks of GPUs: NVLink 900 GB/s and 0.5 us inside, 100 GB/s and 3 us between."""
    return machine(
        [gpus, num_racks],
        [
            tier("rack", 900e9, 0.5e-6, scale_up=True),
            tier("cluster", 100e9, 3e-6, oversubscription=oversubscription),
        ],
    )


def swapped(*pairs, ranks=32):
    """Rank r on GPU r but for some pairs."""
    gpus = np.arange(ranks)
    for first, second in pairs:
        gpus[[first, second]] = gpus[[second, first]]
    return gpus
