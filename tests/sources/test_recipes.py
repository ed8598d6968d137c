"""Recipes of Megatron-Bridge: Python that is read as syntax, and never run."""

import pytest

from placer.base.errors import InputError
from tests.sources.reading import MODEL, check, problems_of
from tests.sources.texts import BRIDGE_PYTHON
from tests.texts import table

PAIRS = [(f"a{number}", f"a{number + 1}") for number in range(60)]
NAME = "toy_70b_pretrain_64gpu_h100_bf16_config"


def test_a_recipe(job_of):
    """What it starts from, then what it sets; constants of the module too."""
    job = job_of("nemo", BRIDGE_PYTHON, gpus=64, select=NAME, given=MODEL)
    check(
        job,
        {
            "parallelism.tp": 4,
            "parallelism.pp": 4,
            "parallelism.vp": 2,
            "parallelism.cp": 1,
            "parallelism.dp": 4,
            "sequence": 8192,
            "micro_batch": 2,
            "micro_batches": 16,
            "bytes.gradient": 2,
            "data_parallel.sharding": "zero1",
            "data_parallel.overlap_reduce": True,
            "data_parallel.bucket_parameters": 128 * 1024**2,
            "overlap.tp": True,
            "overlap.pp": True,
            "tensor_parallel.sequence": True,
        },
    )


@pytest.mark.parametrize(
    *table("sources/recipes.yaml", "what_a_precision_keeps_and_gathers")
)
def test_what_a_precision_keeps_and_gathers(job_of, precision, expected):
    """Inputs of products, layers that stay in bf16, and bytes of a gathered weight."""
    gemm, ends, gathered = expected
    text = BRIDGE_PYTHON.replace(
        "MixedPrecisionConfig(grad_reduce_in_fp32=False)", repr(precision)
    )
    job = job_of("nemo", text, gpus=64, select=NAME, given=MODEL)
    layers = job.model.layers - ends if ends else 0
    assert (job.memory.gemm, job.memory.gemm_layers) == (gemm, layers)
    assert job.bytes.parameter_gather == gathered


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            'cfg.model.recompute_granularity = "selective"; '
            'cfg.model.recompute_modules = ["mla_up_proj", "mlp"]',
            {"recompute": "selective", "recompute_modules": ("mla_up_proj", "mlp")},
        ),
        (
            'cfg.model.recompute_granularity = "selective"; '
            'cfg.model.recompute_modules = ["gdn"]',
            {"recompute": "none"},
        ),
        (
            'cfg.model.recompute_granularity = "full"; '
            'cfg.model.recompute_method = "block"; '
            "cfg.model.recompute_num_layers = 2",
            {"recompute": "full", "recompute_method": "block", "recompute_layers": 2},
        ),
        (
            "cfg.optimizer.use_precision_aware_optimizer = True; "
            'cfg.optimizer.exp_avg_dtype = "torch.bfloat16"',
            {"optimizer_bytes": 10.0},
        ),
    ],
)
def test_what_is_kept_in_memory(job_of, lines, expected):
    """Modules, layers that are computed again, and moments in 16 bit."""
    text = BRIDGE_PYTHON.replace("    cfg.train", f"    {lines}\n    cfg.train", 1)
    memory = job_of("nemo", text, gpus=64, select=NAME, given=MODEL).memory
    assert {key: getattr(memory, key) for key in expected} == expected


def test_one_recipe_changes_another(job_of):
    """It calls the other, unpacks a dict and sets what it has of its own."""
    name = "toy_70b_pretrain_64gpu_h100_bf16_16k_config"
    job = job_of("nemo", BRIDGE_PYTHON, gpus=64, select=name, given=MODEL)
    check(job, {"parallelism.cp": 2, "parallelism.dp": 2, "sequence": 16384})


def test_what_a_recipe_leaves_open(job_of):
    """The model is on Hugging Face, and the GPUs only in the name."""
    problems = problems_of(job_of, "nemo", BRIDGE_PYTHON, select=NAME)
    told = [problem.message for problem in problems]
    assert "the shape of toy/toy-70b is not in the file" in told
    assert "how many GPUs the job has is not said" in told
    with pytest.raises(InputError, match="which function") as caught:
        job_of("nemo", BRIDGE_PYTHON, gpus=64)
    assert "_16k_config" in caught.value.problems[0].hint


@pytest.mark.parametrize(
    "line",
    [
        "cfg.model.x = cfg",
        "cfg.x = [cfg, cfg, {}]",
        *["; ".join(f"cfg.{b} = {{'{b}': cfg.{a}, 'x': cfg.{a}}}" for a, b in PAIRS)],
    ],
)
def test_records_inside_themselves(job_of, line):
    """One that holds itself, or others many times over, is read all the same."""
    text = BRIDGE_PYTHON.replace("    cfg.train", f"    {line}\n    cfg.train", 1)
    job = job_of("nemo", text, gpus=64, select=NAME, given=MODEL)
    check(job, {"parallelism.tp": 4, "micro_batches": 16})
