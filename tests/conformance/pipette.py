"""Pipette's machines and jobs: pipelines over racks and a ring over their first nodes.

Source of the cost: yimjinkyu1/date2024_pipette, commit a2b0683fc7,
``Megatron-LM-2.5/strategy/merge4/mh_cp_solver.py``. A hop takes 11,111,111 inside a
rack and 200,000,000 between racks; a placement costs its worst pipeline's hops, the
worst hop of the ring over the first nodes ``2 (P-1) / P`` times, and the same of a hop
inside a rack, each rounded down. Here a unit of cost is a nanosecond.
"""

import random
from dataclasses import replace

import numpy as np

from placer import testing

NEAR, FAR = 11_111_111, 200_000_000


def racks(sizes, seed=0):
    """Racks of so many one-GPU nodes, listed in an order shuffled by the seed."""
    plain = testing.racks(sizes, gpus=1, nvlink=1e9 / NEAR, nic=1e9 / FAR)
    tiers = [replace(tier, latency=0.0, scale_up=False) for tier in plain.tiers]
    order = [*range(plain.num_nodes)]
    random.Random(seed).shuffle(order)
    return replace(plain, tiers=tuple(tiers)).select(np.array(order))


def pipelines(count, stages):
    """A relay along every pipeline and an all-reduce of its first nodes, of a byte."""
    ranks = np.arange(count * stages).reshape(count, stages)
    first = [ranks[:, 0].tolist()]
    ways = (("pipeline", "relay", ranks.tolist()), ("first-nodes", "all_reduce", first))
    return testing.job(
        pp=stages,
        dp=count,
        order="tp-cp-ep-pp-dp",
        collectives={"all_reduce": "ring"},
        compute={"fixed_time": f"{ring(count, NEAR)}ns"},
        groups=[
            {"name": name, "collective": collective, "bytes": 1, "ranks": rows}
            for name, collective, rows in ways
        ],
    )


def ring(count, hop):
    """Cost of a ring of ``count`` whose worst hop is ``hop``."""
    return 2 * (count - 1) * hop // count
