"""Ctrl-C and SIGTERM: the best plan so far is checked and written.

At the end Ctrl-C before the program has loaded what listens for it.
"""

import json
import signal
import time

import pytest

import placer
from tests.commands import python
from tests.forked import Forked

# The command, in which one function makes a file when it has begun and then hangs:
# until it is told to stop, for ever, or before it does its work. "hang" is the body.
SLOW = """\
import pathlib, signal, sys, time
signal.signal(signal.SIGINT, signal.{before})
import {module} as module
fast = module.{name}

def slow(*args, **options):
    {body}

def begun():
    pathlib.Path({begun!r}).touch()

module.{name} = slow
from placer.cli.main import main
sys.argv = ["placer", *{args!r}]
main()
"""
SOLVE, PLACE = ("placer.solve.orders", "solve"), ("place", "-q", "-o")
UNTIL_STOPPED = """\
    found = fast(*args, **options)
    begun()
    _, budget, *_ = args
    while not budget.is_stopped:
        time.sleep(0.01)
    from dataclasses import replace
    return replace(found, stop_reason="interrupted", deterministic=False)
"""
BEFORE = """\
    begun()
    while True:
        time.sleep(0.01)
"""
FOR_EVER = "    found = fast(*args, **options)\n" + BEFORE
SECOND_POINT = """\
    found = fast(*args, **options)
    if args[1].parallelism.dp == 4:
        begun()
        while not options["stop"]():
            time.sleep(0.01)
        found.plan.solver["stop_reason"] = "interrupted"
    return found
"""
A_WHILE = """\
    begun()
    time.sleep(1)
    return fast(*args, **options)
"""


def start(path, body, function=SOLVE, before="default_int_handler", words=PLACE):
    args = [*words, str(path), "-t", "dgx-h100-4x8", "-j", "quickstart"]
    module, name = function
    streams = path.parent.with_name(f"{path.parent.name}-streams")
    streams.mkdir()
    script = SLOW.format(
        begun=str(streams / "begun"),
        module=module,
        name=name,
        body=body.strip(),
        args=args,
        before=before,
    )
    run = Forked(script, streams)
    run.wait_for(streams / "begun")
    return run


def assert_plan(path):
    """The plan in a file, which must hold all its promises."""
    placer.check(
        placer.read_plan(path),
        placer.read_topology("dgx-h100-4x8"),
        placer.read_job("quickstart"),
    )
    return json.loads(path.read_text())["solver"]


BASELINES = "placer.solve.problem.launch", "feasible_colocations"
SCORING = "placer.placement.build", "build_plan"
WRITING = "placer.placement.plan_file", "encode_plan"


@pytest.mark.parametrize(
    ("body", "function", "number", "key", "value"),
    [
        (UNTIL_STOPPED, SOLVE, signal.SIGINT, "stop_reason", "interrupted"),
        (UNTIL_STOPPED, SOLVE, signal.SIGTERM, "stop_reason", "interrupted"),
        # A method that does not listen is left behind.
        (FOR_EVER, SOLVE, signal.SIGTERM, "deterministic", False),
        # Who interrupts the first step of the search has the best baseline already.
        (BEFORE, BASELINES, signal.SIGINT, "stop_reason", "interrupted"),
        # While the plan is written, as while it is scored, the command goes on.
        (A_WHILE, WRITING, signal.SIGINT, "stop_reason", "proved"),
    ],
    ids=["SIGINT", "SIGTERM", "deaf", "baselines", "writing"],
)
def test_one_signal_keeps_the_plan(tmp_path, body, function, number, key, value):
    """The best plan so far is checked and written; the exit code names the signal."""
    path = tmp_path / "plan.json"
    run = start(path, body, function)
    run.send_signal(number)
    ended, out, err = run.end()
    assert (ended, out) == (128 + number, "")
    assert err == "interrupted: this is the best plan so far\n"
    assert assert_plan(path)[key] == value


