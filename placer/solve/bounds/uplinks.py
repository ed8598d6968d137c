"""What thin uplinks make certain, whichever groups leave their domains.

Of a group of ``n`` a domain holds ``m`` members and sends ``load(m)`` over its uplink
at the least, ``load(0) = load(n) = 0``:

    ring of gradients                 1     bytes of the ring
    all-to-all of experts             m (n - m)     bytes from a member to another

Every load is concave, so ``r`` ranks send the least with as many groups whole as there
may be (or with ``k`` members, if it holds no more of one) and one in part:

    need(r)  =  r // k load(k) + load(r mod k)    over the rate of its uplink

All domains together must hold all ranks, each those that its uplink serves in a time.
The first time that is enough bounds the slowest group. By hand: expert groups of 16 on
leaves of 24, 16 and 8 GPUs that are all in use. Half a group is in the first leaf and
half in the last, whose uplink carries 8 x 8 shares.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

import numpy as np

from placer.base.arrays import FloatArray, IntArray, row_of_number
from placer.cost.collectives import share_sent
from placer.cost.gradients import sync_groups
from placer.cost.stage_times import expert_time
from placer.solve.bounds.case import Case
from placer.solve.bounds.limits import (
    Floor,
    Limit,
    exposed_by_stage,
    slow_pipelines_s,
    slow_sync,
)


def certain(case: Case) -> Floor:
    """What is certain wherever groups lie."""
    step, fabric = case.step, case.network.fabric
    pipeline_s, exposed_s = 0.0, step.exposed_data_parallel_s
    if step.model.job.model is None or not fabric.has_network:
        return Floor(pipeline_s, exposed_s)  # or no group leaves the only domain
    for tier in fabric.thin_tiers:
        exposed_s = max(exposed_s, _gradients_s(case, tier))
        pipeline_s = max(pipeline_s, _exchanges_s(case, tier))
    return Floor(pipeline_s, exposed_s)


def _gradients_s(case: Case, tier: int) -> float:
    """Exposed data-parallel time that uplinks into a tier make certain, s."""
    step, network = case.step, case.network
    job, uplink = step.model.job, network.fabric.uplink_capacity[tier]
    room, label = network.capacities[tier - 1], network.label[tier - 1]
    least_s, every = 0.0, []
    for groups in sync_groups(job, step.model.volumes).values():
        size = int(groups.shape[1])
        # A set that stays together brings rings of so many groups, few of them whole.
        pairs = np.unique(label * len(groups) + row_of_number(groups)) // len(groups)
        brings = int(np.unique(pairs, return_counts=True)[1].min())
        whole = np.where(network.most_members(groups, tier - 1) < size, 0, room // size)
        load = np.array([0.0, *[1.0] * (size - 1), 0.0])
        pace = least_time(case, tier, groups, load, np.maximum(brings - whole, 0))
        if pace > 0:
            limit = Limit(groups, size, pace)
            least_s = max(least_s, min(exposed_by_stage(step, network, limit)))
        of_all = np.maximum(brings - whole, 0) / uplink
        every.append(Limit(groups, size, float(of_all[room > 0].min())))
    stage = job.parallelism.coordinates["pp"]
    of_sets = len(np.unique(np.stack((label, stage)), axis=1).T)
    if every and of_sets == len(np.unique(label)):  # then stages are slow, one and all
        slow = replace(step, sync=slow_sync(step.model, network, *every))
        least_s = max(least_s, slow.exposed_data_parallel_s)
    return least_s


def _exchanges_s(case: Case, tier: int) -> float:
    """Time of a pipeline one stage of which waits for experts on uplinks, s."""
    step, network, model = case.step, case.network, case.step.model
    job, members = model.job, case.members("ep")
    size = int(members.shape[1])
    if size == 1:
        return 0.0
    here = np.arange(size + 1.0)
    share = model.volumes.ep_buffer / size
    if job.expert_copies:
        share *= share_sent(np.array(2), job.expert_copies).item()
    seconds = least_time(case, tier, members, here * (size - here) * share)
    limited = network.with_limits(Limit(members, size, exchange_s=seconds))
    slow = expert_time(limited, job, model.volumes, model.work)
    return float(slow_pipelines_s(step, "ep", slow).min())


def least_time(
    case: Case,
    tier: int,
    groups: IntArray,
    load: FloatArray,
    least: IntArray | int = 0,
) -> float:
    """Least time in which uplinks carry what domains send that hold all ranks.

    ``groups``: shape (g, n). ``load`` ((n + 1,)): of a domain with so many members of a
    group. ``least`` ((D,)): load of each domain that holds a rank.
    """
    network, world = case.network, case.step.model.job.world_size
    size = int(groups.shape[1])
    most = np.clip(network.most_members(groups, tier - 1), 1, size)
    room = np.minimum(network.capacities[tier - 1], world)
    uplink = network.fabric.uplink_capacity[tier]
    kinds = np.stack((room, most, np.broadcast_to(least, room.shape), uplink))
    kinds, count = np.unique(kinds, axis=1, return_counts=True)
    needs = []
    for ranks, members, fewest, rate in kinds.T.tolist():
        whole, part = np.divmod(np.arange(int(ranks) + 1), int(members))
        need = whole * load[int(members)] + load[part]
        need[1:] = np.maximum(need[1:], fewest)
        needs.append(need / rate)
    times = np.unique(np.concatenate(needs))

    def served(time: float) -> int:
        """Ranks that all domains hold together in a time."""
        most = [int(np.flatnonzero(need <= time).max()) for need in needs]
        return int(count @ np.array(most))

    at = bisect_left(times.tolist(), world, key=served)
    return float(times[at]) if at < len(times) else 0.0
