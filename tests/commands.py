"""The command as it is typed, and what it says."""

import json

from click.testing import CliRunner

from placer.cli.main import main


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
