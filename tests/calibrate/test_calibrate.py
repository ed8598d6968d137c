"""Compute times from measured steps: what is put in comes out again."""

from dataclasses import replace

import numpy as np
import pytest

from placer.api.score import score
from placer.base.errors import InputError
from placer.calibrate.fit import calibrate
from placer.calibrate.measurements import Measurements, Point
from placer.calibrate.text import as_data, as_text
from placer.cost.step import StepModel
from placer.job.model import Compute
from placer.job.parallel import DataParallel
from placer.job.read import read_job
from placer.job.resize import resized
from placer.placement.baselines import baseline
from placer.topology.read import read_topology
from tests.marks import slow

MACHINE = "rack:8 node:4 gpu:8"


def job(tp_overlap=True, dp=4, micro_batches=4):
    usual = resized(read_job("quickstart"), dp=dp, micro_batches=micro_batches)
    return replace(usual, overlap=replace(usual.overlap, tp=tp_overlap))


def step_s(topology, of, time, fixed):
    timed = replace(of, compute=Compute(micro_batch_time=time, fixed_time=fixed))
    gpus = baseline("given-order", topology, timed).gpu_of_rank
    return StepModel(topology, timed).step(gpus).step_time_s


def synthetic(sizes, time, fixed, tp_overlap=True):
    """Steps that the model itself gives at (dp, micro-batches)."""
    topology = read_topology(MACHINE)
    jobs = [job(tp_overlap, dp, m) for dp, m in sizes]
    points = tuple(
        Point(f"{index}", topology, of, (step_s(topology, of, time, fixed),))
        for index, of in enumerate(jobs)
    )
    return Measurements("invented", job(tp_overlap), points)


@pytest.mark.parametrize("time", [5e-3, *slow([0.2e-3, 200e-3])])
@pytest.mark.parametrize(
    ("sizes", "tp_overlap"),
    [
        ([(4, 4), (16, 32)], False),
        ([(2, 8), (4, 4), (32, 16)], True),
        ([(8, 7), (8, 8)], True),
    ],
)
def test_recovers_invented_times(sizes, time, tp_overlap):
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


def test_times_are_those_of_hosts_of_the_usual_speed():
    """Runs that waited for a host of half the speed give the same times."""
    made = synthetic([(4, 4), (4, 16), (8, 32)], 5e-3, 0.05)
    machine = made.points[0].topology
    speed = np.where(np.arange(machine.num_nodes) == 1, 0.5, 1.0)
    slow = replace(machine, compute_factor=speed)
    points = tuple(
        replace(one, topology=slow, runs_s=(step_s(slow, one.job, 5e-3, 0.05),))
        for one in made.points
    )
    found = calibrate(replace(made, points=points))
    assert found.micro_batch_s == pytest.approx(5e-3, rel=1e-9)
    assert found.fixed_s == pytest.approx(0.05, rel=1e-9)


def test_three_points_are_least_relative_squares():
    """Without communication three noisy points give numpy's line of relative errors."""
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
        Point("", topology, replace(alone, micro_batches=int(m)), (float(s),))
        for m, s in zip(batches, steps, strict=True)
    )
    found = calibrate(Measurements("line", alone, points))
    columns = np.stack((batches, np.ones(3)), axis=1)
    relative = columns / steps[:, None]
    expected = np.linalg.lstsq(relative, np.ones(3), rcond=None)[0]
    assert [found.micro_batch_s, found.fixed_s] == pytest.approx(expected, rel=1e-9)
    residuals = columns @ expected - steps
    assert [p.residual_s for p in found.predictions] == pytest.approx(residuals)
    for out, prediction in enumerate(found.predictions):
        others = [index for index in range(3) if index != out]
        line = np.linalg.solve(columns[others], steps[others])
        if (line > 0).all():
            assert prediction.left_out_s == pytest.approx(columns[out] @ line)
        assert prediction.left_out_interval_s is None  # two points, two constants


