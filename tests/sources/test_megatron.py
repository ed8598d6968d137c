"""What Megatron's arguments mean: one rule of its own at a time."""

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
