"""The emitted Ray loader on a real cluster whose nodes are all this machine."""

import json
import os
import subprocess
import sys

import pytest

from placer.emit import emit
from tests.clients import needs, processes
from tests.emit.readback import plan_of

# Nodes join in another order than the plan's, and one more than it has; the plan has no
# rank on GPU 0 of n1.
WORKER = """\
import json, sys
sys.path.insert(0, FOLDER)
import placer_ray, ray
from ray.cluster_utils import Cluster

cluster = Cluster()
cluster.add_node(num_cpus=0, num_gpus=0, include_dashboard=False)
ray.init(address=cluster.address, logging_level="error", log_to_driver=False)
for host, gpus in json.loads(sys.argv[1]).items():
    cluster.add_node(num_cpus=1, num_gpus=gpus, labels={"placer-host": host})

@ray.remote(num_cpus=0)
class Trainer:
    def where(self):
        sys.path.insert(0, FOLDER)
        import placer_ray
        context = ray.get_runtime_context()
        host = context.get_node_labels()["placer-host"]
        (gpu,) = context.get_accelerator_ids()["GPU"]
        try:
            return [placer_ray.rank(), host, int(gpu), placer_ray.environment()]
        except RuntimeError as error:
            return [placer_ray.rank(), host, int(gpu), str(error)]

group = placer_ray.placement_group()
ray.get(group.ready(), timeout=60)
actors = [
    Trainer.options(num_gpus=1, scheduling_strategy=strategy).remote()
    for strategy in placer_ray.strategies(group)
]
print(json.dumps(ray.get([actor.where.remote() for actor in actors], timeout=60)))
"""


def printed(folder, script, *words, **environ):
    """The lines that a script prints, which must end well."""
    needs.module("ray")
    (folder / "driver.py").write_text(script)
    run = subprocess.run(
        [sys.executable, str(folder / "driver.py"), *words],
        env=environ,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


@pytest.mark.slow
def test_actors_find_their_ranks(tmp_path):
    """Every actor reports the plan's rank for its node and GPU, and rank 0's host."""
    seats = [("n3", 1), ("n1", 1), ("n3", 0)]
    folder = emit(plan_of(seats), "ray", tmp_path / "ray")
    gpus = dict.fromkeys(["n0", *sorted({host for host, _ in seats})], 2)
    script = WORKER.replace("FOLDER", repr(str(folder)))
    environ = os.environ | {"MASTER_PORT": "1234"}
    found = json.loads(printed(tmp_path, script, json.dumps(gpus), **environ)[-1])
    (lone,) = (row for row in found if row[0] is None)
    assert lone[1:3] == ["n1", 0]
    assert "no rank on this actor's GPU" in lone[3]
    found.remove(lone)
    job = {"WORLD_SIZE": "3", "MASTER_ADDR": "n3", "MASTER_PORT": "1234"}
    assert sorted(found) == [
        [rank, host, gpu, {"RANK": str(rank), "LOCAL_RANK": "0", **job}]
        for rank, (host, gpu) in enumerate(seats)
    ]


# Five nodes, three in one NVLink domain and two in the other.
PROBED = """\
import json
import ray
from ray.cluster_utils import Cluster
from ray.util import placement_group, placement_group_table

import placer

cluster = Cluster()
cluster.add_node(num_cpus=1, num_gpus=0, include_dashboard=False)
try:
    placer.ray_nodes()
except placer.InputError as error:
    print(error)
ray.init(address=cluster.address, logging_level="error", log_to_driver=False)
for k in range(5):
    host = {"PLACER_HOST": f"n{k}"}
    cluster.add_node(num_cpus=1, num_gpus=2, labels={"host": f"n{k}"}, env_vars=host)
host = {row["NodeID"]: row["Labels"].get("host") for row in ray.nodes()}
order = placer.ray_nodes(4)
group = placement_group(
    [{"GPU": 2}] * len(order),
    strategy="STRICT_SPREAD",
    bundle_label_selector=[{"ray.io/node-id": node} for node in order],
)
ray.get(group.ready(), timeout=60)
bundles = placement_group_table(group)["bundles_to_node_id"]
found = [order, [bundles[k] for k in range(4)]]
print(json.dumps([[host[node] for node in nodes] for nodes in found]))
try:
    placer.ray_nodes(6)
except placer.InputError as error:
    print(error)
"""


@pytest.mark.slow
def test_nodes_are_asked(tmp_path):
    """Ray's nodes in an order that keeps NVLink domains together, and bundles in it."""
    environ = processes.in_domains(tmp_path, 2)
    lines = printed(tmp_path, PROBED, "--tensor-parallel-size=4", **environ)
    unconnected, _, found, too_few = lines
    assert "Ray is not connected" in unconnected
    order, bundles = json.loads(found)
    assert order == bundles
    domains = [int(host[1:]) % 2 for host in order]
    assert domains in ([0, 0, 1, 1], [1, 1, 0, 0])
    assert too_few.endswith("Ray has 5 nodes with GPUs, 6 are wanted")
