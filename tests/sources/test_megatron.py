"""What Megatron's arguments mean: one rule of its own at a time."""

from dataclasses import replace

import pytest

import placer
from placer.base.errors import InputError
from placer.formats.jobs.findings import Asked
from placer.formats.jobs.megatron.read import read
from placer.formats.jobs.megatron.rules import list_of
from placer.job.models import padded_vocabulary
from tests.sources.megatron import PLAIN, facts, opened
from tests.texts import table


def refused(tmp_path, arguments="", gpus=8, **others):
    """What is wrong, in one text."""
    with pytest.raises(InputError) as caught:
        facts(tmp_path, arguments, gpus, **others)
    return str(caught.value)


@pytest.mark.parametrize(*table("sources/megatron.yaml", "rules"))
def test_rules(tmp_path, arguments, expected):
    """Each flag, and each default, means what Megatron takes it for."""
    arguments = arguments.replace("([0]*2+[1]*6)", '"([0]*2+[1]*6)"')
    if expected is None:
        assert "a layout of 9 stages on pp 2" in refused(tmp_path, arguments)
        return
    found = facts(tmp_path, arguments)
    assert {key: found.get(key) for key in expected} == expected


def test_what_several_optimizers_cost(tmp_path):
    """States are shared by half as many, and another reduction joins the halves."""
    flags = "--use-distributed-optimizer --num-distributed-optimizer-instances"
    machine = placer.read_topology("node:4 gpu:8")
    scores = {}
    for count in (1, 2):
        job = opened(tmp_path, f"{flags} {count}", gpus=32).job()
        plan = placer.predict(machine, job, "slurm")
        scores[count] = placer.score(machine, job, plan)
    one, two = (scores[count]["memory_bytes"] for count in (1, 2))
    assert two["optimizer"] == pytest.approx(2 * one["optimizer"])
    assert two["gradients"] == one["gradients"]
    sent = [sum(scores[count]["traffic_bytes"]["dp"].values()) for count in (1, 2)]
    assert sent[1] > sent[0]


@pytest.mark.parametrize(*table("sources/megatron.yaml", "refusals"))
def test_refusals(tmp_path, arguments, words):
    """What Megatron refuses is refused, with the place and its reason."""
    found = refused(tmp_path, arguments)
    assert words in found
    assert "train.sh:1:" in found or "--gpus" in found


@pytest.mark.parametrize(*table("sources/megatron.yaml", "gpus_of_a_launcher"))
def test_gpus_of_a_launcher(text, gpus):
    """World size by the options of each launcher; none where they do not say it."""
    found = read(f"{text} pretrain_gpt.py {PLAIN}\n", "x.sh", Asked())
    assert found.integer("gpus") == (gpus or 0)


@pytest.mark.parametrize(
    *table("sources/megatron.yaml", "lists_are_parsed_and_never_evaluated")
)
def test_lists_are_parsed_and_never_evaluated(pattern, expected):
    """Megatron evaluates them; here they are followed, as Python files are."""
    assert list_of(pattern) == expected


def test_a_missing_file_is_named(samples):
    """What a script sources and is not there is told with the job."""
    path = samples / "jobs" / "megatron/sc21/run_table_1.sh"
    words = r"SBATCH\.sh, which it sources, is not there \(.*run_table_1\.sh:[0-9]"
    with pytest.warns(UserWarning, match=words):
        placer.read_job(path, gpus=32, tflops=100.0)


def test_azures_flags_give_the_shipped_job(tmp_path):
    """Llama 3.1 405B of MLPerf v6.0: its flags for Megatron, and its config.json."""
    (tmp_path / "train.sh").write_text(
        "torchrun --nproc_per_node 4 --nnodes 2048 pretrain_gpt.py \\\n"
        "  --tensor-model-parallel-size 4 --context-parallel-size 2 \\\n"
        "  --pipeline-model-parallel-size 8 --use-tp-pp-dp-mapping \\\n"
        "  --num-virtual-stages-per-pipeline-rank 8 --sequence-parallel \\\n"
        "  --account-for-embedding-in-pipeline-split \\\n"
        "  --account-for-loss-in-pipeline-split \\\n"
        "  --micro-batch-size 1 --global-batch-size 1024 --seq-length 8192 \\\n"
        "  --bf16 --grad-reduce-in-bf16 --use-distributed-optimizer \\\n"
        "  --overlap-grad-reduce --overlap-param-gather \\\n"
        "  --ddp-bucket-size 134217728 --make-vocab-size-divisible-by 32\n"
    )
    (tmp_path / "config.json").write_text(
        '{"model_type": "llama", "num_hidden_layers": 126, "hidden_size": 16384,\n'
        '"intermediate_size": 53248, "num_attention_heads": 128,\n'
        '"num_key_value_heads": 8, "vocab_size": 128256,\n'
        '"tie_word_embeddings": false}'
    )
    shipped = placer.read_job("llama3.1-405b-mlperf-v6")
    read = placer.read_job(
        [f"megatron:{tmp_path}/train.sh", f"hf:{tmp_path}/config.json"],
        micro_batch_time=shipped.compute.micro_batch_time,
    )
    for part in ("parallelism", "sequence", "micro_batch", "micro_batches", "bytes"):
        assert getattr(read, part) == getattr(shipped, part), part
    for part in ("overlap", "stages"):
        assert getattr(read, part) == getattr(shipped, part), part
    # No flag says what traffic on NICs takes from work.
    share = shipped.data_parallel.sm_share
    assert replace(read.data_parallel, sm_share=share) == shipped.data_parallel
    own = {"name": read.model.name, "vocab_multiple": 32}
    assert vars(read.model) == vars(shipped.model) | own
    assert padded_vocabulary(read.model, 4) == shipped.model.vocab


def test_what_a_template_leaves_open_is_asked_for():
    """Words that nobody filled in are no value, and no fault of the file."""
    found = read("MODEL_ARGS:\n  --seq-length: {{SEQ}}\n", "a.yaml", Asked())
    (question,) = (one for one in found.asked if one.key == "sequence")
    assert question.message == "--seq-length is {{SEQ}}, which nothing sets"
    assert question.hint == "--set job.sequence=VALUE"
