"""What is wrong in a file, what stands for nothing in it, and code that is not run."""

import json

import pytest

from placer.formats.jobs.job import Options, open_job
from tests.problems import problems_of
from tests.sources.reading import MODEL, TEXTS, given
from tests.texts import table

REST = given("sequence", "micro_batch", "micro_batches")


@pytest.mark.parametrize(
    *table("sources/shapes.yaml", "zero_is_as_if_a_key_were_missing")
)
@pytest.mark.parametrize("kind", ["llama", "deepseek_v3", "qwen2_moe", "mixtral"])
def test_zero_is_as_if_a_key_were_missing(job_of, kind, zero):
    """Files are published with 0 where a model has none of something."""
    shape = json.loads(TEXTS["SHAPE"]) | {"model_type": kind}
    shape = {k: v for k, v in shape.items() if k not in zero}
    without, with_zero = (
        job_of("hf", json.dumps(config), gpus=16, given=REST).model
        for config in (shape, shape | zero)
    )
    assert with_zero == without


REGISTRY = """from MODULE import model_registry


def NAME() -> Trainer.Config:
    return Trainer.Config(
        model_spec=model_registry("4B"),
        training=TrainingConfig(local_batch_size=2, seq_len=4096),
    )
"""


@pytest.mark.parametrize(
    *table("sources/shapes.yaml", "a_model_of_torchtitan_is_not_another")
)
def test_a_model_of_torchtitan_is_not_another(tmp_path, folder, module, name, layers):
    """A longer name is of another model, whose shape is asked for."""
    path = tmp_path / folder / "config_registry.py"
    path.parent.mkdir()
    path.write_text(REGISTRY.replace("MODULE", module).replace("NAME", name))
    source, options = f"torchtitan:{path}", Options(gpus=16, tflops=400)
    if layers:
        assert open_job(source, options).job().model.layers == layers
    else:
        problems = problems_of(open_job, source, options)
        assert "the shape of 4B is not in the file" in str(problems[0])


def test_python_is_never_run(job_of, tmp_path):
    """Code of a registry has no effect."""
    touched = tmp_path / "touched"
    code = f"open({str(touched)!r}, 'w').write('x')\n" + TEXTS["TORCHTITAN_PYTHON"]
    job_of("torchtitan", code, gpus=8, select="deepseek_v3_16b")
    assert not touched.exists()


def test_a_policy_that_is_not_modelled_is_told(tmp_path):
    """Activations of a memory budget are nobody's list of modules."""
    path = tmp_path / "deepseek_v3.py"
    text = TEXTS["TORCHTITAN_PYTHON"]
    path.write_text(text.replace("FullAC.Config()", "MemoryBudgetAC.Config()"))
    options = Options(gpus=8, tflops=400, select="deepseek_v3_16b")
    told = open_job(f"torchtitan:{path}", options).found.not_modelled
    assert any("MemoryBudgetAC" in remark.reason for remark in told)


def test_records_that_hold_others_many_times_over(job_of):
    """Sixty records, each twice in the next, are read all the same."""
    pairs = [(f"a{number}", f"a{number + 1}") for number in range(60)]
    line = "; ".join(f"cfg.{b} = {{'{b}': cfg.{a}, 'x': cfg.{a}}}" for a, b in pairs)
    text = TEXTS["BRIDGE_PYTHON"].replace(
        "    cfg.train", f"    {line}\n    cfg.train", 1
    )
    name = "toy_70b_pretrain_64gpu_h100_bf16_config"
    job = job_of("nemo", text, gpus=64, select=name, given=MODEL)
    assert (job.parallelism.tp, job.micro_batches) == (4, 16)
