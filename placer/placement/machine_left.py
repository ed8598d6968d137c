"""The machine and the rules of a plan after some of its hosts have failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from placer.errors import InfeasibleError, InputError, Problem, refuse
from placer.job.rules import Pin, Rules
from placer.topology.suggest import Suggester

if TYPE_CHECKING:
    from placer.placement.plan import Plan
    from placer.topology.model import Topology


def machine_left(
    topology: Topology,
    plan: Plan,
    failed: Sequence[str],
    added: Sequence[str] | None,
) -> Topology:
    """The machine without what failed, and with no other hosts than may be used.

    Parameters
    ----------
    topology : Topology
    plan : Plan
    failed : sequence of str
        Hosts of the topology or of the plan.
    added : sequence of str, optional
        Hosts to use beside those of the plan and its spares; every one when None.

    Raises
    ------
    InputError
        If a host is unknown, an added one unavailable, or no host is left.
    """
    refuse(_host_problems(topology, plan, failed, added or ()))
    gone = set(failed)
    wanted = None
    if added is not None:
        spare = plan.rules.get("spare_nodes", ())
        wanted = {*plan.nodes, *spare, *added}
    out = dict.fromkeys(gone, "failed")
    if wanted is not None:
        others = set(topology.node_names) - wanted - gone
        out |= dict.fromkeys(others, "neither in the plan nor added")
    left = [n for n, name in enumerate(topology.node_names) if name not in out]
    if not left:
        raise InputError([Problem("every host has failed", key="failed")])
    known = {*topology.node_names, *topology.unavailable}
    missing = {name: "not in the topology" for name in plan.nodes if name not in known}
    out = missing | out
    if not out:
        return topology
    return replace(
        topology.select(np.array(left, dtype=np.int64)),
        unavailable={**topology.unavailable, **out},
    )


def _host_problems(
    topology: Topology, plan: Plan, failed: Sequence[str], added: Sequence[str]
) -> Iterator[Problem]:
    """Problems of hosts that are unknown, or not what they are said to be."""
    known, suggester = set(topology.node_names), Suggester(topology.node_names)
    elsewhere = {*topology.unavailable, *plan.nodes}
    for key, hosts in (("failed", failed), ("added", added)):
        for host in dict.fromkeys(hosts):
            if host not in known and host not in elsewhere:
                message = f'the topology has no host "{host}"'
                yield Problem(message, key=key, hint=suggester.hint(host))
    for host in dict.fromkeys(added):
        if host in topology.unavailable:
            why = topology.unavailable[host]
            yield Problem(f'host "{host}" is unavailable: {why}', key="added")
        elif host in failed:
            message = f'host "{host}" is said to have failed and to be added'
            yield Problem(message, key="added")


def rules_left(rules: Rules, machine: Topology) -> Rules:
    """The rules that still bind: no spares, and only hosts that are left.

    Raises
    ------
    InfeasibleError
        If every host of a pin has failed.
    """
    there = set(machine.node_names)
    pins = []
    for pin in rules.pin:
        hosts = tuple(host for host in pin.hosts if host in there)
        if not hosts:
            raise InfeasibleError(
                f"{pin}: all of these hosts have failed"
                "\n  hint: place the job again without this pin"
            )
        pins.append(Pin(pin.ranks, hosts))
    avoid = tuple(host for host in rules.avoid if host in there)
    return replace(rules, pin=tuple(pins), avoid=avoid, spares={})
