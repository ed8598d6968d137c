"""Compute times from logs: by the command, in points, and in a job's own file."""

import pytest

from placer.calibrate.measurements import read_measurements
from placer.job.read import read_job
from tests.commands import data, refusal, run
from tests.problems import problems_of
from tests.sources.megatron import PLAIN

MACHINE = ("-t", "node:1 gpu:8")
JOB = """format: placer/job
version: 1
name: small
parallelism: {tp: 2, pp: 2, dp: 2}
model: {layers: 8, hidden: 512, ffn: 1024, heads: 16, kv_heads: 4, vocab: 1000}
sequence: 1024
micro_batch: 1
micro_batches: 4
"""


def log(batch=8):
    lines = [
        f" iteration {n}/ 9 | elapsed time per iteration (ms): {ms} | "
        f"global batch size: {batch} |\n"
        for n, ms in enumerate((9000, 1000, 1010, 990, 1005, 1000), start=1)
    ]
    return "".join(lines)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run.out").write_text(log())
    (tmp_path / "job.yaml").write_text(JOB + "compute: {micro_batch_time: 1s}\n")
    return tmp_path


def test_a_log_gives_compute_times(folder):
    """5 micro-batch times and the bubble's are 1 s, less what is exposed or fixed.

    The machine and the job are asked for, by their options.
    """
    told = refusal("calibrate", folder / "run.out")
    assert "-t" in told
    assert "-j" in told
    words = ("calibrate", folder / "run.out", "-j", folder / "job.yaml", *MACHINE)
    assert "median of 5 steps" in run(*words).output
    found = data(*words, "-q")["compute"]["micro_batch_time_s"]
    assert found == pytest.approx(0.2 - 0.06 / 5, rel=0.02)


def test_a_logged_rate_is_told_beside_ours(folder):
    """Frameworks count attention otherwise: the step is taken, the rate only shown."""
    text = log().replace("global batch", "TFLOPs: 12.50 | global batch")
    (folder / "run.out").write_text(text)
    words = (folder / "run.out", "-j", folder / "job.yaml", *MACHINE)
    told = run("calibrate", *words).output
    assert "12.5 TFLOP/s a GPU logged, " in told
    assert "with full attention" in told


def test_the_job_may_be_a_script(folder):
    """Its compute time is what is asked for, so nobody need give one."""
    script = folder / "pretrain.sh"
    script.write_text(f"torchrun --nproc_per_node 8 pretrain_gpt.py {PLAIN}\n")
    (folder / "run.out").write_text(log(64))
    result = run("calibrate", folder / "run.out", "-j", script, *MACHINE)
    assert result.stdout.startswith("compute: {micro_batch_time:")


def test_a_point_may_be_a_log(folder):
    """``log`` of a point is the median step of that run, from the file's folder."""
    (folder / "m.yaml").write_text(
        "format: placer/measurements\nversion: 1\ntopology: 'node:1 gpu:8'\n"
        "job: job.yaml\npoints:\n  - {log: run.out}\n"
    )
    (point,) = read_measurements(str(folder / "m.yaml")).points
    assert point.step_s == pytest.approx(1.0)


def test_a_job_may_name_its_log(folder):
    """A step of 1 s with 0.1 s fixed is 4 micro-batches and the first stage once more.

    Of two stages of four layers the second has the output layer too.
    """
    path = folder / "logged.yaml"
    path.write_text(JOB + "compute: {log: run.out, fixed_time: 100ms}\n")
    products = 2 * 512 * (16 + 4) * 32 + 3 * 512 * 1024
    layer = 6 * products + 12 * 512 * 1024 / 0.83
    first = 4 * layer / (4 * layer + 6 * 512 * 1000)
    found = read_job(path).compute.micro_batch_time
    assert found == pytest.approx(0.9 / (4 + first))


@pytest.mark.parametrize(
    ("compute", "words"),
    [
        ("{log: none.out}", "cannot be read"),
        ("{log: run.out, tflops_per_gpu: 400}", "contradicts tflops_per_gpu"),
        ("{log: run.out, fixed_time: 2s}", "no longer than fixed_time"),
    ],
)
def test_a_log_that_tells_nothing(folder, compute, words):
    """Each is a problem of the key."""
    path = folder / "logged.yaml"
    path.write_text(JOB + f"compute: {compute}\n")
    problem, *_ = problems_of(read_job, path)
    assert words in problem.message
    assert (problem.key, problem.line) == ("compute.log", JOB.count("\n") + 1)
