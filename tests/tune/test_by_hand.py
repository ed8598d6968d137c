"""Legal choices, their memory and least step, against what is written down again."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from placer.cost.footprint.stages import footprint
from placer.explain.score import score
from placer.job.adapters import Adapters
from placer.job.axes import Parallelism
from placer.job.memory import MODULES
from placer.job.parallel import ContextParallel, DataParallel, ExpertParallel
from placer.placement.placement import Placement
from placer.solve.bounds.case import step_on_best_links
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.search import solve
from placer.tune.frameworks import FRAMEWORKS, in_framework
from placer.tune.least import Least
from placer.tune.space import Legal, Space
from tests.marks import slow
from tests.tune.cases import job, machine
from tests.tune.legal_by_hand import legal
from tests.tune.memory_by_hand import ByHand

GPUS = BATCH = 16


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_what_a_framework_accepts(name, seed):
    """No legal choice is left out, none that it refuses is there, each is counted."""
    work = in_framework(job(Random(seed)), name)
    assert work.model is not None
    space = Space((GPUS,), BATCH, framework=name)
    accepted = Legal(work, work.model, space)
    shapes = list(accepted.shapes())
    found = [choice for shape in shapes for choice in accepted.variants(shape)]
    assert sum(map(accepted.count, shapes)) == len(found)
    assert set(found) == set(legal(name, work, GPUS, BATCH))
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_chunks_that_are_asked_for_need_stages(name):
    """None without a pipeline, and none of DeepSpeed's, which does not interleave."""
    work = in_framework(job(Random(0)), name)
    assert work.model is not None
    for pp in (1, 2):
        space = Space((GPUS,), BATCH, framework=name, vp=(2,), pp=(pp,))
        found = Legal(work, work.model, space)
        assert bool([*found.shapes()]) == (pp == 2 and name != "deepspeed")
        is_named = any("interleaving" in reason for reason in found.refused)
        assert is_named or pp == 2


def varied(seed):
    """A small job: dense, or with experts or latent attention or both."""
    random = Random(f"memory {seed}")
    work = job(random)
    assert work.model
    shape = work.model
    if seed % 3 == 1:
        shape = replace(
            shape,
            kv_heads=shape.heads,
            q_lora_rank=random.choice([0, 192]),
            kv_lora_rank=128,
            qk_head_dim=64,
            rope_head_dim=32,
            v_head_dim=64,
            mtp_layers=random.choice([0, 1]),
        )
    if shape.experts:
        dense = random.choice([0, 1])
        shape = replace(
            shape, shared_experts=random.choice([0, 1]), moe_layers=shape.layers - dense
        )
    shape = replace(shape, positions=random.choice([0, 2048]))
    return replace(
        work,
        model=shape,
        context_parallel=ContextParallel(random.choice(["p2p", "all_gather", "a2a"])),
        expert_parallel=ExpertParallel(random.choice([1.0, 1.3])),
        tensor_parallel=replace(work.tensor_parallel, sequence=random.random() < 0.7),
    )


def with_memory(random, work, choice):
    """The job and choice with other kernels, buffers and modules computed again."""
    memory = replace(
        work.memory,
        recompute_method=random.choice(["uniform", "block"]),
        recompute_layers=random.choice([1, 1, 2, 3]),
        attention=random.choice(["fused", "unfused"]),
        dropout=random.random() < 0.3,
        keep_outputs=random.random() < 0.3,
        expert_capacity=random.choice([0.0, 1.2]),
        micro_batch_group=random.choice([0, 2 * choice.pp]) if choice.vp > 1 else 0,
        reserve=random.choice([None, None, 0.0, 3e9]),
    )
    if choice.recompute not in ("op", "full") and random.random() < 0.5:
        choice = choice._replace(recompute="+".join(random.sample(MODULES, 2)))
    return replace(work, memory=memory), choice


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("seed", range(6))
def test_memory_is_what_published_formulas_say(framework, seed):
    """Of any legal choice: both count the same bytes."""
    random = Random(seed)
    usual = in_framework(varied(seed), framework)
    choices = list(legal(framework, usual, 16, 16))
    for choice in random.sample(choices, min(40, len(choices))):
        work, changed = with_memory(random, usual, choice)
        needs = footprint(changed.applied(work))
        assert needs
        expected = ByHand(work, changed, framework).most()
        assert needs.total == pytest.approx(expected, rel=1e-9), changed


