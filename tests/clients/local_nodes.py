"""Nodes of a job on this machine: processes told apart by PLACER_HOST, then stopped."""

import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placer.placement.plan import Plan
from placer.placement.plan_file import write_plan
from tests.emit.readback import Seat

ROOT = Path(__file__).resolve().parents[2]
_LIMIT_S = 240
# torchrun gives its workers half a minute to end.
_GRACE_S = 35

# A worker that shows its rank, host, GPU and node rank, then what placer makes of them.
PROBE = f"""\
IFS=, read -ra visible <<< "${{CUDA_VISIBLE_DEVICES-}}"
gpu=$LOCAL_RANK
[ ${{#visible[@]}} = 0 ] || gpu=${{visible[LOCAL_RANK]}}
printf 'seat %s %s %s %s\\n' "$RANK" "$PLACER_HOST" "$gpu" "$GROUP_RANK"
exec {sys.executable} -m placer verify unread --report
"""

Command = tuple[Sequence[str], Mapping[str, str]]


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    status: int
    output: str
    error: str


def free_port() -> int:
    """A port nobody listens on, outside the range the kernel gives to clients."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000)
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port


def environment(**more: str) -> dict[str, str]:
    """What a process needs to run here, and nothing that a launcher may have set."""
    kept = ("HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR")
    programs = Path(sys.executable).parent
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "PATH": f"{programs}:{os.environ.get('PATH', os.defpath)}",
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "PLACER_MASTER_ADDR": "127.0.0.1",
        **more,
    }


def run_all(folder: Path, commands: Sequence[Command]) -> list[Ended]:
    """All commands at once, each with an environment of its own, until all have ended.

    None is left behind: what has not ended in time is stopped.
    """
    folder.mkdir(exist_ok=True)
    running: list[subprocess.Popen[bytes]] = []
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
    return [
        Ended(
            process.returncode,
            (folder / f"{k}.out").read_text(),
            (folder / f"{k}.err").read_text(),
        )
        for k, process in enumerate(running)
    ]


def output(ended: Sequence[Ended]) -> str:
    """What processes that all ended well have printed."""
    for process in ended:
        assert process.status == 0, process.error
    return "".join(process.output for process in ended)


def seats(text: str) -> list[Seat]:
    """The map that the probes of a job tell, every rank once."""
    rows = [line.split() for line in text.splitlines() if line.startswith("seat ")]
    by_rank = {int(row[1]): (row[2], int(row[3])) for row in rows}
    assert sorted(by_rank) == list(range(len(rows)))
    return [by_rank[rank] for rank in range(len(rows))]


def verify(folder: Path, plan: Plan, text: str) -> tuple[int, dict[str, Any]]:
    """Status and findings of `placer verify` for what a job has printed."""
    write_plan(plan, folder / "plan.json")
    (folder / "reports.txt").write_text(text)
    command = "placer verify plan.json --collected reports.txt --format json"
    done = placer(folder, *command.split()[1:])
    return done.status, json.loads(done.output)


def placer(folder: Path, *arguments: str) -> Ended:
    """The command, in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "placer", *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def _wait(running: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    """Until all have ended, or the time is over."""
    end = time.monotonic() + seconds
    for process in running:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0, end - time.monotonic()))


def _stop(running: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in running:
        process.terminate()
    _wait(running, _GRACE_S)
    for process in running:
        process.kill()
        process.wait()
