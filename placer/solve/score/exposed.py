"""What compute leaves exposed of gradients, parameters and the user's own groups.

Shapes: P stages, V chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

from placer.cost.custom import TRAFFIC, group_time, hidden_kinds
from placer.cost.gradients import SyncTime, sync_time
from placer.cost.network import Network
from placer.cost.step import StepModel
from placer.job.traffic import Group
from placer.solve.score.calls import Call, CallNetwork
from placer.solve.score.groups import Rows
from placer.solve.score.operations import Operations


def add_exposed(model: StepModel, operations: Operations) -> None:
    """Add all that is exposed after the pipelines."""
    _add_kinds(model, operations)
    if model.job.model is None:
        return
    axes, mode, hidden = model.job.parallelism, model.job.data_parallel, model.windows
    operations.step.set_sync(
        stages=axes.pp,
        chunks=axes.vp,
        overlap_reduce=mode.overlap_reduce,
        overlap_gather=mode.overlap_gather,
        backward_s=hidden.backward_s,
        backward_window_s=hidden.backward_window_s,
        forward_s=hidden.forward_s,
        forward_window_s=hidden.forward_window_s,
        buckets=hidden.buckets,
        share=mode.sm_share,
        every=mode.sync_every,
        others=model.job.micro_batches - 1,
        reduces_each=mode.reduces_each,
        gathers_each=mode.gathers_each,
    )
    network = CallNetwork()
    _sync_on(model, network)
    for numbers in _alike(network.calls):
        calls = [network.calls[number] for number in numbers]
        added = operations.add(calls)
        stage = axes.coordinates["pp"][calls[0].members[:, 0]]
        groups = Rows.pairs(stage, added.of_row, axes.pp)
        for size, number in enumerate(numbers):
            # What comes of a second of this call alone.
            one = _sync_on(model, CallNetwork(_only(number)))
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


def _sync_on(model: StepModel, network: Network) -> SyncTime:
    return sync_time(network, model.job, model.volumes, model.windows.buckets)


def _only(number: int) -> Callable[[int], float]:
    """A second for one call, none for others."""
    return lambda call: float(call == number)


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
