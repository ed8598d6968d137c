"""The GPU of a machine that does not say enough of it."""

from __future__ import annotations

from placer.topology.gpu_kinds import Gpu, hosts_of_gpu, kind_of_gpu, usual_gpu
from placer.topology.model import Topology
from placer.topology.read import read_topology


def usual_gpu_of(machine: Topology) -> tuple[Gpu, str]:
    """The GPU that a machine names, or the usual one of such hosts; how to call it."""
    if kind := kind_of_gpu(machine.gpu.name):
        return read_topology(hosts_of_gpu(kind)).gpu, kind
    size = int(machine.gpus_of_node.max())
    kind, _ = usual_gpu(size, trays=machine.scale_up_tier > 0)
    return read_topology(hosts_of_gpu(kind)).gpu, f"an {kind}, the usual GPU"
