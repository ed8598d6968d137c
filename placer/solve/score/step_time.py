"""The step time as a compiled evaluator, made of what the scorer asks and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placer.solve.score.exposed import add_exposed
from placer.solve.score.operations import Operations
from placer.solve.score.slots import Sites, Slots, atoms_of
from placer.solve.score.stages import add_stages

if TYPE_CHECKING:
    from placer.cost.fabric import Fabric
    from placer.cost.step import StepModel
    from placer.solve.score._kernel import Hops, StepTime

# Two placements tell whether the compiled step and the scorer agree on a job.
SAME = 1e-9


def step_kernel(model: StepModel, slots: Slots) -> tuple[Slots, StepTime, int] | None:
    """The slots in the order of the tree, the step on them, and atoms of a unit.

    None where the scorer says something else, as of a workload of roles.
    """
    from placer.solve.score._kernel import StepTime

    if model.job.roles:
        return None
    sites = Sites.of_time(model.fabric)
    slots = slots.in_order(sites.tree)
    atoms = atoms_of(slots, sites)
    step = StepTime()
    set_machine(step, model.fabric, sites, atoms)
    operations = Operations(step, model.fabric, atoms, sites)
    add_exposed(model, operations)
    add_stages(model, operations)
    width = slots.ranks.shape[1] // atoms.ranks.shape[1]
    return (slots, step, width) if _agrees(model, step, atoms) else None


def _agrees(model: StepModel, step: StepTime, atoms: Slots) -> bool:
    """Whether two placements cost what the scorer says."""
    draw = np.random.default_rng(0)
    count = len(atoms.ranks)
    for slots in (np.arange(count), draw.permutation(len(atoms.gpus))[:count]):
        step.load(slots.astype(np.int32))
        known = model.step(atoms.gpu_of_rank(slots)).step_time_s
        if abs(step.value - known) > SAME * known:
            return False
    return True


def set_machine(
    kernel: StepTime | Hops, fabric: Fabric, sites: Sites, atoms: Slots
) -> None:
    """Give a kernel the machine, and the site of each slot."""
    tiers = sites.tiers.tolist()

    def numbers(values: Any) -> Any:
        return np.ascontiguousarray(values, dtype=np.int32)

    kernel.set_machine(
        [numbers(child) for child in sites.child],
        np.ascontiguousarray(fabric.bandwidth[tiers]),
        np.ascontiguousarray(fabric.latency[tiers]),
        np.ascontiguousarray(fabric.detour[tiers]),
        [np.ascontiguousarray(fabric.uplink_capacity[t], dtype=float) for t in tiers],
        sites.scale_up,
        numbers(sites.rail),
        np.ascontiguousarray(sites.factor),
        np.ascontiguousarray(sites.speed),
        numbers(sites.of_gpu[atoms.gpus[:, 0]]),
    )
