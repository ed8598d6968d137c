"""``placer help``: the help of any command, and pages of the manual."""

import re
import subprocess

import click
import pytest

from placer.cli.grouped import HEADINGS
from placer.cli.main import COMMANDS, main
from tests.clients import needs
from tests.commands import refusal, run


@pytest.mark.parametrize("name", ["", *COMMANDS, "topology show", "job list"])
def test_help_is_that_of_the_option(name):
    """``help X`` prints what ``X --help`` prints."""
    assert run("help", *name.split()).stdout == run(*name.split(), "--help").stdout


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["plcae"], "Did you mean one of: 'allocate', 'place', 'replace'?"),
        (["topo", "shwo"], "Did you mean 'show'?"),
        (["place", "show"], "'placer place' has no commands"),
        (["place", "-o", "x"], "-o is for --man"),
    ],
)
def test_no_such_command(names, message):
    """What is no command is a usage error that names the nearest."""
    assert message in refusal("help", *names)


@pytest.mark.parametrize("count", [4, pytest.param(99, marks=pytest.mark.slow)])
def test_every_command_has_a_page(tmp_path, count):
    """-o makes a page for each command; man takes them without a warning.

    The first has the commands and what the exit codes mean, and is printed without -o.
    """
    folder = tmp_path / "man1"
    run("help", "--man", "-o", folder)
    pages = {path.name for path in folder.iterdir()}
    assert {f"placer-{name}.1" for name in COMMANDS} < pages
    assert {"placer.1", "placer-topology-show.1", "placer-job-list.1"} < pages
    page = run("help", "--man").stdout
    assert ".SH EXIT STATUS\n.TP\n.B 0\n" in page
    assert r"placer\-place(1)" in page
    man = needs.program("man", "man-db")
    shown = subprocess.run(
        [man, "--warnings", "-l", *(folder / name for name in sorted(pages)[:count])],
        env={"MANWIDTH": "100", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stderr == ""
    for title in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"):
        assert shown.stdout.count(f"\n{title}\n") == min(count, len(pages))


def names_of(command, names=()):
    """Names of a command and of all the commands in it."""
    yield " ".join(names)
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            own = command.get_command(click.Context(command), name)
            assert own is not None
            yield from names_of(own, (*names, name))


PAGES = [*names_of(main)]
LISTS = ("list", "formats")


@pytest.mark.parametrize(
    ("name", "width"), [*((name, 80) for name in PAGES), ("place", 120)]
)
def test_pages_of_help(name, width):
    """A page fits the terminal, breaks no option, and ends its sentences.

    Its last line is a command that can be typed, whole at 80 columns.
    """
    lines = run(*name.split(), "--help", terminal_width=width).stdout.splitlines()
    assert max(map(len, lines)) <= width
    page = "\n".join(lines)
    assert page.startswith(f"Usage: placer {name}".rstrip())
    assert "--debug" in page or " " in name
    # Ranges as click writes them, markup, types of the program, and two old phrases.
    assert not re.search(r"<=|``|INTEGER|FLOAT|TEXT\b|\[default|given again", page)
    assert not re.search(r"\b([Ii]ts|of which)\b", page)
    assert not re.search(r"\w-$", page, re.MULTILINE)
    options = page[re.search(r"^\w+:$", page, re.MULTILINE).start() :]
    rows = re.findall(r"^  -.*(?:\n {6}.*)*", options, re.MULTILINE)
    assert [row for row in rows if not row.endswith(".")] == []
    if not name.endswith(LISTS):
        assert lines[-1].startswith("  Example: ")
        assert f"placer {name}".strip() in lines[-1]


def test_options_are_under_headings():
    """Options of a machine are under Machine, rules under Rules, none is lost."""
    found = run("place", "--help").stdout
    at = {name: found.index(f"\n{name}:\n") for name in HEADINGS if f"{name}:" in found}
    assert at["Machine"] < found.index("--hardware") < at["Job"]
    assert at["Rules"] < found.index("--pin") < at["Search"]
    assert at["Search"] < found.index("--time-limit") < at["Output"]
    context = click.Context(main.get_command(None, "place"))
    options = (p for p in context.command.params if isinstance(p, click.Option))
    shown = [p for p in options if not p.hidden]
    assert [p.opts[-1] for p in shown if p.opts[-1] not in found] == []
