"""Which place or part is slow, by the times of runs in several placements."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arguments import NUMBER, sequence, takes
from placer.base.arrays import FloatArray, IntArray
from placer.base.errors import InputError, Problem, refuse
from placer.explain.suspects import Run, Verdict, verdict_of
from placer.placement.plan_like import PLAN, plan_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from placer.job.axes import Parallelism
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
        raise InputError(message, key="seconds")
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
    """What runs say whose times belong to several ranks each.

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


_AXIS = {"stage": "pp", "replica": "dp"}
KEYS = ("rank", *_AXIS)


def read_times(
    text: str, source: str, axes: Parallelism
) -> tuple[IntArray, FloatArray]:
    """Row of every rank, -1 for none, and the seconds of each row; shapes (R,), (M,).

    The first line names the columns: ``seconds``, and ``rank``, or ``stage`` and
    ``replica`` or one of them. Ranks of a stage or a replica share its time.
    """
    lines = list(csv.reader(StringIO(text)))
    head = [name.strip() for name in lines[0]] if lines else []
    keys = [name for name in head if name in KEYS]
    if "seconds" not in head or not keys or len({*head}) < len(head):
        message = "expected the columns seconds and rank, or stage, or replica"
        raise InputError(message, source, 1, 1, hint="such as rank,seconds")
    at = {"rank": np.arange(axes.world_size)}
    at |= {key: axes.coordinates[axis] for key, axis in _AXIS.items()}
    row_of_rank = np.full(axes.world_size, -1)
    seconds: list[float] = []
    problems: list[Problem] = []
    for number, cells in enumerate(lines[1:], start=2):
        if not any(cell.strip() for cell in cells):
            continue
        entry = dict(zip(head, map(str.strip, cells), strict=False))
        found = list(_wrong(entry, keys, at))
        if not found:
            mask = np.ones(axes.world_size, dtype=bool)
            for key in keys:
                mask &= at[key] == int(entry[key])
            if (row_of_rank[mask] >= 0).any():
                found = ["has a time already"]
            row_of_rank[mask] = len(seconds)
            seconds.append(float(entry["seconds"]) if not found else 1.0)
        problems += [Problem(why, source, number, 1) for why in found]
    if not seconds and not problems:
        problems.append(Problem("there are no times", source, 1, 1))
    refuse(problems)
    return row_of_rank, np.array(seconds)


def _wrong(
    entry: dict[str, str], keys: list[str], at: dict[str, IntArray]
) -> Iterator[str]:
    """What is wrong with one line."""
    for key in keys:
        text, last = entry.get(key, ""), int(at[key].max())
        if not (text.isascii() and text.isdecimal() and int(text) <= last):
            yield f'{key}: expected 0 to {last}, got "{text}"'
    text = entry.get("seconds", "")
    try:
        good = 0 < float(text) < math.inf
    except ValueError:
        good = False
    if not good:
        yield f'seconds: expected a time above 0, got "{text}"'
