"""Joining sources, deriving what follows, asking for the rest, writing the job file."""

import json

import pytest

import placer
from placer.base.errors import InputError
from placer.formats.jobs.findings import Findings, Place, join
from placer.formats.jobs.job import Opened, Options, open_job
from placer.formats.jobs.settle import settle
from tests.commands import refusal
from tests.problems import problems_of
from tests.texts import table

SHAPE = {
    "model_type": "llama",
    "num_hidden_layers": 8,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_attention_heads": 16,
    "vocab_size": 32000,
}
REST = {"job.sequence": "2048", "job.micro_batch": "1", "job.micro_batches": "4"}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(SHAPE, indent=1))
    return path


def findings(**facts):
    """Findings of a file, a line a fact."""
    found = Findings("x.sh")
    for line, (key, value) in enumerate(facts.items(), start=1):
        found.read(key.replace("__", "."), value, Place("x.sh", line, 1))
    return found


def test_all_gaps_are_asked_for_at_once(config):
    """Every missing thing is a problem of its own, with the option that says it."""
    found = problems_of(placer.read_job, f"hf:{config}")
    hints = " ".join(problem.hint for problem in found)
    for option in ("--gpus", "--tflops", "--micro-batch-time", "job.sequence"):
        assert option in hints
    assert len(found) == 5


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        ({"job.compute.tflops_per_gpu": "400", "job.gpus": "4"}, {}),
        ({"job.gpus": "4"}, {"tflops": 400}),
        ({"job.compute.micro_batch_time": "1s"}, {"gpus": 4}),
        ({"job.compute.tflops_per_gpu": "1"}, {"tflops": 400, "gpus": 4}),
    ],
)
def test_keys_say_what_an_option_says(config, keys, options):
    """A key of the job counts where its option is not given, which counts more."""
    job = placer.read_job(f"hf:{config}", settings=REST | keys, **options)
    assert job.world_size == 4
    rate, time = job.compute.tflops_per_gpu, job.compute.micro_batch_time
    assert (rate, time) in [(400.0, 0.0), (0.0, 1.0)]


def test_the_job_file_is_the_job(config, tmp_path):
    """What convert writes reads back as the same job, each value with its origin."""
    opened = open_job(str(config), Options(gpus=4, tflops=400, settings=REST))
    assert isinstance(opened, Opened)
    text = opened.text()
    path = tmp_path / "job.yaml"
    path.write_text(text)
    assert placer.read_job(path).sha256 == opened.job().sha256
    row = next(line for line in text.splitlines() if "hidden:" in line)
    assert row.split("#")[1].strip() == "config.json:4"
    assert "# derived: 4 GPUs" in text


def test_a_contradiction_names_both_places():
    """Two sources that say different things are refused, with both places."""
    other = Findings("y.yaml")
    other.read("sequence", 2, Place("y.yaml", 7, 3))
    (problem,) = problems_of(join, [findings(sequence=1), other])
    assert (problem.source, problem.line) == ("y.yaml", 7)
    assert "x.sh:1" in problem.message


@pytest.mark.parametrize(
    *table("sources/frame.yaml", "gpus_that_do_not_fit_are_asked_for")
)
def test_gpus_that_do_not_fit_are_asked_for(facts, words):
    """A product that does not divide the file's GPUs is named, and --gpus asked for."""
    found = findings(**facts)
    settle(found)
    (problem,) = (p for p in found.asked if p.key == "parallelism.dp")
    assert words in problem.message
    assert "--gpus N, a multiple of" in problem.hint


def test_an_invalid_job_is_told_where_it_is_read(config):
    """What the job format refuses is told at the place in the source."""
    config.write_text(config.read_text().replace("16", "15"))
    options = {"gpus": 4, "tflops": 400, "settings": REST | {"job.model.kv_heads": "4"}}
    (problem,) = problems_of(placer.read_job, str(config), **options)
    assert problem.source == "--set job.model.kv_heads"


def test_options_of_a_complete_job_are_refused():
    """A preset needs no GPUs, and cannot be joined."""
    with pytest.raises(InputError, match="gpus: the job quickstart is complete"):
        placer.read_job("quickstart", gpus=4)
    with pytest.raises(InputError, match="cannot be joined"):
        placer.read_job(["quickstart", "quickstart"])


def test_nothing_is_refused_that_an_open_variable_may_decide(tmp_path):
    """A size that nothing sets is asked for; what Megatron says then is not known."""
    path = tmp_path / "config_X.sh"
    path.write_text(
        "export DGXNNODES=7\nexport MINIBS=1\nexport MICRO_BATCH_SIZE=1\n"
        "export MODEL_SIZE=8b CONTEXT_PARALLEL=1 TENSOR_MODEL_PARALLEL=$T\n"
        "export PIPELINE_MODEL_PARALLEL=7\n"
    )
    with pytest.raises(InputError) as caught:
        open_job(f"mlperf:{path}", Options(tflops=400.0))
    assert "--set TENSOR_MODEL_PARALLEL=VALUE" in str(caught.value)
    assert "Megatron refuses" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("axolotl", "base_model: " + "x" * 2_000_000),
        ("megatron", "pretrain_gpt.py --num-layers 1\n" + "#\n" * 300_000),
    ],
)
def test_what_is_too_long_for_a_job(tmp_path, name, text):
    """It is refused at once: nothing of it is parsed."""
    path = tmp_path / "long"
    path.write_text(text)
    with pytest.raises(InputError, match="characters are too many for a job"):
        placer.read_job(f"{name}:{path}")


def test_a_long_chain_of_interpolations(tmp_path):
    """It is not followed to its end, and no error of Python's."""
    rows = "".join(f"  k{n}: ${{model.k{n - 1}}}\n" for n in range(1, 3000))
    path = tmp_path / "long.yaml"
    path.write_text(f"model:\n  num_layers: ${{model.k2999}}\n  k0: 2\n{rows}")
    with pytest.raises(InputError, match="which the file does not tell"):
        placer.read_job(f"nemo:{path}")


FILES = {
    "megatron": "torchrun pretrain_gpt.py --num-layers {} --hidden-size 64\n",
    "maxtext": "base_num_decoder_layers: {}\nbase_emb_dim: 64\n",
    "axolotl": "base_model: x\nsequence_len: {}\nmicro_batch_size: 1\n",
    "": "format: placer/job\nversion: 1\nname: x\nmicro_batches: {}\n",
}


@pytest.mark.parametrize("number", ["1_", "1__0", "_1", "1_._5"])
@pytest.mark.parametrize("name", FILES)
def test_an_underscore_too_many_is_told(tmp_path, name, number):
    """A number that Python does not read is the file's problem, in placer's words."""
    path = tmp_path / "job.yaml"
    path.write_text(FILES[name].format(number))
    told = refusal("jobs", "show", f"{name}:{path}" if name else path)
    assert name or "micro_batches: expected an integer" in told
    assert "literal" not in told
