"""Hints call inputs as their reader gave them: keywords in Python, else options."""

import re

import click
import pytest
from click.testing import CliRunner

import placer
from placer.cli.grouped import HEADINGS
from placer.cli.main import main
from tests.sources.reading import SMALL


def options_of(command, context):
    """Long options of a command and of all its commands."""
    for parameter in command.params:
        yield from (o for o in getattr(parameter, "opts", ()) if o.startswith("--"))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            own = command.get_command(context, name)
            assert own is not None
            yield from options_of(own, context)


# Other programs have their own -o and --format, which hints may speak of.
OPTIONS = {*options_of(main, click.Context(main))} - {*HEADINGS["Output"].split()}


def named_in(text):
    """Options of placer that a text names, but for those of whole commands."""
    told = re.sub(r"`[^`]*`", "", text)
    sources = re.findall(r"(?<!\S)-[tj] [\w-]+:", told)
    return {*re.findall(r"(?<![\w-])--[a-z][a-z-]*(?![\w-])", told)} & OPTIONS | {
        *sources
    }


def told(source):
    """Problems of a job as the library raises them."""
    try:
        placer.read_job(source)
    except placer.InputError as error:
        return [str(problem) for problem in error.problems]
    return []


@pytest.mark.parametrize(("name", "text"), SMALL[1:-1])
def test_a_job_with_a_line_less(name, text, tmp_path):
    """Whatever a job lacks is asked for by keyword; the command asks by option."""
    path = tmp_path / "source"
    lines = text.splitlines(keepends=True)
    for left_out in range(len(lines)):
        path.write_text("".join(lines[:left_out] + lines[left_out + 1 :]))
        assert not named_in(" ".join(told(f"{name}:{path}")))
    path.write_text(text)
    asked = CliRunner().invoke(main, ["job", "validate", f"{name}:{path}"]).stderr
    assert named_in(asked)
    assert not re.search(r"\b(gpus|tflops|settings|select|micro_batch_time)=", asked)


CALLS = {
    "gpu": (
        lambda: placer.read_topology("rack:2 node:4 gpu:8", gpu="x1"),
        ["topology", "show", "rack:2 node:4 gpu:8", "--gpu", "x1"],
        "hardware=T takes",
        "--hardware T takes",
    ),
    "objective": (
        lambda: placer.place("dgx-h100-4x8", "quickstart", require={"dp": "nod"}),
        ["place", "-t", "dgx-h100-4x8", "-j", "quickstart", "--require", "dp=nod"],
        "require.dp: ",
        "require.dp: ",
    ),
    "degrees": (
        lambda: placer.tune("dgx-h100-4x8", "quickstart", tp=[64]),
        ["tune", "-t", "dgx-h100-4x8", "-j", "quickstart", "--tp", "64"],
        "give tp= other values",
        "give --tp other values",
    ),
    "pace": (
        lambda: placer.read_job("quickstart", tflops=300),
        ["job", "show", "quickstart", "--tflops", "300"],
        'takes no tflops=\n  hint: settings={"job.KEY": "VALUE"} sets',
        "takes no --tflops\n  hint: --set job.KEY=VALUE sets",
    ),
    "setting": (
        lambda: placer.read_job("quickstart", settings={"TP": "8"}),
        ["job", "show", "quickstart", "--set", "TP=8"],
        'settings["TP"]: no source has a variable TP',
        "--set TP: no source has a variable TP",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_both_are_told_in_their_own_words(name):
    """A fault names the keyword in Python and the option on a terminal."""
    call, words, keyword, option = CALLS[name]
    with pytest.raises(placer.PlacerError) as error:
        call()
    assert keyword in str(error.value)
    assert option in CliRunner().invoke(main, words).stderr
