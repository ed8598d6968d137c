"""Labels of Kubernetes nodes, and what pods must say to run on them."""

import json

from placer.topology.read import parse_topology
from placer.topology.write import compact_document, to_document
from tests.commands import run
from tests.problems import problems_of
from tests.readers import cases
from tests.readers.cases import machine_of, node, nodes


def test_label_on_the_command_line(tmp_path):
    """``--label KEY=TIER``, more than once; what it means is printed to stderr.

    What is no KEY=TIER is a usage error.
    """
    for wrong in ("rack", "=rack", "a=b\n"):
        run("topo", "show", "dgx-h100-4x8", "--label", wrong, code=2)
    path = tmp_path / "nodes.json"
    text = cases.labelled_nodes(8, {"example.com/row": 4, "example.com/rack": 2})
    path.write_text(text)
    words = ["topo", "convert", path, "--hardware", cases.H100]
    words += ["--label", "example.com/row=row", "--label", "example.com/rack=rack"]
    done = run(*words)
    assert "8 nodes, 32 GPUs; 2 rows, 4 racks\n" in done.stderr
    assert {"name": "row"}.items() <= json.loads(done.stdout)["tiers"][2].items()
    quiet = run(*words, "-q")
    assert (quiet.stdout, quiet.stderr) == (done.stdout, "")


def test_what_pods_must_say_is_kept(tmp_path):
    """Labels of tiers, taints and NICs of usable nodes; topology files have them."""
    gpu = {"key": "nvidia.com/gpu", "value": "x", "effect": "NoSchedule"}
    ill = {"key": "example.com/ill", "effect": "NoExecute"}
    soft = {"key": "soft", "effect": "PreferNoSchedule"}
    items = []
    for i in range(6):
        labels = {"nvidia.com/gpu.clique": f"c.{i // 2}", "example.com/hall": "h"}
        taints = [gpu, soft, *[ill] * (i == 1)]
        item = node(f"n{i}", labels, taints=taints, unschedulable=i == 5)
        offered = {"rdma/ib": "8", "rdma/shared": "1k", "rdma/none": "0", "cpu": "4"}
        item["status"]["allocatable"] |= offered if i != 2 else {"rdma/ib": "4"}
        items.append(item)
    control = node("c", {}, taints=[{"key": "control", "effect": "NoSchedule"}])
    control["status"]["allocatable"] = {}
    machine, _ = machine_of(tmp_path, nodes(control, *items), hardware=cases.GB200)
    known = machine.kubernetes.to_document()
    assert known == {
        "labels": {"rack": "nvidia.com/gpu.clique"},
        "taints": [gpu, {**ill, "hosts": "n1"}],
        "resources": [
            {"name": "rdma/ib", "count": 8, "hosts": "n[0-1,3-4]"},
            {"name": "rdma/shared", "count": 1000, "hosts": "n[0-1,3-4]"},
            {"name": "rdma/ib", "count": 4, "hosts": "n2"},
        ],
    }
    for document in (to_document(machine), compact_document(machine)):
        again = parse_topology(json.dumps(document), "t.json")
        assert again.kubernetes == machine.kubernetes
        assert again.sha256 == machine.sha256


def test_the_resource_of_most_gpus_is_kept(tmp_path):
    """AMD's device plugin offers another one than NVIDIA's."""
    items = [node(f"n{i}", {}) for i in range(3)]
    for item in items:
        item["status"]["allocatable"] = {"amd.com/gpu": "8"}
    machine, _ = machine_of(tmp_path, nodes(*items), hardware=cases.H100)
    assert machine.kubernetes.gpu == "amd.com/gpu"


def test_labels_of_a_topology_file_are_of_its_tiers():
    """A tier that the machine does not have, an effect and a host list are told."""
    text = """
        {"format": "placer/topology", "version": 1, "name": "t",
         "tiers": [{"name": "node", "size": 4, "bandwidth": 1e9},
                   {"name": "cluster", "bandwidth": 1e9}],
         "layout": "cluster:1 node:2",
         "kubernetes": {"labels": {"rack": "x"}, "resources": [{"name": "a"}],
           "taints": [{"key": "k", "effect": "PreferNoSchedule", "hosts": "n["}]}}"""
    assert {problem.key for problem in problems_of(parse_topology, text, "t.json")} == {
        "kubernetes.labels.rack",
        "kubernetes.taints[0].effect",
        "kubernetes.taints[0].hosts",
        "kubernetes.resources[0]",
    }
