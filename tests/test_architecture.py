"""Promises about the code itself that the linters do not check."""

import os
import re
import tomllib
from importlib import import_module
from itertools import chain

import pytest

from placer.solve import search
from tests.commands import ROOT, python

MODULES = sorted((ROOT / "placer").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
HEAVY = {"matplotlib", "networkx", "numpy", "ortools", "pandas"}


def name_of(path):
    return str(path.relative_to(ROOT))


def num_lines(path):
    return len(path.read_text().splitlines())


def loaded_by(script):
    """The modules that a script imports; what it prints is left out."""
    quiet = (
        "import contextlib, io, sys\nwith contextlib.redirect_stdout(io.StringIO()):\n"
    )
    done = python("-c", f"{quiet}    {script}\nprint(*sys.modules)", check=True)
    return {*done.stdout.split()}


def test_modules_are_short():
    """No module is longer than 400 lines, no test module longer than 600."""
    too_long = {name_of(p): num_lines(p) for p in MODULES if num_lines(p) > 400}
    too_long |= {name_of(p): num_lines(p) for p in TESTS if num_lines(p) > 600}
    assert too_long == {}


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["help", "sweep"],
        ["help", "--man", "-o", os.devnull],
        ["completion", "bash"],
        ["no-such-command"],
        *([command, "--help"] for command in ("place", "score", "emit", "topo")),
        [],
    ],
)
def test_help_loads_nothing_heavy(words):
    """Help, version, usage errors and a bare import load no solver or array library."""
    run = "__import__('placer.cli.main', fromlist=['main']).main()"
    script = (
        f"sys.argv[1:] = {words!r}\n    with contextlib.suppress(SystemExit): {run}"
    )
    loaded = {
        name.split(".")[0] for name in loaded_by(script if words else "import placer")
    }
    assert "placer" in loaded
    assert loaded & HEAVY == set()


PLACE = "import placer; placer.place('dgx-h100-4x8', 'quickstart')"
HOSTS = "from placer.formats.machines import registry as r; r.read('hosts', 'n1', '-')"
CSV = (
    "from placer.emit.registry import render;"
    "from placer.testing.strategies import tiny_plan; render(tiny_plan(), 'csv')"
)


@pytest.mark.parametrize(
    ("script", "own", "others"),
    [
        (
            PLACE,
            {"solve.search", "solve.construct.fills"},
            {"solve.bounds.hop_cuts", "solve.bounds.transfers"}
            | {"solve.annealing.annealed", "solve.rules.search"}
            | {"solve.construct.tiled"},
        ),
        (
            HOSTS,
            {"formats.machines.lists"},
            {"formats.machines.kubernetes", "formats.machines.netq", "yaml"},
        ),
        (CSV, {"emit.rank_map"}, {"emit.kubernetes", "emit.nccl"}),
    ],
)
def test_formats_load_alone(script, own, others):
    """To read or write one format loads no other; nor does a search that is short."""
    loaded = {name.removeprefix("placer.") for name in loaded_by(script)}
    assert own <= loaded
    heavy = {"networkx", "ortools.math_opt.python.mathopt"}
    assert loaded & (others | heavy) == set()


def test_methods_that_are_loaded_when_they_run_are_there():
    """Each is named as a function of its module."""
    ways = search.METHODS, search.METHODS_OF_UNEVEN_NODES, search.METHODS_OF_RUNS
    for method in chain(search.AT_ONCE, *ways):
        assert callable(getattr(import_module(method.__module__), method.__name__))


def test_the_reference_scorer_stands_alone():
    """The scorer that the fast one is tested against takes nothing from the package."""
    loaded = loaded_by("import tests.cost.reference")
    assert "tests.cost.reference.step" in loaded
    assert [name for name in loaded if name.split(".")[0] == "placer"] == []


@pytest.mark.parametrize("start", [["cli.py"], ["-m", "placer"]])
def test_the_command_starts_from_a_checkout(start):
    """``python cli.py`` and ``python -m placer`` run it, in the project's version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] in python(*start, "--version").stdout


@pytest.mark.parametrize(("first", "width"), [("cli ", 39), ("replace ", 24)])
def test_the_page_has_the_layers_that_the_linter_holds(first, width):
    """Packages, and rooms of the solver, in the order in which they stand."""
    page = (ROOT / "docs/architecture.md").read_text()
    rows = page.partition(f"```\n{first}")[2].partition("```")[0].splitlines()
    shown = [re.findall(r"\w+", row[:width]) for row in [first + rows[0], *rows[1:]]]
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    held = (one.get("layers", ()) for one in tools["importlinter"]["contracts"])
    assert [*chain(*shown)] in [" | ".join(layers).split(" | ") for layers in held]
