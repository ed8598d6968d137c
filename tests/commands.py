"""The command as it is typed, and what it says."""

import json
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from placer.cli.main import main

ROOT = Path(__file__).resolve().parents[1]


def run(*words, code=0, **more):
    """The command with these words, which must end with the code unless it is None.

    All else is for click, as ``input`` and ``env`` are.
    """
    found = CliRunner().invoke(main, [*map(str, words)], **more)
    assert code is None or found.exit_code == code, found.output
    return found


def data(*words, **more):
    """What it prints as JSON."""
    return json.loads(run(*words, "--format", "json", **more).stdout)


def refusal(*words, code=2, **more):
    """What it says where it refuses: a message, no data and no traceback."""
    found = run(*words, code=code, **more)
    assert found.stdout == ""
    assert found.stderr.strip()
    assert "Traceback" not in found.stderr
    return found.stderr


def python(*words, **more):
    """Python with these words in a process of its own, in the checkout unless said."""
    given = {"cwd": ROOT, "capture_output": True, "text": True} | more
    return subprocess.run([sys.executable, *map(str, words)], **given)
