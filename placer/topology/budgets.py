"""The list ``budgets`` of a topology, read and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from placer.base.budget import HostBudget
from placer.base.hostlist import matching
from placer.documents import Section
from placer.documents.keys import POWER, TEXT, Key, integer

if TYPE_CHECKING:
    from placer.topology.gpu_kinds import Gpu


class Limits:
    """The keys of ``budgets``."""

    hosts = Key(TEXT, "an item that ends in `*` means every node that begins so")
    gpus = Key(
        integer(0), "GPUs of these hosts that may hold ranks", None, absent="any number"
    )
    replicas = Key(
        integer(0),
        "data-parallel replicas that may have ranks on them",
        None,
        absent="any number",
    )
    watts = Key(
        POWER,
        "what they may draw: `gpu: {power: ...}` for each GPU with a rank, its "
        "share of host, switch and cooling with it; idle GPUs count nothing",
        None,
        absent="any power",
    )
    together: ClassVar[dict[str, Any]] = {
        "anyOf": [{"required": [limit]} for limit in ("gpus", "watts", "replicas")]
    }


LIMITS = ("gpus", "replicas", "watts")


def read_budgets(
    root: Section, gpu: Gpu, names: Sequence[str]
) -> tuple[HostBudget, ...]:
    """The list ``budgets`` of a topology, checked; problems go to the document.

    ``names`` are all nodes of the machine, usable or not; none where they are unknown.
    """
    return tuple(
        _read_budget(value.section(), gpu, names) for value in root.items("budgets")
    )


def _read_budget(section: Section, gpu: Gpu, names: Sequence[str]) -> HostBudget:
    hosts, value = Limits.hosts.take(section), section.get("hosts")
    meant: list[str] = []
    if value and hosts and names:
        meant = value.made(matching, hosts, names, default=[])
    given = [key for key in LIMITS if section.has(key)]
    if not given:
        section.problem(f"expected one of {', '.join(LIMITS)}")
    if "watts" in given and not gpu.power:
        hint = "say what one draws, such as gpu: {power: 1000W}"
        section.problem("the power of a GPU is not known", "watts", hint)
    return HostBudget(
        hosts,
        frozenset(meant),
        Limits.gpus.take(section),
        Limits.replicas.take(section),
        Limits.watts.take(section),
        gpu.power or 1.0,
    )


def budget_entries(budgets: Sequence[HostBudget]) -> list[dict[str, Any]]:
    """The list ``budgets``, as read."""
    return [
        {"hosts": budget.hosts}
        | {key: limit for key in LIMITS if (limit := getattr(budget, key)) is not None}
        for budget in budgets
    ]