def test_no_time_is_negative():
    """A line that meets zero late goes through it instead, said aloud.

    More micro-batches in less time has no micro-batch time above 0, and is refused.
    """
    made = synthetic([(4, 8), (4, 16)], 5e-3, 0.0)
    first, second = made.points
    late = (first, replace(second, runs_s=(second.step_s * 1.5,)))
    found = calibrate(replace(made, points=late))
    assert found.fixed_s == 0
    assert "negative" in found.warnings[0]
    points = (replace(first, runs_s=(2.0,)), replace(second, runs_s=(1.0,)))
    with pytest.raises(InputError, match="no micro-batch time above 0"):
        calibrate(replace(made, points=points))


SIZES = [(2, 8), (4, 12), (8, 16), (4, 32), (2, 64)]


def test_times_follow_the_work_to_another_shape():
    """Twice the tensor parallelism halves the micro-batch time, the rate stays."""
    found = calibrate(synthetic([(4, 8), (4, 16)], 5e-3, 0.05))
    wide = replace(found.job.parallelism, tp=2 * found.job.parallelism.tp)
    other = found.applied_to(replace(found.job, parallelism=wide))
    assert other.compute.micro_batch_time == pytest.approx(2.5e-3, rel=1e-9)
    assert other.compute.fixed_time == pytest.approx(0.05)
    assert other.sha256 != found.job.sha256


def scattered():
    """Five configurations, each run multiplied by an error."""
    made = synthetic(SIZES, 5e-3, 0.05)
    points = tuple(
        replace(point, runs_s=tuple(point.step_s * (1 + error) for error in errors))
        for point, errors in zip(made.points, SCATTER, strict=True)
    )
    return replace(made, points=points)


SCATTER = (
    (0.001, -0.002, 0.003),
    (0.0, 0.004, -0.001),
    (-0.002, 0.002, -0.003),
    (0.001, 0.0, -0.004),
    (0.002, -0.001, 0.001),
)


def test_scatter_of_runs_gives_intervals():
    """Constants and predictions have intervals that hold what was put in."""
    found = calibrate(scattered())
    for interval, truth in (
        (found.micro_batch_interval_s, 5e-3),
        (found.fixed_interval_s, 0.05),
    ):
        assert interval is not None
        assert interval[0] < truth < interval[1]
        assert interval[1] - interval[0] < truth / 2
    for prediction in found.predictions:
        assert prediction.interval_s
        assert prediction.left_out_interval_s
        assert prediction.interval_s[0] < prediction.step_s < prediction.interval_s[1]
    assert 0.001 < found.run_scatter < 0.005
    assert 0.002 < found.step_error < 0.02


@pytest.mark.slow
def test_intervals_go_with_the_job_and_its_data():
    """The score of the job says what calibrate found; data has null for the unknown."""
    found = calibrate(scattered())
    timed = found.applied_to(found.job)
    topology = read_topology(MACHINE)
    said = score(topology, timed, baseline("given-order", topology, timed))
    low, high = said["step_time_interval_s"]
    assert low == pytest.approx(said["step_time_s"] * (1 - found.step_error))
    assert high == pytest.approx(said["step_time_s"] * (1 + found.step_error))
    assert f"step_error: {found.step_error:.2g}" in as_text(found)
    assert "each point from the others" in as_text(found)
    sure = as_data(found)
    assert len(sure["compute"]["micro_batch_time_interval_s"]) == 2
    assert len(sure["points"][0]["left_out_interval_s"]) == 2
    assert sure["left_out"]["rms"] <= abs(sure["left_out"]["worst"])
    unsure = as_data(calibrate(synthetic([(4, 4), (4, 16)], 5e-3, 0.05)))
    assert unsure["compute"]["fixed_time_interval_s"] is None
    assert unsure["left_out"] == {"rms": None, "worst": None}
