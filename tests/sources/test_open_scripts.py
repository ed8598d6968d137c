"""Scripts that leave values open: what decides the job is asked for, by name."""

import pytest

import placer
from placer.base.errors import InputError
from placer.formats.jobs.job import Options, open_job
from tests.sources.test_megatron import PLAIN, facts, refused
from tests.sources.texts import SHAPE
from tests.texts import table

LAUNCH = f"torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py {PLAIN}"
EXPERTS = "--num-experts 8 --moe-token-dispatcher-type alltoall"


def read(tmp_path, text, kind="megatron", gpus=None, name="train.sh", **settings):
    """A script as the sources of a job, with the shape of a model beside it."""
    path = tmp_path / name
    path.write_text(text)
    specs = [f"{kind}:{path}"]
    if kind != "megatron":
        shape = tmp_path / "config.json"
        shape.write_text(SHAPE)
        specs.append(f"hf:{shape}")
    opened = open_job(specs, Options(gpus, 400.0, None, settings))
    opened.job()
    return {key: fact.value for key, fact in opened.found.facts.items()}


def asked(tmp_path, text, kind="megatron", **options):
    """What is asked for: messages and hints."""
    with pytest.raises(InputError) as caught:
        read(tmp_path, text, kind, **options)
    return [(problem.message, problem.hint) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("flag", "others"),
    [
        ("--moe-layer-freq", EXPERTS),
        (
            "--moe-token-dispatcher-type",
            "--num-experts 8 --expert-model-parallel-size 2",
        ),
        ("--pipeline-model-parallel-layout", "--pipeline-model-parallel-size 2"),
        ("--data-parallel-sharding-strategy", "--use-megatron-fsdp"),
        ("--recompute-granularity", ""),
        ("--recompute-method", "--recompute-granularity full"),
        ("--recompute-modules", "--recompute-granularity selective"),
        ("--cp-comm-type", "--context-parallel-size 2"),
        ("--fp8-format", ""),
        ("--fp8-recipe", "--fp8-format hybrid"),
        ("--bf16", ""),
        ("--sequence-parallel", "--tensor-model-parallel-size 2"),
        ("--use-distributed-optimizer", ""),
        ("--swiglu", ""),
        ("--num-experts", ""),
        ("--step-batch-size-schedule", ""),
        ("--hybrid-layer-pattern", ""),
    ],
)
def test_an_open_value_of_any_argument_is_asked_for(tmp_path, flag, others):
    """No default, and no choice of a text, stands in for it."""
    told = asked(tmp_path, f'X=$(cmd -a)\n{LAUNCH} {others} {flag} "$X"')
    assert told == [(f"{flag} is $(cmd -a), which nothing sets", "--set X=VALUE")]


@pytest.mark.parametrize(
    "flag",
    ["--save", "--tokenizer-model", "--optimizer", "--wandb-project", "--data-path"],
)
def test_an_open_value_that_decides_nothing_is_not(tmp_path, flag):
    """The job is the same whatever it is."""
    found = read(tmp_path, f"{LAUNCH} {flag} $(cmd)")
    assert found == read(tmp_path, f"{LAUNCH} {flag} x")


@pytest.mark.parametrize(
    *table(
        "sources/open_scripts.yaml", "a_size_of_a_branch_is_asked_for_by_what_decides"
    )
)
def test_a_size_of_a_branch_is_asked_for_by_what_decides(tmp_path, text, hint):
    """The variable of the condition, or the size where that cannot be set."""
    ((message, told),) = asked(
        tmp_path, f"{text}\n{LAUNCH} --tensor-model-parallel-size $TP"
    )
    assert message.startswith("it depends on ")
    assert told == hint
    name = hint.split()[1].partition("=")[0]
    given = "h" if name == "GPU" else "4"
    script = f"{text}\n{LAUNCH} --tensor-model-parallel-size $TP"
    size = read(tmp_path, script, **{name: given})["parallelism.tp"]
    assert size == (2 if name == "GPU" else 4)


def test_arguments_that_only_one_branch_has(tmp_path):
    """Asked for where they decide, and of no effect where they log."""
    text = 'if [ "$M" = a ]; then A=({}); fi\n' + LAUNCH + ' "${{A[@]}}"'
    found = read(tmp_path, text.format("--wandb-project x --log-interval 1"))
    assert found["parallelism.dp"] == 16
    told = asked(tmp_path, text.format(f"{EXPERTS} --expert-model-parallel-size 2"))
    assert [message for message, _ in told] == ["it depends on M, which nothing sets"]
    # What comes later counts more.
    later = text.format("--tensor-model-parallel-size 2")
    assert read(tmp_path, f"{later} --tensor-model-parallel-size 1")


