"""The best placement over a grid of sizes and link rates.

What is wrong with an input is raised as one `placer.InputError` with all problems and
their places, by whatever function here finds it; docstrings do not say so again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from placer.base.arguments import takes
from placer.base.loading import answer_calls

if TYPE_CHECKING:
    from placer.api.inputs import JobLike, TopologyLike
    from placer.api.options import ObjectiveName
    from placer.sweep.result import Sweep
    from placer.tune.frameworks import FrameworkName
    from placer.workers.engine import Engine


@takes()
def sweep(
    topology: TopologyLike,
    job: JobLike,
    *,
    dp: Sequence[int] | None = None,
    tp: Sequence[int] | None = None,
    pp: Sequence[int] | None = None,
    cp: Sequence[int] | None = None,
    ep: Sequence[int] | None = None,
    vp: Sequence[int] | None = None,
    micro_batches: Sequence[int] | None = None,
    gpus: Sequence[int] | None = None,
    global_batch: Sequence[int] | None = None,
    nic_rate: Sequence[float] | None = None,
    oversubscription: Sequence[float] | Mapping[str, Sequence[float]] | None = None,
    framework: FrameworkName = "megatron",
    hosts: Sequence[str] | str | None = None,
    objective: ObjectiveName | None = None,
    time_limit: float | str = 60.0,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    stop: Callable[[], bool] = lambda: False,
) -> Sweep:
    """The best placement of a job for every combination of the lists.

    Parameters
    ----------
    topology : Topology, or what `read_topology` takes
    job : Job, or what `read_job` takes
    dp, tp, pp, cp, ep, vp, micro_batches : sequence of int, optional
    gpus : sequence of int, optional
        dp follows.
    global_batch : sequence of int, optional
        Micro-batches follow.
    nic_rate : sequence of float, optional, B/s
        Bandwidths a GPU of every scale-out tier.
    oversubscription : sequence of float, or mapping of tier to such, optional
        Ratios of the outermost tier, or of tiers by name.
    framework : str
        Whose rules sizes obey, as for `tune`.
    hosts, objective, seed : as for `place`
    time_limit : float, s, or str
        For each point.
    engine : Engine, optional
        Where points are worked out; this process by default.
    progress : callable
        Told how many points are done, and how many there are.
    stop : callable
        Asked now and then; once true, the rows done so far are returned.

    Returns
    -------
    Sweep
        A point without a placement is a row too, with an ``error``.

    Raises
    ------
    InputError
        If nothing is listed, an argument cannot be used, or the inputs cannot be read.

    Examples
    --------
    >>> found = placer.sweep("dgx-h100-4x8", "quickstart", dp=[1, 2])
    >>> len(found.rows)
    2
    """
    given = locals()
    from placer.api.inputs import read_inputs
    from placer.api.options import seconds_of
    from placer.base.errors import refuse
    from placer.job.fixed import with_fixed_time
    from placer.sweep.grid import SIZES, grid, listed_axes
    from placer.sweep.point import Task, check_axes
    from placer.sweep.point import sweep as run
    from placer.sweep.result import Sweep
    from placer.topology.allocation import allocate, host_names
    from placer.tune.frameworks import in_framework
    from placer.tune.space import unknown_framework

    sizes = {key: given[key] for key in SIZES}
    axes = listed_axes(sizes, nic_rate or (), oversubscription or ())
    points = grid(axes)
    machine, work = read_inputs(topology, job)
    check_axes(machine, axes)
    refuse(unknown_framework(framework))
    work = in_framework(with_fixed_time(work), framework)
    named = None if hosts is None else tuple(host_names(hosts))
    allocate(machine, named)
    task = Task(
        machine, work, named, objective, seconds_of(time_limit), seed, framework
    )
    rows = run(task, points, engine, progress, stop)
    return Sweep(task, rows, tuple(axes), len(points))


answer_calls(__name__)
