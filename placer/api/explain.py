"""Where ranks, groups and hosts of a plan are, and why there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from placer.api.inputs import JobLike, TopologyLike, inputs_of_plan
from placer.base.arguments import takes
from placer.base.errors import InputError, Problem, refuse
from placer.base.naming import named
from placer.documents import known_hint
from placer.explain.scene import Scene, name_parts
from placer.placement.build import placement_of_plan
from placer.placement.memory_need import check_memory
from placer.placement.plan_file import PlanLike, plan_of
from placer.solve.problem.compiled import objective_of
from placer.topology.model import Topology
from placer.topology.suggest import Suggester

MOST_SUBJECTS = 64


@takes()
def explain(
    plan: PlanLike,
    topology: TopologyLike | None = None,
    job: JobLike | None = None,
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
    plan : Plan, Result, path or dict
    topology, job : Topology, Job, or what `read_topology` and `read_job` take, optional
        Instead of those that the plan keeps.
    ranks : sequence of int
    groups : sequence of str
        As ``pp:37``, an axis or a group of the job's own, counted from 0.
    hosts : sequence of str

    Returns
    -------
    dict
        As above.

    Raises
    ------
    InputError
        If an argument is of a wrong type, the plan is not one of this job on this
        machine, or there is no such rank, group or host in it; with all of these.

    Examples
    --------
    >>> plan = placer.predict("dgx-h100-4x8", "quickstart", "slurm")
    >>> found = placer.explain(plan, ranks=[3])
    >>> found["subjects"][0]["host"]
    'n1'
    """
    asked = len(ranks) + len(groups) + len(hosts)
    if asked > MOST_SUBJECTS:
        raise InputError(
            f"{asked} ranks, groups and hosts, the most is {MOST_SUBJECTS}"
        )
    plan = plan_of(plan)
    given = topology is not None or job is not None
    inputs = inputs_of_plan(plan, topology, job, force=given)
    machine, work = inputs.machine, inputs.ruled  # all rules it was made under
    placement = placement_of_plan(plan, machine)
    check_memory(machine, work)
    goal = objective_of(machine, work, plan.bound.get("objective"))
    scene = Scene(machine, work, goal, placement.gpu_of_rank)
    _check_subjects(scene, inputs.topology, ranks, groups, hosts)
    share = 1 / max(asked, 1)
    return {
        "topology": inputs.topology.name,
        "job": inputs.job.name,
        "objective": goal.name,
        "value": goal.value(scene.gpu_of_rank),
        "proved": plan.bound.get("status") == "optimal",
        "subjects": [
            *(scene.rank(rank, share) for rank in ranks),
            *(scene.group(name, share) for name in groups),
            *(scene.host(name, share) for name in hosts),
        ],
    }


def _check_subjects(
    scene: Scene,
    whole: Topology,
    ranks: Sequence[int],
    groups: Sequence[str],
    hosts: Sequence[str],
) -> None:
    """Raise what is not in the plan, all of it."""
    last = scene.job.world_size - 1
    problems = [
        Problem(f"there is no rank {rank}", hint=f"the job has ranks 0 to {last}")
        for rank in ranks
        if not 0 <= rank <= last
    ]
    problems += [problem for name in groups for problem in _bad_group(scene, name)]
    problems += [problem for name in hosts for problem in _bad_host(scene, whole, name)]
    refuse(problems)


def _bad_group(scene: Scene, name: str) -> Iterator[Problem]:
    axis, index = name_parts(name)
    part = scene.part_of(axis)
    # Without it, the first instance of every role shows how groups are called.
    roles = {role.first_rank for role in scene.job.roles}
    shown_of = [part] if part else [p for p in scene.parts if p.first in roles]
    known = {
        f"{one.prefix}{own}": groups
        for one in shown_of
        for own, groups in one.costs.axes.items()
    }
    if axis not in known:
        shown = f'there is no axis or group "{axis}"'
        own = axis.removeprefix(part.prefix) if part else axis
        groups_of = (part or scene).job.parallelism.ranks_of_group
        members = groups_of.get(own)
        if part and members is not None:
            alone = members.shape[1] == 1
            shown = f"every {axis} group is a single rank"
            shown = shown if alone else f"the job does not say what {axis} groups send"
        if not axis:
            shown = f'"{name}" is no group such as pp:37'
        hint = known_hint(axis, known)
        if not known:
            hint = (
                f"no group here sends anything; {named('ranks')} shows messages "
                "between ranks"
            )
        yield Problem(shown, hint=hint)
    elif not 0 <= index < len(known[axis]):
        count = len(known[axis])
        hint = f"{axis} groups are {axis}:0 to {axis}:{count - 1}"
        yield Problem(f'there is no group "{name}"', hint=hint)


def _bad_host(scene: Scene, whole: Topology, name: str) -> Iterator[Problem]:
    hosts = scene.topology.node_names
    if name not in whole.node_names:
        message = f'the topology has no host "{name}"'
        if name in whole.unavailable:
            message = f'host "{name}" is unavailable: {whole.unavailable[name]}'
        yield Problem(message, hint=Suggester(whole.node_names).hint(name))
    elif name not in hosts or hosts.index(name) not in scene.node_of_rank:
        yield Problem(f'host "{name}" holds no rank of this plan')
