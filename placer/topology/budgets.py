"""Budgets beside the tree: what sets of hosts may run in all.

The sets need not nest in the tiers: the racks behind one power feed, the hosts of one
licence or one cooling loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placer.hostlist import matching
from placer.units import format_power, parse_power

if TYPE_CHECKING:
    from placer.document import Section
    from placer.topology.gpu import Gpu

LIMITS = ("gpus", "replicas", "watts")


@dataclass(frozen=True)
class Budget:
    """A limit on what some hosts run.

    Attributes
    ----------
    hosts : str
        As the file has them, such as ``r[01-08]*``.
    names : frozenset of str
        The nodes that are meant.
    gpus, replicas : int or None
        GPUs that may hold ranks, and data-parallel replicas that may have ranks there.
    watts : float or None
        What GPUs with ranks may draw there.
    gpu_watts : float
        What one of them draws.
    """

    hosts: str
    names: frozenset[str]
    gpus: int | None = None
    replicas: int | None = None
    watts: float | None = None
    gpu_watts: float = 0.0

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

    def __str__(self) -> str:
        limits = []
        if self.gpus is not None:
            limits.append(f"{self.gpus:,} GPU{'s' * (self.gpus != 1)}")
        if self.watts is not None:
            each = format_power(self.gpu_watts)
            limits.append(f"{format_power(self.watts)} at {each} a GPU")
        if self.replicas is not None:
            limits.append(f"{self.replicas:,} replica{'s' * (self.replicas != 1)}")
        return f"at most {' and '.join(limits)} on {self.hosts}"


def read_budgets(root: Section, gpu: Gpu, names: Sequence[str]) -> tuple[Budget, ...]:
    """The list ``budgets`` of a topology, checked; problems go to the document.

    ``names`` are all nodes of the machine, usable or not; none where they are unknown.
    """
    return tuple(
        _read_budget(value.section(), gpu, names) for value in root.items("budgets")
    )


def _read_budget(section: Section, gpu: Gpu, names: Sequence[str]) -> Budget:
    hosts = section.text("hosts")
    meant: list[str] = []
    if hosts and names:
        try:
            meant = matching(hosts, names)
        except ValueError as error:
            section.problem(str(error), "hosts")
    given = [key for key in LIMITS if section.has(key)]
    if not given:
        section.problem(f"expected one of {', '.join(LIMITS)}")
    if "watts" in given and not gpu.power:
        hint = "say what one draws, such as gpu: {power: 1000W}"
        section.problem("the power of a GPU is not known", "watts", hint)
    return Budget(
        hosts,
        frozenset(meant),
        section.integer("gpus", minimum=0) if "gpus" in given else None,
        section.integer("replicas", minimum=0) if "replicas" in given else None,
        section.quantity("watts", parse_power) if "watts" in given else None,
        gpu.power or 1.0,
    )


def budgets_entry(budgets: Sequence[Budget]) -> dict[str, Any]:
    """The key ``budgets`` with its value; empty without any."""
    entries = [
        {"hosts": budget.hosts}
        | {
            key: limit
            for key in LIMITS
            if (limit := getattr(budget, key)) is not None
        }
        for budget in budgets
    ]
    return {"budgets": entries} if entries else {}
