"""Scripts that leave values open: what decides the job is asked for, by name."""

import pytest

import placer
from placer.base.errors import InputError
from placer.formats.jobs.job import Options, open_job
from tests.sources.test_megatron import PLAIN
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
    *table("sources/open_scripts.yaml", "an_open_value_of_any_argument_is_asked_for")
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


def test_a_variable_that_is_not_set_is_noted(tmp_path):
    """It is taken to be empty, as bash takes it."""
    path = tmp_path / "train.sh"
    path.write_text(f"{LAUNCH} $EXTRA")
    with pytest.warns(UserWarning, match="EXTRA is not set: it is taken to be empty"):
        placer.read_job(f"megatron:{path}", tflops=1.0)
