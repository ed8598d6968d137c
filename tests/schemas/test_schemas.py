"""The published schemas say what the readers take: the same keys, the same shapes."""

import copy
import json
import random
import re
from pathlib import Path

import jsonschema
import pytest

import placer
from placer import testing
from placer.base import units
from placer.base.errors import InputError
from placer.documents import Document, parse_document
from placer.documents.presets import preset_names, preset_path
from placer.documents.scalars import Boolean, Number
from placer.documents.section import Section
from placer.formats import schemas
from placer.formats.jobs.job_list import decode_job_list
from placer.formats.machines import probe
from placer.job.read import decode_job
from placer.placement.plan_consistency import ContradictionError
from placer.placement.plan_file import decode_plan
from placer.topology.read import decode_topology
from tests import texts
from tests.commands import refusal, run
from tests.doc_blocks import ROOT, fences

FULL = Path(__file__).parent
SCHEMAS = {name: json.loads(schemas.schema_text(name)) for name in schemas.SCHEMAS}
VALIDATORS = {
    name: jsonschema.Draft202012Validator(schema) for name, schema in SCHEMAS.items()
}
DECODE = {
    "topology": decode_topology,
    "job": decode_job,
    "workload": decode_job,
    "jobs": decode_job_list,
    "plan": lambda document: decode_plan(document.top.content, "p"),
    "probe": lambda document: probe.read(json.dumps(document.top.content), "p"),
}
# What placer writes itself may have keys that an older one does not know.
OPEN = {"plan", "probe"}
# A list of jobs has few keys of its own: there is less to try.
SHORT = {"jobs"}
KINDS = {"topologies": "topology", "jobs": "job"}


def plain(value):
    """The values that an editor sees: numbers and booleans of YAML 1.2."""
    if isinstance(value, Number):
        number = float(value)
        return int(value) if number == int(number) and value.isdigit() else number
    if isinstance(value, Boolean):
        return value.lower() in ("true", "yes", "on")
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def opened(text, source="a.yaml"):
    return plain(parse_document(text, source).top.content)


def faults(name, data):
    errors = VALIDATORS[name].iter_errors(data)
    return [f"{error.json_path}: {error.message[:200]}" for error in errors]


def files():
    """(place, text) of every file of ours: presets, pages, and two with every key."""
    for kind in KINDS:
        for name in preset_names(kind):
            path = preset_path(kind, name)
            yield f"{kind}/{name}", path.read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        for fence in fences(page):
            if fence.language in ("yaml", "json"):
                yield fence.place, fence.body
    for path in FULL.glob("*.yaml"):
        yield path.name, path.read_text()


def own_format(data):
    """Which of the schemas a file asks for; empty for none."""
    found = data.get("format", "") if isinstance(data, dict) else ""
    name = str(found).removeprefix("placer/")
    return name if name in SCHEMAS and name != found else ""


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_printed(name):
    """``placer schema`` prints a JSON Schema of that format, as it is published."""
    assert run("schema", name).output == schemas.schema_text(name)
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])
    if name != "folder":  # placer.yaml alone says no format
        const = {"const": f"placer/{name}"}
        assert SCHEMAS[name]["properties"]["format"] == const
    assert f"'{name}'" in refusal("schema", "hosts")


def test_what_is_shown_is_allowed():
    """Presets, examples of every page and a file with all keys pass their schema."""
    seen = dict.fromkeys(SCHEMAS, 0)
    for place, text in files():
        data = opened(text)
        if name := own_format(data):
            assert faults(name, data) == [], place
            seen[name] += 1
    assert seen["topology"] > 20
    assert seen["job"] > 20


@pytest.fixture(scope="module")
def plans():
    """Plans with and without a model, rules, and what `replace` adds."""
    quick = placer.place("dgx-h100-4x8", "quickstart", time_limit=5)
    ruled = placer.place(
        "block:2 rack:2 node:2 gpu:4",
        testing.job("small", tp=4, dp=2, weights={"tp": 9, "dp": 1}),
        rules=placer.Rules(pin=(placer.Pin((0,), ("b1-r1-n1",)),), at_most={"rack": 1}),
        time_limit=5,
    )
    return [json.loads(json.dumps(r.plan.to_dict())) for r in (quick, ruled)]


def known_keys(name, monkeypatch, more):
    """The keys that the reader asks of every mapping, by its path."""
    found = {}
    finish = Section.finish

    def record(self):
        if self.document.root.content.get("format") == f"placer/{name}":
            path = tuple("[]" if type(k) is int else str(k) for k in self.value.path)
            found.setdefault(path, set()).update(self._known)
        finish(self)

    monkeypatch.setattr(Section, "finish", record)
    texts = [text for place, text in files() if not place.startswith("docs")]
    for text in (*texts, *more):
        if own_format(opened(text)) == name:
            DECODE[name](parse_document(text, "a.yaml"))
    return found


def closed(schema, path=()):
    """Every mapping of a schema that has keys of its own."""
    if "properties" in schema:
        yield path, schema
        for key, value in schema["properties"].items():
            yield from closed(value, (*path, key))
    if "items" in schema:
        yield from closed(schema["items"], (*path, "[]"))
    for option in schema.get("anyOf", ()):
        if "type" in option:
            yield from closed(option, path)


# A hint tells where it belongs; the key is refused all the same.
REFUSED = {("memory",): {"optimizer_instances"}}


