"""What is assumed of a job on a machine, and what its sources say of its hosts."""

import pytest

import placer
from placer.formats.jobs.job import host_hint
from tests.texts import table

SCRIPT = """torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py \\
  --tensor-model-parallel-size 4 --num-layers 8 --hidden-size 1024 \\
  --num-attention-heads 16 --micro-batch-size 1 --global-batch-size 64 \\
  --seq-length 2048 --bf16 {more}
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "pretrain.sh"

    def written(more="", start=""):
        path.write_text(start + SCRIPT.format(more=more))
        return f"megatron:{path}"

    return written


def assumed(job):
    return {each.key: each for each in job.assumed}


@pytest.mark.parametrize(
    *table("sources/usual.yaml", "the_rate_is_a_share_of_the_peak")
)
def test_the_rate_is_a_share_of_the_peak(script, machine, more, rate, interval):
    """Of the peak of the job's precision, or of bf16's where the GPU has none."""
    topology = placer.read_topology(machine)
    job = placer.read_job(script(more), machine=topology, note=lambda _: None)
    found = assumed(job)["compute.tflops_per_gpu"]
    assert found.value == job.compute.tflops_per_gpu == rate
    assert found.interval == tuple(interval)
    assert found.option == "--tflops RATE"


def test_what_a_source_says_is_kept(script):
    """A rate, a time and a vocabulary that are said are not assumed."""
    machine = placer.read_topology("dgx-h100-4x8")
    quiet = {"machine": machine, "note": lambda _: None}
    job = placer.read_job(script("--vocab-size 1000"), tflops=300, **quiet)
    assert job.assumed == ()
    assert (job.model.vocab, job.compute.tflops_per_gpu) == (1000, 300)
    known = placer.read_job(script("--tokenizer-type Llama2Tokenizer"), **quiet)
    assert known.model.vocab == 32000
    assert assumed(known)["model.vocab"].why == "Llama2Tokenizer"
    timed = placer.read_job(script(), micro_batch_time="90ms", **quiet)
    assert list(assumed(timed)) == ["model.vocab"]


def test_library_calls_assume_too(script):
    """``place`` takes what the command line takes, and asks for as little."""
    with pytest.warns(UserWarning, match="assumed"):
        found = placer.place("leaf:2 node:2 gpu:8", script(), time_limit=5)
    assert {entry["key"] for entry in found.plan.assumed} >= {
        "compute.tflops_per_gpu",
        "hardware",
    }


@pytest.mark.parametrize(*table("sources/usual.yaml", "hosts_that_a_script_asks_for"))
def test_hosts_that_a_script_asks_for(script, start, gpus, gpu):
    """Requests of sbatch first, then what torchrun starts; comments say nothing."""
    found = host_hint(script(start=start))
    assert (found.gpus, found.gpu) == (gpus, gpu)


def test_other_jobs_say_nothing_of_hosts(tmp_path):
    """Nor do presets, and files that cannot be read."""
    bad = tmp_path / "bad.sh"
    bad.write_text("if true; then\n")
    for source in ("quickstart", f"megatron:{bad}", str(tmp_path / "none.sh"), ()):
        assert host_hint(source).gpus == 0
