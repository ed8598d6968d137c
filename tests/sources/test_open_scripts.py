"""Scripts that leave values open: what decides the job is asked for, by name."""

import pytest

from placer.base.errors import InputError
from tests.problems import problems_of
from tests.sources.megatron import PLAIN, facts
from tests.texts import table

LAUNCH = f"torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py {PLAIN}"


def read(folder, text, **settings):
    """Facts of the job of a script."""
    return facts(folder, gpus=None, text=text, **settings)


def asked(folder, text):
    """What is asked for: messages and hints."""
    return [(one.message, one.hint) for one in problems_of(read, folder, text)]


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


@pytest.mark.parametrize("flag", ["--save", "--tokenizer-model", "--optimizer"])
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
    script = f"{text}\n{LAUNCH} --tensor-model-parallel-size $TP"
    ((message, told),) = asked(tmp_path, script)
    assert message.startswith("it depends on ")
    assert told == hint
    name = hint.split()[1].partition("=")[0]
    given, size = ("h", 2) if name == "GPU" else ("4", 4)
    assert read(tmp_path, script, **{name: given})["parallelism.tp"] == size


def test_missing_files_come_first_and_notes_are_kept(tmp_path):
    """What is asked for may stand in them, or in a flag that is spelt another way."""
    text = "source $(dirname $0)/a.sh\n. b.sh\n[ -f c.sh ] && . c.sh\n"
    text += "torchrun pretrain_gpt.py --num-layers 8 --hidden-size 64 --seq-lenght 9"
    with pytest.raises(InputError) as caught:
        facts(tmp_path, text=text)
    first, *others = caught.value.problems
    assert first.message == "a.sh and b.sh, which it sources, are not there"
    assert others
    slip, note = sorted(caught.value.notes)  # of what the error does not say
    assert slip.endswith(":4) is not read: did you mean --seq-length?")
    assert "source c.sh" in note
