"""Captured scripts in the folder of PLACER_SAMPLES: what is refused, and asked for."""

from dataclasses import replace

import pytest

import placer
from placer.base.errors import InputError
from placer.formats.jobs.job import Options, open_job
from placer.job.models import padded_vocabulary

GPT3 = "megatron/train_gpt3_175b_distributed.sh"
MIXTRAL = "megatron/train_mixtral_8x7b_distributed.sh"
TABLE_1 = "megatron/sc21/run_table_1.sh"
SWIFT = "ms-swift/deepseek_v3.sh"


def facts(path, gpus=None, **settings):
    options = Options(gpus, 400.0, None, settings)
    opened = open_job(str(path), options)
    opened.job()
    return {key: fact.value for key, fact in opened.found.facts.items()}


def shape(found):
    """Layers and widths, and the rows of the embedding: the padded vocabulary."""
    keys = ("layers", "hidden", "ffn", "heads", "kv_heads")
    whole = found.get("model.vocab_multiple", 1) * found["parallelism.tp"]
    rows = -(-found["model.vocab"] // whole) * whole
    return (*(found[f"model.{key}"] for key in keys), rows)


def test_the_530b_model_of_sc21(samples):
    """Three chunks a stage, a padded vocabulary, and a missing file that is named."""
    path = samples / "jobs" / TABLE_1
    found = facts(path, 2520, MODEL_SIZE="530B")
    assert (found["parallelism.vp"], shape(found)[-1]) == (3, 51200)
    with pytest.warns(UserWarning, match=r"SBATCH\.sh .* it is not there"):
        placer.read_job(path, gpus=32, tflops=100.0)


def test_gpt3_is_refused_as_megatron_does(samples):
    """It has a batch and a schedule, and GPUs that its sizes do not divide."""
    with pytest.raises(InputError) as caught:
        facts(samples / "jobs" / GPT3)
    told = str(caught.value)
    assert "--step-batch-size-schedule and --global-batch-size together" in told
    assert "--gpus N, a multiple of 128" in told
    with pytest.raises(InputError, match="--gpus N, a multiple of 32"):
        facts(samples / "jobs" / MIXTRAL)


def test_gpt3_without_its_batch(samples, tmp_path):
    """The same job with the line that Megatron wants gone."""
    text = (samples / "jobs" / GPT3).read_text()
    path = tmp_path / "gpt3.sh"
    path.write_text(text.replace("--global-batch-size 1536", ""))
    found = facts(path, 1024)
    assert (found["parallelism.dp"], found["micro_batches"]) == (8, 192)
    assert (found["model.ffn"], found["model.kv_heads"]) == (49152, 96)
    assert (shape(found)[-1], found["bytes.gradient"]) == (51200, 2)


def test_swift_takes_its_shape_from_elsewhere(samples):
    """GPUs, pipeline, experts and batch; the shape is asked for."""
    path = str(samples / "jobs" / SWIFT)
    with pytest.raises(InputError, match=r"-j hf:config\.json"):
        placer.read_job(path, tflops=100.0)
    given = {"layers": 27, "hidden": 2048, "heads": 16, "ffn": 11264, "vocab": 163840}
    given |= {"experts": 64, "top_k": 6, "expert_ffn": 1408}
    settings = {f"job.model.{key}": str(value) for key, value in given.items()}
    found = facts(path, **settings)
    assert [found[f"parallelism.{axis}"] for axis in ("pp", "ep", "etp", "dp")] == [
        2,
        4,
        1,
        4,
    ]
    assert found["micro_batches"] == 4
    assert found["data_parallel.sharding"] == "zero1"
    assert found["tensor_parallel.sequence"] is False


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
