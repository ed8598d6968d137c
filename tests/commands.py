"""The command as it is typed, and what it says."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from placer.cli.main import main


def run(*words: object, code: int | None = 0, **more: Any) -> Result:
    """The command with these words, which must end with the code unless it is None.

    All else is for click, as ``input`` and ``env`` are.
    """
    found = CliRunner().invoke(main, [*map(str, words)], **more)
    assert code is None or found.exit_code == code, found.output
    return found


def data(*words: object, **more: Any) -> Any:
    """What it prints as JSON."""
    return json.loads(run(*words, "--format", "json", **more).stdout)


def refusal(*words: object, code: int = 2, **more: Any) -> str:
    """What it says where it refuses: a message, no data and no traceback."""
    found = run(*words, code=code, **more)
    assert found.stdout == ""
    assert found.stderr.strip()
    assert "Traceback" not in found.stderr
    return found.stderr
