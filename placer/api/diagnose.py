"""Which place or part is slow, by the times of runs in several placements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arguments import NUMBER, sequence, takes
from placer.base.errors import InputError, Problem, refuse
from placer.explain.suspects import Run, Verdict, verdict_of
from placer.placement.plan_like import PLAN, plan_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from placer.placement.plan_like import PlanLike


@takes(
    plans=sequence("a list of plans", PLAN),
    seconds=sequence("a list of lists of seconds", sequence("seconds", NUMBER)),
)
def diagnose(
    plans: Sequence[PlanLike], seconds: Sequence[npt.ArrayLike | Sequence[float]]
) -> Verdict:
    """The node, link, stage, replica or rank that makes some ranks slow.

    Parameters
    ----------
    plans : sequence of Plan, Result, path or dict
        Placements of one job that it ran with, such as those of `vary`.
    seconds : sequence of array, shape (R,) each
        What each rank took in the run of each plan, waiting left out: its compute, or
        a collective it took part in.

    Returns
    -------
    Verdict
        What is slow, and why no other part is to blame; `named` is false where the
        runs do not tell.

    Raises
    ------
    InputError
        If there is not one finite time for each rank of each plan, the plans are of
        jobs with other sizes, or a plan does not record its axes.

    Examples
    --------
    Two runs, each in a placement of its own, in which ranks on n1 take longer:

    >>> plan = placer.predict("dgx-h100-4x8", "quickstart", "slurm")
    >>> plans = placer.vary(plan, 2)
    >>> on_n1 = [[host == "n1" for host in each.host_of_rank] for each in plans]
    >>> seconds = [[1.2 if slow else 1.0 for slow in ranks] for ranks in on_n1]
    >>> print(placer.diagnose(plans, seconds).named)
    node n1
    """
    times = [np.asarray(own, dtype=np.float64) for own in seconds]
    runs = [
        Run(plan, np.arange(plan.world_size), own)
        for plan, own in zip(map(plan_of, plans), times, strict=False)
    ]
    if not plans or len(plans) != len(times):
        message = f"{len(times)} lists of times for {len(plans)} plans"
        raise InputError([Problem(message, key="seconds")])
    refuse(
        Problem(
            f"{run.seconds.shape} times for {run.plan.world_size:,} ranks",
            key=f"seconds[{i}]",
        )
        for i, run in enumerate(runs)
        if run.seconds.shape != (run.plan.world_size,)
    )
    return diagnosed(runs)


def diagnosed(runs: Sequence[Run]) -> Verdict:
    """The same for times that belong to several ranks each.

    Raises `InputError` as `diagnose` says.
    """
    refuse(_problems(runs))
    return verdict_of(runs)


def _problems(runs: Sequence[Run]) -> Iterator[Problem]:
    first = runs[0].plan
    for index, run in enumerate(runs):
        if run.plan.axes is None:
            yield Problem("the plan does not record its axes", key=f"plans[{index}]")
        elif run.plan.job.get("parallelism") != first.job.get("parallelism"):
            message = "the plan is of a job with other sizes than the first one"
            yield Problem(message, key=f"plans[{index}]")
        if not (np.isfinite(run.seconds).all() and (run.seconds > 0).all()):
            message = "expected times above 0"
            yield Problem(message, key=f"seconds[{index}]")