@pytest.mark.parametrize("name", sorted(DECODE.keys() - OPEN))
def test_schema_and_reader_know_the_same_keys(name, monkeypatch, tmp_path):
    """Every key that the reader asks for is in the schema, and the other way round."""
    (tmp_path / "groups.yaml").write_text(
        "groups: [{name: own, collective: relay, bytes: 1, ranks: all}]"
    )
    in_a_file = f"""{{format: placer/job, version: 1, name: in-a-file,
        parallelism: {{dp: 2}}, groups: {{file: {tmp_path}/groups.yaml}}}}"""
    known = known_keys(name, monkeypatch, [in_a_file])
    tiers = {"rack", "block", "cluster", "leaf", "region", "spine", "pod"}
    of_schema = dict(closed(SCHEMAS[name]))
    assert len(of_schema) > (1 if name in SHORT else 5)
    for path, schema in of_schema.items():
        free = tiers if path == ("nodes", "[]") else set()
        asked = known[path] - free - REFUSED.get(path, set())
        assert asked == {*schema["properties"]}, path
    # The other mappings take any key: the names of axes, tiers, hosts, precisions.
    for path in known.keys() - of_schema.keys():
        assert path in {
            ("gpu", "peak"),
            ("unavailable",),
            ("kubernetes", "labels"),
            ("launcher", "environment"),
            ("require",),
            ("roles", "[]", "require"),
            ("rules", "at_most"),
            ("rules", "spares"),
        }


WRONG = ([[]], -1)


# What the reader says of a value of a wrong type, and of a key too many or too few.
# Which keys a node or tier needs depends on the tiers of the file: no shape.
SHAPE = re.compile(r'expected .*, got |unknown key|the key "(?!rack|size).* is missing')


def damaged(whole):
    """(what was done, the file) with one key more, one fewer or one wrong value."""
    stack = [()]
    while stack:
        path = stack.pop()
        value = at(whole, path)
        mapping = isinstance(value, dict)
        if mapping:
            case = copy.deepcopy(whole)
            at(case, path)["no such"] = 1
            yield f"{path}: one more", case
        for key in value if mapping else {0, len(value) - 1}:
            for wrong in WRONG:
                case = copy.deepcopy(whole)
                at(case, path)[key] = wrong
                yield f"{path}: {key} = {wrong!r}", case
            if mapping:
                case = copy.deepcopy(whole)
                del at(case, path)[key]
                yield f"{path}: without {key}", case
                case = copy.deepcopy(whole)
                at(case, path)[key] = None
                yield f"{path}: {key} = null", case
            if isinstance(value[key], dict | list) and value[key]:
                stack.append((*path, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def problems(name, data):
    """What the reader finds wrong."""
    try:
        DECODE[name](Document("damaged.json", data))
    except ContradictionError:
        return []  # the parts do not fit together, which is no shape
    except InputError as error:
        return [problem.message for problem in error.problems]
    return []


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(FULL.glob("*.yaml")), ids=lambda p: p.stem)
def test_damaged_files_are_refused_by_both(path):
    """What is of a wrong type, missing, or a key too many, the schema refuses as well.

    Nothing that the reader takes is refused. Values that only fit together, and names
    that lead nowhere, are the reader's business alone.
    """
    data = opened(path.read_text())
    name = own_format(data)
    assert problems(name, data) == []
    cases = list(damaged(data))
    many = 20 if name in SHORT else 100
    assert len(cases) > many
    by_shape = 0
    for what, case in cases:
        found, by_schema = problems(name, case), faults(name, case)
        assert found or not by_schema, f"{what}: only the schema says {by_schema}"
        shape = [message for message in found if SHAPE.match(message)]
        assert by_schema or not shape, f"{what}: only the reader says {shape}"
        by_shape += bool(shape)
    assert by_shape > (10 if name in SHORT else 100)


PROBE = json.loads(texts.data("machines/probe.json"))


def test_damaged_plans_and_probes_are_refused_by_both(plans):
    """One key more hinders nobody; of a wrong type or missing, both refuse it.

    Null is as good as absent.
    """
    cases = [("probe", *case) for case in damaged(PROBE)]
    for plan in plans:
        short = {k: v for k, v in plan.items() if k not in ("inputs", "advice")}
        assert problems("plan", short) == []
        cases += [("plan", *case) for case in damaged(short)]
    assert len(cases) > 1000
    for index in random.Random(1).sample(range(len(cases)), 400):
        name, what, case = cases[index]
        found, by_schema = problems(name, case), faults(name, case)
        key = what.rpartition(": ")[-1].removesuffix(" = null")
        if f'"{key}": {{"description"' in json.dumps(SCHEMAS[name]):
            assert not found or problems(name, cases[index - 1][-1]), what
        assert found or not by_schema, f"only the schema says {by_schema}"
        shape = [message for message in found if SHAPE.search(message)]
        assert by_schema or not shape, f"only the reader says {shape}"


@pytest.mark.parametrize(
    ("kind", "parse"),
    [
        ("bandwidth", units.parse_bandwidth),
        ("time", units.parse_time),
        ("size", units.parse_bytes),
        ("power", units.parse_power),
        ("count", units.parse_count),
        ("duration", units.parse_duration),
    ],
)
def test_schemas_know_the_units(kind, parse):
    """A quantity may have each unit that the reader knows, and no other."""
    name = {"count": "job", "duration": "folder"}.get(kind, "topology")
    schema = SCHEMAS[name]
    validator = jsonschema.Draft202012Validator(schema["$defs"][kind])
    known = ("", *units.QUANTITIES[kind][0])
    texts = [f"{n}{unit}" for unit in known for n in ("1", "2.5 ", "3e2", "1_0")]
    bad = ("", "GB", "1 parsec", "-1", "1 2", "1GGB/s", "x", "1GX", "1iB")
    for text in (*texts, *bad):
        try:
            fits = parse(text) > 0
        except ValueError:
            fits = False
        assert validator.is_valid(text) == fits, text
