"""What a placement saves, and how sure that is: right as often as it says."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import placer
from placer.cost import JITTER
from placer.cost.step import StepModel
from placer.explain import difference
from placer.explain.difference import SPREADS, drawn_times, model_at, saving
from placer.job.traffic import Group
from placer.placement.baselines import baseline
from tests.marks import slow

COST_MODEL = Path(__file__).parents[2] / "docs" / "cost-model.md"


def case(seed):
    """A machine, a job on all of it, and two placements: one shuffled by nodes."""
    rng = np.random.default_rng(seed)
    racks = int(rng.choice([2, 4]))
    machine = placer.read_topology(f"rack:{racks} node:4 gpu:8")
    speed, thin = rng.uniform(0.3, 3.0), float(rng.choice([1.0, 2.0, 4.0]))
    inner, *outer = machine.tiers
    outer = [
        replace(tier, bandwidth=tier.bandwidth * speed, latency=rng.uniform(1e-6, 2e-5))
        for tier in outer
    ]
    outer[-1] = replace(outer[-1], oversubscription=thin)
    machine = replace(machine, tiers=(inner, *outer))
    tp, pp = int(rng.choice([2, 4, 8])), int(rng.choice([1, 2, 4]))
    job, sizes = placer.read_job("quickstart"), {"cp": 1, "ep": 1, "vp": 1}
    sizes |= {"tp": tp, "pp": pp, "dp": racks * 32 // (tp * pp)}
    axes = replace(job.parallelism, **sizes)
    job = replace(job, parallelism=axes, micro_batches=8, require={})
    kept = baseline("given-order", machine, job).gpu_of_rank
    shuffled = baseline("random", machine, job, seed).gpu_of_rank
    return StepModel(machine, job), shuffled, kept


def held(seeds):
    """On how many machines with drawn constants the interval has the difference."""
    inside = told = 0
    for seed in seeds:
        model, before, after = case(seed)
        thin = seed % 4 == 0  # of every fourth machine nobody has described the links
        found = saving(model, before, after, thin=thin)
        if found.high_s - found.low_s < 1e-9 * found.before_s:
            continue  # nothing but rounding is between them
        tiers = model.topology.tiers
        kinds = {tier.bandwidth for tier in tiers if not tier.scale_up}
        drawn = 2 * (1 + len(kinds)) + 3
        shares = np.random.default_rng([seed, 7]).random(drawn)
        truth = model_at(model, shares, thin=thin)
        saved = truth.step(before).step_time_s - truth.step(after).step_time_s
        inside += found.low_s <= saved <= found.high_s
        told += 1
    return inside, told


@pytest.mark.parametrize("seeds", [range(5), *slow([range(2_000, 2_110)])])
def test_intervals_hold_the_truth_as_often_as_they_say(seeds):
    """Of machines with drawn constants 19 of 20 lie inside.

    Of so many machines that too wide an interval shows as well.
    """
    inside, told = held(seeds)
    if len(seeds) == 5:
        assert told >= 4
        assert inside >= told - 1
    else:
        assert told >= 100
        assert 0.90 <= inside / told <= 0.97


@pytest.mark.parametrize("seed", [1, 4])
def test_a_draw_is_priced_as_if_it_were_alone(seed, monkeypatch):
    """Draws share rings and one walk of their pipelines, and no rate."""
    model, *placed = case(seed)
    models = []

    def noted(*args, **options):
        models.append(model_at(*args, **options))
        return models[-1]

    monkeypatch.setattr(difference, "model_at", noted)
    times = drawn_times(model, placed, 4, seed, thin=True)
    alone = [[one.step(gpus).step_time_s for gpus in placed] for one in models]
    assert times == pytest.approx(np.array(alone), rel=1e-12)


def test_measurable_is_what_is_above_jitter():
    """By its low end, not by its middle."""
    model, before, after = case(2)
    found = saving(model, before, after)
    step = found.before_s
    assert found._replace(low_s=1.01 * JITTER * step).is_measurable
    assert not found._replace(low_s=0.99 * JITTER * step).is_measurable
    assert found._replace(low_s=-step, high_s=-0.5 * step).can_be_measured


def test_every_uncertain_input_is_in_the_table_of_the_docs():
    """With its spread; its source stands there alone."""
    page = " ".join(COST_MODEL.read_text().split())
    for name, spread in SPREADS.items():
        assert f"| {name} | {spread:g} | " in page


def test_many_groups_of_the_users_own_are_drawn_less_often(monkeypatch):
    """Three hundred take as long to score as 30,000 ranks: so the end is in time."""
    model, before, after = case(2)
    ring = Group("g0", "all_reduce", 1e6, 1.0, False, ((0, 1, 2, 3),))
    rings = tuple(replace(ring, name=f"g{n}") for n in range(300))
    counts = []

    def counted(model, placed, count, seed, *, thin):
        counts.append(count)
        return drawn_times(model, placed, 1, seed, thin=thin)

    monkeypatch.setattr(difference, "drawn_times", counted)
    for groups in (rings[:10], rings):
        job = replace(model.job, groups=groups)
        saving(StepModel(model.topology, job), before, after)
    assert counts == [64, 16]
