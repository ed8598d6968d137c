"""What the replicas of a job ask of the parts of expert groups.

Shapes: U units, C sets of replicas, P stages, A units of a stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.bounds.experts.expert_parts import stage_parts
from placer.solve.construct.experts.parts_ground import Ground, grounds
from placer.solve.construct.experts.parts_links import Links
from placer.solve.construct.experts.parts_program import Made, Question, Shares

if TYPE_CHECKING:
    from placer.solve.bounds.experts.expert_parts import StageParts
    from placer.solve.problem.compiled import Problem

# A unit, and the place along the tree of each of its parts.
Home = tuple[Made, list[int]]


@dataclass(frozen=True, eq=False)
class Asked:
    """What the replicas of a job ask for.

    Attributes
    ----------
    ground : Ground
    parts : StageParts
    cohort : ndarray, shape (U,)
        Units of one cohort belong to the same replicas.
    """

    ground: Ground
    parts: StageParts
    cohort: IntArray

    @classmethod
    def of(cls, problem: Problem, ground: Ground) -> Asked | None:
        """None where the parts of such units do not decide on the step."""
        floor, units = ground.floor, ground.units
        if floor.tier != problem.model.fabric.scale_up_tier:
            return None
        parts = stage_parts(problem.model, floor.colocation)
        if parts is None or len(parts.seconds(floor.tier + 1)) == 1:
            return None
        single = np.zeros(len(units.ranks), dtype=np.int64)
        cohort = units.coordinate.get("edp", single)
        stages = int(units.stage.max()) + 1
        alike = np.bincount(cohort * stages + units.stage)
        return None if (alike != alike[0]).any() else cls(ground, parts, cohort)

    @property
    def alike(self) -> int:
        """Units of a stage of a cohort."""
        units = self.ground.units
        cohorts, stages = int(self.cohort.max()) + 1, int(units.stage.max()) + 1
        return len(units.ranks) // (cohorts * stages)

    def slot(self) -> IntArray:
        """Units of each stage that replicas of each set wait for; shape (C, P, A)."""
        stage = self.ground.units.stage
        shape = int(self.cohort.max()) + 1, int(stage.max()) + 1, self.alike
        return np.lexsort((stage, self.cohort)).reshape(shape)

    def node_of_rank(self, slot: IntArray, held: IntArray) -> IntArray:
        """Node of every rank with units, pieces of which lie so, given to replicas.

        Parameters
        ----------
        slot : ndarray, shape (C, P, A)
            Units that replicas of each set wait for, stage by stage.
        held : ndarray, shape (U, D)
        """
        placed = [
            (Made(tuple(row[row > 0].tolist()), -1, 0.0), np.flatnonzero(row).tolist())
            for row in held[slot.ravel()]
        ]
        return self.ground.node_of_rank(1, self.slot().ravel().tolist(), placed)

    def links(self) -> Links:
        """What parts send, and over what."""
        parts, tier = self.parts, self.ground.floor.tier
        fabric, units = parts.network.fabric, parts.units
        last = min(tier + 2, fabric.num_tiers - 1)
        buffer = parts.step.model.volumes.ep_buffer
        message = buffer / (units.pieces * units.members)
        fastest = float(fabric.bandwidth[: tier + 1].max())
        near, far = fabric.bandwidth[[tier + 1, last]].tolist()
        homes, outer = np.unique(self.ground.outer, return_inverse=True)
        carried = parts.pairs_a_second(last)
        return Links(
            units.pieces,
            units.members,
            (message / fastest, message / near, message / far),
            (
                float(fabric.latency[: tier + 1].min()),
                *fabric.latency[[tier + 1, last]].tolist(),
            ),
            self.ground.room,
            outer,
            parts.pairs_a_second(tier + 1)[self.ground.domain],
            carried[homes] if last > tier + 1 else np.full(len(homes), inf),
        )

    def question(self, grain: int, *, is_apart: bool) -> Question:
        """The question to a program that counts in so many pieces.

        Outer domains are told apart, or all count as one.
        """
        floor = self.ground.floor
        tier, last = floor.tier + 1, floor.tier + 2 == len(floor.machine.tiers)
        pairs = self.parts.pairs_a_second(tier) / np.maximum(self.parts.room, 1)
        return Question(
            self.ground.rooms(grain, is_apart=is_apart),
            self.parts.units.pieces // grain,
            self.parts.units.number,
            self.alike,
            _counted(self.parts.seconds(tier), grain),
            _counted(self.parts.seconds(tier + 1), grain) if is_apart else {},
            self._uplinks(grain) if is_apart else {},
            {} if last else _counted(self.parts.latency(tier + 1), grain),
            float(pairs.min()) / grain,
            _counted(self.parts.latency(tier), grain),
        )

    @property
    def has_thin_uplinks(self) -> bool:
        """Whether uplinks of outer domains carry less than what sends over them."""
        tiers, tier = self.ground.floor.machine.tiers, self.ground.floor.tier + 2
        return tier < len(tiers) and tiers[tier].oversubscription > 1

    def _uplinks(self, grain: int) -> dict[int, float]:
        """Pairs that each uplink carries in a second, where it holds any back."""
        if not self.has_thin_uplinks:
            return {}
        carried = self.parts.pairs_a_second(self.ground.floor.tier + 2) / grain**2
        return {home: pairs for home, pairs in enumerate(carried) if pairs < inf}

    def homes(self, grain: int, shares: Shares, question: Question) -> list[list[Home]]:
        """Where each unit lies; the best go to stages that ask for the most.

        Units that lie side by side follow each other in a replica, or have the same
        stage of several, whose gradients then stay near.
        """
        placed = self.ground.placed(grain, shares, question)
        order = sorted(placed, key=lambda unit: (unit[0].seconds, unit[1]))
        stage = self.ground.units.stage
        level = shares.levels[self.cohort, stage]
        found = []
        for first, second in ((self.cohort, stage), (stage, self.cohort)):
            wanted = np.lexsort((second, first, -level))
            found.append([order[place] for place in np.argsort(wanted)])
        return found


def asked_of(problem: Problem) -> Iterator[Asked]:
    """All that the parts of a job's units are asked for."""
    for ground in grounds(problem):
        asked = Asked.of(problem, ground)
        if asked is not None:
            yield asked


def _counted(times: Mapping[int, float], grain: int) -> dict[int, float]:
    """Times by size, s, with sizes counted in so many pieces."""
    return {
        size // grain: seconds for size, seconds in times.items() if size % grain == 0
    }
