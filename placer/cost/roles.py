"""The cycle of a workload: what each role takes between two transfers.

``role = steps x step of its slowest instance``: an instance is priced as the job it is.
Instances do not slow each other down on links that they share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.cost.links import Cost, Traffic, total_traffic
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
    return OfInstance(network, first_rank)


@dataclass(frozen=True, eq=False)
class OfInstance(Network):
    """The network as the ranks of one instance see it, numbered from 0."""

    whole: Network
    first_rank: int

    def gather(self, members: IntArray, size_bytes: float) -> Cost:
        """One reduce-scatter or all-gather in every row of ``members``."""
        return self.whole.gather(members + self.first_rank, size_bytes)

    def all_reduce(
        self, members: IntArray, size_bytes: float, algorithm: str = "auto"
    ) -> Cost:
        """One all-reduce in every row of ``members``."""
        return self.whole.all_reduce(members + self.first_rank, size_bytes, algorithm)

    def all_to_all(self, members: IntArray, size_bytes: float, copies: int = 0) -> Cost:
        """One all-to-all in every row of ``members``."""
        return self.whole.all_to_all(members + self.first_rank, size_bytes, copies)

    def send(self, senders: IntArray, receivers: IntArray, size_bytes: float) -> Cost:
        """A message from each sender to its receiver."""
        first = self.first_rank
        return self.whole.send(senders + first, receivers + first, size_bytes)

    def relay(self, members: IntArray, size_bytes: float) -> list[Cost]:
        """Messages along each row of ``members``, the cost of each hop in turn."""
        return self.whole.relay(members + self.first_rank, size_bytes)

    def pass_on(self, members: IntArray, size_bytes: float) -> Cost:
        """A message from each member of a row to the next one, around it."""
        return self.whole.pass_on(members + self.first_rank, size_bytes)

    def flows(
        self,
        senders: IntArray,
        receivers: IntArray,
        size_bytes: FloatArray,
        pair_share: float = 1.0,
    ) -> Cost:
        """Messages of any sizes between different ranks, all at once."""
        ends = senders + self.first_rank, receivers + self.first_rank
        return self.whole.flows(*ends, size_bytes, pair_share)

    def stays_inside(self, members: IntArray) -> BoolArray:
        """Whether each row of ``members`` lies in one scale-up domain."""
        return self.whole.stays_inside(members + self.first_rank)

    def speed(self, members: IntArray) -> FloatArray:
        """Share of the usual speed of the slowest rank of each row; shape (g,)."""
        return self.whole.speed(members + self.first_rank)
