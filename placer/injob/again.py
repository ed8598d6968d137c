"""The nodes of a round in order: a plan, or the one before with the fewest moves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any

import placer
from placer.base.errors import InfeasibleError, InputError
from placer.injob.bounded import LateError, within

Probe = dict[str, Any]
LIMIT_S = 2.0
# The rest of the limit is for who waits to see the answer.
_SEARCH = 0.9


@dataclass(frozen=True)
class Order:
    """An order of nodes."""

    ranks: list[int | None]  # node rank of each; None of a spare
    # What the next round is told: the plan, and the probes of its nodes.
    kept: dict[str, Any]


def placed_again(
    probes: Sequence[Probe],
    last: Mapping[str, Any] | None,
    command: Sequence[str],
    limit: float,
    tell: Callable[[str], None],
    *,
    nodes: int | None = None,
    job: placer.Job | None = None,
) -> Order:
    """Node ranks of nodes by what they say, near those of the round before.

    ``probes``: of the nodes, as they are numbered so far. ``last``: what the round
    before kept. ``command``: what the agents run. ``limit`` (s): from where everything
    is loaded, with all that is read and written. ``nodes``: how many take part, the
    others being spares; by default all. ``job``: by default that of the command. Raises
    `LateError` if there is no order in time; `InputError`, `InfeasibleError` if none
    can be had.
    """
    if len({one["gpus"] for one in probes}) > 1:
        raise InputError("the nodes start unequal numbers of workers")
    # What a search needs is loaded once, and does not count.
    from placer.api import replace  # noqa: F401
    from placer.solve import advice, orders  # noqa: F401

    size = min(nodes or len(probes), len(probes))

    told: list[str] = []
    is_late = Event()
    end = time.monotonic() + limit * _SEARCH
    search = _Search(command, job, size, end, is_late.is_set, told.append)
    try:
        plan, known = within(limit, lambda: search.plan(probes, last))
    except LateError:
        is_late.set()
        raise
    for text in told:
        tell(text)
    used = [plan.nodes[node] for node in dict.fromkeys(plan.node_of_rank.tolist())]
    rank_of = {host: rank for rank, host in enumerate(used)}
    ranks = [rank_of.get(one["host"]) for one in probes]
    if len(used) != size or len(ranks) - ranks.count(None) != size:
        raise InputError(f"the plan uses {len(used)} of {size} nodes")
    return Order(ranks, {"plan": plan.to_dict(), "probes": list(known.values())})


def planned(
    machine: placer.Topology,
    job: placer.Job,
    tell: Callable[[str], None],
    *,
    seconds: float,
    previous: placer.Plan | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> placer.Plan:
    """The best plan that is found in time: at least the best of the usual orders."""
    result = placer.place(
        machine,
        job,
        hosts=machine.node_names,
        time_limit=seconds,
        previous=previous,
        stop=stop,
    )
    if result.stop_reason == "time-limit":
        tell(f"the best order that {seconds:.2g} s found")
    return result.plan


@dataclass(frozen=True)
class _Search:
    """Plans for so many nodes of a job, or of a command, until ``end`` on the clock."""

    command: Sequence[str]
    job: placer.Job | None
    nodes: int
    end: float
    stop: Callable[[], bool]
    tell: Callable[[str], None]

    @property
    def seconds(self) -> float:
        """What is left, and never nothing: reading alone may take all of it."""
        return max(self.end - time.monotonic(), 0.01)

    def plan(
        self, probes: Sequence[Probe], last: Mapping[str, Any] | None
    ) -> tuple[placer.Plan, dict[str, Probe]]:
        """The plan, and the probes of its machine by host."""
        from placer.injob.nodes import machine_of
        from placer.injob.work import job_of
        from placer.placement.plan_file import plan_of

        here = {one["host"]: one for one in probes}
        before = None if last is None else plan_of(last["plan"])
        if last is not None and before is not None:
            known = {one["host"]: one for one in last["probes"]} | here
            if found := self._kept(before, here, known):
                return found, {host: known[host] for host in here}
        machine = machine_of(here.values(), self.tell)
        ranks = self.nodes * machine.num_gpus // len(here)
        job = self.job or job_of(self.command, machine, ranks, self.tell)
        plans = partial(
            planned, machine, job, self.tell, seconds=self.seconds, stop=self.stop
        )
        try:
            return plans(previous=before), here
        except InputError:
            if before is None:
                raise
            return plans(), here

    def _kept(
        self, before: placer.Plan, here: Mapping[str, Probe], known: Mapping[str, Probe]
    ) -> placer.Plan | None:
        """The plan before on the nodes of today; None where it must be made anew."""
        from placer.injob.nodes import machine_of

        lost = [host for host in before.nodes if host not in here]
        new = [host for host in here if host not in before.nodes]
        if not lost and len(before.nodes) == self.nodes:
            return before
        ranks = self.nodes * max(one["gpus"] for one in here.values())
        if ranks > before.world_size:
            return None
        machine = machine_of(known.values(), self.tell)
        try:
            found = placer.replace(
                before,
                machine,
                failed=lost,
                added=new or None,
                shrink=True,
                force=True,
                time_limit=self.seconds,
                stop=self.stop,
            )
        except (InputError, InfeasibleError):
            return None
        if found.plan.world_size != ranks:
            return None
        moved = (found.plan.previous or {}).get("moved", 0)
        taken = sum(host in found.plan.nodes for host in new)
        self.tell(f"lost {len(lost)} nodes, {taken} new: {moved:,} ranks move")
        return found.plan
