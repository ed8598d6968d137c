"""Attempts on one case in a process of their own: ``python -m benchmarks.attempt``.

Reads a `Task` as JSON from standard input and prints an `Attempt` a line as soon as it
is made, so that whoever started it can put a limit on each. Time is that of the call
from machine and job to placement, scoring aside; memory is the largest resident size of
the process, or of a program it started, before the placement is scored.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING

from benchmarks import annealing
from benchmarks.cases import case
from benchmarks.peers.problem import leaves_joined
from placer.base.threads import granted_cores
from placer.cost.hop_cost import HopCost
from placer.cost.step import StepModel
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.search import solve

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from benchmarks.peers.answer import Answer
    from placer.job.model import Job
    from placer.topology.model import Topology

    IntArray = npt.NDArray[np.int64]

PEERS = {
    "orders": "benchmarks.peers.orders",
    "Mt-KaHyPar": "benchmarks.peers.mt_kahypar",
    "METIS": "benchmarks.peers.metis",
    "Scotch": "benchmarks.peers.scotch",
}
PLACER = "placer"
# What annealing starts from, and how much more time than placer it has.
STARTS = ("from placer's", "from the best order's")
TIMES_PLACER = 10
DONE = "done"
NOT_FOR_THIS = "does not apply"


@dataclass(frozen=True)
class Spec:
    """What to try.

    Attributes
    ----------
    tool : str
        ``placer``, ``annealing`` or one of `PEERS`.
    unit : str
        What is one vertex: ``rank``, ``tp`` or ``stage``.
    variant : str
        A setting of the tool.
    seed : int
    """

    tool: str
    unit: str = "rank"
    variant: str = ""
    seed: int = 0


@dataclass(frozen=True)
class Task:
    """Attempts to make on one case."""

    case: str
    objective: str
    time_limit: float
    specs: Sequence[Spec]


@dataclass(frozen=True)
class Attempt:
    """What came of it.

    Attributes
    ----------
    status : str
        ``done``, or why there is no placement.
    value : float
        Hop cost, or step time in s.
    crossings : mapping of str to list of int
        Edges of an axis by the tier of their ends.
    wall_s, tool_s : float, s
        From machine and job to placement, and the part of it inside the tool.
    peak_bytes : int, bytes
    moved : int
        Ranks moved because a leaf was too full.
    broken : list of str
        Hard rules of the job that do not hold.
    lower_bound : float
        Of placer; 0 for others.
    note : str
    """

    spec: Spec
    status: str = DONE
    value: float = 0.0
    crossings: Mapping[str, Sequence[int]] = field(default_factory=dict)
    wall_s: float = 0.0
    tool_s: float = 0.0
    peak_bytes: int = 0
    moved: int = 0
    broken: Sequence[str] = ()
    lower_bound: float = 0.0
    note: str = ""


@dataclass
class Known:
    """Placements made before on the same case, from which annealing starts.

    Attributes
    ----------
    best : mapping of str to (float, ndarray)
        Value and GPU of every rank, by what made it; a start of `STARTS`.
    placer_s : float, s
        CPU that placer took.
    """

    best: dict[str, tuple[float, IntArray]] = field(default_factory=dict)
    placer_s: float = 0.0

    def add(self, start: str, value: float, gpu_of_rank: IntArray) -> None:
        """Keep a placement if it is the best of its kind."""
        if start not in self.best or value < self.best[start][0]:
            self.best[start] = value, gpu_of_rank


def attempt(
    topology: Topology, job: Job, spec: Spec, task: Task, known: Known | None = None
) -> Attempt:
    """One attempt, scored by placer's models."""
    known = Known() if known is None else known
    if spec.tool == PLACER:
        return _by_placer(topology, job, spec, task, known)
    if spec.tool == annealing.NAME:
        return _by_annealing(topology, job, spec, task, known)
    peer = import_module(PEERS[spec.tool])
    if peer.version() is None:
        return Attempt(spec, status="not installed")
    start = perf_counter()
    machine = leaves_joined(topology)
    answer: Answer | None = peer.place(
        machine, job, unit=spec.unit, variant=spec.variant, seed=spec.seed
    )
    wall = perf_counter() - start
    if answer is None:
        return Attempt(spec, status=NOT_FOR_THIS)
    peak = peak_bytes()
    placement = Placement.on_nodes(machine, answer.leaf_of_rank)
    value = _value(topology, job, placement, task.objective)
    broken = violations(placement, topology, job)
    if spec.tool == "orders" and not broken:
        known.add(STARTS[1], value, placement.gpu_of_rank)
    return Attempt(
        spec,
        value=value,
        crossings=_crossings(topology, job, placement),
        wall_s=wall,
        tool_s=answer.tool_s,
        peak_bytes=peak,
        moved=answer.moved,
        broken=broken,
    )


