"""Small sources of every format, and what tests ask of a machine."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from placer.readers.machine import read_topology

if TYPE_CHECKING:
    from pathlib import Path

    from placer.topology.model import Topology

# GPUs a node 8 and NVLink inside the node only; 4 and NVLink racks.
H100 = "dgx-h100-32"
GB200 = "azure-gb200-mlperf-v6"

TREE = """\
# s1=east
SwitchName=spine Switches=s[1-2] LinkSpeed=100
SwitchName=s1 Nodes=n[1-4]
switchname = s2 nodes = "n[5-8]"   # the rest
"""
BLOCKS = """\
BlockName=b1 Nodes=n[1-2]
BlockName=b2 Nodes=n[3-4]
BlockName=b3 Nodes=n[5-6]
BlockName=b4 Nodes=n[7-8]
BlockSizes=2,4
"""
YAML = """\
- topology: fabric
  cluster_default: true
  tree:
    switches:
      - {switch: spine, children: "leaf[1-2]"}
      - {switch: leaf1, nodes: "n[1-4]"}
      - {switch: leaf2, nodes: "n[5-8]"}
- topology: nvl
  block:
    block_sizes: [2, 4]
    blocks:
      - {block: b1, nodes: "n[1-2]"}
      - {block: b2, nodes: "n[3-4]"}
      - {block: b3, nodes: "n[5-6]"}
      - {block: b4, nodes: "n[7-8]"}
- topology: plain
  flat: true
"""
SCONTROL = """\
SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-8] Switches=leaf[1-2]
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-4]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[5-8]
"""
SCONTROL_BLOCKS = """\
BlockName=b2 BlockIndex=1 Nodes=n[3-4] BlockSize=2
BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2
BlockName=b3 BlockIndex=2 Nodes=n[5-6] BlockSize=2
AggregatedBlock=b[1-2] BlockIndex=3 Nodes=n[1-4] BlockSize=4
"""
MODEL = """\
switches:
  core:
    labels: {topology.kubernetes.io/region: here}
    switches: [leaf1, leaf2, leaf3]
blocks:
- switch: leaf1
  nodes: ["[1101-1102]", 1103]
  annotations: {accelerator.topology.test/domain: nvl1}
- switch: leaf2
  nodes: ["[1201-1203]"]
  annotations: {accelerator.topology.test/domain: nvl2}
"""
GRAPH = json.dumps(
    {
        "instances": [
            {
                "id": f"i-{i}",
                "network_layers": [f"leaf-{i // 2}", f"spine-{i // 4}"],
                "labels": {
                    "accelerator.topograph.run/domain": f"d{i // 2}",
                    "accelerator.topograph.run/sub-domain": f"d{i // 2}.r{i}",
                },
            }
            for i in range(8)
        ]
    },
    indent=1,
)
AWS = json.dumps(
    {
        "Instances": [
            {
                "InstanceId": f"i-{i}",
                "InstanceType": "p5.48xlarge",
                "NetworkNodes": [f"nn-t{i // 4}", f"nn-m{i // 2}", f"nn-b{i}"],
                "ZoneId": "use1-az1",
                "CapacityBlockId": "null",
            }
            for i in range(8)
        ]
    },
    indent=1,
)
GCP = json.dumps(
    [
        {
            "name": f"vm-{i}",
            "id": str(i),
            "zone": "https://www.googleapis.com/compute/v1/projects/p/zones/z-a",
            "resourceStatus": {
                "physicalHostTopology": {
                    "cluster": "c",
                    "block": f"b{i // 4}",
                    "subblock": f"s{i // 2}",
                    "host": f"h{i}",
                }
            },
        }
        for i in range(8)
    ],
    indent=1,
)
OCI = "\n".join(
    f"gpu-{i}: "
    + json.dumps(
        {
            "customerHPCIslandId": "island",
            "customerNetworkBlock": f"nb{i // 4}",
            "customerLocalBlock": f"lb{i // 2}",
            "customerHostId": f"h{i}",
        }
    )
    for i in range(8)
)
NAMES = "# instance host\n" + "".join(f"i-{i} gpu-{i}\n" for i in range(8))


def node(name: str, labels: dict[str, str], **more: object) -> dict[str, object]:
    """A Kubernetes node with four GPUs."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": more,
        "status": {"allocatable": {"nvidia.com/gpu": "4"}},
    }


def nodes(*items: object) -> str:
    """What ``kubectl get nodes -o json`` prints for these nodes."""
    return json.dumps({"apiVersion": "v1", "items": items, "kind": "List"}, indent=1)


KUBERNETES = nodes(
    *(
        node(
            f"gpu-{i}",
            {
                "kubernetes.io/hostname": f"gpu-{i}",
                "nvidia.com/gpu.clique": f"5000.{i // 2}",
                "fabric.topograph.run/tier-0": f"leaf-{i // 2}",
                "fabric.topograph.run/tier-1": f"spine-{i // 4}",
            },
        )
        for i in range(8)
    )
)

TEXTS = {
    "slurm": TREE,
    "slurm-yaml": YAML,
    "scontrol": SCONTROL,
    "topograph-model": MODEL,
    "topograph": GRAPH,
    "kubernetes": KUBERNETES,
    "aws": AWS,
    "gcp": GCP,
    "oci": OCI,
    "names": NAMES,
}
HARDWARE = {"kubernetes": GB200, "aws": H100, "gcp": H100, "oci": H100}


def machine_of(
    folder: Path, *texts: str, hardware: str = GB200, **options: object
) -> tuple[Topology, list[str]]:
    """The machine of some texts, recognised by content, and the notes."""
    sources = []
    for number, text in enumerate(texts):
        path = folder / f"source{number}"
        path.write_text(text)
        sources.append(f"names:{path}" if text is NAMES else str(path))
    notes: list[str] = []
    machine = read_topology(sources, hardware=hardware, note=notes.append, **options)
    return machine, notes


def nodes_of_domains(machine: Topology, tier: str) -> dict[str, list[str]]:
    """Names of the nodes of every domain of a tier."""
    t = machine.tier_index(tier)
    found: dict[str, list[str]] = {name: [] for name in machine.domain_names[t]}
    for name, domain in zip(machine.node_names, machine.domain_of_node[t], strict=True):
        found[machine.domain_names[t][domain]].append(name)
    return found


def sizes(machine: Topology, tier: str) -> Counter[int]:
    """How many domains of a tier have how many nodes."""
    return Counter(map(len, nodes_of_domains(machine, tier).values()))


def tier_names(machine: Topology) -> list[str]:
    """Names of the tiers, innermost first."""
    return [tier.name for tier in machine.tiers]
