"""What Megatron's arguments mean: one rule of its own at a time."""

import json

import pytest

import placer
from placer.base.errors import InputError
from placer.formats.jobs.findings import Asked
from placer.formats.jobs.job import Options, open_job
from placer.formats.jobs.megatron.read import read
from placer.formats.jobs.megatron.rules import list_of
from tests.texts import table

SHAPE = "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --vocab-size 51200"
BATCH = "--micro-batch-size 1 --global-batch-size 64 --seq-length 2048"
PLAIN = f"--max-position-embeddings 4096 --bf16 {SHAPE} {BATCH}"


def opened(tmp_path, arguments="", gpus=8, name="train.sh", text=None, **settings):
    """Sources of a script that trains with some arguments."""
    path = tmp_path / name
    path.write_text(text or f"torchrun pretrain_gpt.py {PLAIN} {arguments}\n")
    return open_job(f"megatron:{path}", Options(gpus, 400.0, None, settings))


def facts(tmp_path, arguments="", gpus=8, **others):
    """Values by key, of a job that is valid."""
    found = opened(tmp_path, arguments, gpus, **others)
    found.job()
    return {key: fact.value for key, fact in found.found.facts.items()}


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


def test_groups_of_gtp_are_consecutive_replicas(tmp_path):
    """Their weights are not modelled; beside cp they would number ranks otherwise."""
    gtp = "--generalized-tensor-parallel-remat-size 2"
    found = opened(tmp_path, f"--tensor-model-parallel-size 2 {gtp}")
    assert found.job().parallelism.dp == 4
    assert [one.key for one in found.found.not_modelled] == ["GTP 2"]
    told = refused(tmp_path, f"--context-parallel-size 2 {gtp}")
    assert "GTP 2 numbers ranks between tp and cp" in told
    assert "consecutive replicas" in told


def test_without_a_global_batch_each_replica_does_one_micro_batch(tmp_path):
    """Megatron's global batch then is micro_batch x dp."""
    text = f"torchrun pretrain_gpt.py {SHAPE} --micro-batch-size 2 --seq-length 8\n"
    assert facts(tmp_path, text=text)["micro_batches"] == 1


def test_the_last_batch_of_a_schedule_counts(tmp_path):
    """--step-batch-size-schedule without --global-batch-size."""
    text = f"torchrun pretrain_gpt.py {SHAPE} --micro-batch-size 1 --seq-length 8 "
    text += '--step-batch-size-schedule "0:16 2.4B:32"\n'
    assert facts(tmp_path, text=text)["micro_batches"] == 4


def test_several_optimizers_shard_over_a_part_of_the_replicas(tmp_path):
    """--num-distributed-optimizer-instances."""
    arguments = "--use-distributed-optimizer --num-distributed-optimizer-instances 2"
    found = facts(tmp_path, f"{arguments} --context-parallel-size 2", gpus=32)
    assert found["data_parallel.sharding"] == "zero1"
    assert found["data_parallel.optimizer_instances"] == 2
    assert "data_parallel.shard_size" not in found


def test_several_groups_of_fsdp_are_hybrid(tmp_path):
    """Megatron FSDP shares out all it has inside each of its instances."""
    arguments = "--use-megatron-fsdp --num-distributed-optimizer-instances 2"
    found = facts(tmp_path, f"{arguments} --context-parallel-size 2", gpus=32)
    assert found["data_parallel.sharding"] == "hsdp"
    assert found["data_parallel.shard_size"] == 16


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


def test_a_batch_that_does_not_divide_names_gpus_that_fit(tmp_path):
    """The nearest number of GPUs whose replicas divide the batch."""
    assert "--gpus 7" in refused(tmp_path, "--global-batch-size 63")


@pytest.mark.parametrize(*table("sources/megatron.yaml", "gpus_of_a_launcher"))
def test_gpus_of_a_launcher(text, gpus):
    """World size by the options of each launcher; none where they do not say it."""
    found = read(f"{text} pretrain_gpt.py {PLAIN}\n", "x.sh", Asked())
    assert found.integer("gpus") == (gpus or 0)


def test_open_sizes_are_asked_for_by_name(tmp_path):
    """Every variable that a size needs and nobody sets, at once."""
    text = f"torchrun pretrain_gpt.py {PLAIN} --tensor-model-parallel-size $TP "
    text += "--pipeline-model-parallel-size ${PP} --data-path $DATA\n"
    told = refused(tmp_path, text=text)
    assert "--set TP=VALUE" in told
    assert "--set PP=VALUE" in told
    assert "DATA" not in told
    assert facts(tmp_path, text=text, TP="2", PP="2")["parallelism.dp"] == 2


def test_a_branch_that_changes_the_job_is_asked_for(tmp_path):
    """Others, such as one that logs, are not."""
    text = f"""A="{PLAIN}"
if [ "$SIZE" = big ]; then A="$A --num-layers 16"; fi
if [ "$LOG" = yes ]; then A="$A --wandb-project x"; fi
torchrun pretrain_gpt.py $A
"""
    told = refused(tmp_path, text=text)
    assert "it depends on SIZE" in told
    assert "LOG" not in told
    assert facts(tmp_path, text=text, SIZE="big")["model.layers"] == 16


def test_several_launches_are_selected_by_number(tmp_path):
    """A script that trains twice asks which; --select says it."""
    text = f"torchrun pretrain_gpt.py {PLAIN}\n" * 1
    text += f"torchrun pretrain_gpt.py {PLAIN} --num-layers 4\n"
    path = tmp_path / "two.sh"
    path.write_text(text)
    with pytest.raises(InputError, match="1 at line 1, 2 at line 2"):
        open_job(str(path), Options(8, 400.0))
    job = placer.read_job(str(path), gpus=8, tflops=400.0, select="2")
    assert job.model.layers == 4


