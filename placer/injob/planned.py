"""A plan for the nodes that a job has, in the seconds that it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.plan import Plan
    from placer.topology.model import Topology

LIMIT_S = 2.0


def planned(
    machine: Topology,
    job: Job,
    tell: Callable[[str], None],
    *,
    seconds: float,
    previous: Plan | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Plan:
    """The best plan that is found in time: at least the best of the usual orders.

    Raises
    ------
    InputError, InfeasibleError
    """
    from placer.api.place import place

    result = place(
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
