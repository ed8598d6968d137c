"""What changed between two plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from placer.base.arguments import NOTHING, instance, takes
from placer.base.errors import InputError
from placer.cost.step import StepModel
from placer.explain.difference import Saving, links_are_assumed, saving
from placer.job.axes import AXES, EXPERT_AXES
from placer.job.model import Job
from placer.placement.build import placement_of_plan
from placer.placement.inputs import inputs_of, planned_job
from placer.placement.launcher_orders import in_natural_order, natural_key
from placer.placement.plan import Plan
from placer.placement.plan_file import PlanLike, plan_of
from placer.report.diff_text import COST_HEAD, cost_rows, diff_sentence, diff_verdict
from placer.report.moves import axis_changes, folds, home_tier, match, moves
from placer.report.notebook import html_table
from placer.report.restart import restart

Facts = dict[str, Any]
Path = tuple[str, ...]

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


@dataclass(frozen=True, repr=False)
class PlanDiff:
    """The difference of two plans, as plain data; ``to_dict`` gives its JSON form.

    Attributes
    ----------
    old, new : mapping
        What each plan says of itself: world size, names and digests of its inputs.
    ranks_compared : int
        Ranks that both plans have.
    moved : list of dict
        Ranks on another GPU.
    folds : dict of str to list of dict
        The same moves by coordinate and domain: one list for ``dp``, and one for every
        other axis.
    home_tier : str
        Tier of the domains in ``folds``.
    nodes_gained, nodes_lost : list of str
        Nodes that only the new, only the old plan uses.
    axes : dict of str to dict
        What happened to the groups of each axis.
    costs : dict of tuple of str to tuple of float
        Cost before and after, by keys of the score.
    saved : Saving or None
        What a step saves, and how sure that is; None where more than the placement
        differs.
    links, path : list of dict
        The hottest links and the critical path before and after.
    restart : dict
        The work of going from one to the other.
    """

    old: Facts
    new: Facts
    ranks_compared: int
    moved: list[Facts]
    folds: dict[str, list[Facts]]
    home_tier: str
    nodes_gained: list[str]
    nodes_lost: list[str]
    axes: dict[str, Facts]
    costs: Mapping[Path, tuple[float, float]]
    saved: Saving | None
    links: list[Facts]
    path: list[Facts]
    restart: Facts

    def __repr__(self) -> str:
        return f"<placer.PlanDiff: {diff_sentence(self)}>"

    def _repr_html_(self) -> str:
        return html_table([COST_HEAD, *cost_rows(self.costs)], diff_sentence(self))

    @property
    def rows(self) -> list[Facts]:
        """A plain mapping a rank that moves: its number, old and new GPU."""
        return self.moved

    @property
    def is_empty(self) -> bool:
        """Whether the plans agree on inputs, ranks, groups and cost."""
        return (
            self.old == self.new
            and not self.moved
            and not self.nodes_gained
            and not self.nodes_lost
            and not any(axis["changed_domain"] for axis in self.axes.values())
            and all(old == new for old, new in self.costs.values())
            and all(entry["old"] == entry["new"] for entry in self.links + self.path)
        )

    def to_dict(self) -> Facts:
        """The difference as plain data, ready for JSON."""
        cost: Facts = {}
        for path, (old, new) in self.costs.items():
            inside = cost
            for key in path:
                inside = inside.setdefault(key, {})
            inside.update(old=old, new=new)
        return {
            "format": "placer/diff",
            "version": 1,
            "verdict": diff_verdict(self),
            "same": self.is_empty,
            "old": self.old,
            "new": self.new,
            "ranks_compared": self.ranks_compared,
            "ranks_moved": len(self.moved),
            "moved": self.moved,
            "folded_by": self.home_tier,
            "folded": self.folds["dp"],
            "folded_by_axis": {a: f for a, f in self.folds.items() if a != "dp"},
            "nodes_gained": self.nodes_gained,
            "nodes_lost": self.nodes_lost,
            "groups": self.axes,
            "cost": cost,
            "hottest_links": self.links,
            "critical_path": self.path,
            "restart": self.restart,
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


def _about(plan: Plan) -> Facts:
    about: Facts = {"world_size": plan.world_size}
    for key in ("topology", "job"):
        section = getattr(plan, key)
        about[key] = {"name": section.get("name"), "sha256": section.get("sha256")}
    return about


def _without(plan: Plan, other: Plan) -> list[str]:
    """Nodes of ``plan`` that ``other`` does not use, in natural order."""
    return in_natural_order({*plan.nodes} - {*other.nodes})


_LINK = ("tier", "domain", "direction")


def link_changes(old: Plan, new: Plan) -> list[Facts]:
    """The hottest links of both plans, busiest first; none unless both list them.

    A link that only one plan lists is not among the busiest of the other.
    """
    return _changes(old, new, "hottest_links", _LINK, "busy_s")


def path_changes(old: Plan, new: Plan) -> list[Facts]:
    """The critical paths of both plans, longest operation first.

    An operation that only one plan lists takes no time in the other.
    """
    return _changes(old, new, "critical_path", ("operation",), "seconds")


def _changes(old: Plan, new: Plan, key: str, named_by: Path, size: str) -> list[Facts]:
    """Entries of a list of the score, by name, with what each score says of them.

    ``old`` and ``new`` are None where the entry is not in that score's list.
    """
    before, after = old.score.get(key), new.score.get(key)
    if before is None or after is None:
        return []
    was, now = _by_name(before, named_by), _by_name(after, named_by)
    changes = [
        dict(zip(named_by, key[0], strict=True))
        | {"old": was.get(key), "new": now.get(key)}
        for key in {**was, **now}
    ]

    def order(change: Facts) -> tuple[float, list[Any]]:
        amounts = (change[side][size] for side in ("old", "new") if change[side])
        return -max(amounts), [natural_key(change[name]) for name in named_by]

    return sorted(changes, key=order)


def _by_name(
    entries: Iterable[Mapping[str, Any]], named_by: Path
) -> dict[tuple[Path, int], dict[str, Any]]:
    """Entries by name, and by a count where several have one name."""
    found: dict[tuple[Path, int], dict[str, Any]] = {}
    seen: Counter[Path] = Counter()
    for entry in entries:
        name = tuple(str(entry[key]) for key in named_by)
        rest = {key: value for key, value in entry.items() if key not in named_by}
        found[name, seen[name]] = rest
        seen[name] += 1
    return found


# Measures of a score, and how deep it has their numbers: by axis, or by axis and tier.
# What is absent there is zero.
_DEPTH = {
    "step_time_s": 0,
    "exposed_scale_out_s": 0,
    "hop_cost": 0,
    "exposed_s": 1,
    "crossings": 2,
    "traffic_bytes": 2,
}


def cost_changes(old: Plan, new: Plan) -> dict[Path, tuple[float, float]]:
    """Every number of the cost that both plans state, before and after.

    By its keys in the score: measure, and for some axis and tier.
    """
    found: dict[Path, tuple[float, float]] = {}
    for key, depth in _DEPTH.items():
        if old.score.get(key) is None or new.score.get(key) is None:
            continue
        before, after = (
            dict(_leaves(plan.score[key], (key,), depth)) for plan in (old, new)
        )
        for path in {**before, **after}:
            found[path] = before.get(path, 0), after.get(path, 0)
    order = (*_DEPTH, *AXES, *EXPERT_AXES, *old.topology.get("tiers", ()))
    place = {name: i for i, name in enumerate(order)}
    paths = sorted(found, key=lambda p: [(place.get(k, len(place)), k) for k in p])
    return {path: found[path] for path in paths}


def _leaves(value: Any, path: Path, depth: int) -> Iterator[tuple[Path, float]]:
    if not depth:
        yield path, value
        return
    for key, item in value.items():
        yield from _leaves(item, (*path, key), depth - 1)
