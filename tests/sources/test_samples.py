"""A script with a file that it lacks, and flags that give a job that is shipped."""

from dataclasses import replace

import pytest

import placer
from placer.job.models import padded_vocabulary


def test_a_missing_file_is_named(samples):
    """What a script sources and is not there is told with the job."""
    path = samples / "jobs" / "megatron/sc21/run_table_1.sh"
    with pytest.warns(
        UserWarning,
        match=r"SBATCH\.sh, which it sources, is not there \(.*run_table_1\.sh:[0-9]",
    ):
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
