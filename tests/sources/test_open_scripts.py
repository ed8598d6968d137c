"""Scripts that leave values open: what decides the job is asked for, by name."""

import pytest

from placer.base.errors import InputError
from placer.formats.jobs.job import Options, open_job
from tests.sources.test_megatron import PLAIN
from tests.texts import table

LAUNCH = f"torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py {PLAIN}"


def read(tmp_path, text, **settings):
    """Facts of the job of a script."""
    path = tmp_path / "train.sh"
    path.write_text(text)
    opened = open_job(f"megatron:{path}", Options(None, 400.0, None, settings))
    opened.job()
    return {key: fact.value for key, fact in opened.found.facts.items()}


def asked(tmp_path, text):
    """What is asked for: messages and hints."""
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    return [(problem.message, problem.hint) for problem in caught.value.problems]


@pytest.mark.parametrize(
    *table("sources/open_scripts.yaml", "an_open_value_of_any_argument_is_asked_for")
)
def test_an_open_value_of_any_argument_is_asked_for(tmp_path, flag, others):
    """No default, and no choice of a text, stands in for it."""
    told = asked(tmp_path, f'X=$(cmd -a)\n{LAUNCH} {others} {flag} "$X"')
    assert told == [(f"{flag} is $(cmd -a), which nothing sets", "--set X=VALUE")]


def test_a_key_of_the_job_answers_for_a_flag(tmp_path):
    """What an open flag decides may be said instead of its value."""
    key = "data_parallel.overlap_reduce"
    text = f"{LAUNCH} --overlap-grad-reduce $(cmd)"
    assert read(tmp_path, text, **{f"job.{key}": "true"})[key] is True


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
    (note,) = caught.value.notes  # of what the error does not say
    assert "source c.sh" in note
