"""Real signals at any moment of any command: a whole result, or none and a message."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from types import SimpleNamespace

import pytest

import placer
from tests.commands import ROOT, python

MACHINE = "rack:4 node:3 gpu:4"
HARD = """\
format: placer/job
version: 1
name: hard
launcher: {ranks: free}
parallelism: {tp: 2, pp: 3, dp: 5, order: tp-cp-ep-pp-dp}
weights: {tp: 40, pp: 40, dp: 41}
"""
HARD_ARGS = ["-t", MACHINE, "-j", "hard.yaml", "--time-limit", "2"]
PRESETS = ["-t", "dgx-h100-4x8", "-j", "quickstart"]

# OUT is where the result goes.
COMMANDS = {
    "place": ["place", "-q", *PRESETS, "-o", "OUT"],
    "place by CP-SAT": ["place", "-v", *HARD_ARGS, "-o", "OUT"],
    "place to stdout": ["place", *PRESETS, "--format", "json"],
    "replace": ["replace", "plan.json", "--failed", "n1", "-q", "-o", "OUT"],
    "sweep": ["sweep", *PRESETS, "--dp", "1-8", "--workers", "2", "--plot", "OUT.svg"],
    "tune": ["tune", *PRESETS, "--workers", "2", "--pp", "1,2", "-o", "OUT"],
    "score": ["score", *PRESETS, "--plan", "plan.json", "--explain"],
    "diff": ["diff", "plan.json", "baseline:random", "-o", "OUT.html"],
    "emit": ["emit", "plan.json", "json", "-o", "OUT"],
    "draw": ["draw", "plan.json", "-o", "OUT.svg"],
    "check": ["check", "plan.json", *PRESETS],
    "verify": ["verify", "plan.json", "--collected", "reports.txt"],
    "topo convert": ["topo", "convert", MACHINE, "-o", "OUT"],
    "calibrate": ["calibrate", "measured.yaml"],
}
MEASURED = """\
format: placer/measurements
version: 1
topology: dgx-h100-4x8
job: quickstart
points:
  - {dp: 2, micro_batches: 8, step_time: 1.5s}
  - {dp: 2, micro_batches: 16, step_time: 2.8s}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The inputs of the commands."""
    path = tmp_path_factory.mktemp("signals")
    machine, job = placer.read_topology("dgx-h100-4x8"), placer.read_job("quickstart")
    placer.write_plan(placer.place(machine, job).plan, path / "plan.json")
    (path / "hard.yaml").write_text(HARD)
    (path / "measured.yaml").write_text(MEASURED)
    (path / "reports.txt").write_text("no report\n")
    return path


def listens(pid):
    """Whether the process has a handler of SIGTERM, which Python itself has not."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    caught = re.search(r"SigCgt:\s*([0-9a-f]+)", status)
    # One that has ended has none.
    return caught is None or bool(int(caught[1], 16) >> (signal.SIGTERM - 1) & 1)


def ended(folder, words, number=0, delay_s=0.0):
    """The command, to which this signal is sent so long after it begins to listen.

    It may have ended before; the seconds are those from then on.
    """
    mine = folder / f"{random.getrandbits(60):x}"
    mine.mkdir()
    args = [word.replace("OUT", str(mine / "out")) for word in words]
    with (mine / "err").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "placer", *args],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=err,
        )
    while process.poll() is None and not listens(process.pid):
        time.sleep(0.001)
    begin = time.monotonic()
    time.sleep(delay_s)
    was_alive = process.poll() is None
    process.send_signal(number)
    code, seconds = process.wait(60), time.monotonic() - begin
    texts = {path.name: path.read_text() for path in mine.iterdir()}
    found = {"exit_code": code, "err": texts.pop("err"), "outputs": texts}
    return SimpleNamespace(**found, was_alive=was_alive, seconds=seconds)


