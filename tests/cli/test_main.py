"""The command as a whole: every bad input ends in a message and the right code."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from placer.base.errors import (
    CheckError,
    EmitError,
    InfeasibleError,
    InputError,
    OutputError,
)
from placer.cli.main import COMMANDS, main

ROOT = Path(__file__).resolve().parents[2]
MACHINE = "rack:2 node:2 gpu:2"
HEAD = "format: placer/job\nversion: 1\nname: small\n"
JOB = HEAD + "parallelism: {tp: 2, dp: 4}\nweights: {tp: 10, dp: 1}\n"
TOPOLOGY = """\
format: placer/topology
version: 1
name: two
tiers:
  - {name: node, size: 4, bandwidth: 100GB/s, scale_up: true}
  - {name: cluster, bandwidth: 10GB/s}
nodes:
  - {names: "n[1-2]"}
"""

# What may stand where a YAML or JSON file is wanted.
BAD_TEXTS = {
    "empty": "",
    "not yaml": "a: [1, 2\nb: }",
    "tabs": "a:\n\t- b",
    "unknown key": JOB + "wieghts: {tp: 1}\n",
    "duplicate key": JOB + "name: again\n",
    "wrong type": HEAD + "parallelism: 8\n",
    "negative": HEAD + "parallelism: {tp: -2, dp: 4}\nweights: {tp: 1}\n",
    "zero": HEAD + "parallelism: {tp: 0}\nweights: {tp: 1}\n",
    "huge": HEAD + "parallelism: {tp: 999999999999}\nweights: {tp: 1}\n",
    "alias bomb": "a: &a [x]\nb: [*a, *a]\n",
    "python tag": "!!python/object/apply:os.system [id]\n",
    "deep": "[" * 10_000,
    "nan": HEAD + "parallelism: {tp: 2}\nweights: {tp: .nan}\n",
    "other format": "format: placer/other\nversion: 1\n",
    "newer": "format: placer/job\nversion: 99\n",
    "escape": HEAD.replace("small", '"\\e[31mred"') + "parallelism: {tp: 2}\n",
    "json list": "[1, 2, 3]",
    "scalar": "42",
    "garbage": "\ufffd%&/()=?`" * 200_000,
}


def run(*args: object, text: str | None = None) -> Result:
    return CliRunner().invoke(main, list(map(str, args)), input=text)


def assert_refused(found: Result, code: int = 2) -> None:
    assert found.exit_code == code, found.output
    assert found.stdout == ""
    assert found.stderr.strip()
    assert "Traceback" not in found.stderr
    assert "\x1b" not in found.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inputs")
    (path / "job.yaml").write_text(JOB)
    (path / "machine.yaml").write_text(TOPOLOGY)
    for name, text in BAD_TEXTS.items():
        (path / name).write_text(text)
    (path / "binary").write_bytes(bytes(range(256)) * 40_000)
    (path / "utf16").write_bytes(JOB.encode("utf-16"))
    return path


@pytest.mark.parametrize("name", [*BAD_TEXTS, "binary", "utf16", ".", "missing.yaml"])
@pytest.mark.parametrize(
    "command",
    [
        ["place", "-t", MACHINE, "-j", None],
        ["place", "-t", None, "-j", "job.yaml"],
        ["score", "-t", MACHINE, "-j", "job.yaml", "--plan", None],
        ["check", None, "-t", MACHINE, "-j", "job.yaml"],
        ["diff", None, None],
        ["draw", None],
        ["emit", None, "json"],
        ["topo", "validate", None],
        ["jobs", "show", None],
    ],
    ids=lambda command: " ".join(word or "BAD" for word in command),
)
def test_bad_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], name: str
) -> None:
    """A file that cannot be used ends with 2 and its name, whatever the command."""
    monkeypatch.chdir(folder)
    found = run(*(f"./{name}" if word is None else word for word in command))
    assert_refused(found)


def test_all_problems_at_once(tmp_path: Path) -> None:
    """Each problem of a file has its line and column, and all come together."""
    path = tmp_path / "job.yaml"
    path.write_text(HEAD + "parallelism: {tp: two}\nsequence: long\nweights: {tp: 1}\n")
    found = run("place", "-t", MACHINE, "-j", path)
    assert_refused(found)
    assert f"{path}:4:" in found.stderr
    assert f"{path}:5:" in found.stderr


@pytest.mark.parametrize(
    "name",
    ["a;reboot", "$(reboot)", "-oProxyCommand=x", "../../etc", "a\x1b[31mb", "é"],
)
def test_hostile_host_names(tmp_path: Path, name: str) -> None:
    """A node name that could mean something to a shell is refused, never echoed raw."""
    import json

    path = tmp_path / "machine.yaml"
    path.write_text(TOPOLOGY.replace('"n[1-2]"', json.dumps(name)))
    assert_refused(run("topo", "show", path))
    assert_refused(run("place", "-t", MACHINE, "-j", "quickstart", "--hosts", name))


def test_unknown_words() -> None:
    """Unknown commands and options are usage errors."""
    for args in (["plcae"], ["place", "--fast"], ["topo", "lst"], ["--verbose"]):
        assert_refused(run(*args))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    """--help lists every command, and that of each prints its usage as ``placer``."""
    assert f"\n  {command} " in run("--help").stdout
    found = run(command, "--help")
    assert found.exit_code == 0
    assert found.stdout.startswith(f"Usage: placer {command}")
    assert "--debug" in found.stdout


@pytest.mark.parametrize(
    ("error", "code", "start"),
    [
        (InputError("broken"), 2, "error: broken"),
        (EmitError("broken"), 2, "error: broken"),
        (InfeasibleError("broken"), 3, "infeasible: broken"),
        (OutputError("broken"), 4, "error: broken"),
        (CheckError(["broken"]), 1, "error: broken"),
        (ZeroDivisionError("broken"), 70, "internal error: ZeroDivisionError: broken"),
        (RuntimeError("a\x1b[31m\nb"), 70, "internal error: RuntimeError: a"),
        (ModuleNotFoundError("no", name="ortools.sat"), 2, "error: this needs ortools"),
        (ModuleNotFoundError("no", name="own"), 70, "internal error: ModuleNotFound"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
        (OSError(28, "No space left on device"), 4, "error: standard output"),
        (FileNotFoundError(2, "No such file", "x"), 70, "internal error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
@pytest.mark.parametrize("place_of_flag", ["none", "before", "after"])
def test_exit_codes(
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    start: str,
    place_of_flag: str,
) -> None:
    """Each kind of error has its code; its traceback shows with --debug only."""

    def fail(*_args: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr("placer.cli.main._drop_output", lambda: None)
    monkeypatch.setattr("placer.formats.machines.machine.read_topology", fail)
    args = ["score", "-t", MACHINE, "-j", "quickstart", "baseline:random"]
    if place_of_flag != "none":
        args.insert(0 if place_of_flag == "before" else len(args), "--debug")
    found = run(*args)
    assert found.exit_code == code
    if place_of_flag == "none":
        assert found.stderr.startswith(start)
        assert "Traceback" not in found.stderr
    else:
        assert start in found.stderr
        assert ("Traceback" in found.stderr) == (code != 141)
    assert "\x1b" not in found.stderr


def test_broken_pipe_is_quiet() -> None:
    """A reader that goes away early leaves no message."""
    command = subprocess.Popen(
        [sys.executable, "cli.py", "topo", "list"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert command.stdout is not None
    assert command.stderr is not None
    command.stdout.close()
    with command.stderr as stderr:
        assert stderr.read() == b""
    assert command.wait() == 141


def test_choices_are_listed_one_a_line() -> None:
    """What an argument may be is readable where it is missing."""
    assert "\n  folder,\n  job,\n" in run("schema").output


def test_stdin() -> None:
    """``-`` reads standard input."""
    found = run("place", "-q", "-t", MACHINE, "-j", "-", text=JOB)
    assert found.exit_code == 0, found.stderr
    assert run("topo", "validate", "-", text=TOPOLOGY).exit_code == 0
