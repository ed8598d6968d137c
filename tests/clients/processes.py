"""Processes on this machine, as nodes told apart by PLACER_HOST, and their reports."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from placer.placement.plan import Plan
from placer.placement.plan_file import write_plan
from tests.emit.readback import plan_of
from tests.injob.stand_ins import UUID, program, smi_xml

ROOT = Path(__file__).resolve().parents[2]
_LIMIT_S = 240
# torchrun gives its workers half a minute to end.
_GRACE_S = 35
PLACER = (sys.executable, "-m", "placer")
# The probe: in the place of a training program. It does not read the plan.
REPORT = (*PLACER, "verify", "plan.json", "--report")
# A worker that shows its rank, host, GPU and node rank, then what placer makes of them.
PROBE = f"""\
IFS=, read -ra visible <<< "${{CUDA_VISIBLE_DEVICES-}}"
gpu=$LOCAL_RANK
[ ${{#visible[@]}} = 0 ] || gpu=${{visible[LOCAL_RANK]}}
printf 'seat %s %s %s %s\\n' "$RANK" "$PLACER_HOST" "$gpu" "$GROUP_RANK"
exec {" ".join(REPORT)}
"""


@dataclass(frozen=True)
class Done:
    """What a command printed, and how it ended."""

    status: int
    output: str
    error: str


def free_port():
    """A port nobody listens on, outside the range the kernel gives to clients."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000)
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port


def environment(**more):
    """What a process needs to run here, and nothing that a launcher may have set.

    Python finds what it finds in the test itself: packages may be there by PYTHONPATH.
    """
    kept = ("HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR")
    programs = Path(sys.executable).parent
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "PATH": f"{programs}:{os.environ.get('PATH', os.defpath)}",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "PLACER_MASTER_ADDR": "127.0.0.1",
        **more,
    }


def tell_domains(folder, domains, variable="PLACER_HOST", gpus=2):
    """Put an nvidia-smi into a folder: nK is in NVLink domain K mod ``domains``."""
    for k in range(domains):
        text = smi_xml(*["1"] * gpus, uuid=UUID.format(k + 1))
        (folder / f"rack{k}.xml").write_text(text)
    domain = f"k=$((${{{variable}#n}} % {domains}))"
    # nvidia-resiliency-ext asks for the text.
    uuid = f"ClusterUUID : {UUID.format('$((k + 1))')}"
    case = f'{domain}\n[ "$*" = -q ] && echo "{uuid}" || cat {folder}/rack$k.xml'
    program(folder, "nvidia-smi", case)


def in_domains(folder, domains, **more):
    """Of a process on node PLACER_HOST=nK, in NVLink domain K mod ``domains``."""
    tell_domains(folder, domains)
    found = environment(**more)
    return found | {"PATH": f"{folder}:{found['PATH']}"}


def ranks_in_domains(folder, worker, count, per_node, **more):
    """Commands of the ranks of a Python program, so many a node, in two domains."""
    (folder / "worker.py").write_text(worker)
    shared = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", **more}
    own = [{"RANK": str(k), "PLACER_HOST": f"n{k // per_node}"} for k in range(count)]
    command = [sys.executable, str(folder / "worker.py")]
    return [(command, in_domains(folder, 2, **shared, **each)) for each in own]


def run(command, environ=None):
    """The command, run to its end; after a minute it and its children are killed."""
    process = subprocess.Popen(
        list(map(str, command)),
        env=environment() if environ is None else environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, error = process.communicate(timeout=60)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return Done(process.returncode, output, error)


def run_all(folder, commands):
    """All commands at once, each with an environment of its own, until all have ended.

    None is left behind: what has not ended in time is stopped.
    """
    folder.mkdir(exist_ok=True)
    running = []
    try:
        for k, (command, environ) in enumerate(commands):
            out, err = folder / f"{k}.out", folder / f"{k}.err"
            with out.open("ab") as stdout, err.open("ab") as stderr:
                running.append(
                    subprocess.Popen(
                        command,
                        cwd=folder,
                        env=environ,
                        stdin=subprocess.DEVNULL,
                        stdout=stdout,
                        stderr=stderr,
                    )
                )
        _wait(running, _LIMIT_S)
    finally:
        _stop([process for process in running if process.poll() is None])
    texts = [
        [(folder / f"{k}.{end}").read_text() for end in ("out", "err")]
        for k in range(len(running))
    ]
    return [
        Done(process.returncode, *both)
        for process, both in zip(running, texts, strict=True)
    ]


def output(ended):
    """What processes that all ended well have printed."""
    for process in ended:
        assert process.status == 0, process.error
    return "".join(process.output for process in ended)


def seats(text):
    """The map that the probes of a job tell, every rank once."""
    rows = [line.split() for line in text.splitlines() if line.startswith("seat ")]
    by_rank = {int(row[1]): (row[2], int(row[3])) for row in rows}
    assert sorted(by_rank) == list(range(len(rows)))
    return [by_rank[rank] for rank in range(len(rows))]


def reports(text):
    """The report of every process, by rank; lines may run together."""
    found = [json.loads(part) for part in re.findall(r"{[^{}]*}", text)]
    return sorted(found, key=lambda report: report["rank"])


def reported_seats(text):
    """Host and GPU of every rank; ranks are 0, 1, 2 ..."""
    found = reports(text)
    assert [report["rank"] for report in found] == list(range(len(found)))
    return [(report["host"], int(report["gpu"])) for report in found]


def verdict(folder, planned, text):
    """What ``placer verify --collected`` says of a plan; "habits" holds names only.

    The exit code is 0 if and only if it says that all is right.
    """
    plan = planned if isinstance(planned, Plan) else plan_of(list(planned))
    write_plan(plan, folder / "plan.json")
    (folder / "reports.txt").write_text(text)
    files = (folder / "plan.json", "--collected", folder / "reports.txt")
    done = run([*PLACER, "verify", *files, "--format", "json"])
    found = json.loads(done.output)
    assert done.status == (0 if found["ok"] else 1)
    return found | {"habits": [habit["name"] for habit in found["habits"]]}


def _wait(running, seconds):
    """Until all have ended, or the time is over."""
    end = time.monotonic() + seconds
    for process in running:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0, end - time.monotonic()))


def _stop(running):
    for process in running:
        process.terminate()
    _wait(running, _GRACE_S)
    for process in running:
        process.kill()
        process.wait()
