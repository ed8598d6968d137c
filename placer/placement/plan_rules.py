"""The ``rules`` section of a plan: what it was made under, and what it keeps free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.base.hostlist import HostLists
from placer.job.rules import MAX_HOSTS, Pin, Rules, parse_ranks

if TYPE_CHECKING:
    from placer.placement.placement import Placement
    from placer.topology.model import Topology


def rules_section(
    rules: Rules, topology: Topology, placement: Placement
) -> dict[str, Any]:
    """The rules, what is used of budgets, spare nodes, and avoided nodes in use.

    Empty without rules. ``spare_nodes`` are all free nodes in the domains that have
    ranks and must keep some.
    """
    if not rules:
        return {}
    section = rules.to_document()
    used = np.zeros(topology.num_nodes, dtype=bool)
    used[topology.node_of_gpu[placement.gpu_of_rank]] = True
    if rules.spares:
        wanted = np.zeros_like(used)
        for tier in rules.spares:
            row = topology.domain_of_node[topology.tier_index(tier)]
            wanted |= np.isin(row, row[used])
        section["spare_nodes"] = _names(topology, wanted & ~used)
    if rules.budgets:
        held = topology.node_of_gpu[placement.gpu_of_rank]
        names = [topology.node_names[node] for node in held]
        section["budgets"] = [
            f"{sum(name in budget.names for name in names):,} GPUs, {budget}"
            for budget in rules.budgets
        ]
    if rules.avoid:
        avoided = np.isin(np.array(topology.node_names), rules.avoid)
        section["avoided_nodes"] = _names(topology, avoided & used)
    return section


def rules_of(section: Mapping[str, Any]) -> Rules:
    """The rules that a well-formed section states."""
    lists = HostLists(MAX_HOSTS)
    return Rules(
        pin=tuple(
            Pin(parse_ranks(pin["ranks"]), tuple(lists.expand(pin["nodes"])))
            for pin in section.get("pin", ())
        ),
        avoid=tuple(
            host for text in section.get("avoid", ()) for host in lists.expand(text)
        ),
        at_most=section.get("at_most", {}),
        spares=section.get("spares", {}),
    )


def form_problems(section: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(key, what is wrong) of a section out of a file."""
    for key in ("avoid", "budgets", "spare_nodes", "avoided_nodes"):
        if not _is_texts(section.get(key, [])):
            yield f"rules.{key}", "expected a list of names"
    for key in ("at_most", "spares"):
        numbers = section.get(key, {})
        if not isinstance(numbers, dict) or any(
            type(number) is not int or number < 1 for number in numbers.values()
        ):
            yield f"rules.{key}", "expected whole numbers of at least 1, one a tier"
    pins = section.get("pin", [])
    if not isinstance(pins, list) or not all(
        isinstance(pin, dict) and _is_texts([pin.get("ranks"), pin.get("nodes")])
        for pin in pins
    ):
        yield "rules.pin", "expected a list of ranks and nodes"
        return
    try:
        rules_of({"pin": pins})
    except ValueError as error:
        yield "rules.pin", str(error)
    try:
        rules_of({"avoid": section.get("avoid", [])})
    except (ValueError, TypeError) as error:
        yield "rules.avoid", str(error)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _names(topology: Topology, mask: np.ndarray) -> list[str]:
    return [topology.node_names[node] for node in np.flatnonzero(mask)]