MACHINES = (
    "node:16 gpu:1",
    "node:4 gpu:4",
    "rack:2 node:2 gpu:4",
    "rack:3 node:2 gpu:4",
    "node:5 gpu:4",
    "node:3 gpu:8",
    "rack:2 node:3 gpu:5",
)
ORDERS = (
    "tp-cp-ep-dp-pp",
    "tp-cp-ep-pp-dp",
    "pp-tp-cp-ep-dp",
    "dp-pp-cp-ep-tp",
    "cp-ep-dp-tp-pp",
    "cp-tp-ep-pp-dp",
)


@pytest.mark.parametrize("hides", [False, True])
@pytest.mark.parametrize("sharding", ["ddp", "zero1", "zero2", "zero3"])
def test_gradients_add_what_the_scorer_says(sharding, hides):
    """Where every group has its best place, but for the latency of the first bucket."""
    experts = replace(varied(0).model, experts=8, top_k=2, expert_ffn=512, moe_layers=2)
    mode = DataParallel(sharding, 1, overlap_reduce=hides, overlap_gather=hides)
    for tp, dp, ep, etp in ((1, 8, 2, 1), (2, 8, 2, 2), (2, 4, 4, 1)):
        axes = Parallelism(tp=tp, dp=dp, ep=ep, etp=etp)
        work = replace(varied(0), parallelism=axes, model=experts, data_parallel=mode)
        in_order = score(machine("node:2 gpu:8"), work, Placement(np.arange(tp * dp)))
        least = Least(machine("node:2 gpu:8"), work, experts).sync.exposed_s(work)
        waits = in_order["exposed_s"]["dp"]
        assert least <= waits * (1 + 1e-9)
        assert least == pytest.approx(waits, rel=0.1 if hides else 1e-9)


@pytest.mark.parametrize("adapters", [None, Adapters(rank=64)], ids=["full", "lora"])
@pytest.mark.parametrize("seed", [0, 1, 2, *range(4, 14), *slow([3])])
def test_no_best_links_are_faster(seed, adapters):
    """Whatever the rank order, the launcher, the GPUs to spare, and what is trained."""
    random = Random(f"least {seed}")
    framework = random.choice([*FRAMEWORKS])
    work = in_framework(varied(seed), framework)
    order = tuple(random.choice(ORDERS).split("-"))
    launcher = random.choice(["free", "node-contiguous"])
    axes = replace(work.parallelism, order=order)
    work = replace(work, parallelism=axes, launcher=launcher, adapters=adapters)
    topology = machine(MACHINES[seed % len(MACHINES)])
    assert work.model
    least = Least(topology, work, work.model)
    choices = list(legal(framework, work, 16, 16))
    for choice in random.sample(choices, min(20, len(choices))):
        changed = choice.applied(work)
        problem = Problem.of(topology, changed, "time", 0)
        assert least.busy_s(choice) <= least.work_s(choice)
        assert least.work_s(choice) <= least.step_s(choice) * (1 + 1e-12)
        cheap = least.step_s(choice) + least.sync.exposed_s(changed)
        best = step_on_best_links(problem, problem.forced_block)
        if least.sync.smallest_part(choice) < choice.ep:
            # That not all groups can have their best links it does not know.
            best = max(best, solve(problem, Budget(5.0)).value)
        assert cheap <= best * (1 + 1e-9), choice
