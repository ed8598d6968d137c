"""Where every search starts: the placements that a job would get without one."""

from __future__ import annotations

from collections.abc import Iterator

from placer.base.arrays import IntArray
from placer.placement.baselines import BASELINES, baseline
from placer.solve.problem.compiled import Problem

_BY_NAME = {
    "given-order": "hosts by name",
    "megatron-default": "megatron-default, hosts by name",
    "replica-major": "replica-major, hosts by name",
}


def starts(problem: Problem) -> Iterator[tuple[str, IntArray]]:
    """(name, GPU of every rank) of each baseline but the random one.

    Where the machine has its hosts by name and they are listed otherwise, baselines of
    the order listed are called what they are.
    """
    machine, job = problem.machine, problem.job
    for name in BASELINES:
        if name != "random":
            shown = _BY_NAME.get(name, name) if problem.by_name else name
            yield shown, baseline(name, machine, job, problem.seed).gpu_of_rank


def is_start(method: str) -> bool:
    """Whether a placement found by ``method`` is one of the starts."""
    return method in BASELINES or method in _BY_NAME.values()
