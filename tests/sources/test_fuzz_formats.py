"""Mutated sources: whatever a file holds, a job or an `InputError` comes of it."""

from __future__ import annotations

import random

import pytest

from placer.base.errors import InputError
from placer.documents.recognise import recognise
from placer.formats.jobs.job import Options, open_job
from placer.formats.jobs.registry import FORMATS
from tests.readers.test_fuzz import mutated
from tests.sources.texts import BRIDGE_PYTHON, SHAPE, TEXTS, TORCHTITAN_PYTHON

FEW, MANY = 20, 150
SETTINGS = {"job.sequence": "1024", "job.micro_batch": "1", "job.micro_batches": "2"}
SAMPLES = {
    "accelerate": "accelerate/*.yaml",
    "axolotl": "axolotl/*.yaml",
    "deepspeed": "deepspeed/*.json",
    "hf": "hf/*.json",
    "maxtext": "maxtext/**/*.yml",
    "nanotron": "nanotron/*.yaml",
    "nemo": "megatron-bridge/*.yaml",
    "nemo-rl": "nemo-rl/*.yaml",
    "neox": "gpt-neox/*.yml",
    "torchtitan": "torchtitan/*",
    "verl": "verl/*.sh",
}


def try_mutations(folder, name, text, count):
    """Read so many mutations of a text, joined with a shape."""
    shape = folder / "shape.json"
    shape.write_text(SHAPE)
    source = folder / "source"
    options = Options(gpus=64, tflops=400, settings=SETTINGS, select="deepseek_v3_16b")
    for seed in range(count):
        chance = random.Random(f"{name}{seed}")
        text_of_seed = mutated(text, chance)
        source.write_text(text_of_seed, encoding="utf-8", errors="surrogatepass")
        joined = [f"{name}:{source}", f"hf:{shape}"]
        problems = problems_of(joined[: chance.randint(1, 2)], options)
        assert all(problem.message.isprintable() for problem in problems)


def problems_of(specs, options):
    """What is wrong with a job; nothing when it can be read and written."""
    try:
        opened = open_job(specs, options)
        opened.job()
        opened.text()
    except InputError as error:
        return error.problems
    return ()


@pytest.mark.parametrize(
    ("name", "text"),
    [*TEXTS.items(), ("torchtitan", TORCHTITAN_PYTHON), ("nemo", BRIDGE_PYTHON)],
    ids=[*TEXTS, "torchtitan-python", "bridge-python"],
)
def test_mutations(tmp_path, name, text):
    """A few edits of a small text of each format."""
    try_mutations(tmp_path, name, text, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_mutations_of_samples(tmp_path, samples, name):
    """Many edits of each captured file."""
    for path in sorted((samples / "jobs").glob(SAMPLES[name])):
        if not path.is_file():
            continue
        for beside in path.parent.iterdir():
            link = tmp_path / beside.name
            if not link.exists():
                link.symlink_to(beside)
        try_mutations(tmp_path, name, path.read_text(), MANY)


def test_texts_are_of_their_formats():
    """Each is recognised, and as nothing else."""
    for name, text in TEXTS.items():
        assert recognise(text, FORMATS.values()) == [name]
    assert set(TEXTS) <= set(FORMATS)
    assert recognise(TORCHTITAN_PYTHON, FORMATS.values()) == ["torchtitan"]
    assert recognise(BRIDGE_PYTHON, FORMATS.values()) == ["nemo"]
