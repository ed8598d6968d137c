"""The list ``budgets`` of a topology, read and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placer.base.budget import Budget
from placer.base.hostlist import matching
from placer.base.units import parse_power

if TYPE_CHECKING:
    from placer.documents import Section
    from placer.topology.gpu import Gpu

LIMITS = ("gpus", "replicas", "watts")


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
        | {key: limit for key in LIMITS if (limit := getattr(budget, key)) is not None}
        for budget in budgets
    ]
    return {"budgets": entries} if entries else {}