@pytest.mark.parametrize(
    ("function", "number"),
    [(("placer.job.read", "read_job"), signal.SIGINT), (SOLVE, signal.SIGTERM)],
    ids=["reading", "search"],
)
def test_without_a_placement_nothing_is_written(tmp_path, function, number):
    """Before there is any placement the command ends, says so and writes no file."""
    run = start(tmp_path / "plan.json", BEFORE, function)
    run.send_signal(number)
    ended, out, err = run.end()
    assert (ended, out) == (128 + number, "")
    assert err == "interrupted: there was no plan yet, nothing is written\n"
    assert list(tmp_path.iterdir()) == []


def test_the_rows_of_a_sweep_are_kept(tmp_path):
    """Ctrl-C prints the points done so far."""
    path = tmp_path / "plan.json"
    words = ("sweep", "-q", "--dp", "2,4,1", "--workers", "1", "--format", "json", "-o")
    run = start(path, SECOND_POINT, ("placer.sweep.point", "place"), words=words)
    run.send_signal(signal.SIGINT)
    ended, out, err = run.end()
    assert ended == 130
    assert [row["dp"] for row in json.loads(out)["rows"]] == [2]
    assert "1 of 3 points" in err
    assert "Traceback" not in err


def test_second_signal_leaves_at_once(tmp_path):
    """Who does not want to wait for the plan gets none, and no partial file."""
    path = tmp_path / "plan.json"
    run = start(path, BEFORE, SCORING)
    run.send_signal(signal.SIGTERM)
    time.sleep(0.3)  # or the two could arrive as one
    assert run.is_running()
    run.send_signal(signal.SIGINT)
    ended, _, err = run.end()
    assert ended == 143
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_ignored_signals_stay_ignored(tmp_path):
    """Under nohup and the like a signal that is ignored does not stop the search."""
    path = tmp_path / "plan.json"
    run = start(path, A_WHILE, before="SIG_IGN")
    run.send_signal(signal.SIGINT)
    ended, _, err = run.end()
    assert (ended, err) == (0, "")
    assert assert_plan(path)["stop_reason"] == "proved"


# A process that was started in some way, imports the package and is interrupted.
INTERRUPTED = """\
import os, signal, sys
signal.signal(signal.SIGINT, signal.{handler})  # whatever started the tests
sys.orig_argv, sys.argv = {words!r}, {argv!r}
import placer
os.kill(os.getpid(), signal.SIGINT)
print("went on")
"""


def interrupted(words, argv, handler="default_int_handler"):
    """The program of a process that was started with these words."""
    return INTERRUPTED.format(words=words, argv=argv, handler=handler)


@pytest.mark.parametrize(
    ("words", "argv"),
    [
        (["python3", "-m", "placer", "place"], ["-m", "place"]),
        (["python3", "/usr/bin/placer", "place"], ["/usr/bin/placer", "place"]),
    ],
)
def test_the_program_ends_quietly(words, argv):
    """Its first import takes Ctrl-C: the exit code of shells, and one line."""
    found = python("-c", interrupted(words, argv))
    assert found.returncode == 130
    assert found.stderr == "interrupted: nothing is written\n"
    assert not found.stdout


@pytest.mark.parametrize("module", ["pytest", "placerish"])
def test_a_library_leaves_signals_alone(module):
    """Another program that imports placer gets its own KeyboardInterrupt."""
    words = ["python3", "-m", module, "placer"]
    found = python("-c", interrupted(words, ["-m", "placer"]))
    assert found.stderr.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize("start", [["-m", "placer"], ["cli.py"]])
def test_nothing_of_the_package_loads_before(start):
    """The module that listens comes before every other import of the package."""
    lines = python("-X", "importtime", *start, "--version").stderr.splitlines()
    loaded = [line.rpartition("|")[2].strip() for line in lines]
    ours = [name for name in loaded if name.partition(".")[0] in ("placer", "click")]
    assert ours[0] == "placer.starting"
    assert loaded.index("typing") > loaded.index("placer.starting")


def test_who_ignores_ctrl_c_goes_on():
    """As nohup does, a shell may start it so."""
    code = interrupted(["python3", "-m", "placer"], ["-m"], "SIG_IGN")
    assert python("-c", code).stdout == "went on\n"
