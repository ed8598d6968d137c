"""Ranks, groups and hosts of a plan: where they are, with whom they talk, what for.

``explain`` is the library call behind ``placer explain``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from placer.cost.group_cost import GroupCosts
from placer.cost.step import StepModel
from placer.document import closest
from placer.errors import InputError, Problem
from placer.job.orders import as_planned
from placer.placement.build import placement_of_plan
from placer.placement.memory_need import check_memory
from placer.placement.plan_rules import rules_of
from placer.placement.requirements import with_requirements
from placer.solve.explain.exchanges import exchanges
from placer.solve.objective import objective_of
from placer.topology.suggest import Suggester

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.plan import Plan
    from placer.solve.objective import Objective
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]

MOST_SUBJECTS = 64


def explain(
    topology: Topology,
    job: Job,
    plan: Plan,
    *,
    ranks: Sequence[int] = (),
    groups: Sequence[str] = (),
    hosts: Sequence[str] = (),
) -> dict[str, Any]:
    """Where ranks, groups and hosts of a plan are and why, as plain data.

    ``topology``, ``job``, ``objective`` and its ``value`` and, in the order asked for,
    ``subjects`` (docs/explain.md). Times are seconds.

    Parameters
    ----------
    topology, job : Topology, Job
        Those the plan was made for.
    plan : Plan
    ranks : sequence of int
    groups : sequence of str
        As ``pp:37``, an axis or a group of the job's own, counted from 0.
    hosts : sequence of str

    Raises
    ------
    InputError
        If the plan is not one of this job on this machine, or there is no such rank,
        group or host in it; with all of these.
    """
    asked = len(ranks) + len(groups) + len(hosts)
    if asked > MOST_SUBJECTS:
        raise InputError(
            f"{asked} ranks, groups and hosts, the most is {MOST_SUBJECTS}"
        )
    scene = _scene(topology, job, plan)
    _check_subjects(scene, ranks, groups, hosts)
    share = 1 / max(asked, 1)
    return {
        "topology": topology.name,
        "job": job.name,
        "objective": scene.goal.name,
        "value": scene.goal.value(scene.gpu_of_rank),
        "proved": plan.bound.get("status") == "optimal",
        "subjects": [
            *(scene.rank(rank, share) for rank in ranks),
            *(scene.group(name, share) for name in groups),
            *(scene.host(name, share) for name in hosts),
        ],
    }


def _scene(topology: Topology, job: Job, plan: Plan) -> _Scene:
    """The plan's placement under all the rules it was made under."""
    job = as_planned(job, plan.job.get("order", ""))
    own = "-".join(job.parallelism.order)
    if plan.job.get("order", own) != own:
        raise InputError(
            f"the plan numbers ranks by {plan.job['order']}, the job by {own}"
        )
    if plan.world_size != job.world_size:
        raise InputError(
            f"the plan has {plan.world_size:,} ranks, the job {job.world_size:,}"
        )
    placement = placement_of_plan(plan, topology)
    job = with_requirements(job, topology, plan.bound.get("require", {}))
    job = replace(job, rules=job.rules.and_also(rules_of(plan.rules)))
    check_memory(topology, job)
    goal = objective_of(topology, job, plan.bound.get("objective"))
    return _Scene(topology, job, goal, placement.gpu_of_rank)


