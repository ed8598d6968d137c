"""Steps of logs: which count, and what they must agree with."""

from dataclasses import replace
from statistics import median

import pytest

from placer.base.errors import InputError
from placer.job.logged import step_of
from placer.job.read import read_job
from placer.logs import steps as logs
from placer.logs.nccl_tests import read as read_tables
from placer.logs.steps import read_steps
from tests.texts import data

MEGATRON = data("logs/megatron.log")
MLPERF = data("logs/mlperf.log")
AMD = data("logs/amd.log")
TORCHTITAN = data("logs/torchtitan.log")
NCCL = data("logs/nccl-tests.log")


def test_steps_that_count():
    """Not the first, not skipped, not after an evaluation or a checkpoint; once."""
    steps = logs.read_megatron(MEGATRON, "run.out")
    assert steps.seconds == (1.0, 1.01, 1.02, 0.99, 1.0)
    assert (steps.batch, steps.left_out) == (64, 4)
    assert median(steps.tflops) == 490.0


def test_mlperf():
    """Times of steps and never of the run; lines without a step sum up a block."""
    steps = logs.read_mlperf(MLPERF, "result_0.txt")
    assert steps.seconds == (2.0, 2.2, 2.1)
    assert (steps.batch, steps.accumulation, steps.sequence) == (64, 8, 2048)
    assert logs.read_mlperf(AMD, "result_0.txt").seconds == (2.0, 2.0)


def test_torchtitan():
    """Tokens a second of a GPU, over the GPUs of a replica."""
    steps = logs.read_torchtitan(TORCHTITAN, "log.txt")
    assert steps.tokens_per_gpu == (2048.0, 2000.0, 2100.0)
    job = read_job("quickstart")
    axes = job.parallelism
    tokens = job.sequence * job.micro_batch * job.micro_batches
    expected = tokens / (axes.tp * axes.cp * axes.pp) / 2048
    assert step_of(steps, job) == pytest.approx(expected)


def test_logs_are_of_the_job():
    """Another batch, other micro-batches or sequences: both numbers are told."""
    job = read_job("quickstart")
    axes = job.parallelism
    batch = axes.dp * job.micro_batches * job.micro_batch
    steps = replace(logs.read_megatron(MEGATRON, "run.out"), batch=batch)
    assert step_of(steps, job) == 1.0
    for change in ({"batch": batch + 1}, {"accumulation": 99}, {"sequence": 7}):
        with pytest.raises(InputError, match="the log has"):
            step_of(replace(steps, **change), job)


def test_logs_are_known_by_their_lines(tmp_path):
    """By content or by name; a text without a step is refused."""
    texts = {
        "megatron-log": MEGATRON,
        "mlperf-log": MLPERF,
        "torchtitan-log": TORCHTITAN,
    }
    for name, text in texts.items():
        assert logs.log_format(text) == name
        path = tmp_path / name
        path.write_text(text)
        assert read_steps(str(path)) == logs.read_steps(f"{name}:{path}")
    path.write_text("nothing\n")
    for source in (str(path), f"megatron-log:{path}"):
        with pytest.raises(InputError, match="no step"):
            read_steps(source)


def test_tables():
    """Rows by the header from the right; sizes of 0 and other lines are left out."""
    (table,) = read_tables(NCCL, "x.log")
    assert (table.test, table.ranks, table.nodes) == ("all_gather", 4, 2)
    assert [row.size_bytes for row in table.rows] == [1024, 2**28, 2**29]
    assert table.rows[1].bus_bandwidth == 30e9
    assert table.rows[1].seconds == pytest.approx(6711e-6)


def test_an_all_reduce_shows_itself():
    """Its bus bandwidth alone is above the other: 2 (n - 1) / n of it, so n is 16."""
    lines = [
        line for line in NCCL.split("\n") if "Rank" not in line and "_perf" not in line
    ]
    text = "\n".join(lines).replace("40.00 30.00", "40.00 75.00")
    (table,) = read_tables(text, "x.log")
    assert (table.test, table.ranks) == ("all_reduce", 16)
    with pytest.raises(InputError, match="which test"):
        read_tables("\n".join(lines), "x.log")
    (table,) = read_tables("\n".join(lines), "x.log", "alltoall")
    assert (table.test, table.ranks) == ("alltoall", 4)


def test_samples(samples):
    """Captured logs: medians as their own page tells them."""
    folder = samples / "jobs"
    steps = read_steps(str(folder / "logs/megatron-deepspeed-iterations.log"))
    assert (steps.count, steps.batch) == (4, 2048)
    assert median(steps.seconds) == pytest.approx(75.2, abs=0.05)
    steps = read_steps(str(folder / "mlperf/result-llama31_405b-tyche_ngpu512.txt"))
    assert (steps.batch, steps.accumulation, steps.sequence) == (896, 112, 8192)
    assert median(steps.seconds) == pytest.approx(19.35, abs=0.02)
    steps = read_steps(str(folder / "mlperf/result-llama31_8b-mi355x.txt"))
    assert median(steps.seconds) == pytest.approx(1.10, abs=0.002)
