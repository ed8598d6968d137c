"""The inputs of a plan after some of its hosts have failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from placer.base.errors import InfeasibleError, Problem, refuse
from placer.base.naming import named
from placer.topology.suggest import Suggester

if TYPE_CHECKING:
    from placer.placement.inputs import Inputs
    from placer.placement.plan import Plan
    from placer.topology.model import Topology


def inputs_left(
    inputs: Inputs, plan: Plan, failed: Sequence[str], added: Sequence[str] | None
) -> Inputs:
    """The inputs without what failed: the same allocation, and what was added to it.

    Parameters
    ----------
    inputs : Inputs
        Of the plan.
    plan : Plan
        One that keeps no inputs does not tell its allocation: it is taken for the whole
        machine, or with ``added`` for the plan's nodes and its spares.
    failed : sequence of str
        Hosts of the topology or of the plan.
    added : sequence of str, optional
        Hosts to use beside those of the allocation.

    Raises
    ------
    InputError
        If a host is unknown, or an added one unavailable.
    InfeasibleError
        If no host is left.
    """
    topology, more = inputs.topology, added or ()
    refuse(_host_problems(topology, plan, failed, more))
    there = {*topology.node_names}
    hosts = inputs.hosts
    if not plan.inputs and added is not None:
        hosts = tuple(allocated(inputs, plan, is_told=True))
    if hosts is not None:
        # In launch order, newcomers last; what the machine lost is no host of it.
        hosts = tuple(name for name in dict.fromkeys([*hosts, *more]) if name in there)
    gone = dict.fromkeys([*inputs.exclude, *failed])
    exclude = tuple(name for name in gone if name in there and name not in more)
    if not {*(there if hosts is None else hosts)} - {*exclude}:
        ranks = inputs.job.parallelism.world_size
        text = f"every host has failed: the job needs {ranks:,} GPUs, none is left"
        raise InfeasibleError(text, hints=[f"add hosts: {named('added')}"])
    return replace(inputs, hosts=hosts, exclude=exclude, use_spares=True)


def allocated(inputs: Inputs, plan: Plan, *, is_told: bool) -> Iterator[str]:
    """The hosts that the job had; ``is_told``: what it had is those of the plan.

    That counts of a plan without inputs alone.
    """
    every = inputs.topology.node_names
    if not plan.inputs and is_told:
        wanted = {*plan.nodes, *plan.rules.get("spare_nodes", ())}
    else:
        wanted = {*(every if inputs.hosts is None else inputs.hosts)}
        wanted -= {*inputs.exclude}
    yield from (name for name in every if name in wanted)


def machine_left(left: Inputs, plan: Plan, failed: Sequence[str]) -> Topology:
    """The machine that is left, and why each node that is not in it is not."""
    topology, machine = left.topology, left.machine
    known = {*topology.node_names, *topology.unavailable}
    out = {name: "not in the topology" for name in plan.nodes if name not in known}
    out |= dict.fromkeys(failed, "failed")
    return replace(machine, unavailable={**machine.unavailable, **out})


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
