"""One checked file of each format; ``golden/README.md`` says why each is right.

The overview of the launcher pages says of every format what the registry says.
"""

import re
from importlib.resources import files as package_files
from pathlib import Path

import pytest

from placer.emit.registry import FORMATS
from placer.placement.plan_file import read_plan
from tests.emit.readback import OF_PLANS, texts

GOLDEN = Path(__file__).with_name("golden")
# Copied from the package as it is, so that it is no golden file.
LOADERS = {"placer_mesh.py": "jax_loader.py", "placer_ray.py": "ray_loader.py"}
# torchtitan has one order, with pp last; the other plan has Megatron-LM's flag for it.
PP_LAST = {"torchtitan"}


def plan_for(format):
    return GOLDEN / ("plan-pp-last.json" if format in PP_LAST else "plan.json")


def paths(format):
    """Golden file of every file of a format; the only file has no name."""
    row = FORMATS[format]
    if not row.folder:
        return {"": GOLDEN / f"{format}{row.suffix}"}
    return {path.name: path for path in (GOLDEN / format).iterdir()}


@pytest.mark.parametrize("format", OF_PLANS)
def test_golden_file(format):
    """Every format writes its golden file, byte for byte."""
    plan = plan_for(format)
    written = texts(read_plan(plan), format)
    found = {name: text for name, text in written.items() if name not in LOADERS}
    target = f"{format}{FORMATS[format].suffix}"
    command = f"placer emit {plan.name} {format} -o {target}"
    hint = f"in tests/emit/golden, if it is meant: {command}"
    expected = {name: path.read_text() for name, path in paths(format).items()}
    assert found == expected, hint


def test_nothing_else_is_golden():
    """Every file in the folder belongs to a format."""
    known = {path for format in OF_PLANS for path in paths(format).values()}
    known |= {GOLDEN / name for name in ("plan.json", "plan-pp-last.json", "README.md")}
    assert {path for path in GOLDEN.rglob("*") if path.is_file()} == known


@pytest.mark.parametrize(
    ("format", "name"), [("jax", "placer_mesh.py"), ("ray", "placer_ray.py")]
)
def test_the_loader_is_the_package_s(format, name):
    """The loader in a folder is the module that its own tests load."""
    module = package_files("placer.emit").joinpath(LOADERS[name])
    assert texts(read_plan(plan_for(format)), format)[name] == module.read_text("utf-8")


PAGES = Path(__file__).parents[2] / "docs/launchers"
ROW = re.compile(r"^\| \[(?P<formats>[\w, -]+)\]\((?P<page>[\w-]+\.md)\S*\) \|(.*)\|$")


def rows():
    """Page and cells of every format in the tables of the overview."""
    found = {}
    for line in (PAGES / "README.md").read_text().splitlines():
        if match := ROW.match(line):
            cells = [cell.strip() for cell in match[3].split("|")]
            for format in match["formats"].split(", "):
                assert format not in found
                found[format] = (match["page"], cells)
    return found


def words(row):
    """What the overview has to say of a format that launches a map by itself."""
    needs = {"consecutive": "consecutive", "gpus_in_order": "in order"}
    nodes = next((need for need in ("aligned", "equal") if need in row.needs), "any")
    return [*(w if need in row.needs else "any" for need, w in needs.items()), nodes]


def test_the_overview_has_every_format():
    """Every format has one row, and no row is of something else."""
    assert rows().keys() == FORMATS.keys()


@pytest.mark.parametrize("format", FORMATS)
def test_the_overview_agrees_with_the_registry(format):
    """What a format can express stands there as `placer emit` goes by it.

    The page of every format shows the command that writes it.
    """
    page, cells = rows()[format]
    if FORMATS[format].alone:
        assert cells[:3] == words(FORMATS[format])
    text = (PAGES / page).read_text()
    assert re.search(rf"^\$ placer emit \S+\.json {format}( |$)", text, re.MULTILINE)