def test_words_that_may_be_any_arguments(tmp_path):
    """What a command prints is asked for; a variable that is not set is noted."""
    told = asked(tmp_path, f"A=$(python gen.py)\n{LAUNCH} $A")
    assert told == [
        ("an argument is $(python gen.py), which nothing sets", "--set A=VALUE")
    ]
    found = read(tmp_path, f"A=$(cmd)\n{LAUNCH} $A", A="--tensor-model-parallel-size 2")
    assert found["parallelism.tp"] == 2
    path = tmp_path / "train.sh"
    path.write_text(f"{LAUNCH} $EXTRA")
    with pytest.warns(UserWarning, match="EXTRA is not set: it is taken to be empty"):
        placer.read_job(f"megatron:{path}", tflops=1.0)


def test_launches_in_branches(tmp_path):
    """Two that differ are asked for by what decides between them."""
    text = f"if [ $M = a ]; then {LAUNCH}; else {LAUNCH} --swiglu; fi"
    told = asked(tmp_path, text)
    assert told == [("it depends on M, which nothing sets", "--set M=VALUE")]
    assert read(tmp_path, text, M="a")["model.gated"] is False


def test_the_number_of_gpus_may_depend_on_a_branch(tmp_path):
    """It is asked for by what decides, unless --gpus says it."""
    text = 'case "$S" in big) N=4 ;; small) N=2 ;; *) exit 1 ;; esac\n'
    text += LAUNCH.replace("--nnodes 2", "--nnodes $N")
    told = asked(tmp_path, text)
    hint = "--set S=VALUE, or --gpus N"
    assert told == [("it depends on S, which nothing sets", hint)]
    assert read(tmp_path, text, gpus=16)["parallelism.dp"] == 16
    assert read(tmp_path, text, S="big")["parallelism.dp"] == 32


def test_loops_of_known_bounds_make_lists(tmp_path):
    """A list of experts that a loop writes, and one in arithmetic of old."""
    loop = "for ((i=0; i<8; i++)); do if ((i<2)); then F+='0,'; else F+='1,'; fi; done"
    text = f'{loop}\n{LAUNCH} {EXPERTS} --moe-layer-freq "[${{F%,}}]"'
    assert read(tmp_path, text)["model.moe_layers"] == 6
    text = f"{LAUNCH.replace('--num-layers 8', '--num-layers $[16/2]')}"
    assert read(tmp_path, text)["model.layers"] == 8


def test_a_script_that_ends_asks_for_what_it_lacks(tmp_path):
    """The line, the variable, and the option that sets it; Slurm sets its own."""
    text = "#SBATCH -N 2\n#SBATCH --gres=gpu:8\n"
    text += 'if [ -z "$SLURM_JOB_ID" ]; then sbatch "$0"; exit; fi\n'
    text += f'[ -n "$KEY" ] || exit 1\nsrun python pretrain_gpt.py {PLAIN}'
    message = "the script ends at line 4 as KEY is not set"
    assert asked(tmp_path, text) == [(message, "--set KEY=VALUE")]
    assert read(tmp_path, text, KEY="x")["parallelism.dp"] == 16
    assert read(tmp_path, text, KEY="x", SLURM_NNODES="4")["parallelism.dp"] == 32


def test_missing_files_come_first_and_notes_are_kept(tmp_path):
    """What is asked for may stand in them."""
    text = "source $(dirname $0)/a.sh\n. b.sh\n[ -f c.sh ] && . c.sh\n"
    path = tmp_path / "train.sh"
    path.write_text(f"{text}torchrun pretrain_gpt.py --num-layers 8 --hidden-size 64")
    with pytest.raises(InputError) as caught:
        open_job(f"megatron:{path}", Options(8, 400.0))
    first, *others = caught.value.problems
    assert first.message == "a.sh and b.sh, which it sources, are not there"
    assert others
    assert any("source c.sh" in note for note in caught.value.notes)


@pytest.mark.parametrize(
    *table("sources/open_scripts.yaml", "models_of_mixed_layers_are_refused")
)
def test_models_of_mixed_layers_are_refused(tmp_path, arguments, counts):
    """By name, with how many layers there are of each."""
    assert f"a model of mixed layers ({counts}" in refused(tmp_path, arguments)


def test_a_program_that_trains_mamba(tmp_path):
    """Its name alone says that its layers are no attention."""
    text = f"torchrun pretrain_mamba.py {PLAIN}"
    assert "mixed layers (8 Mamba)" in refused(tmp_path, text=text)


