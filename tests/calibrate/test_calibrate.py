"""Compute times from measured steps: what is put in comes out again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer.calibrate import fit as fitting
from placer.calibrate.fit import calibrate
from placer.calibrate.measurements import Measurements, Point
from placer.cost.step import StepModel
from placer.errors import InputError
from placer.job.model import Compute, DataParallel, Job
from placer.job.read import read_job
from placer.job.resize import resized
from placer.placement.baselines import baseline
from placer.topology.read import read_topology

if TYPE_CHECKING:
    from placer.topology.model import Topology

MACHINE = "rack:8 node:4 gpu:8"


def job(tp_overlap: bool = True, dp: int = 4, micro_batches: int = 4) -> Job:
    usual = resized(read_job("quickstart"), dp=dp, micro_batches=micro_batches)
    return replace(usual, overlap=replace(usual.overlap, tp=tp_overlap))


def step_s(topology: Topology, of: Job, time: float, fixed: float) -> float:
    timed = replace(of, compute=Compute(micro_batch_time=time, fixed_time=fixed))
    gpus = baseline("given-order", topology, timed).gpu_of_rank
    return StepModel(topology, timed).step(gpus).step_time_s


def synthetic(
    sizes: list[tuple[int, int]], time: float, fixed: float, tp_overlap: bool = True
) -> Measurements:
    """Steps that the model itself gives at (dp, micro-batches)."""
    topology = read_topology(MACHINE)
    jobs = [job(tp_overlap, dp, m) for dp, m in sizes]
    points = tuple(
        Point(f"{index}", topology, of, step_s(topology, of, time, fixed))
        for index, of in enumerate(jobs)
    )
    return Measurements("invented", job(tp_overlap), points)


@pytest.mark.parametrize("tp_overlap", [False, True])
@pytest.mark.parametrize("time", [0.2e-3, 5e-3, 200e-3])
@pytest.mark.parametrize(
    "sizes", [[(4, 4), (16, 32)], [(2, 8), (4, 4), (32, 16)], [(8, 7), (8, 8)]]
)
def test_recovers_invented_times(
    sizes: list[tuple[int, int]], time: float, tp_overlap: bool
) -> None:
    """Steps made from a micro-batch time and a fixed time give both back.

    Short work hides little of the communication, long work nearly all, so the overlap
    windows differ between the first guess and the end.
    """
    found = calibrate(synthetic(sizes, time, 0.05, tp_overlap))
    assert found.micro_batch_s == pytest.approx(time, rel=1e-9)
    assert found.fixed_s == pytest.approx(0.05, rel=1e-9)
    for prediction in found.predictions:
        assert prediction.error == pytest.approx(0, abs=1e-9)
    assert found.warnings == ()


def test_two_points_are_met_exactly() -> None:
    """Any two steps that grow with micro-batches are met without residual."""
    made = synthetic([(4, 4), (4, 16)], 5e-3, 0.05)
    first, second = made.points
    noisy = (replace(first, step_s=0.1), replace(second, step_s=0.31))
    found = calibrate(replace(made, points=noisy))
    assert [p.residual_s for p in found.predictions] == pytest.approx([0, 0], abs=1e-12)


def test_three_points_are_least_squares() -> None:
    """Without communication three noisy points give numpy's straight line."""
    topology = read_topology("node:1 gpu:8")
    alone = replace(read_job("quickstart"), name="alone")
    alone = replace(
        alone,
        parallelism=replace(alone.parallelism, tp=1, etp=1, pp=1, vp=1, dp=1),
        data_parallel=DataParallel(),
    )
    batches = np.array([3.0, 10.0, 40.0])
    steps = 0.02 * batches + 0.1 + np.array([0.003, -0.008, 0.004])
    points = tuple(
        Point("", topology, replace(alone, micro_batches=int(m)), float(s))
        for m, s in zip(batches, steps, strict=True)
    )
    found = calibrate(Measurements("line", alone, points))
    columns = np.stack((batches, np.ones(3)), axis=1)
    expected = np.linalg.lstsq(columns, steps, rcond=None)[0]
    assert [found.micro_batch_s, found.fixed_s] == pytest.approx(expected, rel=1e-12)
    residuals = columns @ expected - steps
    assert [p.residual_s for p in found.predictions] == pytest.approx(residuals)


def test_a_point_kept_out_is_only_predicted() -> None:
    """What a kept-out point says does not change the fit."""
    made = synthetic([(4, 4), (4, 16), (8, 8)], 5e-3, 0.05)
    wrong = replace(made.points[2], step_s=99.0, fit=False)
    found = calibrate(replace(made, points=(*made.points[:2], wrong)))
    assert found.micro_batch_s == pytest.approx(5e-3, rel=1e-9)
    assert found.predictions[2].step_s == pytest.approx(made.points[2].step_s)
    assert found.predictions[2].error == pytest.approx(made.points[2].step_s / 99 - 1)


def test_same_micro_batches_keep_the_fixed_time() -> None:
    """Points with one m tell the micro-batch time alone, and a warning says so."""
    made = synthetic([(4, 8), (16, 8)], 5e-3, 0.05)
    told = replace(made.job, compute=Compute(micro_batch_time=1.0, fixed_time=0.05))
    found = calibrate(replace(made, job=told))
    assert found.fixed_s == 0.05
    assert found.micro_batch_s == pytest.approx(5e-3, rel=1e-9)
    assert "do not differ in micro-batches" in found.warnings[0]


def test_a_negative_fixed_time_is_warned_of() -> None:
    """A line that meets zero late gives a negative fixed time, said aloud."""
    made = synthetic([(4, 8), (4, 16)], 5e-3, 0.0)
    first, second = made.points
    late = (first, replace(second, step_s=second.step_s * 1.5))
    found = calibrate(replace(made, points=late))
    assert found.fixed_s < 0
    assert "negative" in found.warnings[0]


def test_steps_that_fall_with_micro_batches_are_refused() -> None:
    """More micro-batches in less time has no micro-batch time above 0."""
    made = synthetic([(4, 8), (4, 16)], 5e-3, 0.0)
    first, second = made.points
    points = (replace(first, step_s=2.0), replace(second, step_s=1.0))
    with pytest.raises(InputError, match="no micro-batch time above 0"):
        calibrate(replace(made, points=points))


def test_a_fit_that_does_not_settle_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The iteration is bounded."""
    monkeypatch.setattr(fitting, "SETTLED", -1.0)
    with pytest.raises(InputError, match="does not settle"):
        calibrate(synthetic([(4, 8), (4, 16)], 5e-3, 0.0))


def test_times_follow_the_work_to_another_shape() -> None:
    """Twice the tensor parallelism halves the micro-batch time, the rate stays."""
    found = calibrate(synthetic([(4, 8), (4, 16)], 5e-3, 0.05))
    wide = replace(found.job.parallelism, tp=2 * found.job.parallelism.tp)
    other = found.applied_to(replace(found.job, parallelism=wide))
    assert other.compute.micro_batch_time == pytest.approx(2.5e-3, rel=1e-9)
    assert other.compute.fixed_time == pytest.approx(0.05)
    assert other.sha256 != found.job.sha256
