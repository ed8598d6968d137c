"""The cycle of a workload: what each role takes between two transfers.

``role = steps x step of its slowest instance``: an instance is priced as the job it is.
Instances do not slow each other down on links that they share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from placer.cost.links import Traffic, total_traffic
from placer.cost.network import Network, PlacedNetwork
from placer.job.roles import Role

if TYPE_CHECKING:
    from placer.cost.step import Step, StepModel


@dataclass(frozen=True, eq=False)
class RoleTime:
    """What a role takes in a cycle."""

    role: Role
    steps: tuple[Step, ...]  # of each instance

    @property
    def seconds(self) -> float:
        """Seconds of a cycle."""
        return self.slowest.step_time_s * self.role.steps

    @property
    def slowest_instance(self) -> int:
        """The instance that takes longest, the first of equals."""
        times = [step.step_time_s for step in self.steps]
        return times.index(max(times))

    @property
    def slowest(self) -> Step:
        """The step of the slowest instance."""
        return self.steps[self.slowest_instance]

    def traffic(self) -> dict[str, Traffic]:
        """What all instances send in a cycle, by ``role.axis``."""
        by_axis: dict[str, list[Traffic]] = {}
        for step in self.steps:
            for axis, sent in step.traffic().items():
                by_axis.setdefault(axis, []).append(sent)
        found = {}
        for axis, parts in by_axis.items():
            total = total_traffic(parts)
            if total is not None:
                found[f"{self.role.name}.{axis}"] = total.times(self.role.steps)
        return found


def role_times(
    network: Network, models: tuple[tuple[Role, StepModel], ...]
) -> tuple[RoleTime, ...]:
    """The time of each role, every instance on its own part of the network."""
    return tuple(RoleTime(role, _steps(network, role, model)) for role, model in models)


def _steps(network: Network, role: Role, model: StepModel) -> tuple[Step, ...]:
    """The step of each instance.

    Instances that send nothing themselves differ in the speed of their GPUs alone:
    those alike share one step, as there may be thousands.
    """
    first_ranks = np.array(role.offsets)
    priced, instance = first_ranks, np.arange(role.instances)
    if role.is_silent:
        ranks = first_ranks[:, None] + np.arange(role.job.world_size)
        speed = network.speed(ranks.reshape(-1, 1)).reshape(ranks.shape)
        _, first, instance = np.unique(
            speed, axis=0, return_index=True, return_inverse=True
        )
        priced = first_ranks[first]
    steps = [model.step_on(_of_instance(network, int(at))) for at in priced]
    return tuple(steps[kind] for kind in instance.ravel())


def _of_instance(network: Network, first_rank: int) -> Network:
    """The network as the ranks from the first one of an instance on see it."""
    if isinstance(network, PlacedNetwork):
        return PlacedNetwork(network.fabric, network.gpu_of_rank[first_rank:])
    return cast("Network", OfInstance(network, first_rank))


@dataclass(frozen=True, eq=False)
class OfInstance:
    """The network as the ranks of one instance see it, numbered from 0."""

    whole: Network
    first_rank: int

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """An operation: of what it is given, arrays of whole numbers are ranks."""

        def run(*given: Any, **more: Any) -> Any:
            return getattr(self.whole, name)(*map(self._moved, given), **more)

        return run

    def _moved(self, given: Any) -> Any:
        is_ranks = isinstance(given, np.ndarray) and given.dtype.kind == "i"
        return given + self.first_rank if is_ranks else given
