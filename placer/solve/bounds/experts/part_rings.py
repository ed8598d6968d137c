"""Expert gradients over thin uplinks, beside parts of expert groups.

A group that reduces expert gradients has ``c`` members of each unit of its stage. Of
these units let a block have ``m`` pieces of ``r`` ranks at most and ``l`` at least:
``(m - l) r / c`` rings or more cross its uplink, so gradients that are faster *keep*
shares below what it carries. See docs/method.md, "Gradients over thin uplinks".
"""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.cost.gradients import sync_groups
from placer.solve.bounds.experts.part_gradients import EXPERTS
from placer.solve.bounds.network.limit import (
    Limit,
    exposed_by_stage,
    ring_buffers,
)
from placer.solve.count.model import Term

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from placer.solve.bounds.experts.expert_parts import StageParts
    from placer.solve.bounds.experts.part_steps import IsHopeless, PartSteps
    from placer.solve.bounds.experts.part_ways import Way
    from placer.solve.count.engine import Limits
    from placer.solve.count.model import Program
    from placer.solve.problem.params import Params

MARKS = 24  # paces of rings that are told apart
GRID = 0.004  # of the step: exposed times that are told apart


class Kept(NamedTuple):
    """Placements whose gradients expose a time, or more.

    Attributes
    ----------
    exposed_s : float, s
    pieces : mapping of int to int
        By outer domain, how much larger than the least the largest share of a stage
        may be there, where that says anything.
    siblings : int
        Units of a stage.
    """

    exposed_s: float
    pieces: Mapping[int, int]
    siblings: int

    def keep_company(self, program: Program, parts: Sequence[tuple[int, Way]]) -> None:
        """With a share larger than is kept all units of its stage have shares.

        Parameters
        ----------
        program : Program
        parts : sequence of (int, Way)
            Columns of all units and shares inside outer domains.
        """
        for home, most in self.pieces.items():
            here = [(c, sum(way.sizes)) for c, way in parts if way.home == home]
            needed = Term(program.column(block=home), -self.siblings)
            program.row([*(Term(c) for c, n in here if n > most), needed], most=0)
            program.row([*(Term(c) for c, _ in here), needed], 0)


def hopeless_by_rings(asked: PartSteps, params: Params) -> IsHopeless:
    """Whether no placement is below a value, whatever its gradients expose.

    Parameters
    ----------
    asked : PartSteps
        Without gradients between outer domains.
    params : Params
    """
    tier = asked.parts.network.fabric.scale_up_tier + 2
    cases = [asked.keeping(kept, params) for kept in kept_shares(asked.parts, tier)]
    known = [0.0] * len(cases)

    def is_hopeless(value: float, limits: Limits) -> tuple[bool, float]:
        work = 0.0
        # The case that kept a step from being hopeless may well do so again.
        for at in sorted(range(len(cases)), key=known.__getitem__):
            if known[at] < value:
                is_out, used = cases[at].is_hopeless(value, limits)
                work += used
                if not is_out:
                    return False, work
                known[at] = value
        return bool(cases), work

    return is_hopeless


def kept_shares(parts: StageParts, tier: int) -> Iterator[Kept]:
    """What placements keep by the time that they expose, the least time first.

    All placements are of one of them. None where groups are not shared out evenly.

    Parameters
    ----------
    parts : StageParts
    tier : int
        That the uplinks of outer domains lead to.
    """
    model, units = parts.step.model, parts.units
    groups = sync_groups(model.job, model.volumes).get(EXPERTS)
    siblings = units.number // model.job.parallelism.pp
    if groups is None or groups.shape[1] != siblings * units.shared or siblings == 1:
        return
    uplink = parts.network.fabric.uplink_capacity[tier]
    rings = -(-np.arange(1, units.pieces + 1) * units.ranks // units.shared)
    paces = rings / uplink[:, None]
    known = np.unique(paces)
    marks = known[np.unique(np.linspace(0, len(known) - 1, MARKS).astype(np.int64))]
    exposed = np.maximum.accumulate(
        [_exposed_s(parts, pace) for pace in marks.tolist()]
    )
    least, grid = parts.step.exposed_data_parallel_s, GRID * parts.step.step_time_s
    more = np.maximum(exposed - least, 0.0) // grid * grid
    levels = np.unique([least, *(least + more)]).tolist()
    for level, beyond in pairwise([*levels, inf]):
        first = int(np.searchsorted(exposed, beyond))
        limit = marks[first] if first < len(marks) else inf
        most = (paces < limit).sum(axis=1).tolist()
        pieces = {home: n for home, n in enumerate(most) if n < units.pieces}
        yield Kept(level, pieces, siblings)


def _exposed_s(parts: StageParts, pace: float) -> float:
    """Exposed time with rings of one stage as slow, at the least, s."""
    model = parts.step.model
    groups = sync_groups(model.job, model.volumes)[EXPERTS]
    ring = ring_buffers(groups.shape[1])
    limit = Limit(groups, groups.shape[1], pace, trees_pace=pace * ring / (1 + ring))
    return min(exposed_by_stage(parts.step, parts.network, limit))
