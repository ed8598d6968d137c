"""torchtitan's TOML and functions, worked out by hand from its rules."""

from __future__ import annotations

import pytest

from placer.formats.jobs.job import Options, open_job
from tests.sources import texts
from tests.sources.reading import MODEL, check, problems_of
from tests.texts import table


def test_torchtitan(job_of):
    """64 GPUs: dp 8 = 64 / (2 x 2 x 2), two replicas of 4 x cp 2 shards.

    With pipeline stages a micro-batch is one sequence, parameters stay, and each rank
    has two chunks of (32 + 1 + 1) / 4 layers; ffn is 14,336.
    """
    job = job_of("torchtitan", texts.TORCHTITAN, gpus=64)
    check(
        job,
        {
            "parallelism.dp": 8,
            "parallelism.vp": 2,
            "parallelism.order": "tp-cp-ep-dp-pp",
            "model.ffn": 14336,
            "model.vocab": 128256,
            "sequence": 4096,
            "micro_batch": 1,
            "micro_batches": 8,
            "stages.embedding": 1,
            "stages.loss": 1,
            "data_parallel.sharding": "hsdp",
            "data_parallel.shard_size": 8,
            "data_parallel.keep_parameters": True,
            "context_parallel.communication": "all_gather",
            "bytes.gradient": 4,
            "bytes.parameter_gather": 2,
            "tensor_parallel.sequence": True,
            "overlap.tp": False,
            "memory.recompute": "full",
        },
    )


@pytest.mark.parametrize(*table("sources/torchtitan.yaml", "replicas_and_shards"))
def test_replicas_and_shards(job_of, text, sharding, size):
    """Replicas alone, shards alone, both; without a key the rest shards."""
    text = f"[training]\nseq_len = 8\n[parallelism]\n{text}\n"
    job = job_of("torchtitan", text, gpus=4, given=MODEL)
    assert job.data_parallel.sharding == sharding
    assert job.data_parallel.shard_size == size
    assert not job.data_parallel.keep_parameters


def test_chunks_of_so_many_layers(job_of):
    """(30 + 1 + 1) / 4 layers are 8 stages, two on each of four ranks."""
    text = texts.TORCHTITAN.replace(
        "pipeline_parallel_degree = 2", "pipeline_parallel_degree = 4"
    )
    text += "[parallelism.x]\n"
    text = text.replace(
        '"Interleaved1F1B"', '"Interleaved1F1B"\npipeline_parallel_layers_per_stage = 4'
    )
    job = job_of("torchtitan", text, gpus=64, given={"job.model.layers": 30})
    assert job.parallelism.vp == 2
    problems = problems_of(
        job_of, "torchtitan", text, gpus=64, given={"job.model.layers": 31}
    )
    assert "9 stages" in str(problems[0])


def test_functions_of_a_registry(job_of):
    """Functions that call others and then assign are followed, and never run."""
    one = job_of(
        "torchtitan", texts.TORCHTITAN_PYTHON, gpus=8, select="deepseek_v3_16b"
    )
    check(
        one,
        {
            "parallelism.ep": 4,
            "parallelism.etp": 1,
            "parallelism.dp": 8,
            "model.hidden": 2048,
            "model.moe_layers": 26,
            "micro_batch": 2,
            "micro_batches": 1,
            "memory.recompute": "full",
        },
    )
    name = "deepseek_v3_16b_tp"
    other = job_of("torchtitan", texts.TORCHTITAN_PYTHON, gpus=16, select=name)
    check(
        other,
        {
            "parallelism.tp": 4,
            "parallelism.cp": 2,
            "parallelism.ep": 1,
            "parallelism.dp": 2,
            "micro_batches": 16,
        },
    )


@pytest.mark.parametrize(
    *table("sources/torchtitan.yaml", "activations_are_selected_unless_said")
)
def test_activations_are_selected_unless_said(job_of, said, mode):
    """``Trainer.Config`` has ``SelectiveAC`` where a file says nothing."""
    text = f"[training]\nseq_len = 8\n{said}"
    assert job_of("torchtitan", text, gpus=4, given=MODEL).memory.recompute == mode


def test_activations_of_a_function(tmp_path):
    """None stands for a policy switched off, another policy is told."""
    path = tmp_path / "deepseek_v3.py"
    options = Options(gpus=8, tflops=400, select="deepseek_v3_16b")
    text = texts.TORCHTITAN_PYTHON
    path.write_text(text.replace("FullAC.Config()", "None"))
    opened = open_job(f"torchtitan:{path}", options)
    assert opened.job().memory.recompute == "none"
    path.write_text(text.replace("FullAC.Config()", "MemoryBudgetAC.Config()"))
    told = open_job(f"torchtitan:{path}", options).found.not_modelled
    assert any("MemoryBudgetAC" in remark.reason for remark in told)


def test_python_is_never_run(job_of, tmp_path):
    """Code of a registry has no effect."""
    touched = tmp_path / "touched"
    code = f"open({str(touched)!r}, 'w').write('x')\n" + texts.TORCHTITAN_PYTHON
    job_of("torchtitan", code, gpus=8, select="deepseek_v3_16b")
    assert not touched.exists()


def test_a_branch_on_what_is_not_known(tmp_path):
    """What it assigns is asked for at its line, and nothing else is."""
    path = tmp_path / "registry.py"
    path.write_text(
        "def llama3_8b() -> Trainer.Config:\n"
        "    config = Trainer.Config(model_spec=model_registry('8B'),\n"
        "        training=TrainingConfig(local_batch_size=1, seq_len=1024))\n"
        "    if wide:\n"
        "        config.parallelism.tensor_parallel_degree = 2\n"
        "    return config\n"
    )
    (problem,) = problems_of(
        open_job, f"torchtitan:{path}", Options(gpus=2, tflops=400)
    )
    assert (problem.line, problem.key) == (4, "parallelism.tp")
    assert "2 if wide" in problem.message
