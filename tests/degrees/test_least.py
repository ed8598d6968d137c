"""The cheap lower bound of `tune`: below the step on best links, and close to it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from placer.cost.volumes import volumes
from placer.degrees.choice import Choice
from placer.degrees.frameworks import FRAMEWORKS, in_framework
from placer.degrees.least import Least
from placer.job.adapters import Adapters
from placer.job.model import DataParallel, Overlap
from placer.solve.bounds.steps.time import step_on_best_links
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.search import solve
from tests.degrees.cases import machine
from tests.degrees.legal_by_hand import legal
from tests.degrees.test_what_is_suggested_fits import varied

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


@pytest.mark.parametrize("adapters", [None, Adapters(rank=64)], ids=["full", "lora"])
@pytest.mark.parametrize("seed", range(14))
def test_no_best_links_are_faster(seed: int, adapters: Adapters | None) -> None:
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
        cheap = least.step_s(choice) + least.sync.exposed_s(changed)
        best = step_on_best_links(problem, problem.forced_block)
        if least.sync.smallest_part(choice) < choice.ep:
            # That not all groups can have their best links it does not know.
            best = max(best, solve(problem, Budget(5.0)).value)
        assert cheap <= best * (1 + 1e-9), choice


def test_expert_groups_that_cannot_all_be_whole() -> None:
    """One of three groups of four has two members a node; none where all fit."""
    work = replace(varied(3), overlap=Overlap(), launcher="free")
    assert work.model
    model = replace(work.model, experts=8, top_k=2, moe_layers=4, expert_ffn=8192)
    work = replace(work, model=model)
    choice = Choice(ep=4, dp=12, micro_batches=2, sharding="ddp")
    problem_s, parts = {}, {}
    for text in ("node:3 gpu:4", "node:2 gpu:6", "node:4 gpu:3", "node:2 gpu:7"):
        topology = machine(text)
        least = Least(topology, work, model)
        parts[text] = least.sync.smallest_part(choice)
        cheap = least.step_s(choice) + least.sync.exposed_s(choice.applied(work))
        problem = Problem.of(topology, choice.applied(work), "time", 0)
        best = step_on_best_links(problem, problem.forced_block)
        value = solve(problem, Budget(5.0)).value
        assert cheap <= value * (1 + 1e-9)
        problem_s[text] = cheap / best
    assert [*parts.values()] == [4, 2, 2, 2]
    assert problem_s["node:3 gpu:4"] <= 1 + 1e-9 < 1.01 < problem_s["node:2 gpu:6"]


def test_parts_are_as_small_as_the_smallest_domain_that_is_used() -> None:
    """Eight GPUs of ten may leave out the smallest hosts, nine have to use one."""
    work = replace(varied(3), overlap=Overlap())
    assert work.model
    model = replace(work.model, experts=24, top_k=2, moe_layers=4)
    topology = machine("node:3 gpu:4")
    gpus = topology.gpus_of_node.copy()
    gpus[2] = 1
    least = Least(replace(topology, gpus_of_node=gpus), work, model)
    parts = [least.sync.smallest_part(Choice(ep=n, dp=n)) for n in (4, 8, 9)]
    assert parts == [4, 4, 1]


def test_a_node_holds_one_run_of_ranks() -> None:
    """Experts with stride 4 have a node of four each; a free launch may join them."""
    work = replace(varied(3), overlap=Overlap(), micro_batches=1)
    assert work.model
    work = replace(work, model=replace(work.model, experts=8, top_k=2, moe_layers=4))
    choice = Choice(tp=4, etp=4, ep=4, dp=4, sharding="ddp")
    topology = machine("node:5 gpu:4")
    step_s = {}
    for launcher in ("free", "node-contiguous"):
        one = replace(work, launcher=launcher)
        changed = choice.applied(one)
        problem = Problem.of(topology, changed, "time", 0)
        least = Least(topology, one, work.model)
        step_s[launcher] = least.step_s(choice) + least.sync.exposed_s(changed)
        best = step_on_best_links(problem, problem.forced_block)
        assert 0.95 * best < step_s[launcher] <= best
    assert step_s["free"] < 0.97 * step_s["node-contiguous"]


def test_gradients_that_nothing_hides() -> None:
    """A ring passes (n - 1) / n of them twice, over the node's one NIC."""
    work = varied(3)
    mode = DataParallel(sharding="ddp", overlap_reduce=False)
    rings = replace(work.collectives, all_reduce="ring")
    work = replace(work, data_parallel=mode, collectives=rings)
    topology = machine("node:4 gpu:1")
    choice = Choice(dp=4, sharding="ddp")
    changed = choice.applied(work)
    assert work.model
    found = Least(topology, work, work.model).sync.exposed_s(changed)
    sizes = volumes(changed)
    parameters = (sizes.dense_parameters(1, 1) + sizes.expert_parameters(1, 1)).item()
    nic = topology.tiers[-1].bandwidth
    least_s = 2 * 3 / 4 * parameters * work.bytes.gradient / nic
    assert found == pytest.approx(least_s, rel=0.01)
