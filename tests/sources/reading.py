"""Reading a text as a job, and what it should be."""

import shutil

import pytest

from placer.base.errors import InputError

REST = {
    "model.layers": 8,
    "model.hidden": 512,
    "model.heads": 16,
    "model.ffn": 1024,
    "model.vocab": 1000,
    "sequence": 1024,
    "micro_batch": 1,
    "micro_batches": 1,
}


def problems_of(read, *arguments, **options):
    with pytest.raises(InputError) as caught:
        read(*arguments, **options)
    return caught.value.problems


def at(job, key):
    """The value of a job under the key path of its file."""
    value = job
    for name in key.split("."):
        value = getattr(value, name)
    if name == "order":
        return "-".join(value)
    return list(value) if isinstance(value, tuple) else value


def check(job, expected):
    """The job has these values, by the key paths of its file."""
    assert {key: at(job, key) for key in expected} == expected


def given(*keys):
    """Settings that give these keys their value of `REST`."""
    return {f"job.{key}": REST[key] for key in keys}


MODEL = given("model.layers", "model.hidden", "model.heads", "model.ffn", "model.vocab")


def with_neighbours(path, folder):
    """A copy of a file, beside copies of what stands beside it."""
    own = folder / path.parent.name
    shutil.copytree(path.parent, own, dirs_exist_ok=True)
    return own / path.name
