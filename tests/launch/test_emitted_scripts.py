"""What processes report under the emitted scripts is what the plan says."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from placer.emit import emit
from placer.launch.compare import compare
from placer.launch.reports import read_reports
from placer.placement.plan import Plan
from tests.emit.readback import FREE, Seat, plan_of

ROOT = Path(__file__).resolve().parents[2]
PERMUTED = [("n3", 1), ("n3", 0), ("n1", 0), ("n1", 1)]
# An agent's numbering, as torchrun's documentation gives it: node rank times processes.
TORCHRUN = """\
#!/bin/bash
for ((k = 0; k < PET_NPROC_PER_NODE; k++)); do
  export TORCHELASTIC_RUN_ID=x LOCAL_RANK=$k GROUP_RANK=$PET_NODE_RANK
  export LOCAL_WORLD_SIZE=$PET_NPROC_PER_NODE
  export RANK=$((PET_NODE_RANK * PET_NPROC_PER_NODE + k))
  export WORLD_SIZE=$((PET_NNODES * PET_NPROC_PER_NODE))
  [ "$1" != --no-python ] || shift
  "$@"
done
"""


def reports(
    folder: Path, plan: Plan, format: str, environs: list[dict[str, str]]
) -> str:
    """What `placer verify --report` prints under the script, once for each environ."""
    stub = folder / "torchrun"
    stub.write_text(TORCHRUN)
    stub.chmod(0o755)
    script = emit(plan, format, folder / "script.sh")
    command = shlex.split(f"{sys.executable} -m placer verify plan.json --report")
    text = ""
    for environ in environs:
        done = subprocess.run(
            ["bash", str(script), *command],
            env={"PATH": f"{folder}:{os.defpath}", "PYTHONPATH": str(ROOT), **environ},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        text += done.stdout
    return text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format", "seats", "visible"),
    [
        ("torchrun", PERMUTED, None),
        ("torchrun", PERMUTED, "4,6"),
        ("torchrun-wrapper", FREE, None),
        ("env", FREE, None),
        ("env", FREE, "4,6"),
    ],
)
def test_scripts_and_reports_agree(
    tmp_path: Path, format: str, seats: list[Seat], visible: str | None
) -> None:
    """Every rank is reported once, on the host and the GPU of the plan."""
    plan = plan_of(seats)
    environs = [
        {"PLACER_HOST": host, "PLACER_LOCAL_INDEX": str(k)}
        for host in plan.nodes
        for k in range(2 if format == "env" else 1)
    ]
    if visible:
        environs = [environ | {"CUDA_VISIBLE_DEVICES": visible} for environ in environs]
    text = reports(tmp_path, plan, format, environs)
    found = compare(plan, read_reports(text, "out").processes)
    assert found.holds
    assert (found.reported, found.unknown_gpus) == (len(seats), 0)
