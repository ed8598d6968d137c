"""The step time as a compiled evaluator, made of the calls of the scorer.

It has the machine, the stages (`stages`), what compute leaves exposed after them, and
the instances of roles, each a step of its own. Two placements tell whether it says what
the scorer says.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import row_of_number
from placer.base.rounding import EXACT
from placer.cost.custom import TRAFFIC, group_time, hidden_kinds
from placer.cost.fabric import Fabric
from placer.cost.step import StepModel
from placer.job.traffic import Group
from placer.solve.score.calls import Call, CallNetwork
from placer.solve.score.groups import Rows
from placer.solve.score.operations import Operations
from placer.solve.score.slots import Sites, Slots, atoms_of
from placer.solve.score.stages import add_stages

if TYPE_CHECKING:
    from placer.solve.score._kernel import Hops, StepTime


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
    _add_exposed(model, operations)
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


def _add_exposed(model: StepModel, operations: Operations) -> None:
    """Add what compute leaves exposed after the pipelines.

    Of gradients, parameters, and the user's own groups and traffic.
    """
    _add_kinds(model, operations)
    if model.job.model is None:
        return
    axes, mode, hidden = model.job.parallelism, model.job.data_parallel, model.windows
    operations.step.set_sync(
        stages=axes.pp,
        chunks=axes.vp,
        overlap_reduce=mode.overlap_reduce,
        overlap_gather=mode.overlap_gather,
        backward_s=hidden.reduce.chunk_s,
        backward_window_s=hidden.reduce.seconds,
        forward_s=hidden.gather.chunk_s,
        forward_window_s=hidden.gather.seconds,
        buckets=hidden.buckets,
        share=mode.sm_share,
        every=mode.sync_every,
        others=model.job.micro_batches - 1,
        reduces_each=mode.reduces_each,
        gathers_each=mode.gathers_each,
    )
    network = CallNetwork()
    model.sync(network)
    for numbers in _alike(network.calls):
        calls = [network.calls[number] for number in numbers]
        added = operations.add(calls)
        stage = axes.coordinates["pp"][calls[0].members[:, 0]]
        groups = Rows.pairs(stage, added.of_row, axes.pp)
        for size, number in enumerate(numbers):
            # What comes of a second of this call alone.
            one = model.sync(CallNetwork({number: 1.0}))
            operations.step.add_sync(
                added.number,
                size,
                groups=groups,
                reduce=one.reduce.ravel(),
                again=one.again_reduce.ravel(),
                gather=one.gather.ravel(),
                first_bucket=one.first_bucket,
                embedding=one.embedding,
            )


def _alike(calls: list[Call]) -> Iterator[list[int]]:
    """Numbers of calls that differ in nothing but the size, together."""

    def key(number: int) -> tuple[str, int, str]:
        one = calls[number]
        return one.kind, id(one.members), one.algorithm

    for _, numbers in groupby(sorted(range(len(calls)), key=key), key):
        yield list(numbers)


def _add_kinds(model: StepModel, operations: Operations) -> None:
    """Groups of the user's own, and the traffic between ranks."""
    job, hidden = model.job, hidden_kinds(model.job)
    kinds = [
        (group.name, [*_operations_of(model, operations, group)], group.per_step)
        for group in job.groups
    ]
    if job.traffic is not None:
        kinds.append((TRAFFIC, [operations.flows(job.traffic)], 1.0))
    for name, numbers, times in kinds:
        hides = model.hides if name in hidden else 0.0
        if numbers:  # ranks that are all alone in their groups send nothing
            cover = model.compute_s * hides
            operations.step.add_kind(numbers, times, cover, hides)


def _operations_of(
    model: StepModel, operations: Operations, group: Group
) -> Iterator[int]:
    """The communicators of each size."""
    if group.collective == "relay":  # hops in turn
        yield operations.relay(model, group)
        return
    network = CallNetwork()
    group_time(network, group, model.job.collectives)
    for call in network.calls:
        yield operations.add([call]).number


def _agrees(model: StepModel, step: StepTime, atoms: Slots) -> bool:
    """Whether two placements cost what the scorer says."""
    draw = np.random.default_rng(0)
    count = len(atoms.ranks)
    for slots in (np.arange(count), draw.permutation(len(atoms.gpus))[:count]):
        step.load(slots)
        known = model.step(atoms.gpu_of_rank(slots)).step_time_s
        if abs(step.value - known) > EXACT * known:
            return False
    return True


def set_machine(
    kernel: StepTime | Hops, fabric: Fabric, sites: Sites, atoms: Slots
) -> None:
    """Give a kernel the machine, and the site of each slot."""
    tiers = sites.tiers.tolist()
    capacity = [fabric.uplink_capacity[t] for t in tiers]
    children = [len(own) for own in capacity]
    shared = [
        fabric.shared_uplinks.get(t, np.full(count, np.inf))
        for t, count in zip(tiers, children, strict=True)
    ]
    kernel.set_machine(
        scale_up=sites.scale_up,
        child=np.stack(sites.child, axis=1).ravel(),
        children=np.array(children),
        bandwidth=fabric.bandwidth[tiers],
        latency=fabric.latency[tiers],
        detour=fabric.detour[tiers],
        capacity=np.tile(np.concatenate(capacity, dtype=float), 2),  # up and down
        shared=np.tile(np.concatenate(shared), 2),
        rail=sites.rail,
        factor=sites.factor,
        speed=sites.speed,
        site=sites.of_gpu[atoms.gpus[:, 0]],
    )
