"""A signal during a library call breaks off no import, so the next call works."""

import pytest

from placer.base.loading import load
from tests.commands import ROOT, python

# A bound counts parts of rings, so that a solver is asked.
RINGS = """\
format: placer/job
version: 1
name: rings
launcher: {ranks: free}
parallelism: {tp: 1, cp: 6, dp: 5}
weights: {cp: 40, dp: 41}
"""
# Ctrl-C comes while an extension module imports another, which it cannot bear.
SCRIPT = """\
import os, signal, sys, time
sys.path.insert(0, {root!r})
import placer

sent = []

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r} and not sent:
            sent.append(name)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)

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


def test_a_module_loads_once_and_to_its_end(tmp_path, monkeypatch):
    """Ctrl-C reaches the caller at once; the module is not run a second time.

    The error of an import reaches the caller too.
    """
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        load("no_such_module")
    (tmp_path / "slow_to_load.py").write_text(
        "import os, signal, time\n"
        "assert 'SLOW' not in os.environ\n"
        "os.environ['SLOW'] = '1'\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "time.sleep(0.5)\n"
        "done = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("SLOW", raising=False)
    with pytest.raises(KeyboardInterrupt):
        load("slow_to_load")
    assert load("slow_to_load").done


@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("numpy.exceptions", "placer.read_topology('node:2 gpu:8')"),
        (
            "ortools.math_opt.core.python.solver",
            "placer.place('rack:5 node:5 gpu:2', 'rings.yaml', time_limit=3.0)",
        ),
    ],
)
def test_ctrl_c_while_compiled_modules_load(tmp_path, module, call):
    """Ctrl-C is a `KeyboardInterrupt`, and the call works when it is made again."""
    (tmp_path / "rings.yaml").write_text(RINGS)
    script = SCRIPT.format(root=str(ROOT), module=module, call=call)
    run = python("-c", script, cwd=tmp_path)
    assert run.stdout == "1 1\n", run.stderr
