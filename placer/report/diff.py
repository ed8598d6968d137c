"""What changed between two plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placer.base.arguments import NOTHING, instance, takes
from placer.base.errors import InputError
from placer.cost.step import StepModel
from placer.explain.difference import Saving, saving
from placer.explain.uncertain import links_are_assumed
from placer.job.model import Job
from placer.placement.build import placement_of_plan
from placer.placement.inputs import inputs_of, planned_job
from placer.placement.launcher_orders import in_natural_order
from placer.placement.plan import Plan
from placer.placement.plan_file import PlanLike, plan_of
from placer.report.changes import (
    CostChange,
    EntryChange,
    cost_changes,
    cost_dict,
    link_changes,
    path_changes,
)
from placer.report.diff_text import COST_HEAD, cost_rows, diff_sentence, diff_verdict
from placer.report.group_tiers import AxisChange, axis_changes
from placer.report.moves import Fold, Move, folds, home_tier, match, moves
from placer.report.notebook import html_table
from placer.report.restart import Restart, restart

# What two plans must agree on, or their steps differ in more than their placements.
_SAME = ("sha256", "order", "parallelism")


def saving_of(old: Plan, new: Plan) -> Saving | None:
    """What ``new`` saves of a step of ``old``.

    None where their machines or jobs differ, a step takes no time, or either keeps no
    inputs.
    """
    if not (old.inputs and new.inputs and old.score.get("step_time_s")):
        return None
    if any(old.job.get(key) != new.job.get(key) for key in _SAME):
        return None
    if old.topology.get("sha256") != new.topology.get("sha256"):
        return None
    try:
        inputs = inputs_of(new)
        machine, job = inputs.topology, planned_job(inputs.job, new)
        before, after = (placement_of_plan(one, machine) for one in (old, new))
    except InputError:
        return None  # of a machine that has changed since
    model, thin = StepModel(machine, job), links_are_assumed(machine)
    return saving(model, before.gpu_of_rank, after.gpu_of_rank, thin=thin)


_INPUTS = ("topology", "job")


@dataclass(frozen=True, repr=False)
class PlanDiff:
    """The difference of two plans; ``to_dict`` gives its JSON form.

    Attributes
    ----------
    old, new : mapping
        What each plan says of itself: world size, names and digests of its inputs.
    ranks_compared : int
        Ranks that both plans have.
    moved : tuple of Move
        Ranks on another GPU.
    folds : mapping of str to tuple of Fold
        The same moves by coordinate and domain: one list for ``dp``, and one for every
        other axis.
    home_tier : str
        Tier of the domains in ``folds``.
    nodes_gained, nodes_lost : tuple of str
        Nodes that only the new, only the old plan uses.
    axes : tuple of AxisChange
        What happened to the groups of each axis.
    costs : tuple of CostChange
        Cost before and after.
    saved : Saving or None
        What a step saves, and how sure that is; None where more than the placement
        differs.
    links, path : tuple of EntryChange
        The hottest links and the critical path before and after.
    restart : Restart
        The work of going from one to the other.
    """

    old: Mapping[str, Any]
    new: Mapping[str, Any]
    ranks_compared: int
    moved: tuple[Move, ...]
    folds: Mapping[str, tuple[Fold, ...]]
    home_tier: str
    nodes_gained: tuple[str, ...]
    nodes_lost: tuple[str, ...]
    axes: tuple[AxisChange, ...]
    costs: tuple[CostChange, ...]
    saved: Saving | None
    links: tuple[EntryChange, ...]
    path: tuple[EntryChange, ...]
    restart: Restart

    def __repr__(self) -> str:
        return f"<placer.PlanDiff: {diff_sentence(self)}>"

    def _repr_html_(self) -> str:
        return html_table([COST_HEAD, *cost_rows(self.costs)], diff_sentence(self))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A plain mapping a rank that moves: its number, old and new GPU."""
        return [move.to_dict() for move in self.moved]

    @property
    def is_empty(self) -> bool:
        """Whether the plans agree on inputs, ranks, groups and cost."""
        return (
            self.old == self.new
            and not self.moved
            and not self.nodes_gained
            and not self.nodes_lost
            and not any(axis.changed_domain for axis in self.axes)
            and all(cost.old == cost.new for cost in self.costs)
            and all(entry.old == entry.new for entry in (*self.links, *self.path))
        )

    def to_dict(self) -> dict[str, Any]:
        """The difference as plain data, ready for JSON."""
        by_replica, *others = self.folds.items()
        return {
            "format": "placer/diff",
            "version": 1,
            "verdict": diff_verdict(self),
            "same": self.is_empty,
            "old": dict(self.old),
            "new": dict(self.new),
            "ranks_compared": self.ranks_compared,
            "ranks_moved": len(self.moved),
            "moved": [move.to_dict() for move in self.moved],
            "folded_by": self.home_tier,
            "folded": [fold.to_dict("replica") for fold in by_replica[1]],
            "folded_by_axis": {
                axis: [fold.to_dict() for fold in folds] for axis, folds in others
            },
            "nodes_gained": list(self.nodes_gained),
            "nodes_lost": list(self.nodes_lost),
            "groups": {axis.axis: axis.to_dict() for axis in self.axes},
            "cost": cost_dict(self.costs),
            "hottest_links": [link.to_dict() for link in self.links],
            "critical_path": [part.to_dict() for part in self.path],
            "restart": self.restart.to_dict(),
        }


@takes(job=instance(Job) | NOTHING)
def diff(old: PlanLike, new: PlanLike, job: Job | None = None) -> PlanDiff:
    """What changed from ``old`` to ``new``.

    The plans may be of different data parallel sizes: then the replicas that both have
    are compared. With their ``job`` the restart counts the bytes of state to move.

    Parameters
    ----------
    old, new : Plan, Result, path or dict
    job : Job, optional

    Returns
    -------
    PlanDiff

    Raises
    ------
    InputError
        If an argument is of a wrong type, the plans are of jobs or machines whose ranks
        or tiers do not correspond, or not of this job's axes.

    Examples
    --------
    >>> plan = placer.predict("dgx-h100-4x8", "quickstart", "slurm")
    >>> placer.diff(plan, plan).is_empty
    True
    """
    old, new = plan_of(old), plan_of(new)
    matching = match(old, new)
    return PlanDiff(
        old=_about(old),
        new=_about(new),
        ranks_compared=len(matching.old_rank),
        moved=moves(old, new, matching),
        folds=folds(old, new, matching),
        home_tier=home_tier(old, new),
        nodes_gained=_without(new, old),
        nodes_lost=_without(old, new),
        axes=axis_changes(old, new, matching),
        costs=cost_changes(old, new),
        saved=saving_of(old, new),
        links=link_changes(old, new),
        path=path_changes(old, new),
        restart=restart(old, new, matching, job),
    )


def _about(plan: Plan) -> dict[str, Any]:
    about: dict[str, Any] = {"world_size": plan.world_size}
    for key in _INPUTS:
        section = getattr(plan, key)
        about[key] = {"name": section.get("name"), "sha256": section.get("sha256")}
    return about


def _without(plan: Plan, other: Plan) -> tuple[str, ...]:
    """Nodes of ``plan`` that ``other`` does not use, in natural order."""
    return tuple(in_natural_order({*plan.nodes} - {*other.nodes}))
