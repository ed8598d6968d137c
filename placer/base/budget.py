"""A budget beside the tree: what a set of hosts may run in all.

The set need not nest in the tiers: the racks behind one power feed, the hosts of one
licence or one cooling loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from placer.base.units import counted, format_power


@dataclass(frozen=True)
class HostBudget:
    """A limit on what some hosts run."""

    hosts: str  # as the file has them, such as ``r[01-08]*``
    names: frozenset[str]  # the nodes that are meant
    # gpus and replicas: GPUs that may hold ranks, and data-parallel replicas that may
    # have ranks there.
    gpus: int | None = None
    replicas: int | None = None
    watts: float | None = None  # what GPUs with ranks may draw there
    gpu_watts: float = 0.0  # what one of them draws

    @property
    def most_gpus(self) -> int | None:
        """GPUs that may hold ranks by ``gpus`` and by ``watts``; None for any number.

        A budget of 2.4 kW is one of two GPUs of 1.2 kW, whatever floats make of it.
        """
        drawn = (
            None
            if self.watts is None
            else int(self.watts / self.gpu_watts * (1 + 1e-12))
        )
        return min((n for n in (self.gpus, drawn) if n is not None), default=None)

    def most_ranks(self, replica_size: int) -> int | None:
        """Ranks that may be there, in replicas of so many; None for any number."""
        replicas = self.replicas and self.replicas * replica_size
        return min(
            (n for n in (self.most_gpus, replicas) if n is not None), default=None
        )

    def __str__(self) -> str:
        limits = []
        if self.gpus is not None:
            limits.append(counted(self.gpus, "GPU"))
        if self.watts is not None:
            each = format_power(self.gpu_watts)
            limits.append(f"{format_power(self.watts)} at {each} a GPU")
        if self.replicas is not None:
            limits.append(counted(self.replicas, "replica"))
        return f"at most {' and '.join(limits)} on {self.hosts}"
