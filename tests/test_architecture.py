"""Promises about the code itself that the linters do not check."""

import ast
import json
import os
import subprocess
import sys
import tomllib
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest

from placer.solve import search
from tests.marks import runs_on

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "placer").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
HEAVY = {"matplotlib", "networkx", "numpy", "ortools", "pandas"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def num_lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def loaded_by(*args: str) -> set[str]:
    """Top-level modules that a run of the command with ``args`` imports."""
    script = (
        "import contextlib, io, json, sys\n"
        f"sys.argv = {['placer', *args]!r}\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    with contextlib.suppress(SystemExit):\n"
        "        from placer.cli.main import main\n"
        "        main()\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(json.loads(run.stdout))


def test_modules_are_short() -> None:
    """No module is longer than 400 lines, no test module longer than 600."""
    too_long = {name_of(p): num_lines(p) for p in MODULES if num_lines(p) > 400}
    too_long |= {name_of(p): num_lines(p) for p in TESTS if num_lines(p) > 600}
    assert too_long == {}


def test_only_the_command_prints() -> None:
    """No module outside ``placer/cli`` calls ``print``."""
    printing = [
        f"{name_of(path)}:{node.lineno}"
        for path in MODULES
        if path.parts[len(ROOT.parts) + 1] != "cli"
        and "print(" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    assert printing == []


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["--version"],
        ["help", "sweep"],
        ["help", "--man", "-o", os.devnull],
        ["completion", "bash"],
        ["no-such-command"],
        *([command, "--help"] for command in ("place", "score", "emit", "topo")),
    ],
)
def test_help_loads_nothing_heavy(args: list[str]) -> None:
    """Help, version and usage errors import no solver, array, graph library."""
    loaded = loaded_by(*args)
    assert "placer" in loaded
    assert loaded & HEAVY == set()


def test_import_is_light() -> None:
    """``import placer`` alone loads no solver, array or graph library."""
    script = "import sys, placer; print(*{n.split('.')[0] for n in sys.modules})"
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(run.stdout.split()) & HEAVY == set()


@pytest.mark.parametrize(
    ("script", "own", "others"),
    [
        (
            "import placer; placer.place('dgx-h100-4x8', 'quickstart')",
            "placer.solve.search",
            {"networkx", "ortools.math_opt.python.mathopt"},
        ),
        (
            "import placer; placer.place('dgx-h100-4x8', 'quickstart')",
            "placer.solve.construct.fills.fills",
            {
                "placer.solve.bounds.hops.hop_cuts",
                "placer.solve.bounds.transfers",
                "placer.solve.annealing.annealed_step",
                "placer.solve.construct.traffic.communicators",
                "placer.solve.rules.search",
            },
        ),
        (
            "from placer.formats.machines.registry import read; "
            "read('hosts', 'n[1-4]', '-')",
            "placer.formats.machines.lists",
            {
                "placer.formats.machines.kubernetes",
                "placer.formats.machines.netq",
                "yaml",
                "networkx",
            },
        ),
        (
            "from placer.emit.registry import render;"
            "from placer.testing.strategies import tiny_plan;"
            "render(tiny_plan(), 'csv')",
            "placer.emit.rank_map",
            {"placer.emit.kubernetes", "placer.emit.nccl", "networkx"},
        ),
    ],
)
def test_formats_load_alone(script: str, own: str, others: set[str]) -> None:
    """To read or write one format loads no other."""
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; {script}; print(*sys.modules)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(run.stdout.split())
    assert own in loaded
    assert loaded & others == set()


@pytest.mark.parametrize("package", ["emit", "formats.machines", "formats.jobs"])
def test_formats_name_what_is_there(package: str) -> None:
    """Every row of a registry names a module, and a function in it."""
    for row in import_module(f"placer.{package}.registry").FORMATS.values():
        name = row.writer if package == "emit" else row.reader
        module, _, function = name.rpartition(".")
        assert callable(getattr(import_module(f"placer.{package}.{module}"), function))


def test_methods_that_are_loaded_when_they_run_are_there() -> None:
    """Each is named as a function of its module."""
    ways = search.METHODS, search.METHODS_OF_UNEVEN_NODES, search.METHODS_OF_RUNS
    for method in chain(search.AT_ONCE, *ways):
        assert callable(getattr(import_module(method.__module__), method.__name__))


def test_the_reference_scorer_stands_alone() -> None:
    """The scorer that the fast one is tested against takes nothing from the package."""
    script = "import sys, tests.cost.reference; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = run.stdout.split()
    assert "tests.cost.reference.step" in loaded
    assert [name for name in loaded if name.split(".")[0] == "placer"] == []


@pytest.mark.parametrize("start", [["cli.py"], ["-m", "placer"]])
def test_command_starts_from_a_checkout(start: list[str]) -> None:
    """``python cli.py`` and ``python -m placer`` both run the command."""
    run = subprocess.run(
        [sys.executable, *start, "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert "place" in run.stdout


def test_every_slow_test_has_its_day() -> None:
    """A change runs a quarter of the slow tests; each runs on one day of four."""
    names = [f"tests/test_{i}.py::test[{i % 7}]" for i in range(400)]
    for name in names:
        assert sum(runs_on(day, name, 4) for day in range(900, 904)) == 1
    assert 60 < sum(runs_on(900, name, 4) for name in names) < 140


def test_one_version() -> None:
    """The package, its metadata and the command give the same version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    run = subprocess.run(
        [sys.executable, "cli.py", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert project["version"] in run.stdout
