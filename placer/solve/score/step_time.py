"""The step time as a compiled evaluator, made of the calls of the scorer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import row_of_number
from placer.cost.fabric import Fabric
from placer.cost.step import StepModel
from placer.solve.score.exposed import add_exposed
from placer.solve.score.operations import Operations
from placer.solve.score.slots import Sites, Slots, atoms_of
from placer.solve.score.stages import add_stages

if TYPE_CHECKING:
    from placer.solve.score._kernel import Hops, StepTime

# Two placements tell whether the compiled step and the scorer agree on a job.
SAME = 1e-9


def step_kernel(model: StepModel, slots: Slots) -> tuple[Slots, StepTime, int] | None:
    """The slots in the order of the tree, the step on them, and atoms of a unit.

    None where the scorer says something else.
    """
    sites = Sites.of_time(model.fabric)
    slots = slots.in_order(sites.tree)
    atoms = slots.single() if model.job.roles else atoms_of(slots, sites)
    step = _step(model, sites, atoms)
    width = slots.ranks.shape[1] // atoms.ranks.shape[1]
    return (slots, step, width) if _agrees(model, step, atoms) else None


def _step(model: StepModel, sites: Sites, atoms: Slots) -> StepTime:
    """The step of a job whose atoms may be on the slots."""
    from placer.solve.score._kernel import StepTime

    step = StepTime()
    set_machine(step, model.fabric, sites, atoms)
    operations = Operations(step, model.fabric, atoms, sites)
    add_exposed(model, operations)
    _add_roles(model, step, sites, atoms)
    add_stages(model, operations)
    return step


def _add_roles(model: StepModel, step: StepTime, sites: Sites, atoms: Slots) -> None:
    """Instances of roles, each a job of its own; atoms are single ranks.

    Those that send nothing take as long anywhere, where GPUs are alike.
    """
    alike, least = model.fabric.speed_of_gpu is None, 0.0
    atom = row_of_number(atoms.ranks)
    for role, own in model.instances:
        if not role.steps:
            continue
        if role.is_silent and alike:
            first = np.arange(role.job.world_size)
            least = max(least, role.steps * own.step(first).step_time_s)
            continue
        for offset in role.offsets:
            ranks = np.arange(role.job.world_size)
            some = Slots(ranks[:, None], atoms.gpus)
            instance = _step(own, sites, some)
            step.add_instance(instance, float(role.steps), atom[ranks + offset])
    step.set_least_roles(least)


def _agrees(model: StepModel, step: StepTime, atoms: Slots) -> bool:
    """Whether two placements cost what the scorer says."""
    draw = np.random.default_rng(0)
    count = len(atoms.ranks)
    for slots in (np.arange(count), draw.permutation(len(atoms.gpus))[:count]):
        step.load(slots)
        known = model.step(atoms.gpu_of_rank(slots)).step_time_s
        if abs(step.value - known) > SAME * known:
            return False
    return True


def set_machine(
    kernel: StepTime | Hops, fabric: Fabric, sites: Sites, atoms: Slots
) -> None:
    """Give a kernel the machine, and the site of each slot."""
    tiers = sites.tiers.tolist()
    capacity = [np.asarray(fabric.uplink_capacity[t], float) for t in tiers]
    shared = [
        fabric.shared_uplinks.get(t, np.full(len(own), np.inf))
        for t, own in zip(tiers, capacity, strict=True)
    ]
    kernel.set_machine(
        scale_up=sites.scale_up,
        child=sites.child,
        bandwidth=fabric.bandwidth[tiers],
        latency=fabric.latency[tiers],
        detour=fabric.detour[tiers],
        capacity=capacity,
        shared=np.concatenate(shared),
        rail=sites.rail,
        factor=sites.factor,
        speed=sites.speed,
        site=sites.of_gpu[atoms.gpus[:, 0]],
    )
