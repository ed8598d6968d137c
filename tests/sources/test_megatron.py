"""What Megatron's arguments mean: one rule of its own at a time."""

import pytest

import placer
from placer.base.errors import InputError
from placer.formats.jobs.findings import Asked
from placer.formats.jobs.megatron.read import read
from placer.formats.jobs.megatron.rules import list_of
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
    """Megatron evaluates them; only brackets, digits, * and + are read here."""
    assert list_of(pattern) == expected
