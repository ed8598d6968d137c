"""The points of a sweep: what is asked for, their machines and jobs, and rules."""

from dataclasses import replace
from random import Random

import pytest

import placer
from placer.base.errors import InfeasibleError, InputError
from placer.job.decode import job_digest
from placer.sweep.grid import (
    NIC_RATE,
    grid,
    parse_oversubscriptions,
    parse_rates,
    parse_sizes,
)
from placer.sweep.point import check_axes, job_at, machine_at
from placer.topology.read import read_topology
from placer.tune.frameworks import FRAMEWORKS, in_framework
from tests.sweep.cases import job, machine
from tests.texts import table
from tests.tune.cases import job as random_job
from tests.tune.cases import machine as small_machine
from tests.tune.legal_by_hand import legal


def test_the_job_is_that_of_a_file_with_the_sizes():
    """Sweeping dp and micro-batches gives the very job that a file would give."""
    found = job_at(job(), {"dp": 7, "micro_batches": 3})
    assert found.sha256 == job(dp=7, micro_batches=3).sha256


def test_rates_and_ratios_are_of_every_scale_out_tier_and_of_one():
    """NVLink keeps its rate; distances follow it. A ratio is the outermost tier's."""
    before, after = machine(), machine_at(machine(), {NIC_RATE: 25e9})
    inner = before.scale_up_tier + 1
    assert after.tiers[:inner] == before.tiers[:inner]
    for tier in after.tiers[inner:]:
        assert tier.bandwidth == 25e9
        assert tier.distance == before.tiers[0].bandwidth / 25e9
    for key, name in (
        ("oversubscription", "cluster"),
        ("oversubscription_block", "block"),
    ):
        thin = {
            t.name: t.oversubscription for t in machine_at(machine(), {key: 4}).tiers
        }
        assert thin.pop(name) == 4
        assert set(thin.values()) == {1.0}


@pytest.mark.parametrize(*table("sweep/grid.yaml", "axes_that_the_machine_lacks"))
def test_axes_that_the_machine_lacks(topology, axes, what):
    """What no point could have is refused before the first."""
    with pytest.raises(InputError, match=what):
        check_axes(read_topology(topology), dict.fromkeys(axes, (2.0,)))


GPUS = BATCH = 16


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_tune_refuses_is_no_point(framework, seed):
    """A point has a placement where `tune` has one of these sizes, as fast."""
    random = Random(f"alike {seed}")
    work = in_framework(random_job(random), framework)
    usual = [
        choice
        for choice in legal(framework, work, GPUS, BATCH)
        if choice.etp == choice.tp and not choice.embedding + choice.loss
    ]
    own = random.choice(usual)
    work = own.applied(work)
    work = replace(work, sha256=job_digest(work))
    experts = {"ep": [random.choice([1, 2, 4])]} if work.model.experts else {}
    tp = random.choice([1, 2, 4])
    sizes = {"tp": [tp], "pp": [random.choice([1, 2, 4])], **experts}
    sizes |= {"vp": [random.choice([1, 2, 3])], "gpus": [GPUS], "cp": [1]}
    given = {"framework": framework, **sizes}
    (row,) = placer.sweep(small_machine(), work, global_batch=[BATCH], **given).rows
    only = {"sharding": [own.sharding], "recompute": [own.recompute]}
    only |= {"micro_batch": [own.micro_batch], "etp": [tp] if experts else [1]}
    try:
        found = placer.tune(
            small_machine(), work, global_batch=BATCH, memory=1e15, **given, **only
        )
    except InfeasibleError:
        assert "error" in row
        return
    same = [r for r in found.rows if not r["embedding"] + r["loss"]]
    steps = [r["step_time_s"] for r in same if r["shard_size"] == own.shard_size]
    assert row["step_time_s"] == pytest.approx(min(steps), rel=1e-9)


def test_what_the_job_breaks_itself_is_not_asked():
    """Eight layers on three stages are refused, but not to a job that has them."""
    even = job()
    with pytest.raises(InputError, match="megatron refuses layers"):
        job_at(even, {"pp": 3})
    assert job_at(even, {"pp": 3}, "torchtitan").parallelism.pp == 3
    uneven = job_at(even, {"pp": 3}, "torchtitan")
    assert job_at(uneven, {"dp": 4}).parallelism.dp == 4


@pytest.mark.parametrize(*table("sweep/grid.yaml", "sizes"))
def test_sizes(text, values):
    """Lists and ranges keep their order; both ends of a range count."""
    assert parse_sizes(text) == tuple(values)


@pytest.mark.parametrize(*table("sweep/grid.yaml", "bad_sizes"))
def test_bad_sizes(text, what):
    """A list that cannot be used says which part of it."""
    with pytest.raises(ValueError, match=what):
        parse_sizes(text)


def test_rates_and_ratios():
    """Bandwidths carry units, oversubscriptions may name their tier."""
    with pytest.raises(ValueError, match="twice"):
        parse_rates("50GB/s,400Gb/s")
    assert parse_rates("50GB/s,800Gb/s") == (50e9, 100e9)
    assert parse_oversubscriptions("1,2.5") == ("", (1.0, 2.5))
    assert parse_oversubscriptions("block=4") == ("block", (4.0,))


@pytest.mark.parametrize("text", ["=1", "block=", "block=0", "a=b=2x", "1,x"])
def test_bad_ratios(text):
    """A ratio is a number above 0, and a tier has a name."""
    with pytest.raises(ValueError, match=r"\S"):
        parse_oversubscriptions(text)


def test_bad_grids():
    """No axis, too many points and a size that follows are refused."""
    long = tuple(range(1, 202))
    for axes in (
        {},
        {"dp": long, "tp": long},
        {"gpus": long, "dp": (1,)},
    ):
        with pytest.raises(InputError):
            grid(axes)
