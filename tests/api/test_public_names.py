"""Public names stay what they are, and their help says what they give and shows it."""

import doctest
import inspect
import re
from pathlib import Path
from pkgutil import iter_modules
from typing import get_args

import pytest

import placer
from placer.api.options import OBJECTIVES, ObjectiveName
from placer.documents.keys import keys_of
from placer.emit import FormatName
from placer.emit.registry import FORMATS
from placer.placement.launcher_orders import LAUNCHERS, LauncherName
from placer.tune.frameworks import FRAMEWORKS, FrameworkName
from tests.commands import python

PACKAGES = {module.name for module in iter_modules(placer.__path__)}


def test_a_public_name_stays_what_it_is():
    """No package that loads with it takes the place of a function."""
    names = sorted(PACKAGES & set(placer.__all__))
    script = "import placer\n" + "".join(
        f"first = placer.{name}\nimport placer.{name}\n"
        f"assert placer.{name} is first and callable(first)\n"
        for name in names
    )
    found = python("-c", script)
    assert (found.returncode, found.stderr) == (0, "")


def test_names_that_editors_complete():
    """The literals of arguments are what the calls take, the stub has all names."""
    stub = Path(placer.__file__).with_suffix(".pyi").read_text()
    assert sorted(re.findall(r"\b(\w+) as \1\b", stub)) == [*placer.__all__]
    assert set(get_args(FormatName)) == set(FORMATS)
    assert set(get_args(ObjectiveName)) == set(OBJECTIVES)
    assert set(get_args(FrameworkName)) == set(FRAMEWORKS)
    assert set(get_args(LauncherName)) == set(LAUNCHERS)


CALLS = [name for name in placer.__all__ if name[0].islower()]


def call(name):
    found = getattr(placer, name)
    function = getattr(found, "__wrapped__", found)
    return found if inspect.isfunction(found) else function


@pytest.mark.parametrize("name", CALLS)
def test_examples(name, tmp_path, monkeypatch):
    """Every call has an example, which runs as it stands."""
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(call(name)) or ""
    example = doctest.DocTestParser().get_doctest(
        text, {"placer": placer}, name, None, 0
    )
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


RIGHT = """
import placer
result = placer.place("dgx-h100-4x8", "quickstart", objective="time", effort="quick")
step: float = result.score.step_time_s
hops: float | None = result.score.hop_cost
busy: float = result.score.hottest_links[0]["busy_s"]
text: str = placer.emit(result.plan, "slurm-hostfile")
picture: placer.Picture = placer.draw(result.plan, "pipeline", theme="dark")
page: str = placer.report_html(result.plan, "sorted-hosts")
before: placer.Plan = placer.predict("dgx-h100-4x8", "quickstart", "slurm")
"""
# A line that is wrong -> what the checker must say of it.
WRONG = {
    'placer.place("t", "j", objective="speed")': '"objective"',
    'placer.tune("t", "j", framework="horovod")': '"framework"',
    'placer.tune("t", "j", recompute=["some"])': "List item 0",
    'placer.emit(result.plan, "slurm")': "emit",
    'placer.draw(result.plan, "chart")': 'Argument 2 to "draw"',
    "placer.report_html(result.plan, 1)": "Argument 2",
    'placer.predict("t", "j", "mpi")': "Argument 3",
    "result.score.step_time": 'no attribute "step_time"',
    'result.score.hottest_links[0]["busy"]': 'no key "busy"',
}


@pytest.mark.slow
def test_a_type_checker_knows_the_names(tmp_path):
    """Right names pass; of wrong ones each line is refused, and no other."""
    pytest.importorskip("mypy")
    snippet = tmp_path / "snippet.py"
    snippet.write_text(RIGHT + "\n".join(WRONG) + "\n")
    run = python("-m", "mypy", "--strict", snippet, cwd=tmp_path)
    first = RIGHT.count("\n") + 1
    told = dict(re.findall(r"^.*?:(\d+): error: (.*)$", run.stdout, re.MULTILINE))
    assert [*map(int, told)] == [*range(first, first + len(WRONG))], (
        run.stdout + run.stderr
    )
    for message, expected in zip(told.values(), WRONG.values(), strict=True):
        assert expected in message


def test_the_help_of_a_plan_says_what_each_attribute_is():
    """Every key of a plan's file is told, with what the schema says of it."""
    said = placer.Plan.__doc__ or ""
    for each in keys_of(placer.Plan):
        assert re.search(rf"^    {each.called}\n +{re.escape(each.says)}$", said, re.M)
