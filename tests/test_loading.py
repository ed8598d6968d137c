"""A signal during a library call breaks off no import, so the next call works."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from placer.loading import load

ROOT = Path(__file__).resolve().parents[1]

# Ctrl-C comes when the modules are looked for that bear no interruption.
SCRIPT = """\
import os, signal, sys, time
sys.path.insert(0, {root!r})
import placer

sent = []

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name in {modules!r} and name not in sent:
            sent.append(name)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)

plan = {plan}
sys.meta_path.insert(0, CtrlC())
caught = 0
while True:
    try:
        {call}
        break
    except KeyboardInterrupt:
        caught += 1
print(caught, len(sent))
"""
COMPILED = ("numpy._core._multiarray_umath", "ortools.sat.python.cp_model_helper")
SMALL = "'node:2 gpu:8', 'quickstart'"


def test_a_module_loads_once_and_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C reaches the caller at once; the module is not run a second time."""
    (tmp_path / "slow_to_load.py").write_text(
        "import os, time\n"
        "assert 'SLOW' not in os.environ\n"
        "os.environ['SLOW'] = '1'\n"
        "time.sleep(0.5)\n"
        "done = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("SLOW", raising=False)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        load("slow_to_load")
    assert load("slow_to_load").done


def test_what_cannot_be_imported() -> None:
    """The error of an import reaches the caller."""
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        load("no_such_module")


@pytest.mark.parametrize(
    ("modules", "plan", "call"),
    [
        (COMPILED[:1], None, f"placer.place({SMALL})"),
        (COMPILED, None, "placer.replace"),
        (
            COMPILED[1:],
            f"placer.predict({SMALL}, 'slurm')",
            "placer.check(plan, bound=True)",
        ),
    ],
)
def test_ctrl_c_while_compiled_modules_load(
    modules: tuple[str, ...], plan: str | None, call: str
) -> None:
    """Every Ctrl-C is a `KeyboardInterrupt`, and the call works when made again."""
    script = SCRIPT.format(root=str(ROOT), modules=modules, plan=plan, call=call)
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert run.stdout == f"{len(modules)} {len(modules)}\n", run.stderr
