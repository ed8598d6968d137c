"""Hard rules of a job on one machine: those of its file and those asked for besides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from placer.base.errors import Problem, refuse
from placer.documents import closest
from placer.job.axes import AXES, EXPERT_AXES
from placer.job.even import axis_of
from placer.job.rules import Rules
from placer.placement.tier_names import unknown_tiers

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology


def with_requirements(job: Job, topology: Topology, added: Mapping[str, str]) -> Job:
    """The job with its own rules and the ``added`` ones (axis or group -> tier).

    ``ep/even`` asks for equal parts of the ep groups, one in each domain of the tier.

    Where both name an axis the stricter rule holds. The digest stays that of the job's
    file: whatever is placed under more rules is a plan for that job.

    Raises
    ------
    InputError
        If a rule names no axis or group of the job, or no tier of the machine.
    """
    axes = (*AXES, *EXPERT_AXES, *(group.name for group in job.groups))
    if job.roles:
        axes = tuple(axis for role in job.roles for axis in role.axes)
    tiers = [tier.name for tier in topology.by_island.tiers]
    rules = [*job.require.items(), *added.items()]
    refuse([*_unknown_axes(added, axes), *unknown_tiers(topology, rules, Rules())])
    strictest: dict[str, str] = {}
    for axis, tier in rules:
        strictest[axis] = min(tier, strictest.get(axis, tier), key=tiers.index)
    return replace(job, require=strictest)


def _unknown_axes(added: Mapping[str, str], known: Sequence[str]) -> Iterator[Problem]:
    for key in added:
        axis = axis_of(key)
        if axis not in known:
            hint = closest(axis, known) or f"known: {', '.join(known)}"
            message = f'there is no axis or group "{axis}"'
            yield Problem(message, key=f"require.{key}", hint=hint)
