"""The degrees of a job and its placement, chosen together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from time import monotonic

from placer.api.checked_plan import checked_plan
from placer.api.inputs import JobLike, TopologyLike, read_inputs
from placer.api.options import number_problems, seconds_of
from placer.assumed import MEMORY, Assumption
from placer.base.arguments import NOTHING, TEXT, TEXTS, takes
from placer.base.errors import (
    InfeasibleError,
    InputError,
    StoppedError,
    refuse,
)
from placer.base.naming import named
from placer.base.threads import awaited
from placer.base.units import counted, format_bytes
from placer.cost.step import StepModel
from placer.cost.work import on_gpu
from placer.job.fixed import with_fixed_time
from placer.job.memory import RecomputeName
from placer.job.model import Job
from placer.job.models import Model
from placer.job.rules import Rules
from placer.placement.host_rules import with_rules
from placer.placement.inputs import Inputs
from placer.placement.plan import Plan
from placer.report.tune_words import degrees, sharding
from placer.topology.allocation import allocate
from placer.topology.read import usual_gpu_of
from placer.tune.choice import JOINED, SIZES
from placer.tune.evaluate import Evaluation, gpus_left
from placer.tune.found import Found, State, own, own_choice
from placer.tune.frameworks import FRAMEWORKS, FrameworkName, in_framework
from placer.tune.least import Least
from placer.tune.search import Search
from placer.tune.space import Legal, Space, problems
from placer.tune.tuning import Tuning
from placer.workers.engine import Engine, Sequential

_MODES = TEXTS | TEXT | NOTHING
# No GPU that trains has so few bytes.
_LEAST_MEMORY = 1e6


@takes(recompute=_MODES, sharding=_MODES)
@awaited()
def tune(
    topology: TopologyLike,
    job: JobLike,
    hosts: Sequence[str] | str | None = None,
    exclude: Sequence[str] | str = (),
    gpus: Sequence[int] | int | None = None,
    global_batch: int | None = None,
    memory: float | None = None,
    framework: FrameworkName = "megatron",
    tp: Sequence[int] | int | None = None,
    cp: Sequence[int] | int | None = None,
    ep: Sequence[int] | int | None = None,
    etp: Sequence[int] | int | None = None,
    pp: Sequence[int] | int | None = None,
    vp: Sequence[int] | int | None = None,
    micro_batch: Sequence[int] | int | None = None,
    recompute: Sequence[RecomputeName] | RecomputeName | None = None,
    sharding: Sequence[str] | str | None = None,
    top: int = 10,
    slack: float = 0.0,
    time_limit: float | str = 600.0,
    seed: int = 0,
    engine: Engine | None = None,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[State], None] = lambda _state: None,
) -> Tuning:
    """The degrees with the shortest step, out of all that are legal and fit.

    Parameters
    ----------
    topology : Topology, or what `read_topology` takes
    job : Job, or what `read_job` takes
        Its model, batch and compute times; its degrees are the starting point of the
        compute times alone.
    hosts, exclude : as for `place`
    gpus : int or sequence of int, optional
        How many GPUs to use; by default as many as there are, or fewer if better.
    global_batch : int, optional
        Samples of a step; the job's by default.
    memory : float, optional, bytes
        Of a GPU; by default the machine's, else that of the usual GPU of such hosts.
    framework : str
        Whose rules hold: ``megatron``, ``torchtitan``, ``deepspeed`` or ``jax``.
    tp, cp, ep, etp, pp, vp, micro_batch : int or sequence of int, optional
        The only sizes to consider.
    recompute, sharding : str or sequence of str, optional
        The only modes, likewise.
    top : int
        Rows that are wanted.
    slack : float
        Also find the choices that need less memory, as long as their step is longer by
        no more than this share: ``fronts`` of the result has them.
    time_limit : float, s, or str
        For all.
    seed : int
    engine : Engine, optional
        Where choices are worked out; this process by default.
    stop : callable
        Asked now and then; once true, what is known is returned.
    progress : callable
        Told a ``State`` from time to time.

    Returns
    -------
    Tuning
        Rows, best first, and how many choices were considered and left out.

    Raises
    ------
    InputError
        If an argument is wrong.
    InfeasibleError
        If nothing is legal, or nothing that is fits.
    StoppedError
        If time was up before any choice was placed.

    Examples
    --------
    >>> found = placer.tune("dgx-h100-4x8", "quickstart", gpus=16, tp=[4, 8])
    >>> found.rows[0]["parallelism"]["tp"]
    4
    """
    given = locals()
    machine, work = read_inputs(topology, job)
    whole, machine = machine, allocate(machine, hosts, exclude)
    with_rules(work, machine, whole, Rules())  # hosts that do not exist
    model = _model(work)
    if memory is None and not machine.gpu.memory:
        gpu, whose = usual_gpu_of(machine)
        memory, why = gpu.memory, f"that of {whose}"
        assumed = Assumption(MEMORY, memory, why, "--memory SIZE")
        machine = replace(machine, assumed=(*machine.assumed, assumed))
    limit = memory if memory is not None else machine.gpu.memory
    axes = work.parallelism
    batch = (
        global_batch
        if global_batch is not None
        else axes.dp * work.micro_batch * work.micro_batches
    )
    space = Space(
        tuple(dict.fromkeys(_sizes(gpus))),
        batch,
        machine.num_gpus,
        within=gpus_left(machine),
        framework=framework,
        **{size: _sizes(given[size]) for size in SIZES},
        recompute=_recomputed(_names(recompute), work, framework),
        sharding=_names(sharding),
    )
    time_limit = seconds_of(time_limit)
    refuse(
        [
            *number_problems(time_limit=time_limit, seed=seed, top=top, slack=slack),
            *problems(space, machine, limit, model),
        ]
    )
    work = in_framework(with_fixed_time(work), framework)
    work = on_gpu(work, machine.gpu)
    legal = Legal(work, model, space)
    start = monotonic()

    def is_over() -> bool:
        return stop() or monotonic() - start > time_limit

    def is_enough() -> bool:
        return not search.is_hurried and is_over()

    least = Least(machine.by_island, work, model)
    search = Search(legal, least, limit, lambda points: run(points), is_over, progress)
    evaluation = Evaluation(machine, work, seed)
    mine = own_choice(work, space)
    with (engine or Sequential()).opened(evaluation, is_enough) as run:
        found = search.best(
            top,
            is_by_gpus=len(space.gpus) > 1,
            slack=slack,
            own=None if isinstance(mine, str) else mine,
        )
        yours = own(search, work, mine, limit) if found.rows else None
    if not found.rows and found.is_cut:
        more = (
            ""
            if stop()
            else f"\n  hint: give it more time: {named('time_limit', '5m')}"
        )
        raise StoppedError(f"stopped before any choice was placed{more}")
    if not found.rows:
        raise _nothing(search, found, limit)
    return Tuning(machine, work, space, found, yours, legal.refused, limit, seed)


def plan_of(found: Tuning, index: int) -> Plan:
    """The plan of a row, by its place in ``found.rows``: placed as the row was."""
    solution = found.found.rows[index].answer.solution
    if solution is None:
        raise ValueError("the row was not placed by this search")
    inputs = Inputs.given(found.machine, found.job_of(index))
    model = StepModel(inputs.machine, inputs.ruled)
    return checked_plan(inputs, model, solution, found.seed, {})


def _sizes(given: Sequence[int] | int | None) -> tuple[int, ...]:
    """The sizes that are asked for; one may stand alone."""
    if given is None:
        return ()
    return tuple(map(int, given if isinstance(given, Iterable) else (given,)))


def _names(given: Sequence[str] | str | None) -> tuple[str, ...]:
    """The modes that are asked for; one may stand alone."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def _recomputed(names: tuple[str, ...], job: Job, framework: str) -> tuple[str, ...]:
    """The modes; ``selective``, as jobs call it, is what the framework means by it."""
    known = FRAMEWORKS[framework].recomputes if framework in FRAMEWORKS else ()
    modules = JOINED.join(job.memory.recompute_modules) if "cheap" in known else ""
    meant = "op" if "op" in known else modules or "selective"
    return tuple(meant if name == "selective" else name for name in names)


