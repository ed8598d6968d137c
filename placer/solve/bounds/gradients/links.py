"""The bound that links between domains set, where every gradient group is in all.

Each group then sends over the links of every domain, out of it and into it: at least a
byte of a ring for each on its hops, or one of the buffer in both trees together. The
fullest of a domain's links takes at least what all groups send over all of them needs.
Which stage the group that waits for it belongs to is not known: the cheapest counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.solve.bounds import Proof
from placer.solve.bounds.network.limit import (
    Limit,
    gradient_groups,
    with_one_slow_stage,
)

if TYPE_CHECKING:
    from placer.cost.fabric import Fabric
    from placer.cost.step import Step
    from placer.solve.bounds.network.ideal import IdealNetwork


def least_over_links(step: Step, network: IdealNetwork) -> Proof | None:
    """The least step time of all placements; None where no links hold gradients back.

    Parameters
    ----------
    step : Step
        On ``network``, which is ideal for every placement.
    """
    model, fabric = step.model, network.fabric
    outermost = fabric.num_tiers - 1
    if outermost not in fabric.links or step.sync is None:
        return None
    groups = gradient_groups(model.job)
    if network.fewest_domains(groups, outermost) < fabric.links[outermost].children:
        return None
    pace = len(groups) / least_out_of_a_domain(fabric, outermost)
    limit = Limit(groups, groups.shape[1], links_pace=pace)
    held = with_one_slow_stage(step, network, limit)
    seconds = min(one.step_time_s for one in held)
    argument = (
        "every gradient group is in all domains that links join, and shares the links "
        "of the one that has the least"
    )
    return Proof(seconds, argument)


def least_out_of_a_domain(fabric: Fabric, tier: int) -> float:
    """Least bandwidth of all links out of one child domain, B/s.

    Infinite where each has one that no link joins it with.
    """
    links = fabric.links[tier]
    count = np.bincount(links.sources, minlength=links.children)
    total = np.bincount(links.sources, links.capacity, links.children)
    return float(np.where(count == links.children - 1, total, np.inf).min())
