"""Blocks of the documents, and transcripts: what is typed and what it prints."""

import os
import re
import shlex
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

from tests import forked
from tests.forked import Forked

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(
    r"^(?:<!-- (?P<mark>not run|on the cluster|file: (?P<file>\S+)) -->\n+)?"
    r"^```(?P<language>\w+)[^\n]*\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# Lines a search prints once it takes more than a second, as on a busy machine.
PROGRESS = re.compile(
    r"^(?: +time +value .*|\* +[0-9.]+s  .*|[0-9]+ s: .*)\n", re.MULTILINE
)
# What is said of a file that a command wrote; pages leave it out.
WROTE = re.compile(r"^wrote .*\n", re.MULTILINE)
# A command goes on after a backslash at the end of a line.
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
STATUS = "echo $?"
SHELL = re.compile(r"[|<>&;$*?~`(){}#\\\\!\n]")  # what bash would not take as it is


# A block of code; ``mark`` and ``file`` come from the comment before it.
Fence = namedtuple("Fence", ["place", "language", "body", "mark", "file"])
# What follows a ``$``, the lines it prints and the exit code it must have.
Command = namedtuple("Command", ["text", "output", "status"])


def fences(document):
    """The blocks of a document, in order."""
    text = document.read_text()
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("body"))
        yield Fence(
            f"{document.relative_to(ROOT)}:{line}",
            match["language"],
            match["body"],
            match["mark"] or "",
            match["file"] or "",
        )


def commands(transcript):
    """The commands of a console block.

    ``$ echo $?`` is none of its own: what it prints is the status of the one before.
    """
    found = []
    for text, output in COMMAND.findall(transcript):
        if text == STATUS:
            found[-1] = found[-1]._replace(status=int(output))
        else:
            found.append(Command(text, output.splitlines(), 0))
    return found


def with_placer(folder, environ=None):
    """The environment in which ``placer`` is this checkout's, from a file in folder."""
    script = folder / "placer"
    line = shlex.join([sys.executable, str(ROOT / "cli.py")])
    script.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
    script.chmod(0o755)
    environ = dict(os.environ if environ is None else environ)
    return environ | {"PATH": f"{folder}:{environ['PATH']}"}


def run(command, folder, environ, place):
    """Run a command; it must end and print as the document says."""
    status, printed = ended(command.text, folder, environ)
    shown = f"{place}: {command.text}\n{printed}"
    assert status == command.status, f"{shown}status {status}"
    if command.output:
        printed = WROTE.sub("", PROGRESS.sub("", printed))
        assert prints(command.output, printed), shown


def ended(text, folder, environ):
    """Exit code and output of a command: of bash, where more than words is typed."""
    if text.startswith("placer ") and not SHELL.search(text.replace("\\\n", "")):
        words = shlex.split(text.replace("\\\n", " "))[1:]
        streams = folder.parent
        script = forked.command(*words)
        run = Forked(script, streams, out=streams / "err", cwd=folder, environ=environ)
        status, printed, _ = run.end(120)
        return status, printed
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout


def prints(shown, printed):
    """Whether a document shows what was printed.

    A line ``...`` stands for any lines, and ``...`` in a line for any text. Blanks at
    the ends of lines, and empty lines at the end, do not count.
    """
    parts = []
    for line in "\n".join(shown).rstrip().split("\n"):
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(re.escape(line.rstrip()).replace(r"\.\.\.", ".*") + r" *\n")
    return re.fullmatch("".join(parts), printed.rstrip() + "\n") is not None