def wrong(folder, name, number, run):
    """What the command did that it must not."""
    if "Traceback" in run.err or "Exception ignored" in run.err:
        yield "a traceback"
    if run.was_alive and number != signal.SIGKILL:
        # One that came after the last byte changes nothing.
        own = {"diff": 1, "verify": 2}.get(name, 0)
        if run.exit_code not in (128 + number, own):
            yield f"exit code {run.exit_code}"
        if run.exit_code == 128 + number and "interrupted" not in run.err:
            yield "silence"
        if any(file.startswith(".") for file in run.outputs):
            yield "a temporary file"
    for file, text in run.outputs.items():
        if not file.startswith(".") and not is_whole(folder, name, text):
            yield f"a part of {file}"


def is_whole(folder, name, text):
    if name not in ("place", "place by CP-SAT", "replace"):
        return text.rstrip().endswith(("}", "]", "</svg>", "</html>"))
    plan = json.loads(text)
    path = folder / f"{random.getrandbits(60):x}.json"
    path.write_text(text)
    machine = MACHINE if name == "place by CP-SAT" else "dgx-h100-4x8"
    job = str(folder / "hard.yaml") if name == "place by CP-SAT" else "quickstart"
    placer.check(
        placer.read_plan(path), placer.read_topology(machine), placer.read_job(job)
    )
    return plan["world_size"] > 0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize(("count", "seed"), [(5, 11), (2 * len(COMMANDS), 12)])
def test_any_command_at_any_moment(folder, count, seed):
    """Whatever is interrupted: a whole file or none, a message, and 130 or 143."""
    rng = random.Random(seed)
    names = [*islice(cycle(rng.sample([*COMMANDS], len(COMMANDS))), count)]
    known = sorted({*names})
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGINT, signal.SIGKILL]

    def one(case):
        name, number, delay_s = case
        run = ended(folder, COMMANDS[name], number, delay_s)
        found = wrong(folder, name, number, run)
        return [f"{case}: {what}: {run.err}" for what in found]

    with ThreadPoolExecutor(3) as pool:
        # How long a command takes hangs on the machine; its last steps matter most.
        took = [*pool.map(lambda name: ended(folder, COMMANDS[name]).seconds, known)]
        time_of = dict(zip(known, took, strict=True))
        cases = [
            (n, rng.choice(numbers), 1.1 * rng.random() * time_of[n]) for n in names
        ]
        assert [what for found in pool.map(one, cases) for what in found] == []


LIBRARY = """\
import os, signal, sys, threading, time
sys.path.insert(0, {root!r})
import placer

def mine(*_):
    raise KeyboardInterrupt("mine")

signal.signal(signal.SIGINT, mine)
machine, job = placer.read_topology({machine!r}), placer.read_job("hard.yaml")
threading.Timer({delay_s}, os.kill, (os.getpid(), signal.SIGINT)).start()
sent = time.monotonic() + {delay_s}
try:
    {call}
    print("no interrupt")
except KeyboardInterrupt as error:
    assert error.args == ("mine",)
    print("interrupted" if time.monotonic() - sent < 2.0 else "late")
assert signal.getsignal(signal.SIGINT) is mine
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
except KeyboardInterrupt:
    print("connected")
"""
FULL = 'placer.place(machine, job, effort="full", time_limit=3.0)'
IN_A_THREAD = """\
work = threading.Thread(target=placer.place, args=(machine, job),
        kwargs=dict(effort="full", time_limit=2.0), daemon=True)
    work.start()
    work.join()"""


@pytest.mark.parametrize(
    ("call", "delay_s"),
    [(FULL, 0.05), pytest.param(FULL, 1.4, marks=pytest.mark.slow), (IN_A_THREAD, 0.7)],
)
def test_a_callers_own_handler(folder, call, delay_s):
    """In the library KeyboardInterrupt reaches the caller, whose handler stays."""
    script = LIBRARY.format(root=str(ROOT), machine=MACHINE, delay_s=delay_s, call=call)
    run = python("-c", script, cwd=folder)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "interrupted\nconnected\n", run.stderr
