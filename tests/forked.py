"""Scripts in processes of their own that have the large libraries already.

Each is a fork of one process that has loaded them, which takes a fraction of a start.
"""

import os
import time
from multiprocessing import get_context
from pathlib import Path

CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["click", "ortools.math_opt.python.mathopt", "ortools.sat.python.cp_model", "yaml"]
)
COMMAND = """\
import sys
from placer.__main__ import run
sys.argv[1:] = {!r}
sys.exit(run())
"""
FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC | os.O_NOCTTY


def command(*words):
    """The script that runs ``placer`` with these words."""
    return COMMAND.format([*words])


def _run(script, streams, cwd, env):
    for number, path in enumerate(streams, 1):
        os.dup2(os.open(path, FLAGS, 0o644), number)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    exec(compile(script, "script", "exec"), {"__name__": "__main__"})


class Forked:
    """A running script; what it prints goes to files."""

    def __init__(
        self,
        script,
        streams,  # the folder of its output and error
        *,
        out=None,  # another path of its output, as that of a terminal
        cwd=None,  # else here
        environ=None,  # else this one
    ):
        self._out, self._err = out or streams / "out", streams / "err"
        self._process = CONTEXT.Process(
            target=_run,
            args=(
                *(script, (str(self._out), str(self._err))),
                *(str(cwd or Path.cwd()), dict(environ or os.environ)),
            ),
        )
        self._process.start()

    def wait_for(self, path):
        """Wait until it has made the file."""
        while not path.exists():
            assert self.is_running(), self._err.read_text()
            time.sleep(0.002)

    def is_running(self):
        """Whether it has not ended."""
        return self._process.is_alive()

    def send_signal(self, number):
        """Send it a signal."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def end(self, timeout=60.0):
        """Exit code, standard output and error, once it has ended."""
        self._process.join(timeout)
        if self.is_running():
            self._process.kill()
            raise TimeoutError
        out = self._out.read_text() if self._out.is_file() else ""
        return self._process.exitcode, out, self._err.read_text()
