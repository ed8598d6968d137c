"""What `allocate` found: the nodes of every job, its plan, and what is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from placer.base.csv_rows import csv_text
from placer.base.units import counted

if TYPE_CHECKING:
    from placer.placement.plan import Plan


@dataclass(frozen=True, eq=False)
class JobNodes:
    """A job on its nodes.

    Attributes
    ----------
    name : str
    hosts : str
        Its nodes as a host list, spare nodes among them.
    plan : Plan
    tier : str
        In whose domains the nodes are counted; empty where there is none.
    nodes_by_domain : mapping of str to int
    step_time_s : float, s
        While the other jobs run.
    ideal_step_time_s : float, s
        With all free nodes to itself.
    value, ideal, lower_bound : float
        The same in the unit of the objective, and what no nodes among the free ones can
        beat.
    weight : float
    moved : bool
        Whether it leaves the nodes it ran on.
    """

    name: str
    hosts: str
    plan: Plan
    tier: str
    nodes_by_domain: Mapping[str, int]
    step_time_s: float
    ideal_step_time_s: float
    value: float
    ideal: float
    lower_bound: float
    weight: float = 1.0
    moved: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The row of ``placer allocate --format json``."""
        objective = self.plan.bound["objective"]
        is_time = objective == "time"
        by_domain = dict(self.nodes_by_domain)
        return {
            "name": self.name,
            "hosts": self.hosts,
            "nodes": sum(by_domain.values()) if by_domain else len(self.plan.nodes),
            "tier": self.tier,
            "nodes_by_domain": by_domain,
            "step_time_s": self.step_time_s,
            "ideal_step_time_s": self.ideal_step_time_s,
            "lower_bound_s": self.lower_bound if is_time else None,
            "objective": objective,
            "value": self.value,
            "ideal_value": self.ideal,
            "lower_bound": self.lower_bound,
            "weight": self.weight,
            "moved": self.moved,
        }


@dataclass(frozen=True, eq=False)
class Allocation:
    """Which nodes each job gets.

    Attributes
    ----------
    jobs : tuple of JobNodes
    kept : tuple of JobNodes
        Jobs that stay where they are, while the others run.
    left : mapping
        What is free afterwards (`placer.api.allocation_plans`).
    cost, lower_bound : float
        Weighted sum of the values and prices, and what no allocation can beat.
    argument : str
        What the bound rests on.
    status : str
        ``optimal`` or ``feasible``.
    stop_reason : str
        ``proved``, ``searched``, ``time-limit`` or ``interrupted``.
    grade : mapping
        Of a granted allocation; empty without one.
    """

    jobs: tuple[JobNodes, ...]
    kept: tuple[JobNodes, ...]
    left: Mapping[str, Any]
    cost: float
    lower_bound: float
    argument: str
    status: str
    stop_reason: str
    grade: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        jobs = counted(len(self.jobs), "job")
        return f"<placer.Allocation: {jobs}, {self.status}>"

    def _repr_html_(self) -> str:
        from placer.report.allocation_table import allocation_html

        return allocation_html(self.to_dict())

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A plain mapping a job, without its plan."""
        return [job.to_dict() for job in self.jobs]

    def to_dict(self) -> dict[str, Any]:
        """As ``placer allocate --format json`` prints it."""
        found: dict[str, Any] = {
            "jobs": [{**one.to_dict(), "plan": one.plan.to_dict()} for one in self.jobs]
        }
        if self.kept:
            found["kept"] = [one.to_dict() for one in self.kept]
        found |= {
            "left": dict(self.left),
            "cost": self.cost,
            "lower_bound": self.lower_bound,
            "argument": self.argument,
            "status": self.status,
            "stop_reason": self.stop_reason,
        }
        if self.assumed:
            found["assumed"] = self.assumed
        return found | ({"grade": dict(self.grade)} if self.grade else {})

    @property
    def assumed(self) -> list[Mapping[str, Any]]:
        """What is assumed of the machine and of the jobs, each once."""
        found: list[Mapping[str, Any]] = []
        for one in self.jobs:
            found += [entry for entry in one.plan.assumed if entry not in found]
        return found

    def to_csv(self) -> str:
        """The rows as CSV: a header, then a line a job; values as in JSON."""
        return csv_text(self.rows)

    def summary(self) -> str:
        """The result as text for people, at most 80 columns wide."""
        from placer.report.allocation_table import allocation_text

        return allocation_text(self.to_dict())
