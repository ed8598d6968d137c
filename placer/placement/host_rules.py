"""Rules about hosts and failures on one machine: those of a job and those added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from placer.base.budget import HostBudget
from placer.base.errors import InfeasibleError, Problem, refuse
from placer.base.units import plural
from placer.documents import known_hint
from placer.job.model import Job
from placer.job.rules import Pin, Rules
from placer.topology.model import Topology
from placer.topology.suggest import Suggester


def unknown_tiers(
    topology: Topology, require: Iterable[tuple[str, str]], rules: Rules
) -> Iterator[Problem]:
    """A problem for every tier that the topology lacks, or that cannot have spares.

    ``require``: axis or group, and the tier it must stay inside.
    """
    known = [tier.name for tier in topology.by_island.tiers]
    for axis, tier in require:
        if tier not in known:
            message, hint = _unknown(tier, topology.name, known)
            yield Problem(message, key=f"require.{axis}", hint=hint)
    tiers = [tier.name for tier in topology.tiers]
    for key, numbers in (("at_most", rules.at_most), ("spares", rules.spares)):
        for tier in numbers:
            if tier not in tiers:
                yield rules.problem(
                    f"{key}.{tier}", *_unknown(tier, topology.name, tiers)
                )
            elif key == "spares" and tier == tiers[0]:
                message = f"spares are whole {plural(tier, 2)}, which no {tier} holds"
                hint = f"name a tier above {tier}: {', '.join(tiers[1:])}"
                hint = hint if tiers[1:] else "the machine has no tier above it"
                yield rules.problem(f"{key}.{tier}", message, hint)


def _unknown(tier: str, machine: str, known: list[str]) -> tuple[str, str]:
    hint = known_hint(tier, known)
    return f'the topology {machine} has no tier "{tier}"', hint


def with_rules(job: Job, machine: Topology, whole: Topology, added: Rules) -> Job:
    """The job with its own rules, ``added`` ones and the machine's budgets, checked.

    Of two numbers for one tier the stricter holds. The digest stays that of the job's
    file: whatever is placed under more rules is a plan for that job.

    ``machine``: the hosts that may be used. ``whole``: the machine they are a part of.
    """
    own = Rules(budgets=tuple(b for b in whole.budgets if _binds(b, job, machine)))
    if not (job.rules or added or own):
        return job
    rules = job.rules.and_also(added).and_also(own)
    problems = [
        *rules.rank_problems(job.world_size),
        *_host_problems(rules, machine, whole),
        *unknown_tiers(machine, (), rules),
    ]
    refuse(problems)
    return replace(job, rules=rules)


def _binds(budget: HostBudget, job: Job, machine: Topology) -> bool:
    """Whether some placement on the machine would use more than a budget."""
    inside = np.array([name in budget.names for name in machine.node_names])
    most = min(job.world_size, int(machine.gpus_of_node[inside].sum()))
    gpus, replicas = budget.most_gpus, budget.replicas
    return (gpus is not None and gpus < most) or (
        replicas is not None and replicas < min(job.parallelism.dp, most)
    )


def rules_left(rules: Rules, machine: Topology) -> Rules:
    """The rules that still bind: no spares, and only hosts that are left.

    Raises `InfeasibleError` if every host of a pin has failed.
    """
    there = set(machine.node_names)
    pins = []
    for pin in rules.pin:
        hosts = tuple(host for host in pin.hosts if host in there)
        if not hosts:
            raise InfeasibleError(
                f"{pin}: all of these hosts have failed",
                hints=["place the job again without this pin"],
            )
        pins.append(Pin(pin.ranks, hosts))
    avoid = tuple(host for host in rules.avoid if host in there)
    return replace(rules, pin=tuple(pins), avoid=avoid, spares={})


def _host_problems(
    rules: Rules, machine: Topology, whole: Topology
) -> Iterator[Problem]:
    usable, known = set(machine.node_names), set(whole.node_names)
    suggester = Suggester(whole.node_names)
    named = [(f"pin[{i}]", pin.hosts) for i, pin in enumerate(rules.pin)]
    for key, hosts in [*named, ("avoid", rules.avoid)]:
        for host in hosts:
            if host not in known and host not in whole.unavailable:
                message = f'the topology has no host "{host}"'
                yield rules.problem(key, message, suggester.hint(host))
            elif key != "avoid" and host not in usable:
                yield rules.problem(key, *_why_not(host, whole))


def _why_not(host: str, whole: Topology) -> tuple[str, str]:
    """What keeps ranks off a host, and what to do about it."""
    if host in whole.unavailable:
        message = f'host "{host}" is unavailable: {whole.unavailable[host]}'
        return message, f"pin to another host, or take {host} out of unavailable"
    message = f'host "{host}" is not among the hosts of this allocation'
    return message, f"pin to another host, or allocate {host} and do not exclude it"