DEEPSPEED = "--deepspeed --zero-stage 0 --pipeline-model-parallel-size 4"


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("'type:transformer|embedding'", (1, 1)),
        ("type:embedding|transformer --untie-embeddings-and-output-weights", (1, None)),
        ("type:transformer", (None, None)),
        ("uniform", (None, None)),
        ("parameters", (None, None)),
    ],
)
def test_partitions_of_deepspeed(tmp_path, method, expected):
    """Its stages may be uneven, and count what the method names."""
    layers = PLAIN.replace("--num-layers 8", "--num-layers 14")
    text = f'A="{DEEPSPEED} --pp-partition-method {method}"\n'
    found = facts(tmp_path, text=f"{text}torchrun pretrain_gpt.py {layers} $A")
    assert (found.get("stages.embedding"), found.get("stages.loss")) == expected


def test_a_vocabulary_that_is_padded_to_a_size(tmp_path):
    """--pad-vocab-size-to says it all, whatever tp is."""
    text = "torchrun pretrain_gpt.py --pad-vocab-size-to 51200 "
    text += PLAIN.replace("--vocab-size 51200", "--vocab-size 50257")
    found = facts(tmp_path, text=text)
    assert (found["model.vocab"], found["model.vocab_multiple"]) == (51200, 1)


@pytest.mark.parametrize(
    *table("sources/open_scripts.yaml", "what_deepspeeds_json_leaves_open")
)
def test_what_deepspeeds_json_leaves_open(tmp_path, written, words):
    """A value of it that is not known, or the whole file, is asked for."""
    text = f"cat <<EOT > ds.json\n{written}\nEOT\n" if written else ""
    text += f"torchrun pretrain_gpt.py {PLAIN} --deepspeed --deepspeed_config ds.json"
    assert words in refused(tmp_path, text=text)


def test_other_readers_ask_alike(tmp_path):
    """ms-swift, veRL and MLPerf ask for what decides a branch."""
    branch = 'if [ "$GPU" = h ]; then TP=2; N=2; else TP=4; N=4; fi\n'
    swift = f"{branch}NNODES=$N NPROC_PER_NODE=8 megatron sft --model own "
    swift += "--tensor_model_parallel_size $TP --max_length 2048"
    verl = f"{branch}python3 -m verl.trainer.main_ppo trainer.nnodes=$N \\\n"
    actor = "actor_rollout_ref.actor."
    verl += f"{actor}ppo_mini_batch_size=64 {actor}strategy=megatron \\\n"
    verl += f"{actor}ppo_micro_batch_size_per_gpu=1 data.max_prompt_length=8 \\\n"
    verl += f"data.max_response_length=8 {actor}megatron.tensor_model_parallel_size=$TP"
    mlperf = f"{branch}export DGXNNODES=$N DGXNGPU=8 MINIBS=16 MICRO_BATCH_SIZE=1\n"
    mlperf += "export TENSOR_MODEL_PARALLEL=$TP PIPELINE_MODEL_PARALLEL=1\n"
    for kind, text in (("swift", swift), ("verl", verl), ("mlperf", mlperf)):
        given = {} if kind != "mlperf" else {"job.sequence": "1024"}
        told = asked(tmp_path, text, kind, **given)
        assert "it depends on GPU, which nothing sets" in dict(told), kind
        assert all(hint.startswith("--set GPU=VALUE") for _, hint in told), kind
        found = read(tmp_path, text, kind, GPU="h", **given)
        assert (found["parallelism.tp"], found["parallelism.dp"]) == (2, 8), kind


def test_verl_names_why_nothing_starts(tmp_path):
    """A script that ends says where, one without a trainer says what is wanted."""
    start = "python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.strategy=fsdp"
    told = asked(tmp_path, f'[ -z "$K" ] && exit 1\n{start}', "verl")
    assert told == [("the script ends at line 1 as K is not set", "--set K=VALUE")]
    told = asked(tmp_path, f"{start}\n{start} trainer.nnodes=2", "verl")
    assert told[0][0] == "it starts 2 programs: 1 at line 1, 2 at line 2"
    told = asked(tmp_path, f"A=$(cmd)\n{start} trainer.nnodes=2 $A", "verl")
    assert told[0] == ("an argument is $(cmd), which nothing sets", "--set A=VALUE")
    text = f"if [ $M = a ]; then A=trainer.nnodes=4; fi\n{start} $A"
    told = asked(tmp_path, text, "verl")
    assert ("it depends on M, which nothing sets", "--set M=VALUE, or --gpus N") in told
