"""A previous placement on the machine as it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.placement.previous import Previous
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]


def repaired(topology: Topology, previous: Previous) -> IntArray | None:
    """The previous placement, the ranks of lost nodes on unused ones; shape (R,).

    The ranks of a lost node go to the nearest unused node that can hold them, the
    smallest of equally near ones. None where there is none, or where ranks are new.
    """
    if previous.is_new.any():
        return None
    gpu_of_rank = previous.gpu_of_rank.copy()
    unused = np.ones(topology.num_nodes, dtype=bool)
    unused[topology.node_of_gpu[gpu_of_rank[gpu_of_rank >= 0]]] = False
    for lost in previous.lost:
        spare = np.flatnonzero(unused & (topology.gpus_of_node >= len(lost.ranks)))
        if not spare.size:
            return None
        home = np.array(lost.domains)[:, None]
        tiers_apart = (topology.domain_of_node[:, spare] != home).sum(axis=0)
        nearest = np.lexsort((topology.gpus_of_node[spare], tiers_apart))[0]
        node = int(spare[nearest])
        unused[node] = False
        first = topology.first_gpu_of_node[node]
        gpu_of_rank[lost.ranks] = first + np.arange(len(lost.ranks))
    return gpu_of_rank
