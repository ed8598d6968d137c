"""Large jobs: how work grows with size, and what is left out for who cannot wait."""

import random

import pytest

import placer
from placer.api.checked_plan import baseline_costs
from placer.api.score import score
from placer.cost.step import StepModel
from placer.job.read import read_job
from placer.job.resize import resized
from placer.placement.baselines import baseline


def job_of(dp):
    return resized(read_job("llama3.1-405b-mlperf-v6"), dp=dp)


@pytest.fixture
def priced(monkeypatch):
    """Ranks of every placement that is priced in full."""
    sizes = []
    step_on = StepModel.step_on

    def counted(self, network):
        sizes.append(self.job.world_size)
        return step_on(self, network)

    monkeypatch.setattr(StepModel, "step_on", counted)
    return sizes


def test_a_large_plan_is_a_small_file(tmp_path):
    """98,304 ranks on a machine full of holes: below 4 MB, a tenth of it packed."""
    machine = placer.read_topology("block:22 rack:75 node:18 gpu:4")
    chance = random.Random(0)
    hosts = [name for name in machine.node_names if chance.random() < 0.9]
    plan = placer.predict(machine, job_of(98_304 // 64), "slurm", hosts)
    assert plan.inputs["hosts"].count(",") > 2_000
    sizes = []
    for name in ("plan.json", "plan.json.gz"):
        placer.write_plan(plan, tmp_path / name)
        sizes.append((tmp_path / name).stat().st_size)
    assert sizes[0] < 4_000_000
    assert sizes[1] < sizes[0] / 10


def test_passes_do_not_grow_with_the_machine(priced):
    """A regular machine takes as many passes over the ranks at any size."""
    passes = []
    for blocks in (2, 8, 32):
        priced.clear()
        machine = placer.read_topology(f"block:{blocks} rack:4 node:16 gpu:4")
        assert placer.place(machine, job_of(4 * blocks)).stop_reason != "time-limit"
        passes.append(len(priced))
    assert passes[0] >= passes[1] >= passes[2]


def test_an_interrupted_large_plan_does_not_wait_for_baselines(priced, monkeypatch):
    """Who asked to stop gets a checked plan with the baselines that cost nothing."""
    monkeypatch.setattr("placer.api.checked_plan.PRICED_IN_HASTE", 0)
    machine, job = placer.read_topology("block:2 rack:4 node:16 gpu:4"), job_of(8)
    model = StepModel(machine, job)
    usual = baseline("given-order", machine, job)
    found = score(machine, job, usual)
    priced.clear()
    entries = baseline_costs(machine, model, 0, usual, found, "interrupted")
    assert priced == []
    assert list(entries) == ["given-order", "sorted-hosts", "replica-major"]
