"""Damaged sources: a job that can be written or an error, nothing else."""

import random

import pytest

from placer.base.errors import InputError
from placer.documents.recognise import recognise
from placer.formats.jobs.job import Opened, Options, open_job
from placer.formats.jobs.registry import FORMATS
from tests.marks import slow
from tests.readers.test_fuzz import TOKENS, mutated
from tests.sources.reading import with_neighbours
from tests.sources.texts import BRIDGE_PYTHON, SHAPE, TEXTS, TORCHTITAN_PYTHON
from tests.texts import content, data

SCRIPT = data("jobs/script.sh")
JUNK = (
    *"'\"`()[]{}\\\n\t<>|&;#$=*!", "$(", "${", "$((", "[[", "<<E\n", "fi\n", "é", "if ",
    "case x in ", "0", "-1", "9" * 30, "1e9", "null", ": ", "+=(", "\x01",
)  # fmt: skip
SMALL = [
    ("megatron", SCRIPT),
    *TEXTS.items(),
    ("torchtitan", TORCHTITAN_PYTHON),
    ("nemo", BRIDGE_PYTHON),
]
# Captured files and the format that each is read as.
SAMPLES = content("sources/damaged.yaml")
SETTINGS = {"job.sequence": "1024", "job.micro_batch": "1", "job.micro_batches": "2"}


def problems_of(specs, options):
    """What is wrong with a job; nothing when it can be read and written."""
    try:
        opened = open_job(specs, options)
        assert isinstance(opened, Opened)
        opened.job()
        assert opened.text()
    except InputError as error:
        return error.problems
    return ()


def try_mutations(path, name, text, count):
    """Read so many mutations of a text, by itself and joined with a shape."""
    shape = path.parent / "shape-beside.json"
    shape.write_text(SHAPE)
    for seed in range(count):
        chance = random.Random(f"{name}{seed}")
        changed = mutated(text, chance, chance.choice((TOKENS, JUNK)))
        path.write_text(changed, encoding="utf-8", errors="surrogatepass")
        joined = [f"{name}:{path}", f"hf:{shape}"]
        gpus, given = chance.choice((None, 8, 64, 512)), chance.choice((SETTINGS, {}))
        options = Options(
            gpus, 400.0, None, given, chance.choice((None, "deepseek_v3_16b"))
        )
        problems = problems_of(joined[: chance.randint(1, 2)], options)
        assert all(problem.message.isprintable() for problem in problems)


@pytest.mark.parametrize("count", [25, *slow([1000])])
@pytest.mark.parametrize(("name", "text"), SMALL)
def test_a_damaged_text(tmp_path, name, text, count):
    """A small text of each format, and a script with most that people write."""
    # Most ways to be wrong are those of scripts.
    try_mutations(tmp_path / "source", name, text, count * (1 + 3 * (text == SCRIPT)))


@pytest.mark.parametrize("count", [6, *slow([200])])
@pytest.mark.parametrize("pattern", SAMPLES)
def test_a_damaged_sample(samples, tmp_path, pattern, count):
    """Captured files with what stands beside them; of each kind the first, or all."""
    found = sorted((samples / "jobs").glob(pattern))
    for path in found if count > 6 else found[:1]:
        own = with_neighbours(path, tmp_path)
        try_mutations(own, SAMPLES[pattern], path.read_text(), count)


def test_texts_are_of_their_formats():
    """Each is recognised, and as nothing else."""
    for name, text in SMALL[1:]:
        assert recognise(text, FORMATS.values()) == [name]
