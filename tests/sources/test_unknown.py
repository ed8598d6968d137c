"""One value after another made unknown: then the job is asked for, or is the same."""

import ast
import json
import random
import re

import pytest

from placer.base.errors import InputError
from placer.formats.jobs.job import Options, open_job
from tests.marks import slow
from tests.sources.reading import TEXTS, with_neighbours
from tests.texts import content

KNOWN = content("sources/unknown.yaml")

FUNCTIONS = (
    *("deepseek_v3_16b", "deepseek_v3_16b_hybridep", "deepseek_v3_671b"),
    "deepseek_v3_671b_float8",
)
# A value behind its key, in YAML, JSON and TOML.
SCALAR = re.compile(
    r"""(?:^|[,{])[ \t{-]*["'\w.-]+["']?[ ]*[:=][ ]+"""
    r"""("[^"\n]*"|'[^'\n]*'|[-\w.]+)(?=[ ]*(?:[,#}]|$))""",
    re.MULTILINE,
)
ASSIGNED = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)=(?!\()((?:\"(?:[^\"\\]|\\[\s\S])*\""
    r"|'[^']*'|\$\(\(.*?\)\)|\$\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|`[^`\n]*`|[^\s;&|#\"'`])*)",
    re.MULTILINE,
)
# An assignment whose value is not known: of a command, of an argument, of a branch on
# what nobody sets or on the host, of a loop over what is not known.
WAYS = (
    "{name}=$(cmd)",
    "{name}=$9",
    "read -r {name} < file",
    "if [[ $Q9 == a* ]]; then {name}='{value}'; else {name}='{other}'; fi",
    "{name}='{other}'; test $(hostname) = a && {name}='{value}'",
    "if cmd | grep -q a; then {name}='{value}'; else {name}='{other}'; fi",
    "for {name} in $(cmd); do :; done",
    "{name}='{value}'; for i9 in $Q9; do {name}='{other}'; done",
)
OTHERS = {
    bool: lambda value: [not value],
    int: lambda value: [2 * value or 1, 1, 3],
    float: lambda value: [2 * value, 1.0],
    str: lambda _value: ["other", "full", "none", "flex", "interleaved1f1b"],
}


def values_of(text, python):
    """Where values of a configuration stand, with each value."""
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


def spots_of(text, kind):
    """Where something stands, how it can be unknown, and what it is then one of."""
    if kind == "script":
        for found in ASSIGNED.finditer(text):
            yield found.start(), found.end(), list(ways_of(found, text))
        return
    write, unknown = {
        "python": (repr, "own.VALUE"),
        "configuration": (json.dumps, '"${oc.env:VALUE}"'),
    }[kind]
    for start, end, value in values_of(text, kind == "python"):
        known = [write(other) for other in (value, *OTHERS[type(value)](value))]
        yield start, end, [(unknown, known)]


def ways_of(found, text):
    """Assignments of what is not known to a variable, and of what it may be."""
    value = found[2].strip("\"'")
    if re.fullmatch(r"[0-9]+", value):
        values = [value, str(2 * int(value)), "1"]
    else:
        values = [value, "other", "True" if value == "False" else "False"]
    known = [f"{found[1]}='{each}'" for each in values]
    alone = re.match(r"[ \t]*(?:[;#\n]|\Z)", text[found.end() :])
    for way in WAYS if alone else WAYS[:2]:
        written = way.format(name=found[1], value=values[0], other=values[1])
        yield written, known[:2] if "{value}" in way else known


def facts(specs, options):
    """What a job is, or what is wrong with it."""
    try:
        opened = open_job(specs, options)
        opened.job()
    except InputError as error:
        return None, error.problems
    return {key: fact.value for key, fact in opened.found.facts.items()}, ()


def try_unknown(path, kind, specs, options, count=None, share=1):
    """Make what a file says unknown: all of it, so many of it, or a share."""
    text = path.read_text()
    spots = list(spots_of(text, kind))
    chosen = random.Random(text).sample(spots, min(count or len(spots), len(spots)))
    assert chosen
    for start, end, ways in chosen[::share]:

        def job_with(written, start=start, end=end):
            path.write_text(f"{text[:start]}{written}{text[end:]}")
            return facts(specs, options)

        told = {}
        for unknown, known in ways:
            job, problems = job_with(unknown)
            if job is None:
                assert kind == "script" or "VALUE" in " ".join(map(str, problems))
                continue
            for written in known:
                if written not in told:
                    told[written], _ = job_with(written)
                assert told[written] in (None, job), (start, unknown, written)
    path.write_text(text)


def specs_of(name, path, shape):
    """A file in a format, joined with a shape where there is one."""
    if not shape:
        return [f"{name}:{path}"]
    beside = path.parent / "shape-beside.json"
    beside.write_text(TEXTS[shape])
    return [f"{name}:{path}", f"hf:{beside}"]


@pytest.mark.parametrize("name", KNOWN["small"])
def test_unknown_values(tmp_path, name):
    """Of a small text of each format, some values."""
    named, gpus, rest, shape = KNOWN["small"][name]
    text = TEXTS[named]
    functions = re.findall(r"^def (\w+)\(.*->", text, re.MULTILINE)
    path = tmp_path / "source"
    path.write_text(text)
    options = Options(gpus, 400.0, None, rest, functions[0] if functions else None)
    specs = specs_of(name.split()[0], path, shape)
    assert facts(specs, options)[0] is not None
    kind = "python" if functions else "configuration"
    try_unknown(path, kind, specs, options, count=12)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", KNOWN["samples"])
def test_unknown_values_of_samples(tmp_path, samples, pattern):
    """Of captured files, every value."""
    name, gpus, rest, shape = KNOWN["samples"][pattern]
    for path in sorted((samples / "jobs").glob(pattern)):
        own = with_neighbours(path, tmp_path)
        python = path.suffix == ".py"
        kind = "python" if python else "configuration"
        for select in FUNCTIONS if python else (None,):
            options = Options(gpus, 400.0, None, rest, select)
            try_unknown(own, kind, specs_of(name, own, shape), options)


@pytest.mark.parametrize("share", [41, *slow([1])])
@pytest.mark.parametrize("name", KNOWN["scripts"])
def test_unknown_variables_of_scripts(samples, tmp_path, name, share):
    """No job is claimed that would be another one with a value of the variable."""
    kind, gpus, rest, shape = KNOWN["scripts"][name]
    own = with_neighbours(samples / "jobs" / name, tmp_path)
    # Megatron refuses this one beside a schedule of batches.
    own.write_text(own.read_text().replace("--global-batch-size 1536", ""))
    specs = specs_of(kind, own, shape)
    for path in (own, *sorted(own.parent.glob("[Cc][Oo][Nn][Ff]*.sh"))):
        options = Options(gpus, 400.0, None, rest)
        try_unknown(path, "script", specs, options, share=share)
