"""How steps spread, against closed forms and against scoring every sample anew."""

from dataclasses import replace

import numpy as np
import pytest

from placer.cost.jitter import NoisyStep, jitter_score
from placer.cost.schedule import Stages, pipeline_time
from placer.cost.step import Step, StepModel
from placer.errors import InputError
from placer.explain.score import score
from placer.job.axes import Parallelism
from placer.job.model import Collectives, Compute, DataParallel, Group, Job, Model
from placer.job.read import read_job
from placer.placement.placement import Placement
from placer.topology.read import read_topology
from tests.cost.azure import as_run, azure
from tests.cost.machines import machine, tier
from tests.cost.random_cases import Case, random_case

SECONDS = 0.1


def expected_maximum(count: int, power: int = 1) -> float:
    """Moment of the largest of so many standard normals, by quadrature.

    ``n z^k phi(z) Phi(z)^(n-1)`` over z (David and Nagaraja 2003, 3.1).
    """
    z = np.linspace(-9, 9, 200_001)
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    below = np.clip(np.cumsum(density) * (z[1] - z[0]), 0, 1)
    return float(np.sum(count * z**power * density * below ** (count - 1)) * 9e-5)


def deviation_of_maximum(count: int) -> float:
    return float(np.sqrt(expected_maximum(count, 2) - expected_maximum(count) ** 2))


def test_quadrature() -> None:
    """The largest of two has mean 1 / sqrt(pi), of three 3 / (2 sqrt(pi))."""
    assert expected_maximum(1) == pytest.approx(0.0, abs=1e-6)
    assert expected_maximum(2) == pytest.approx(np.pi**-0.5, rel=1e-3)
    assert expected_maximum(3) == pytest.approx(1.5 * np.pi**-0.5, rel=1e-3)
    assert deviation_of_maximum(1) == pytest.approx(1.0, rel=1e-3)


