"""Configurations in Python: what is followed, and what is asked for."""

import re

import pytest

from placer.base.errors import InputError
from tests.problems import problems_of
from tests.sources.reading import MODEL
from tests.texts import data, table

HEAD = data("jobs/registry-head.txt")
TP = "p.tensor_parallel_degree"
ANSWERS = {"parallelism.tensor_parallel_degree": 4, "training.seq_len": 1024}


def registry(lines):
    """The text of a function that ends with these lines."""
    body = "".join(f"    {line}\n" for line in lines.split("\n"))
    return f"{HEAD.replace('CLASSES', '')}{body}    return c\n"


def answered(job_of, text, problems):
    """The job once all questions are answered; of many a message lists the first."""
    given = dict(MODEL)
    for _ in range(3):
        for problem in problems:
            for key in re.findall(r"--set ([\w.]+)=V", problem.hint):
                given[key] = ANSWERS.get(key, "null")
        try:
            return job_of("torchtitan", text, gpus=16, given=given)
        except InputError as error:
            problems = error.problems
    raise AssertionError(problems)


@pytest.mark.parametrize(*table("sources/python.yaml", "what_is_followed"))
def test_what_is_followed(job_of, lines, tp):
    """Where all that decides is in the file, the value is known."""
    job = job_of("torchtitan", registry(lines), gpus=16)
    assert job.parallelism.tp == tp


@pytest.mark.parametrize(
    *table("sources/python.yaml", "what_is_not_followed_is_asked_for")
)
def test_what_is_not_followed_is_asked_for(job_of, lines):
    """It is neither a default nor one of the branches; the option answers."""
    problems = problems_of(job_of, "torchtitan", registry(lines), gpus=16)
    sizes = [p for p in problems if p.key == "parallelism.tp"]
    assert [p.hint for p in sizes] == ["--set parallelism.tensor_parallel_degree=VALUE"]
    assert answered(job_of, registry(lines), problems).parallelism.tp == 4


def test_a_variable_of_the_environment_can_be_set(job_of):
    """It counts more than a default in the file."""
    for value in ("os.environ['SIZE']", "os.getenv('SIZE', 2)"):
        text = registry(f"{TP} = int({value})")
        job = job_of("torchtitan", text, gpus=16, given={"SIZE": 8})
        assert job.parallelism.tp == 8


def test_a_part_that_only_one_way_makes_has_defaults_in_the_other(job_of):
    """One key is in doubt, and not all that stand beside it."""
    text = registry("c.parallelism = None\nif own.wide:\n  c.compile.enable = True")
    assert job_of("torchtitan", text, gpus=16).parallelism.tp == 1
    wide = registry("if own.wide:\n  c.checkpoint.x = 1\n  c.training.steps = 1")
    assert job_of("torchtitan", wide, gpus=16).parallelism.tp == 2


def test_calls_without_end(job_of):
    """Functions that call themselves without end are told, soon."""
    text = registry(f"{TP} = more(1)") + (
        "def more(n):\n    more(n)\n    more(n)\n    return more(n)\n"
    )
    (problem,) = problems_of(job_of, "torchtitan", text, gpus=16)
    assert "steps of Python" in problem.message