def _by_annealing(
    topology: Topology, job: Job, spec: Spec, task: Task, known: Known
) -> Attempt:
    if spec.variant not in known.best:
        return Attempt(spec, status="nothing to start from")
    start = perf_counter()
    gpu_of_rank = annealing.annealed(
        topology,
        job,
        task.objective,
        known.best[spec.variant][1],
        TIMES_PLACER * known.placer_s,
        spec.seed,
    )
    wall = perf_counter() - start
    placement = Placement(gpu_of_rank)
    return Attempt(
        spec,
        value=_value(topology, job, placement, task.objective),
        wall_s=wall,
        tool_s=wall,
        broken=violations(placement, topology, job),
    )


def _by_placer(
    topology: Topology, job: Job, spec: Spec, task: Task, known: Known
) -> Attempt:
    start, began = perf_counter(), process_time()
    problem = Problem.of(topology, job, task.objective, spec.seed)
    solution = solve(problem, Budget(task.time_limit, workers=granted_cores()))
    wall, known.placer_s = perf_counter() - start, process_time() - began
    known.add(STARTS[0], solution.value, solution.placement.gpu_of_rank)
    peak = peak_bytes()
    return Attempt(
        spec,
        value=_value(topology, job, solution.placement, task.objective),
        crossings=_crossings(topology, job, solution.placement),
        wall_s=wall,
        tool_s=wall,
        peak_bytes=peak,
        broken=violations(solution.placement, topology, job),
        lower_bound=solution.lower_bound,
        note=f"{solution.method}; {solution.status}",
    )


def _value(topology: Topology, job: Job, placement: Placement, objective: str) -> float:
    if objective == "time":
        return StepModel(topology, job).step(placement.gpu_of_rank).step_time_s
    return HopCost(topology, job).cost(placement.gpu_of_rank)


def _crossings(
    topology: Topology, job: Job, placement: Placement
) -> dict[str, list[int]]:
    counts = HopCost(topology, job).crossings(placement.gpu_of_rank)
    return {axis: of_tier.tolist() for axis, of_tier in counts.items()}


def peak_bytes() -> int:
    """Largest resident size so far of this process or of one it started."""
    unit = 1 if sys.platform == "darwin" else 1024
    status = Path("/proc/self/status")
    if status.exists():
        # Unlike ru_maxrss, this leaves out the process that started this one.
        lines = status.read_text().splitlines()
        own = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    else:
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) * unit


def main() -> int:
    """Make the attempts of the task on standard input; 0."""
    fields = json.load(sys.stdin)
    fields["specs"] = [Spec(**spec) for spec in fields["specs"]]
    task = Task(**fields)
    # Some libraries print, warnings for instance: that goes to standard error.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    topology, job = case(task.case, task.objective)
    known = Known()
    for spec in task.specs:
        try:
            found = attempt(topology, job, spec, task, known)
        except Exception as error:  # a failing peer is a result
            found = Attempt(spec, status=f"failed: {type(error).__name__}: {error}")
        print(json.dumps(asdict(found)), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
