"""Gradients beside parts of expert groups: large parts leave expert gradients few NICs.

A unit has no more than ``m`` members of any one group that reduces expert gradients. So
a part of it with ``r`` ranks has members of ``r / m`` groups at the least. In a domain
with room for ``R`` ranks one of them has at most ``R m / r`` members, and drives no
more NICs there. The same is true of the smallest domain that must be used, whose pieces
are of some stage. Shapes: C choices, P stages, L levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray, IntArray, row_of_number
from placer.cost.gradients import sync_groups
from placer.solve.bounds.network.limit import Limit, with_one_slow_stage

if TYPE_CHECKING:
    from placer.cost.step import Step
    from placer.solve.bounds.network.ideal import IdealNetwork

EXPERTS = "edp"  # the groups that reduce gradients of experts


@dataclass(frozen=True, eq=False)
class PartGradients:
    """Exposed data-parallel time by the least part of each stage's unit.

    Attributes
    ----------
    reduction, gather : ndarray, shape (L, P), s
        With one stage held back, at most what several stages expose.
    other_s, least_s : float, s
        Exposed besides, and in all at least.
    """

    reduction: FloatArray
    gather: FloatArray
    other_s: float
    least_s: float

    @classmethod
    def of(
        cls, held: HeldStages, ranks: Sequence[int], room: int, least_s: float
    ) -> PartGradients:
        """What parts with ranks of so many groups expose, an entry a level.

        Parameters
        ----------
        ranks : sequence of int
            Groups that the least part has members of, at least.
        room : int
            Ranks that the largest domain may hold.
        least_s : float, s
            Exposed at least.
        """
        nics = [max(1, room // groups) for groups in ranks]
        rows = {most: held.exposed({EXPERTS: most}) for most in set(nics)}
        table = np.array([rows[most] for most in nics])
        other_s = held.step.exposed_sync_s["embedding"]
        return cls(table[..., 0], table[..., 1], other_s, least_s)

    def exposed_s(self, levels: IntArray) -> FloatArray:
        """Exposed seconds of replicas with such units, (C, P); shape (C,)."""
        stages = np.arange(levels.shape[1])
        reduction = self.reduction[levels, stages].max(axis=1)
        gather = self.gather[levels, stages].max(axis=1)
        return np.asarray(np.maximum(reduction + gather + self.other_s, self.least_s))


@dataclass(frozen=True, eq=False)
class HeldStages:
    """Steps with the gradients of one stage held back.

    Attributes
    ----------
    step : Step
        On the network.
    """

    step: Step
    network: IdealNetwork

    def exposed(self, nics: Mapping[str, int]) -> list[tuple[float, float]]:
        """Exposed (reduction, gather) with so many NICs, an entry a stage; s.

        Parameters
        ----------
        nics : mapping of str to int
            Most that groups of each sort drive in some domain of the stage.
        """
        model = self.step.model
        limits = [
            Limit(groups, nics[name])
            for name, groups in sync_groups(model.job, model.volumes).items()
            if nics.get(name, groups.shape[1]) < groups.shape[1]
        ]
        held = with_one_slow_stage(self.step, self.network, *limits)
        exposed = (one.exposed_sync_s for one in held)
        return [(one["reduction"], one["gather"]) for one in exposed]

    def least_s(self, room: int, piece: IntArray) -> float:
        """Exposed seconds where a domain that holds so many ranks has some stage's.

        Parameters
        ----------
        piece : ndarray, shape (R,)
            Of each rank; none is divided.
        """
        model = self.step.model
        nics = {}
        for name, groups in sync_groups(model.job, model.volumes).items():
            pairs = np.unique(piece * len(groups) + row_of_number(groups))
            groups_of_piece = np.unique(pairs // len(groups), return_counts=True)[1]
            nics[name] = max(1, room // int(groups_of_piece.min()))
        # A piece of several stages may have slow groups of each sort in another one.
        stage = model.job.parallelism.coordinates["pp"]
        stages_of_piece = np.unique(np.stack((piece, stage)), axis=1).shape[1]
        ways = [nics]
        if stages_of_piece > len(np.unique(piece)):
            ways = [{name: most} for name, most in nics.items()]
        least_s = max((min(map(sum, self.exposed(way))) for way in ways), default=0.0)
        return least_s + self.step.exposed_sync_s["embedding"]
