"""The ``rules`` section of a plan: what it was made under, and what it keeps free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from placer.base.hostlist import HostLists
from placer.documents.facts import TEXT, Facts, facts, whole
from placer.documents.keys import Key, Kind, list_of, map_of
from placer.documents.value import Value
from placer.job.rules import MAX_HOSTS, Pin, Rules, parse_ranks
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


class _Pin(Facts):
    ranks = Key(TEXT, "ranks, as `0-3,12`")
    nodes = Key(TEXT, "hosts that they must be on")


class _Rules(Facts):
    pin = Key(list_of(facts(_Pin)), "ranks on given hosts", None)
    avoid = Key(list_of(TEXT), "hosts to use only where nothing else fits", None)
    at_most = Key(map_of(whole(1)), "tier: replicas in one domain at most", None)
    spares = Key(map_of(whole(1)), "tier: nodes kept free in each domain used", None)
    budgets = Key(list_of(TEXT), "what is used of each budget", None)
    spare_nodes = Key(list_of(TEXT), "nodes that are free in these domains", None)
    avoided_nodes = Key(list_of(TEXT), "nodes to avoid that are used", None)


def _read(value: Value, usual: Any) -> Any:
    """The section; lists of ranks and of hosts in it are looked into."""
    known = len(value.document.problems)
    section = facts(_Rules).read(value, usual)
    if len(value.document.problems) == known:
        for key in section.keys() & {"pin", "avoid"}:
            try:
                rules_of({key: section[key]})
            except ValueError as error:
                value.document.problem(str(error), (*value.path, key))
    return section


RULES = Kind(lambda: facts(_Rules).schema(), _read, {})


def _names(topology: Topology, mask: np.ndarray) -> list[str]:
    return [topology.node_names[node] for node in np.flatnonzero(mask)]