def test_arguments_may_stand_in_a_file_or_a_variable(tmp_path):
    """A file of nothing but arguments, and a script that only sets them."""
    lines = PLAIN.replace(" --", "\n--")
    expected = facts(tmp_path)
    assert facts(tmp_path, text=f"# model\n{lines}\n") == expected
    assert facts(tmp_path, text=f'export PARAMS="{PLAIN}"\n') == expected


def test_yaml_of_both_kinds(tmp_path):
    """MODEL_ARGS of flags, and the nested sections of --yaml-cfg."""
    flags = "MODEL_ARGS:\n  --num-layers: 8\n  --hidden-size: 64\n  --bf16: true\n"
    flags += "  --num-attention-heads: 4\n  --vocab-size: 128\n  --swiglu: false\n"
    flags += "  --micro-batch-size: 1\n  --seq-length: 4 # twice\n  --seq-length: 8\n"
    found = facts(tmp_path, text=flags, name="model_config.yaml")
    assert (found["model.layers"], found["sequence"]) == (8, 8)
    assert found["model.gated"] is False
    nested = "language_model:\n  num_layers: 8\n  hidden_size: 64\n"
    nested += "  num_attention_heads: 4\n  activation_func: swiglu\n"
    nested += "  ffn_hidden_size: null\nmodel_parallel:\n"
    nested += "  tensor_model_parallel_size: 2\n  bf16: true\n"
    nested += "micro_batch_size: 1\nseq_length: 8\nvocab_size: 256\n"
    found = facts(tmp_path, text=nested, name="cfg.yaml")
    assert (found["parallelism.tp"], found["model.ffn"]) == (2, 128)


def test_a_log_holds_the_values_after_defaults(tmp_path):
    """The argument block, behind the prefixes of a launcher."""
    values = {
        "world_size": 16,
        "tensor_model_parallel_size": 2,
        "num_layers": 8,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_query_groups": 1,
        "group_query_attention": False,
        "micro_batch_size": 1,
        "global_batch_size": 32,
        "seq_length": 8,
        "virtual_pipeline_model_parallel_size": None,
        "bf16": True,
        "cp_comm_type": "['p2p']",
        "a_name_that_is_longer_than_the_forty_eight_columns_": 1,
    }
    lines = [f"  {k} {'.' * max(0, 48 - len(k))} {v}" for k, v in values.items()]
    lines.insert(3, "  loading")
    block = ["-" * 24 + " arguments " + "-" * 24, *lines]
    block += ["-" * 20 + " end of arguments " + "-" * 21]
    text = "".join(f"[1,0]<stdout>:{line}\n" for line in block)
    text = text.replace("  num_layers", "  num_layers", 1)
    text += " > padded vocab (size: 50257) with 175 dummy tokens (new size: 50432)\n"
    found = facts(tmp_path, text=text, gpus=None, name="run.log")
    assert found["parallelism.dp"] == 8
    assert found["model.kv_heads"] == 4
    assert found["model.vocab"] == 50432


def test_deepspeed_config_that_the_script_writes(tmp_path):
    """Megatron-DeepSpeed: the JSON of a here document, by the variables."""
    text = f"""STAGE=3
cat <<EOT > ds.json
{{"train_batch_size": 64, "gradient_accumulation_steps": 4,
  "zero_optimization": {{"stage": $STAGE, "reduce_bucket_size": 5e7}}}}
EOT
deepspeed pretrain_gpt.py {PLAIN} --deepspeed --deepspeed_config ds.json \\
  --num-experts 1 --ds-sequence-parallel-size 1
"""
    found = facts(tmp_path, text=text, gpus=16)
    assert found["data_parallel.sharding"] == "zero3"
    assert found["data_parallel.overlap_reduce"] is True
    assert found["data_parallel.bucket_parameters"] == 50_000_000
    assert found["parallelism.dp"] == 16
    bad = text.replace("5e7", "[]").replace("$STAGE", "7")
    told = refused(tmp_path, text=bad, gpus=16)
    assert "train.sh:4:34: zero_optimization.stage: expected an integer from 0" in told
    assert "train.sh:4:59: zero_optimization.reduce_bucket_size: expected" in told
    assert "the sources say 16 GPUs" in refused(tmp_path, text=text, gpus=8)


@pytest.mark.parametrize(
    *table("sources/megatron.yaml", "lists_are_parsed_and_never_evaluated")
)
def test_lists_are_parsed_and_never_evaluated(pattern, expected):
    """Megatron evaluates them; only brackets, digits, * and + are read here."""
    assert list_of(pattern) == expected


def test_the_shape_may_come_from_config_json(tmp_path):
    """-j megatron:... -j hf:config.json: the flags, and the shape that they lack."""
    config = {
        "model_type": "llama",
        "num_hidden_layers": 8,
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "train.sh").write_text(f"torchrun pretrain_gpt.py --bf16 {BATCH}\n")
    sources = [f"megatron:{tmp_path}/train.sh", f"hf:{tmp_path}/config.json"]
    job = placer.read_job(sources, gpus=8, tflops=400.0)
    assert (job.model.layers, job.model.kv_heads, job.model.ffn) == (8, 8, 4096)
    text = f"torchrun pretrain_gpt.py --bf16 {BATCH} --num-layers 9 --hidden-size 8"
    (tmp_path / "train.sh").write_text(text)
    with pytest.raises(InputError, match=r"model.layers: 8 here, 9 in train\.sh:1"):
        placer.read_job(sources, gpus=8, tflops=400.0)
