"""Ctrl-C before the program has loaded what listens for it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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


def python(*args):
    command = [sys.executable, *args]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )


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