def compute_only(axes: Parallelism) -> StepModel:
    """One micro-batch of a tenth of a second, nothing sent, nothing fixed."""
    job = Job(
        "compute",
        axes,
        compute=Compute(micro_batch_time=SECONDS),
        groups=(Group("none", "all_reduce", 0.0, 1.0, False, ((0,),)),),
    )
    gpus = [8, axes.world_size // 8]
    return StepModel(machine(gpus, [tier("node", 1e9), tier("cluster", 1e9)]), job)


@pytest.mark.parametrize(
    "axes", [Parallelism(dp=8), Parallelism(tp=8, dp=8), Parallelism(tp=8, cp=4, dp=64)]
)
def test_slowest_of_all_gpus(axes: Parallelism) -> None:
    """Mean and deviation are those of the largest of all GPUs' factors."""
    spread, samples = 0.01, 4000
    model = compute_only(axes)
    ranks = np.arange(axes.world_size)
    found = jitter_score(model, ranks, {"compute": spread}, samples)["step_time_s"]
    largest = expected_maximum(axes.world_size)
    deviation = SECONDS * spread * deviation_of_maximum(axes.world_size)
    error = 4 * deviation / samples**0.5
    assert found["mean"] == pytest.approx(SECONDS * (1 + spread * largest), abs=error)
    assert found["std"] == pytest.approx(deviation, rel=0.06)


def test_the_mean_rises_and_the_spread_shrinks() -> None:
    """More GPUs make a step slower and steadier."""
    few, many = (
        jitter_score(compute_only(axes), np.arange(axes.world_size), {"compute": 0.01})
        for axes in (Parallelism(dp=8), Parallelism(tp=8, dp=256))
    )
    assert many["step_time_s"]["mean"] > few["step_time_s"]["mean"]
    assert many["step_time_s"]["std"] < few["step_time_s"]["std"]


@pytest.mark.slow
def test_slowest_of_all_nics() -> None:
    """Without overlap a ring takes its nominal time times the slowest NIC's factor."""
    ranks, spread, samples = 64, 0.01, 4000
    model = Model("m", 2, 512, 1024, 4, 4, 1000)
    sync = DataParallel(overlap_reduce=False, overlap_gather=False)
    job = Job(
        "ring",
        Parallelism(dp=ranks),
        model=model,
        data_parallel=sync,
        compute=Compute(micro_batch_time=1e-6),
    )
    flat = machine([1, ranks], [tier("node", 9e9), tier("cluster", 1e9)])
    # A GPU's only way out is its NIC: its node's uplink is that NIC.
    flat = replace(flat, tiers=(replace(flat.tiers[0], scale_up=True), flat.tiers[1]))
    nominal = score(flat, job, Placement(np.arange(ranks)))["exposed_s"]["dp"]
    found = jitter_score(
        StepModel(flat, job), np.arange(ranks), {"cluster": spread}, samples
    )
    # Reduction and gather of one step meet the same NICs.
    mean = nominal * (1 + spread * expected_maximum(ranks))
    deviation = nominal * spread * deviation_of_maximum(ranks)
    exposed = found["exposed_scale_out_s"]
    assert exposed["mean"] == pytest.approx(mean, abs=4 * deviation / samples**0.5)
    assert exposed["std"] == pytest.approx(deviation, rel=0.06)


def on_fast_nvlink(case: Case) -> Case:
    """The case with NVLink so fast that only scale-out links matter.

    Scoring anew slows all links of a slow GPU, jitter only its NIC.
    """
    tiers = tuple(
        replace(t, bandwidth=1e18) if t.scale_up else t for t in case.topology.tiers
    )
    return replace(case, topology=replace(case.topology, tiers=tiers))


def scored_anew(
    case: Case, factors: np.ndarray, noisy: NoisyStep
) -> tuple[float, float]:
    """Step and exposed time of one sample, from a fabric that is as slow as drawn."""
    ranks = case.job.world_size
    nominal = StepModel(case.topology, case.job)
    fabric = replace(nominal.fabric)
    of_gpu = nominal.fabric.factor_of_gpu.copy()
    of_gpu[case.gpu_of_rank] /= factors[ranks : 2 * ranks]
    capacity = list(nominal.fabric.uplink_capacity)
    for t, first in noisy.links.first_uplink.items():
        slow = factors[ranks + first : ranks + first + len(capacity[t])]
        capacity[t] = capacity[t] / slow
    vars(fabric).update(factor_of_gpu=of_gpu, uplink_capacity=capacity)
    placed = StepModel(case.topology, case.job, fabric).step(case.gpu_of_rank)
    free = nominal.free_scale_out.step(case.gpu_of_rank)
    step_s = walked(placed, factors[:ranks])
    return step_s, max(step_s - walked(free, factors[:ranks]), 0.0)


def walked(step: Step, gpu_factors: np.ndarray) -> float:
    """Step time when the pipeline of every replica is walked by itself."""
    job, work = step.model.job, step.model.work
    axes = job.parallelism
    slow = np.zeros((axes.dp, axes.pp))
    at = axes.coordinates["dp"], axes.coordinates["pp"]
    np.maximum.at(slow, at, gpu_factors)
    chunk_s = np.stack((work.forward_s * slow, work.backward_s * slow))
    paces = step.model.paces
    work_s = chunk_s * paces.full
    added, hop = np.zeros(work_s.shape), np.zeros(slow.shape)
    for axis, time in step.stage_times.items():
        if axis == "pp":
            hop = time.forward
        else:
            added += np.stack((time.forward, time.backward))
    share = step.model.volumes.layer_share(axes.pp, axes.vp)
    first = chunk_s[:, :, 0] * paces.first + share[0, 0] * added[:, :, 0]
    last = chunk_s[:, :, -1] * paces.last + share[-1, -1] * added[:, :, -1]
    ends = np.concatenate((first, last)).T
    rows = zip(*(work_s + added), hop, ends, strict=True)
    pipeline = max(
        pipeline_time(
            Stages(*(tuple(part.tolist()) for part in row)),
            job.micro_batches,
            axes.vp,
            job.overlap.pp,
        )
        for row in rows
    )
    after = step.exposed_data_parallel_s + sum(step.exposed_custom_s.values())
    return pipeline + after + step.model.fixed_s


def has_all_to_all(case: Case) -> bool:
    job = case.job
    return (
        job.parallelism.ep > 1
        or job.context_parallel.communication == "a2a"
        or any(group.collective == "all_to_all" for group in job.groups)
    )


def differences(
    seeds: range, algorithms: Collectives, *, all_to_all: bool
) -> np.ndarray:
    """Relative error of step and exposed time, of three samples a case."""
    found = []
    for seed in seeds:
        case = on_fast_nvlink(random_case(seed))
        if has_all_to_all(case) != all_to_all:
            continue
        case = replace(case, job=replace(case.job, collectives=algorithms))
        noisy = NoisyStep(StepModel(case.topology, case.job), case.gpu_of_rank)
        noise = {t.name: 0.1 for t in case.topology.tiers} | {"compute": 0.02}
        (factors,) = noisy.draw(noise, 3, seed)
        for row, *quick in zip(factors, *noisy.times(factors), strict=True):
            slow = scored_anew(case, row, noisy)
            found.append(np.subtract(quick, slow) / max(slow[0], 1e-12))
    return np.abs(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("all_reduce", "gather"),
    [("ring", "ring"), ("tree", "pat"), ("nvls", "ring"), ("hierarchical", "ring")],
)
def test_samples_are_those_of_scoring_anew(all_reduce: str, gather: str) -> None:
    """Each sample agrees with a full score of the slowed machine, to 1e-7.

    Where groups drive unequal numbers of NICs over an uplink, to 2 %.
    """
    algorithms = Collectives(all_reduce, gather)
    errors = differences(range(80), algorithms, all_to_all=False)
    assert np.percentile(errors, 95) < 1e-7
    assert errors.max() < 2e-2


@pytest.mark.slow
def test_samples_keep_their_algorithm() -> None:
    """Noise that would make NCCL choose otherwise matters little: 2 % at most."""
    errors = differences(range(120), Collectives(), all_to_all=False)
    assert np.percentile(errors, 90) < 1e-7
    assert errors.max() < 0.02


@pytest.mark.slow
def test_samples_with_all_to_alls() -> None:
    """Uneven all-to-alls are nearly right: 0.1 % of the step at 10 % noise."""
    errors = differences(range(120), Collectives("ring", "ring"), all_to_all=True)
    assert np.percentile(errors, 90) < 1e-3
    assert errors.mean() < 1e-3
    assert errors.max() < 0.1


@pytest.mark.parametrize("seed", range(10))
def test_no_noise_is_the_score(seed: int) -> None:
    """Without noise every sample is the step that the score gives."""
    case = random_case(seed)
    scored = score(case.topology, case.job, Placement(case.gpu_of_rank))
    model = StepModel(case.topology, case.job)
    if case.job.model is None and not case.job.groups:
        return
    found = jitter_score(model, case.gpu_of_rank, 0.0, samples=3)
    for key in ("step_time_s", "exposed_scale_out_s"):
        assert found[key]["std"] == pytest.approx(0.0, abs=1e-12)
        # Long runs of pipelines that differ may differ in rounding.
        near = pytest.approx(scored[key], rel=1e-6, abs=1e-9 * scored["step_time_s"])
        assert found[key]["mean"] == near


def test_azure_needs_little_noise() -> None:
    """Noise of 0.05 % slows 8,192 GPUs by about 0.15 % and spreads them by less."""
    topology, job = azure()
    model = StepModel(topology, job)
    found = jitter_score(model, as_run(), 0.0005, samples=100)
    nominal = model.step(as_run()).step_time_s
    rise = found["step_time_s"]["mean"] / nominal - 1
    assert 0.0005 < rise < 0.0025
    assert found["step_time_s"]["std"] / nominal < 0.0005
    assert found["step_time_s"]["p05"] < found["step_time_s"]["p50"]
    assert found["step_time_s"]["p50"] < found["step_time_s"]["p95"]


def test_seeds_and_sizes() -> None:
    """One seed gives one answer; fewer samples are a beginning of more."""
    topology, job = azure()
    model, noise = StepModel(topology, job), {"compute": 0.01}
    once = jitter_score(model, as_run(), noise, samples=5, seed=3)
    assert once == jitter_score(model, as_run(), noise, samples=5, seed=3)
    assert once != jitter_score(model, as_run(), noise, samples=5, seed=4)
    noisy = NoisyStep(model, as_run())
    few = np.concatenate(list(noisy.draw(once["noise"], 5, 3)))
    many = np.concatenate(list(noisy.draw(once["noise"], 200, 3)))
    assert (few == many[:5]).all()


def test_factors_are_positive() -> None:
    """A normal that reaches below zero is cut off there."""
    topology, job = read_topology("dgx-h100-4x8"), read_job("quickstart")
    noisy = NoisyStep(StepModel(topology, job), np.arange(16))
    names = [t.name for t in topology.tiers]
    (factors,) = noisy.draw(dict.fromkeys([*names, "compute"], 1.0), 500, 0)
    assert factors.min() > 0
    assert factors[:, 16:32].std() > 0.5


@pytest.mark.parametrize(
    ("noise", "what"),
    [
        ({"node": 0.1}, '"node"'),
        ({"nowhere": 0.1}, "known: compute"),
        ({"compute": 1.5}, "from 0 to 1|0 to 1"),
        ({"compute": float("nan")}, "nan"),
        (-0.1, "-0.1"),
    ],
)
def test_bad_noise(noise: dict[str, float] | float, what: str) -> None:
    """Noise belongs to compute and scale-out tiers, and is from 0 to 1."""
    topology, job = read_topology("dgx-h100-4x8"), read_job("quickstart")
    with pytest.raises(InputError, match=what):
        jitter_score(StepModel(topology, job), np.arange(16), noise, samples=2)
