"""The command as a whole: every bad input ends in a message and the right code.

Errors of a first run have one shape, and tell all that is wrong at once.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from placer.base.errors import (
    CheckError,
    EmitError,
    InfeasibleError,
    InputError,
    OutputError,
)
from tests.cli.small_job import HEAD, MACHINE, WEIGHED, topology
from tests.commands import refusal, run

ROOT = Path(__file__).resolve().parents[2]
JOB = WEIGHED


# What may stand where a YAML or JSON file is wanted.
BAD_TEXTS = {
    "empty": "",
    "not yaml": "a: [1, 2\nb: }",
    "unknown key": JOB + "wieghts: {tp: 1}\n",
    "duplicate key": JOB + "name: again\n",
    "wrong type": HEAD + "parallelism: 8\n",
    "huge": HEAD + "parallelism: {tp: 999999999999}\nweights: {tp: 1}\n",
    "alias bomb": "a: &a [x]\nb: [*a, *a]\n",
    "python tag": "!!python/object/apply:os.system [id]\n",
    "deep": "[" * 10_000,
    "nan": HEAD + "parallelism: {tp: 2}\nweights: {tp: .nan}\n",
    "other format": "format: placer/other\nversion: 1\n",
    "newer": "format: placer/job\nversion: 99\n",
    "escape": HEAD.replace("small", '"\\e[31mred"') + "parallelism: {tp: 2}\n",
    "scalar": "42",
    "garbage": "\ufffd%&/()=?`" * 20_000,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("inputs")
    (path / "job.yaml").write_text(JOB)
    (path / "machine.yaml").write_text(topology("n[1-2]"))
    for name, text in BAD_TEXTS.items():
        (path / name).write_text(text)
    (path / "binary").write_bytes(bytes(range(256)) * 40_000)
    (path / "utf16").write_bytes(JOB.encode("utf-16"))
    return path


ODD_FILES = ("binary", "utf16", ".", "missing.yaml")


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("place -t node:4 -j BAD", (*BAD_TEXTS, *ODD_FILES)),
        ("place -t BAD -j job.yaml", (*BAD_TEXTS, *ODD_FILES)),
        ("emit BAD json", (*BAD_TEXTS, *ODD_FILES)),
        ("score -t machine.yaml -j job.yaml --plan BAD", ODD_FILES),
        ("check BAD -t machine.yaml -j job.yaml", ODD_FILES),
        ("diff BAD BAD", ODD_FILES),
        ("draw BAD", ODD_FILES),
        ("topo validate BAD", ODD_FILES),
        ("jobs show BAD", ODD_FILES),
    ],
)
def test_bad_files(folder, monkeypatch, command, names):
    """A file that cannot be used ends with 2 and its name, whatever the command."""
    monkeypatch.chdir(folder)
    for name in names:
        words = [f"./{name}" if word == "BAD" else word for word in command.split()]
        told = refusal(*words)
        assert name in told
        assert "\x1b" not in told


@pytest.mark.parametrize(
    "name",
    ["a;reboot", "$(reboot)", "-oProxyCommand=x", "../../etc", "a\x1b[31mb", "é"],
)
def test_hostile_host_names(tmp_path, name):
    """A node name that could mean something to a shell is refused, never echoed raw."""
    path = tmp_path / "machine.yaml"
    path.write_text(topology(name))
    hosts = ("place", "-t", MACHINE, "-j", "quickstart", "--hosts", name)
    for words in (("topo", "show", path), hosts):
        assert "\x1b" not in refusal(*words)


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
def test_exit_codes(monkeypatch, error, code, start, place_of_flag):
    """Each kind of error has its code; its traceback shows with --debug only."""

    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr("placer.cli.main._drop_output", lambda: None)
    monkeypatch.setattr("placer.formats.machines.machine.read_topology", fail)
    args = ["score", "-t", MACHINE, "-j", "quickstart", "baseline:random"]
    if place_of_flag != "none":
        args.insert(0 if place_of_flag == "before" else len(args), "--debug")
    found = run(*args, code=code)
    if place_of_flag == "none":
        assert found.stderr.startswith(start)
        assert "Traceback" not in found.stderr
    else:
        assert start in found.stderr
        assert ("Traceback" in found.stderr) == (code != 141)
    assert "\x1b" not in found.stderr


def test_broken_pipe_is_quiet():
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


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("--frob",), "placer"),
        (("place", "--gap", "x"), "placer place"),
        (("score",), "placer score"),
        (("topology", "show"), "placer topology show"),
        (("draw", "p.json", "traffic", "--zoom", "r1"), "placer draw"),
    ],
    ids=" ".join,
)
def test_usage_errors_are_as_others(words, command):
    """They begin with ``error:`` and end with a hint that can be typed."""
    first, last = refusal(*words).splitlines()
    assert first.startswith("error: ")
    assert last == f"  hint: {command} --help"


@pytest.mark.parametrize(
    "words", ["place", "allocate", "score launcher:slurm", "calibrate megatron-log:LOG"]
)
def test_faults_of_machine_and_job_are_told_together(tmp_path, words):
    """A bad machine does not hide what is wrong with the job."""
    machine, job = tmp_path / "machine.yaml", tmp_path / "job.yaml"
    machine.write_text("format: placer/topology\nversion: 1\nname: m\nbogus: 1\n")
    job.write_text("format: placer/job\nversion: 1\nname: j\nbogus: 1\n")
    log = tmp_path / "LOG"
    log.write_text(" iteration 1/ 9 | elapsed time per iteration (ms): 155.7 |\n" * 3)
    words = words.replace("LOG", str(log)).split()
    told = refusal(*words, "-t", machine, "-j", job)
    for path in (machine, job):
        assert f'{path}:4:1: unknown key "bogus"' in told
    gone = refusal(*words, "-t", f"{machine}.gone", "-j", f"{job}.gone")
    assert gone.count("cannot be read") == 2


def test_bad_values_of_options_are_told_together():
    """Each option with a bad value has a line, in the order typed, and one hint.

    A number that is too small or too large is told what it may be; what an argument may
    be is listed, one a line.
    """
    words = ("place", "--gap", "x", "--pin", "y", "--gpus", "0", "--effort", "z")
    *told, hint = refusal(*words).splitlines()
    assert [line.split("'")[1] for line in told] == [*words[1::2]]
    assert all(line.startswith("error: Invalid value for ") for line in told)
    assert hint == "  hint: placer place --help"
    found = refusal("place", "--gpus", "0", "--workers", "5000")
    assert "expected 1 or more, got 0" in found
    assert "expected 1 to 1,024, got 5000" in found
    assert "\n  folder,\n  job,\n" in refusal("schema")