def _model(job: Job) -> Model:
    if job.roles:
        message = "a workload has several jobs, and the degrees of one can be chosen"
        hint = "tune the job of a role by itself, then give its degrees to the role"
        raise InputError(message, key="roles", hint=hint)
    if job.model is None:
        message = "the job has no model, so its degrees cannot be chosen"
        hint = "give it: the name of a preset, or its shape (docs/formats.md)"
        raise InputError(message, key="model", hint=hint)
    if job.groups or job.traffic:
        message = "groups and traffic name ranks, which other degrees would renumber"
        raise InputError(message, key="groups")
    return job.model


def _nothing(search: Search, found: Found, limit: float) -> InfeasibleError:
    """Why there is no row."""
    if not found.considered:
        reasons = search.legal.refused.most_common(3)
        why = "; ".join(
            f"{reason} ({counted(count, 'time')})" for reason, count in reasons
        )
        none = "no sizes of those lists make up the GPUs and the batch"
        space, lists = search.legal.space, ("gpus", *SIZES, "sharding")
        given = " or ".join(named(name) for name in lists if getattr(space, name))
        hints = [f"give {given} other values, or leave it out"] if given else []
        return InfeasibleError(f"no degrees are legal: {why or none}", hints=hints)
    unusable = f"none of {found.considered:,} legal choices can be used: "
    if found.infeasible:
        (why, count), *_ = search.refusals.most_common(1)
        large = f", {found.too_large:,} do not fit into memory"
        return InfeasibleError(
            f"{unusable}{found.infeasible:,} have no placement"
            f"{large if found.too_large else ''}\n{why} ({count:,} of them)"
        )
    needed, choice = search.room.least()
    row = choice.to_dict()
    modes = f"recompute {choice.recompute}, {sharding(row)}"
    more = "use more GPUs"
    if limit < _LEAST_MEMORY:
        more = f"or is {limit:,.0f} GB meant? A number without a unit counts bytes"
    return InfeasibleError(
        f"{unusable}{found.too_large:,} need more than "
        f"{format_bytes(limit)} of memory; the least need is {format_bytes(needed)}",
        hints=[f"that is {degrees(row)}, {modes}; {more}"],
    )