@dataclass(frozen=True, eq=False)
class _Scene:
    """A placement and all that is asked about it."""

    topology: Topology
    job: Job
    goal: Objective
    gpu_of_rank: IntArray

    @cached_property
    def costs(self) -> GroupCosts:
        """What the groups cost."""
        model = StepModel(self.topology, self.job)
        return GroupCosts(model.step(self.gpu_of_rank), self.gpu_of_rank)

    @cached_property
    def node_of_rank(self) -> IntArray:
        """Node of every rank; shape (R,)."""
        return self.topology.node_of_gpu[self.gpu_of_rank]

    def rank(self, rank: int, share: float) -> dict[str, Any]:
        """One rank: where it is, each group it is in, its exchanges."""
        found = self._seat(rank) | {
            "domains": self._domains(int(self.node_of_rank[rank])),
            "coordinates": self._coordinates(rank),
            "groups": [],
        }
        for axis in self.costs.axes:
            group = self.costs.group_of_rank(axis, rank)
            if group is not None:
                facts = self.costs.facts(axis, group, rank)
                for hops in facts["neighbours"].values():
                    for hop in hops:
                        hop |= self._seat(hop["rank"])
                found["groups"].append(facts)
        return found | {"exchanges": self._exchanges([rank], share)}

    def group(self, name: str, share: float) -> dict[str, Any]:
        """One group: where its members are, what it costs, its exchanges."""
        axis, index = _parsed(name)
        facts = self.costs.facts(axis, index)
        return {
            "group": f"{axis}:{index}",
            "facts": facts,
            "members": [
                self._seat(rank) | {"coordinates": self._coordinates(rank)}
                for rank in facts["ranks"]
            ],
            "exchanges": self._exchanges(facts["ranks"], share, axis),
        }

    def host(self, name: str, share: float) -> dict[str, Any]:
        """One host: its ranks, the slowest of their groups on each axis, exchanges."""
        node = self.topology.node_names.index(name)
        ranks = np.flatnonzero(self.node_of_rank == node).tolist()
        return {
            "host": name,
            "domains": self._domains(node),
            "ranks": [
                self._seat(rank) | {"coordinates": self._coordinates(rank)}
                for rank in ranks
            ],
            "groups": [
                {"through": len(groups)} | self._slowest(axis, groups)
                for axis in self.costs.axes
                if (groups := self._groups_through(axis, ranks))
            ],
            "exchanges": self._exchanges(ranks, share),
        }

    def _groups_through(self, axis: str, ranks: Sequence[int]) -> list[int]:
        """Groups of an axis that any of the ranks is in."""
        found = (self.costs.group_of_rank(axis, rank) for rank in ranks)
        return sorted({group for group in found if group is not None})

    def _slowest(self, axis: str, groups: Sequence[int]) -> dict[str, Any]:
        facts = [self.costs.facts(axis, group) for group in groups]
        return max(facts, key=lambda entry: entry.get("seconds", 0.0))

    def _exchanges(
        self, ranks: Sequence[int], share: float, axis: str = ""
    ) -> list[dict[str, Any]]:
        """The exchanges, each with the hosts of the other unit.

        Those with other groups of ``axis`` among them, where these are of one size.
        """
        groups = self.costs.axes.get(axis)
        found = exchanges(
            self.topology,
            self.job,
            self.goal,
            self.gpu_of_rank,
            np.array(ranks, dtype=np.int64),
            share,
            {f"{axis} group": groups} if isinstance(groups, np.ndarray) else {},
        )
        for kind in found:
            for key in ("best", "next", "best_illegal"):
                if kind[key] is not None:
                    kind[key]["hosts"] = self._hosts(kind[key]["with"])
        return found

    def _hosts(self, ranks: Sequence[int]) -> list[str]:
        """Hosts of ranks, each once, by rank."""
        names = self.topology.node_names
        return list(
            dict.fromkeys(names[node] for node in self.node_of_rank[list(ranks)])
        )

    def _seat(self, rank: int) -> dict[str, Any]:
        node = int(self.node_of_rank[rank])
        return {
            "rank": rank,
            "host": self.topology.node_names[node],
            "gpu": int(self.gpu_of_rank[rank] - self.topology.first_gpu_of_node[node]),
        }

    def _domains(self, node: int) -> dict[str, str]:
        topology = self.topology
        return {
            tier.name: names[domain]
            for tier, names, domain in zip(
                topology.tiers,
                topology.domain_names,
                topology.domain_of_node[:, node].tolist(),
                strict=True,
            )
        }

    def _coordinates(self, rank: int) -> dict[str, int]:
        """Coordinates on the axes that have several ranks; of experts, where apart."""
        axes = self.job.parallelism
        apart = axes.ep > 1 or axes.etp != axes.tp
        shown = ("tp", "cp", "pp", "dp", *(("etp", "ep", "edp") if apart else ()))
        return {
            axis: int(axes.coordinates[axis][rank])
            for axis in shown
            if axes.size(axis) > 1
        }


def _parsed(name: str) -> tuple[str, int]:
    """Axis and index of ``pp:37``; -1 where that is no number."""
    axis, _, index = name.rpartition(":")
    plain = index.isascii() and index.isdecimal() and len(index) < 10
    return axis, int(index) if plain else -1


def _check_subjects(
    scene: _Scene, ranks: Sequence[int], groups: Sequence[str], hosts: Sequence[str]
) -> None:
    """Raise what is not in the plan, all of it."""
    last = scene.job.world_size - 1
    problems = [
        Problem(f"there is no rank {rank}", hint=f"the job has ranks 0 to {last}")
        for rank in ranks
        if not 0 <= rank <= last
    ]
    problems += [problem for name in groups for problem in _bad_group(scene, name)]
    problems += [problem for name in hosts for problem in _bad_host(scene, name)]
    if problems:
        raise InputError(problems)


def _bad_group(scene: _Scene, name: str) -> Iterator[Problem]:
    axis, index = _parsed(name)
    known = scene.costs.axes
    if axis not in known:
        shown = f'there is no axis or group "{axis}"'
        if axis in ("tp", "cp", "ep", "pp", "dp", "edp"):
            shown = f"every {axis} group is a single rank"
        if not axis:
            shown = f'"{name}" is no group such as pp:37'
        hint = closest(axis, known) or f"known: {', '.join(known)}"
        yield Problem(shown, hint=hint)
    elif not 0 <= index < len(known[axis]):
        count = len(known[axis])
        hint = f"{axis} groups are {axis}:0 to {axis}:{count - 1}"
        yield Problem(f'there is no group "{name}"', hint=hint)


def _bad_host(scene: _Scene, name: str) -> Iterator[Problem]:
    topology = scene.topology
    if name not in topology.node_names:
        message = f'the topology has no host "{name}"'
        if name in topology.unavailable:
            message = f'host "{name}" is unavailable: {topology.unavailable[name]}'
        hint = Suggester(topology.node_names).hint(name)
        yield Problem(message, hint=hint)
    elif topology.node_names.index(name) not in scene.node_of_rank:
        yield Problem(f'host "{name}" holds no rank of this plan')
