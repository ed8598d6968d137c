"""One checked file of each format; ``golden/README.md`` says why each is right."""

from importlib.resources import files as package_files
from pathlib import Path

import pytest

from placer.emit.registry import FORMATS
from placer.placement.plan import Plan
from placer.placement.plan_file import read_plan
from tests.emit.readback import texts

GOLDEN = Path(__file__).with_name("golden")
# Copied from the package as it is, so that it is no golden file.
LOADER = "placer_mesh.py"


@pytest.fixture(scope="module")
def plan() -> Plan:
    return read_plan(GOLDEN / "plan.json")


def paths(format: str) -> dict[str, Path]:
    """Golden file of every file of a format; the only file has no name."""
    row = FORMATS[format]
    if not row.folder:
        return {"": GOLDEN / f"{format}{row.suffix}"}
    return {path.name: path for path in (GOLDEN / format).iterdir()}


@pytest.mark.parametrize("format", FORMATS)
def test_golden_file(plan: Plan, format: str) -> None:
    """Every format writes its golden file, byte for byte."""
    found = texts(plan, format)
    found.pop(LOADER, None)
    target = f"{format}{FORMATS[format].suffix}"
    command = f"placer emit tests/emit/golden/plan.json {format} -o {target}"
    hint = f"in tests/emit/golden, if it is meant: {command}"
    expected = {name: path.read_text() for name, path in paths(format).items()}
    assert found == expected, hint


def test_nothing_else_is_golden() -> None:
    """Every file in the folder belongs to a format."""
    known = {path for format in FORMATS for path in paths(format).values()}
    known |= {GOLDEN / "plan.json", GOLDEN / "README.md"}
    assert {path for path in GOLDEN.rglob("*") if path.is_file()} == known


def test_the_loader_is_the_package_s(plan: Plan) -> None:
    """The loader in the JAX folder is the module that its own tests load."""
    module = package_files("placer.emit").joinpath("jax_loader.py")
    assert texts(plan, "jax")[LOADER] == module.read_text("utf-8")
