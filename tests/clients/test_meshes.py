"""Meshes of real PyTorch and JAX whose groups lie in NVLink domains."""

import json

import pytest

from tests.clients import processes as local
from tests.clients.needs import module
from tests.clients.processes import ranks_in_domains

# The members of every group are at their coordinates, as collectives see them too.
TORCH = """\
import json
import torch
import torch.distributed as dist
import placer

shape, names = (2, 4), ("dp", "tp")
dist.init_process_group("gloo")
mesh = placer.torch_mesh("cpu", shape, names)
own = mesh.get_coordinate()
assert [mesh.get_local_rank(name) for name in names] == list(own)
for dim, name in enumerate(names):
    members = [torch.zeros(1, dtype=torch.int64) for _ in range(shape[dim])]
    mine = torch.tensor([dist.get_rank()])
    dist.all_gather(members, mine, group=mesh[name].get_group())
    others = tuple(c for k, c in enumerate(own) if k != dim)
    assert mesh.mesh.movedim(dim, -1)[others].tolist() == [int(m) for m in members]
print("mesh", json.dumps(mesh.mesh.flatten().tolist()))
dist.destroy_process_group()
"""
JAX = """\
import json, os
import jax
import placer
from placer.injob.meshes import partition_index

jax.distributed.initialize(
    os.environ["MEET"], 4, int(os.environ["RANK"]), partition_index=partition_index()
)
mesh = placer.jax_mesh((2, 4), ("data", "model"))
assert mesh.shape == {"data": 2, "model": 4}
print("mesh", json.dumps([device.process_index for device in mesh.devices.flat]))
total = jax.shard_map(
    lambda x: jax.lax.psum(x, "model"),
    mesh=mesh,
    in_specs=jax.P(("data", "model")),
    out_specs=jax.P("data"),
)(jax.numpy.arange(8))
for shard in total.addressable_shards:
    assert shard.data.tolist() == ([6], [22])[shard.index[0].start or 0]
"""


def meshes(ended):
    text = local.output(ended)
    lines = [line for line in text.splitlines() if line.startswith("mesh ")]
    return [json.loads(line[5:]) for line in lines]


@pytest.mark.slow
def test_torch(tmp_path):
    """Four nodes of two processes: every process gets one mesh, its groups in order."""
    module("torch")
    port = str(local.free_port())
    commands = ranks_in_domains(tmp_path, TORCH, 8, 2, MASTER_PORT=port)
    first, *others = meshes(local.run_all(tmp_path / "run", commands))
    assert others == [first] * 7
    assert first in ([0, 1, 4, 5, 2, 3, 6, 7], [2, 3, 6, 7, 0, 1, 4, 5])


@pytest.mark.slow
def test_jax(tmp_path):
    """Four processes of two devices; the mesh sums along groups of one domain."""
    module("jax")
    more = {
        "MEET": f"127.0.0.1:{local.free_port()}",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
    }
    commands = ranks_in_domains(tmp_path, JAX, 4, 1, **more)
    first, *others = meshes(local.run_all(tmp_path / "run", commands))
    assert others == [first] * 3
    assert first in ([0, 0, 2, 2, 1, 1, 3, 3], [1, 1, 3, 3, 0, 0, 2, 2])
