"""NeMo 1, its interpolations, and files that look like its."""

from __future__ import annotations

import pytest

from tests.sources.reading import check, problems_of
from tests.sources.texts import NEMO_ONE
from tests.texts import table

VOCABULARY = {"job.model.vocab": 50304}


def test_nemo_one(job_of):
    """32 GPUs: dp 8; ffn is 4 x the width that stands beside it; its own keys."""
    check(
        job_of("nemo", NEMO_ONE, given=VOCABULARY),
        {
            "parallelism.tp": 2,
            "parallelism.pp": 2,
            "parallelism.cp": 1,
            "parallelism.dp": 8,
            "model.ffn": 16384,
            "model.gated": True,
            "overlap.tp": True,
            "data_parallel.sharding": "zero1",
            "data_parallel.overlap_reduce": True,
            "memory.gemm": "fp8",
            "memory.recompute": "full",
            "bytes.parameter_gather": 1,
        },
    )


def test_what_nemo_one_leaves_out_is_one(job_of):
    """It has no recipes, so that nothing of another file is asked for."""
    text = NEMO_ONE.replace("  pipeline_model_parallel_size: 2\n", "")
    job = job_of("nemo", text, given=VOCABULARY)
    check(job, {"parallelism.pp": 1, "parallelism.cp": 1, "parallelism.dp": 16})


@pytest.mark.parametrize(*table("sources/nemo_one.yaml", "interpolations_are_followed"))
def test_interpolations_are_followed(job_of, written, width):
    """A dot stands beside the key, each further one a section higher."""
    text = NEMO_ONE.replace("${multiply:4, ${.hidden_size}}", written)
    text = text.replace("  optim:\n", "  optim:\n    width: ${...trainer.num_nodes}\n")
    job = job_of("nemo", text, given=VOCABULARY)
    assert job.model.ffn == width


@pytest.mark.parametrize(
    *table(
        "sources/nemo_one.yaml", "interpolations_that_are_not_followed_are_asked_for"
    )
)
def test_interpolations_that_are_not_followed_are_asked_for(job_of, written, option):
    """Nothing stands for them but the answer."""
    text = NEMO_ONE.replace("${multiply:4, ${.hidden_size}}", written)
    (problem,) = problems_of(job_of, "nemo", text, given=VOCABULARY)
    assert (problem.key, problem.hint) == ("model.ffn", option)
    name = option.split()[1].partition("=")[0]
    answer = 4096 if "multiply" in written else 16384
    job = job_of("nemo", text, given=VOCABULARY | {name: answer})
    assert job.model.ffn == 16384


def test_a_setting_is_what_others_refer_to(job_of):
    """The width that is set is that of the feed-forward too."""
    job = job_of("nemo", NEMO_ONE, given=VOCABULARY | {"model.hidden_size": 8192})
    assert job.model.ffn == 32768


def test_a_section_that_stands_for_another(job_of):
    """All keys of the other are its own."""
    text = NEMO_ONE.replace("  optim:\n", "  optim: ${own}\nown:\n")
    text = text.replace("${..hidden_size}", "1")
    job = job_of("nemo", text, given=VOCABULARY)
    check(
        job, {"data_parallel.sharding": "zero1", "data_parallel.overlap_reduce": True}
    )
    unknown = NEMO_ONE.partition("  optim:\n")[0] + "  optim: ${oc.env:OPTIM}\n"
    keys = {p.key for p in problems_of(job_of, "nemo", unknown, given=VOCABULARY)}
    assert {"model.optim.name", "data_parallel.overlap_reduce"} <= keys


def test_flagscale_is_not_nemo(job_of):
    """Its sections look like NeMo's, and its keys are Megatron's."""
    text = (
        "system:\n  tensor_model_parallel_size: 8\n  precision:\n    bf16: true\n"
        "model:\n  num_layers: 32\n  hidden_size: 4096\n"
    )
    (problem,) = problems_of(job_of, "nemo", text, gpus=16)
    assert "FlagScale" in problem.message
    assert problem.line == 2
