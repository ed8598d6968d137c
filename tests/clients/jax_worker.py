"""One JAX process of a job: which device the plan's mesh has where.

    python jax_worker.py PLAN FOLDER

FOLDER is the emitted `jax` folder. With PLACER_HOST the process joins others, with the
plan's process id. It prints `places JSON`: for every rank on its devices that device's
number, and those of the rank's group along every axis.
"""

import json
import os
import sys
from importlib import import_module

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from placer.launch import jax_arguments, jax_mesh, this_process
from placer.launch.process import report_line
from placer.placement.plan_file import read_plan


def plan_mesh(plan, loader):
    """The mesh of the emitted loader, which must be that of the library."""
    mesh, other = loader.mesh(), jax_mesh(plan)
    assert mesh.axis_names == other.axis_names
    assert np.array_equal(mesh.devices, other.devices)
    return mesh


def numbers():
    """Device -> 100 times its process, plus its place there; not told by the plan."""
    found = {}
    for process in range(jax.process_count()):
        own = [d for d in jax.devices() if d.process_index == process]
        for place, device in enumerate(sorted(own, key=lambda d: d.id)):
            found[device] = 100 * process + place
    return found


def spread(mesh, values):
    """The values over the mesh, one on every device."""
    sharding = NamedSharding(mesh, PartitionSpec(*mesh.axis_names))
    grid = np.array(values, dtype=np.int32).reshape(mesh.devices.shape)
    return jax.make_array_from_callback(grid.shape, sharding, lambda at: grid[at])


def gathered(mesh, axis, array):
    """Device of this process -> the values of its group along an axis, in order."""
    spec = PartitionSpec(*mesh.axis_names)
    gather = jax.shard_map(
        lambda own: jax.lax.all_gather(own, axis, axis=own.ndim),
        mesh=mesh,
        in_specs=spec,
        out_specs=spec,
    )
    shards = jax.jit(gather)(array).addressable_shards
    return {shard.device: shard.data.ravel().tolist() for shard in shards}


def main():
    path, folder = sys.argv[1:]
    plan = read_plan(path)
    sys.path.insert(0, folder)
    loader = import_module("placer_mesh")
    if os.environ.get("PLACER_HOST"):
        arguments = loader.arguments()
        assert arguments == jax_arguments(plan)
        jax.distributed.initialize(**arguments)
        os.environ["JAX_NUM_PROCESSES"] = str(jax.process_count())
        os.environ["JAX_PROCESS_ID"] = str(jax.process_index())
        sys.stdout.write(report_line(this_process()) + "\n")
    mesh, number = plan_mesh(plan, loader), numbers()
    ranks = spread(mesh, list(range(plan.world_size))).addressable_shards
    array = spread(mesh, [number[device] for device in mesh.devices.flat])
    groups = {axis: gathered(mesh, axis, array) for axis in mesh.axis_names}
    places = {
        int(shard.data.item()): [
            number[shard.device],
            {axis: of_device[shard.device] for axis, of_device in groups.items()},
        ]
        for shard in ranks
    }
    sys.stdout.write(f"places {json.dumps(places)}\n")


main()
