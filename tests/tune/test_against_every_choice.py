"""`tune` against placing every legal choice that fits, on machines of 4 to 64 GPUs.

Rules and memory are those of `legal_by_hand` and `memory_by_hand`; placements are
searched for as `place` does. A few of those that
``python -m tests.tune.test_against_every_choice 0 200`` tries.
"""

import sys
from collections import namedtuple
from dataclasses import replace
from random import Random

import pytest

import placer
from placer.base.errors import InfeasibleError
from placer.job.work import flops_again
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.search import solve
from placer.topology.allocation import allocate
from placer.tune.frameworks import FRAMEWORKS, in_framework
from placer.tune.kinds import methods
from placer.workers.engine import Sequential
from tests.marks import slow
from tests.tune.cases import GB, job, machine
from tests.tune.legal_by_hand import legal
from tests.tune.memory_by_hand import ByHand

MACHINES = (
    "node:3 gpu:2",
    "rack:2 node:2 gpu:2",
    "node:4 gpu:2",
    "node:2 gpu:4",
    "node:2 gpu:7",
    "node:3 gpu:7",
    "rack:3 node:1 gpu:4",
    "node:2 gpu:8",
    "rack:2 node:2 gpu:4",
    "rack:2 node:2 gpu:7",
    "rack:2 node:4 gpu:4",
    "rack:4 node:2 gpu:4",
    "rack:2 node:4 gpu:8",
)
MOST = 30  # choices to place


# What `tune` is asked, and every choice that is to be placed with its job.
Case = namedtuple("Case", "machine job asked choices")


def drawn(seed):
    """The first case of a seed that has a few choices, of one kind of work each."""
    random = Random(f"every {seed}")
    while True:
        topology = allocated(random, machine(random.choice(MACHINES)))
        work, framework = small(random), random.choice([*FRAMEWORKS])
        memory = random.choice([0.0, 0.5, 1.0, 2.0, 12.0]) * GB + 2**30
        gpus = counts(random, topology.num_gpus)
        asked = {"framework": framework, "gpus": gpus, "memory": memory}
        found = fitting(work, topology.num_gpus, asked)
        if 3 <= len(found) <= MOST:
            return Case(topology, work, asked, found)


def allocated(random, topology):
    """The machine, or what is left of it when some of its hosts are taken."""
    hosts = [*topology.node_names]
    if random.random() < 0.5 or len(hosts) < 3:
        return topology
    return allocate(topology, random.sample(hosts, random.randrange(2, len(hosts))), ())


def counts(random, gpus):
    """All GPUs, as many as help, or one of several numbers."""
    how = random.choice(["all", "all", "any", "list"])
    if how == "list":
        return random.sample(range(2, gpus + 1), min(3, gpus - 1))
    return [gpus] if how == "all" else None


def small(random):
    """A job of so small a model that few degrees are legal."""
    work = job(random)
    assert work.model
    experts = 4 if work.model.experts else 0
    shape = replace(
        work.model,
        layers=random.choice([2, 3, 4]),
        moe_layers=2 if experts else 0,
        heads=random.choice([2, 4]),
        kv_heads=2,
        hidden=512,
        ffn=2048,
        experts=experts,
    )
    batch = random.choice([1, 2, 2, 4, 4, 6, 7])
    return replace(work, model=shape, micro_batches=batch)


def fitting(work, most, asked):
    """Choices within memory, one for each amount of work; at most one too many."""
    framework = asked["framework"]
    in_it = in_framework(work, framework)
    found = {}
    for count in asked["gpus"] or range(1, most + 1):
        for choice in legal(framework, work, count, work.micro_batches):
            if not asked["gpus"] and has_room(choice, most, work.micro_batches):
                continue
            changed = choice.applied(in_it)
            alike = choice._replace(recompute=f"{flops_again(changed)}")
            needed = ByHand(work, choice, framework).most
            if alike not in found and needed() <= asked["memory"]:
                found[alike] = changed
            if len(found) > MOST:
                return found
    return found


def has_room(choice, most, batch):
    """Whether more replicas would fit: without a number there are as many as can be."""
    replica = choice.gpus // choice.dp
    more = range(choice.dp + 1, batch + 1)
    return any(batch % dp == 0 and dp * replica <= most for dp in more)


def steps(case):
    """The step of every choice that the machine can hold."""
    for choice, changed in case.choices.items():
        problem = Problem.of(case.machine, changed, "time")
        try:
            yield choice, solve(problem, Budget(20.0)).value
        except InfeasibleError:
            continue


@pytest.mark.parametrize("seed", [0, 2, *slow([1, *range(3, 18)])])
def test_the_best_of_placing_every_choice(seed):
    """The step is the best, no bound is above it, and every row fits.

    The best is that of the job's own kind too.
    """
    case = drawn(seed)
    placed = dict(steps(case))
    best = min(placed.values())
    found = placer.tune(case.machine, case.job, **case.asked)
    for row in found.found.rows:
        needed = ByHand(case.job, row.choice, case.asked["framework"]).most()
        assert row.memory == pytest.approx(needed, rel=1e-9)
        assert needed <= case.asked["memory"] * (1 + 1e-9)
    assert found.rows[0]["step_time_s"] == pytest.approx(best, rel=1e-9)
    assert found.lower_bound_s <= best * (1 + 1e-9)
    mine = [row for row in found.rows if row["is_own_kind"]]
    if found.own is not None and mine:
        kind = methods(found.own.choice)
        of_kind = [step for choice, step in placed.items() if methods(choice) == kind]
        assert mine[0]["step_time_s"] == pytest.approx(min(of_kind), rel=1e-9)


def test_a_choice_for_which_nothing_was_found_is_no_proof(monkeypatch):
    """Where the search for the best choice fails, it stays below the bound of none."""
    case = drawn(2)
    best = placer.tune(case.machine, case.job, **case.asked)
    lost = best.best.parallelism

    def sometimes(problem, *others):
        if problem.job.parallelism == lost:
            raise InfeasibleError("none was found", is_proved=False)
        return solve(problem, *others)

    monkeypatch.setattr("placer.tune.evaluate.solve", sometimes)
    found = placer.tune(case.machine, case.job, **case.asked, engine=Sequential())
    assert found.lower_bound_s <= best.rows[0]["step_time_s"] * (1 + 1e-9)
    assert found.to_dict()["pruned"]["infeasible"]


if __name__ == "__main__":
    first, end = (int(text) for text in sys.argv[1:])
    for number in range(first, end):
        try:
            test_the_best_of_placing_every_choice(number)
            print(number, flush=True)
        except (AssertionError, InfeasibleError) as error:
            print(number, "FAILS", repr(error)[:300], flush=True)
