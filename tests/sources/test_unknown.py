"""One value after another made unknown: then the job is asked for, or is the same."""

from __future__ import annotations

import ast
import json
import random
import re

import pytest

from placer.base.errors import InputError
from placer.formats.jobs.job import Options, open_job
from tests.sources.texts import (
    BRIDGE_PYTHON,
    HF,
    NEMO_ONE,
    SHAPE,
    TEXTS,
    TORCHTITAN_PYTHON,
)

REST = {"job.sequence": "4096", "job.micro_batch": "1", "job.micro_batches": "8"}
# A value behind its key, in YAML, JSON and TOML.
SCALAR = re.compile(
    r"""^[ \t{-]*["'\w.-]+["']?[ ]*[:=][ ]+"""
    r"""("[^"\n]*"|'[^'\n]*'|[-\w.]+)(?=,?[ ]*(?:[#}]|$))""",
    re.MULTILINE,
)
OTHERS = {
    bool: lambda value: [not value],
    int: lambda value: [2 * value or 1, 1, 3],
    float: lambda value: [2 * value, 1.0],
    str: lambda _value: ["other", "full", "none", "flex", "interleaved1f1b"],
}
VOCABULARY = {"job.model.vocab": "1000"}
# Samples: format, GPUs, what else a job needs, the shape that is joined.
SAMPLES = {
    "accelerate/*.yaml": ("accelerate", None, REST, HF),
    "axolotl/llama*.yaml": ("axolotl", 16, {}, HF),
    "axolotl/qwen*.yaml": ("axolotl", None, {}, HF),
    "deepspeed/ds_z3_config.json": ("deepspeed", 16, REST, HF),
    "gpt-neox/*.yml": ("neox", 96, VOCABULARY, ""),
    "hf/*.json": ("hf", 16, REST, ""),
    "maxtext/*.yml": ("maxtext", 64, {}, ""),
    "maxtext/models/*.yml": ("maxtext", 16, REST, ""),
    "megatron-bridge/*.yaml": ("nemo", 8, {}, HF),
    "nanotron/*.yaml": ("nanotron", None, {}, ""),
    "nemo-rl/grpo_math_[1q]*.yaml": ("nemo-rl", None, {}, HF),
    "torchtitan/*.toml": ("torchtitan", 512, {}, ""),
    "torchtitan/*.py": ("torchtitan", 64, {}, ""),
}
FUNCTIONS = (
    *("deepseek_v3_16b", "deepseek_v3_16b_hybridep", "deepseek_v3_671b"),
    "deepseek_v3_671b_float8",
)


def spans(text, python):
    """Where values stand, with each value."""
    if not python:
        for match in SCALAR.finditer(text):
            yield match.start(1), match.end(1), plain(match[1])
        return
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and type(node.value) in OTHERS:
            start = starts[node.lineno - 1] + node.col_offset
            yield start, starts[node.end_lineno - 1] + node.end_col_offset, node.value


def plain(written):
    word = written.strip("\"'")
    if word.lower() in ("true", "false"):
        return word.lower() == "true"
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def facts(specs, options):
    """What a job is, or what is wrong with it."""
    try:
        opened = open_job(specs, options)
        opened.job()
    except InputError as error:
        return None, error.problems
    return {key: fact.value for key, fact in opened.found.facts.items()}, ()


def try_unknown(path, text, specs, options, count=None):
    """Make values of a text unknown, so many of them or all."""
    python = "def " in text and "return" in text
    path.write_text(text)
    before, problems = facts(specs, options)
    assert before is not None, problems
    found = list(spans(text, python))
    chance = random.Random(text)
    for start, end, value in chance.sample(found, count) if count else found:

        def job_with(written, start=start, end=end):
            path.write_text(f"{text[:start]}{written}{text[end:]}")
            return facts(specs, options)

        unknown = "own.VALUE" if python else '"${oc.env:VALUE}"'
        job, problems = job_with(unknown)
        line = text.count("\n", 0, start) + 1
        if job is None:
            told = " ".join(map(str, problems))
            assert "VALUE" in told, (line, value, told)
            continue
        for other in (value, *OTHERS[type(value)](value)):
            written = repr(other) if python else json.dumps(other)
            same, problems = job_with(written)
            assert same in (None, job), (line, value, other)


def specs_of(folder, name, path, shape):
    """A file in a format, joined with a shape where there is one."""
    if not shape:
        return [f"{name}:{path}"]
    beside = folder / "shape.json"
    beside.write_text(shape)
    return [f"{name}:{path}", f"hf:{beside}"]


# Small texts: format, GPUs, what else a job needs, the shape that is joined.
SMALL = {
    "hf": (TEXTS["hf"], 64, REST, ""),
    "torchtitan": (TEXTS["torchtitan"], 64, {}, ""),
    "deepspeed": (TEXTS["deepspeed"], 8, {"job.sequence": "4096"}, SHAPE),
    "accelerate": (TEXTS["accelerate"], None, REST, SHAPE),
    "axolotl": (TEXTS["axolotl"], None, {"job.adapters.rank": "8"}, HF),
    "nemo": (TEXTS["nemo"], 16, {}, SHAPE),
    "nemo-rl": (TEXTS["nemo-rl"], None, {}, SHAPE),
    "maxtext": (TEXTS["maxtext"], 32, {}, ""),
    "nanotron": (TEXTS["nanotron"], None, {}, ""),
    "neox": (TEXTS["neox"], 16, {}, ""),
    "nemo 1": (NEMO_ONE, None, VOCABULARY, ""),
    "torchtitan python": (TORCHTITAN_PYTHON, 64, {}, ""),
    "nemo python": (BRIDGE_PYTHON, 64, {}, SHAPE),
}
FEW = 12


@pytest.mark.parametrize("name", SMALL)
def test_unknown_values(tmp_path, name):
    """Of a small text of each format, some values."""
    text, gpus, rest, shape = SMALL[name]
    functions = re.findall(r"^def (\w+)\(.*->", text, re.MULTILINE)
    path = tmp_path / "source"
    select = functions[0] if functions else None
    specs = specs_of(tmp_path, name.split()[0], path, shape)
    options = Options(gpus=gpus, tflops=400, settings=rest, select=select)
    count = min(FEW, len(list(spans(text, bool(functions)))))
    try_unknown(path, text, specs, options, count)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", SAMPLES)
def test_unknown_values_of_samples(tmp_path, samples, pattern):
    """Of captured files, every value."""
    name, gpus, rest, shape = SAMPLES[pattern]
    for path in sorted((samples / "jobs").glob(pattern)):
        for beside in path.parent.iterdir():
            link = tmp_path / beside.name
            if not link.exists():
                link.symlink_to(beside)
        text = path.read_text()
        own = tmp_path / f"{path.stem}_own{path.suffix}"
        for select in FUNCTIONS if path.suffix == ".py" else (None,):
            specs = specs_of(tmp_path, name, own, shape)
            options = Options(gpus=gpus, tflops=400, settings=rest, select=select)
            try_unknown(own, text, specs, options)
