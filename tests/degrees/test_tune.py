"""`tune`: the best of all legal degrees that fit, and the same on any engine."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from math import inf
from random import Random
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import placer
from placer.cli.main import main
from placer.degrees.choice import Choice
from placer.degrees.least import Least
from placer.degrees.space import Legal, Space
from placer.engines.pool import Pool
from placer.errors import InfeasibleError, InputError, StoppedError
from placer.footprint.stages import footprint
from placer.job.recompute import flops_again
from placer.solve.bounds.certificate import lower_bound
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.search import solve
from tests.degrees.cases import GB, job, machine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placer.job.model import Job, Model
    from placer.topology.model import Topology

MACHINES = (
    "rack:2 node:2 gpu:4",
    "node:2 gpu:8",
    "rack:3 node:1 gpu:4",
    "node:4 gpu:2",
)


def sizes(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def all_legal(work: Job, gpus: int, batch: int) -> Iterator[Choice]:
    """Every choice that Megatron accepts, by plain loops."""
    shape = work.model
    assert shape is not None
    for tp, cp, pp in product(sizes(gpus), repeat=3):
        dp = gpus // (tp * cp * pp)
        if tp * cp * pp * dp != gpus or batch % dp:
            continue
        if shape.heads % tp or (shape.kv_heads % tp and tp % shape.kv_heads):
            continue
        if work.sequence % (tp * (2 * cp if cp > 1 else 1)):
            continue
        for ep, etp in expert_sizes(shape, tp, tp * cp * dp):
            for vp, end, size in product(
                range(1, shape.layers + 3), (0.0, 1.0), sizes(batch // dp)
            ):
                count = batch // dp // size
                if size <= 16 and may_run(shape, pp, vp, end, count):
                    degrees = tp, cp, ep, etp, pp, vp, dp, size, count
                    yield from kept(work, degrees, end)


def expert_sizes(shape: Model, tp: int, ranks: int) -> list[tuple[int, int]]:
    if not shape.experts:
        return [(1, tp)]
    return [
        (ep, etp)
        for ep in sizes(shape.experts)
        for etp in {1, tp}
        if ranks % (ep * etp) == 0 and shape.expert_ffn % etp == 0
    ]


def may_run(shape: Model, pp: int, vp: int, end: float, count: int) -> bool:
    if pp == 1:
        return vp == 1 and end == 0
    layers, chunks = shape.layers + 2 * end, pp * vp
    if layers % chunks or end * chunks > layers:
        return False
    return vp == 1 or count % pp == 0


def kept(work: Job, degrees: tuple[int, ...], end: float) -> Iterator[Choice]:
    _, cp, _, _, pp, _, dp, *_ = degrees
    states = [("ddp", 0), ("zero1", 0)]
    if pp == 1:
        states += [("zero3", 0)]
        states += [("hsdp", n) for n in sizes(dp * cp) if 1 < n < dp * cp]
    for (sharding, shard), again in product(states, modes(work)):
        yield Choice(*degrees, again, sharding, shard, end, end)


def modes(work: Job) -> tuple[str, ...]:
    assert work.model is not None
    cheap = "layernorm+moe_act" if work.model.experts else "layernorm"
    return "none", cheap, "full"


@pytest.mark.parametrize("seed", range(6))
def test_the_space_is_what_plain_loops_find(seed: int) -> None:
    """No legal choice is left out, none comes twice."""
    work = job(Random(seed))
    legal = Legal(work, work.model, Space((16,), 16))
    shapes = list(legal.shapes())
    found = [choice for shape in shapes for choice in legal.variants(shape)]
    assert len(set(found)) == len(found) == sum(map(legal.count, shapes))
    assert set(found) == set(all_legal(work, 16, 16))


def tried(topology: Topology, work: Job, memory: float) -> float:
    """Shortest step of all legal choices that fit, each placed; inf where none does."""
    best, known = inf, {}
    batch = work.micro_batches
    for choice in all_legal(work, topology.num_gpus, batch):
        changed = choice.applied(work)
        if footprint(changed).total > memory:
            continue
        alike = replace(choice, recompute=f"{flops_again(changed)}")
        if alike not in known:
            problem = Problem.of(topology, changed, "time")
            known[alike] = solve(problem, Budget(5.0)).value
        best = min(best, known[alike])
    return best


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1,))]
)
def test_the_best_of_placing_every_legal_choice(seed: int) -> None:
    """Nothing that was left out is better."""
    random = Random(f"tune {seed}")
    topology = machine(random.choice(MACHINES[-2:]))
    work = job(random)
    limit = random.choice([4.0, 12.0, 80.0]) * GB
    expected = tried(topology, work, limit)
    gpus = [topology.num_gpus]
    if expected == inf:
        with pytest.raises(InfeasibleError, match="memory"):
            placer.tune(topology, work, gpus=gpus, memory=limit)
        return
    found = placer.tune(topology, work, gpus=gpus, memory=limit)
    assert found.rows[0]["step_time_s"] == pytest.approx(expected, rel=1e-9)
    assert found.lower_bound_s <= expected * (1 + 1e-9)
    steps = [row["step_time_s"] for row in found.rows]
    assert steps == sorted(steps)
    assert all(row["memory_bytes"] <= limit for row in found.rows)


@pytest.mark.parametrize("seed", range(8))
def test_cheap_bounds_are_below_the_bound_of_all_placements(seed: int) -> None:
    """Work alone, then with traffic, then the bound that knows the machine."""
    random = Random(f"least {seed}")
    topology, work = machine(random.choice(MACHINES)), job(random)
    least = Least(topology, work, work.model)
    choices = list(all_legal(work, topology.num_gpus, work.micro_batches))
    for choice in random.sample(choices, min(40, len(choices))):
        problem = Problem.of(topology, choice.applied(work), "time")
        bound = lower_bound(problem, problem.forced_block).value
        cheap = least.step_s(choice)
        assert least.work_s(choice) <= cheap * (1 + 1e-12)
        assert cheap <= bound * (1 + 1e-9), choice


def test_the_same_on_any_number_of_processes() -> None:
    """Rows, counts and proof do not depend on the engine."""
    topology, work = machine(), job(Random(3))
    first = placer.tune(topology, work, gpus=[16], top=3)
    second = placer.tune(topology, work, gpus=[16], top=3, engine=Pool(2))
    assert first.to_dict() == second.to_dict()


def test_fewer_gpus_where_all_are_of_no_use() -> None:
    """A batch of 4 on 9 GPUs: without a number, what cannot be used is left."""
    work = replace(job(Random(1)), micro_batches=4)
    found = placer.tune(machine("node:9 gpu:1"), work, pp=[1], tp=[1], cp=[1])
    assert found.rows[0]["gpus"] == 4


def test_what_is_wrong_is_said() -> None:
    """Memory that nobody knows, a framework that does not exist, GPUs not there."""
    work = job(Random(0))
    unknown = machine(memory=0.0)
    with pytest.raises(InputError, match="memory") as failure:
        placer.tune(unknown, work, framework="megatro", gpus=[64])
    keys = {problem.key for problem in failure.value.problems}
    assert keys == {"memory", "framework", "gpus"}
    wrong = {"recompute": ["moe_atc"], "sharding": ["zero2"], "cp": [0], "top": 0}
    with pytest.raises(InputError) as failure:
        placer.tune(machine(), work, slack=-1.0, memory=float("nan"), **wrong)
    keys = {problem.key for problem in failure.value.problems}
    assert keys == {*wrong, "slack", "memory"}
    with pytest.raises(InfeasibleError, match="heads that tp does not divide"):
        placer.tune(machine(), work, tp=[16], gpus=[16])


def test_published_choices_are_legal_and_fit() -> None:
    """Llama 3.1 405B, MLPerf v6.0 on GB200: what was run is a choice, near the best."""
    work = placer.read_job("llama3.1-405b-mlperf-v6")
    legal = Legal(work, work.model, Space((8192,), 1024))
    axes = {"tp": 4, "cp": 2, "pp": 8, "vp": 8, "dp": 128}
    ran = [s for s in legal.shapes() if {k: getattr(s, k) for k in axes} == axes]
    assert (1, 8) in {(s.micro_batch, s.micro_batches) for s in ran}


def test_the_command_writes_plan_job_and_rows(tmp_path: object) -> None:
    """JSON as the contract says; the plan is of the best row and passes its check."""
    command = ["tune", "-t", "dgx-h100-32", "-j", "quickstart", "--gpus", "16"]
    files = [f"{tmp_path}/plan.json", f"{tmp_path}/job.json"]
    command += ["-o", files[0], "--job-output", files[1], "--top", "2", "-q"]
    done = CliRunner().invoke(main, [*command, "--format", "json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    best = found["rows"][found["best"]]
    assert {"gpus", "global_batch", "considered", "pruned", "proof"} <= set(found)
    assert {"rules", "memory", "bound"} <= set(found["pruned"])
    chosen = placer.read_job(files[1])
    assert chosen.parallelism.dp == best["parallelism"]["dp"]
    plan = placer.read_plan(files[0])
    assert plan.score["step_time_s"] == pytest.approx(best["step_time_s"])
    table = CliRunner().invoke(main, [*command, "--explain"])
    assert "optimal under the model" in " ".join(table.stdout.split())
    rows = CliRunner().invoke(main, [*command, "--format", "csv"])
    assert len(rows.stdout.splitlines()) == 3


def test_stopped_before_anything_is_placed_says_so() -> None:
    """No time at all is no proof that nothing fits."""
    with pytest.raises(StoppedError):
        placer.tune(machine(), job(Random(0)), gpus=[16], time_limit=0.0)
