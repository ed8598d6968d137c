"""The hand-over to real PyTorch and JAX on CPU, where they are installed."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.emit.readback import FREE

ROOT = Path(__file__).resolve().parents[2]

TORCH = """
import os, torch, torch.distributed as dist
from placer.launch import torch_arguments
from tests.emit.readback import FREE, plan_of
arguments = torch_arguments(plan_of(FREE))
dist.init_process_group("gloo", **arguments)
mine = torch.tensor([dist.get_rank()])
every = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
dist.all_gather(every, mine)
print(dist.get_rank(), [int(t) for t in every])
dist.destroy_process_group()
"""

JAX = """
import jax, numpy as np
from placer.launch import jax_mesh
from tests.emit.readback import FREE
from tests.launch.test_ranks import meshed
mesh = jax_mesh(meshed(FREE, "tp-cp-ep-pp-dp", tp=2, pp=2, dp=2))
print(mesh.axis_names, [d.id for d in mesh.devices.flat])
"""


def start(script: str, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | environ,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_torch_meets_by_plan() -> None:
    """Eight gloo processes started host by host take the ranks of a free map."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    seats = [(host, k) for host in ("n1", "n2", "n3", "n4") for k in (0, 1)]
    runs = [
        start(
            TORCH,
            PLACER_HOST=host,
            PLACER_LOCAL_INDEX=str(k),
            PLACER_MASTER_ADDR="127.0.0.1",
            MASTER_PORT=port,
        )
        for host, k in seats
    ]
    lines = [run.communicate(timeout=120)[0] for run in runs]
    assert lines == [f"{FREE.index(s)} {list(range(8))}\n" for s in seats]


@pytest.mark.slow
def test_jax_mesh_keeps_the_plan() -> None:
    """A mesh over eight CPU devices has them where the plan's ranks are."""
    pytest.importorskip("jax", reason="JAX is not installed")
    flags = "--xla_force_host_platform_device_count=8"
    out = start(JAX, JAX_PLATFORMS="cpu", XLA_FLAGS=flags).communicate(timeout=120)[0]
    assert out == "('dp', 'pp', 'cp', 'tp') [0, 3, 4, 7, 2, 1, 6, 5]\n"
