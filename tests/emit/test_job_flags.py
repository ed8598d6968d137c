"""Flags of a job: what `-j` reads from them is the job again."""

from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest

from placer.base.errors import EmitError
from placer.emit.job_flags import job_flags
from placer.formats.jobs.job import read_job
from placer.job.parallel import DataParallel
from placer.tune.space import Legal, Space

# Readers warn of what they do not model.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

GPUS, BATCH = 16, 32
USUAL = "--micro-batch-size 1 --global-batch-size 32"
SHAPE = (
    "--num-layers 16 --hidden-size 1024 --num-attention-heads 16 --vocab-size 51200 "
    "--max-position-embeddings 4096 --seq-length 4096 --bf16"
)
EXPERTS = "--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 512"
SAME = ("parallelism", "micro_batch", "micro_batches", "memory", "stages", "overlap")
TITAN = """\
[model]
name = "llama3"
flavor = "8B"
[training]
"""


def megatron(folder, flags):
    """The job of a script with these flags."""
    path = folder / "train.sh"
    path.write_text(f"torchrun pretrain_gpt.py {SHAPE} {flags}\n")
    return read_job(f"megatron:{path}", gpus=GPUS, tflops=400)


# Options of torchtitan b5bcd76c, ``tests/unit_tests/test_no_new_cli_options.py``: no
# other will be added.
TITANS = {
    "parallelism": "data_parallel_replicate_degree data_parallel_shard_degree "
    "context_parallel_degree tensor_parallel_degree pipeline_parallel_degree "
    "expert_parallel_degree pipeline_parallel_schedule num_pp_microbatches "
    "pipeline_parallel_first_stage_less_layers fsdp_reshard_after_forward "
    "pipeline_parallel_last_stage_less_layers",
    "training": "max_context_length num_tokens_per_microbatch_per_dp_rank "
    "num_tokens_per_train_step disable_cuda_graphs",
}


def titans(words):
    """Options of a command line of torchtitan; how activations are kept ends it."""
    *options, activations = words
    name, _, mode = activations.partition(":")
    assert name == "activation-checkpoint"
    assert mode in ("none", "selective", "full")
    found = {}
    for word in options:
        if word.startswith("--"):
            table, _, key = word.removeprefix("--").partition(".")
            assert key in TITANS[table].split()
            found[word] = "true"
        else:
            found[list(found)[-1]] = word
    return found | {"--activation_checkpoint.mode": mode}


def torchtitan(folder, flags):
    """The job of a configuration with these settings."""
    tables = {}
    for name, value in flags.items():
        table, _, key = name.removeprefix("--").partition(".")
        shown = value if value.lstrip("-").isdecimal() else f'"{value}"'
        tables.setdefault(table, []).append(f"{key} = {shown}")
    text = TITAN + "\n".join(tables.pop("training")) + "\n"
    text += "".join(f"[{t}]\n" + "\n".join(rows) + "\n" for t, rows in tables.items())
    path = folder / "train.toml"
    path.write_text(text)
    return read_job(f"torchtitan:{path}", gpus=GPUS, tflops=400)


def sampled(job, framework, count):
    """Jobs of random legal choices."""
    assert job.model is not None
    legal = Legal(job, job.model, Space((GPUS,), BATCH, framework=framework))
    choices = [choice for shape in legal.shapes() for choice in legal.variants(shape)]
    return [choice.applied(job) for choice in Random(0).sample(choices, count)]


def assert_same(job, back):
    for key in SAME:
        assert getattr(back, key) == getattr(job, key), key
    if job.parallelism.dp * job.parallelism.cp == 1:  # nothing to share out
        return
    for key in ("sharding", "shard_size", "keep_parameters"):
        got, expected = (getattr(j.data_parallel, key) for j in (back, job))
        assert got == expected, key


@pytest.mark.parametrize("experts", ["", EXPERTS])
def test_megatron_reads_back_what_was_chosen(experts, tmp_path):
    """Degrees, batch, interleaving, ends, sharding, recomputation, sequence slices."""
    parallel = "--sequence-parallel --tensor-model-parallel-size 2"
    start = megatron(tmp_path, f"{experts} {parallel} {USUAL}")
    for job in sampled(start, "megatron", 60):
        flags = " ".join(job_flags(job, "megatron"))
        back = megatron(tmp_path, f"{experts} {flags}")
        assert_same(job, back)
        axes = job.parallelism
        assert back.tensor_parallel.sequence == (axes.tp > 1)


def test_torchtitan_reads_back_what_was_chosen(tmp_path):
    """Options that it has today: ends of the pipeline, tokens, kept activations."""
    batch = {"global_batch_size": BATCH, "local_batch_size": 1, "seq_len": 8192}
    given = {f"--training.{key}": str(value) for key, value in batch.items()}
    for job, words in flagged(torchtitan(tmp_path, given), "torchtitan"):
        back = torchtitan(tmp_path, titans(words))
        assert ("--training.disable_cuda_graphs" in words) == (job.parallelism.pp > 1)
        alike = replace(back.parallelism, vp=job.parallelism.vp)
        assert_same(job, replace(back, parallelism=alike, overlap=job.overlap))


def test_megatron_deepspeed_reads_back_what_was_chosen(tmp_path):
    """Stage of ZeRO, Ulysses, and layers that are computed again."""
    for job, words in flagged(megatron(tmp_path, f"--deepspeed {USUAL}"), "deepspeed"):
        assert_same(job, megatron(tmp_path, " ".join(words)))


def flagged(start, framework):
    """Random legal choices with their flags, where the framework can say them."""
    found = []
    for job in sampled(start, framework, 60):
        with suppress(EmitError):  # single modules, or a sharding that it has not
            found.append((job, job_flags(job, framework)))
    assert len(found) >= 20
    return found


def test_megatron_deepspeed_keeps_experts_out_of_zero_3(tmp_path):
    """``Native DeepSpeed MoE is not supported with ZeRO Stage 3``."""
    job = megatron(tmp_path, f"{EXPERTS} {USUAL}")
    for sharding in ("zero2", "zero3"):
        kept = replace(job, data_parallel=DataParallel(sharding=sharding))
        if sharding == "zero3":
            with pytest.raises(EmitError, match="no experts in ZeRO-3"):
                job_flags(kept, "deepspeed")
        else:
            assert "--zero-stage" in job_flags(kept, "deepspeed")


def test_shards_of_megatron_ask_for_their_checkpoints(tmp_path):
    """``--use-megatron-fsdp`` is refused without ``--ckpt-format fsdp_dtensor``."""
    job = megatron(tmp_path, f"{USUAL} --use-megatron-fsdp")
    words = job_flags(job, "megatron")
    assert words[words.index("--ckpt-format") + 1] == "fsdp_dtensor"
    job = megatron(tmp_path, f"{USUAL} --use-distributed-optimizer")
    assert "--ckpt-format" not in job_flags(job, "megatron")
