"""Scripts in processes of their own that have the large libraries already.

Each is a fork of one process that has loaded them, which takes a fraction of a start.
"""

import os
import signal
import time
from collections.abc import Mapping
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path

CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["click", "numpy", "ortools.math_opt.python.mathopt", "ortools.sat.python.cp_model"]
)
RUN = "import sys; from placer.__main__ import run; sys.argv[1:] = {!r}; sys.exit(run())"


def _run(script: str, out: str, err: str, environ: Mapping[str, str] | None) -> None:
    for stream, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOCTTY), stream)
    if environ is not None:
        os.environ.clear()
        os.environ.update(environ)
    exec(compile(script, "script", "exec"), {"__name__": "__main__"})


class Forked:
    """A Python script that runs in ``folder``'s files ``out`` and ``err``."""

    def __init__(
        self,
        script: str,
        folder: Path,
        out: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._out, self._err = folder / "out", folder / "err"
        args = (script, out or str(self._out), str(self._err), environ)
        self._process: ForkServerProcess = CONTEXT.Process(target=_run, args=args)
        self._process.start()

    def wait_for(self, path: Path) -> None:
        """Wait until it has made the file."""
        while not path.exists():
            assert self._process.is_alive(), self._err.read_text()
            time.sleep(0.002)

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.is_alive()

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def end(self) -> tuple[int | None, str, str]:
        """Exit code, standard output and error, once it has ended."""
        self._process.join(60)
        out = self._out.read_text() if self._out.exists() else ""
        return self._process.exitcode, out, self._err.read_text()
