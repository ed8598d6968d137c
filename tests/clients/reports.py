"""What processes report of themselves, and what ``placer verify`` makes of it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.placement.plan_file import write_plan
from tests.clients.fake_hosts import clean_environment, run
from tests.emit.readback import plan_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.emit.readback import Seat

ROOT = Path(__file__).resolve().parents[2]
# The probe: in the place of a training program. It does not read the plan.
PLACER = (sys.executable, "-m", "placer")
REPORT = (*PLACER, "verify", "plan.json", "--report")


def environment(**more: str) -> dict[str, str]:
    """An environment without launchers in which ``REPORT`` finds the package."""
    return clean_environment(PYTHONPATH=str(ROOT), **more)


def reports(output: str) -> list[dict[str, Any]]:
    """The report of every process, by rank; lines may run together."""
    found = [json.loads(text) for text in re.findall(r"{[^{}]*}", output)]
    return sorted(found, key=lambda report: report["rank"])


def reported_seats(output: str) -> list[Seat]:
    """Host and GPU of every rank; ranks are 0, 1, 2 ..."""
    found = reports(output)
    assert [report["rank"] for report in found] == list(range(len(found)))
    return [(report["host"], int(report["gpu"])) for report in found]


def verdict(folder: Path, seats: Sequence[Seat], output: str) -> dict[str, Any]:
    """What ``placer verify --collected`` says; "habits" holds names only.

    The exit code is 0 if and only if it says that all is right.
    """
    write_plan(plan_of(list(seats)), folder / "plan.json")
    (folder / "reports.txt").write_text(output)
    files = (folder / "plan.json", "--collected", folder / "reports.txt")
    done = run([*PLACER, "verify", *files, "--format", "json"], environment())
    found: dict[str, Any] = json.loads(done.output)
    assert done.status == (0 if found["ok"] else 1)
    return found | {"habits": [habit["name"] for habit in found["habits"]]}
